"""How many pods a workload should have, and why.

`decide` takes an `Observation` (everything that was read, frozen) and the time, and returns a `Decision` (replicas,
whole status, events, memory and the way to it). If the scale is to be written, `after_scale` completes the decision
with the outcome. `explain` puts it into words; `record` keeps it so that it can be made again. Nothing here does
I/O or looks at a clock. What belongs here: any rule that decides replicas. What does not: reading and writing.
"""

from trimtab.decide.horizontal.config import DEFAULT, KUBERNETES_1_36, Compat, Settings
from trimtab.decide.horizontal.decide import decide
from trimtab.decide.horizontal.decision import Decision, Told
from trimtab.decide.horizontal.explain.explanation import Explanation, explain
from trimtab.decide.horizontal.explain.reason import Verdict, verdict_of
from trimtab.decide.horizontal.memory import Memory
from trimtab.decide.horizontal.observation.observation import Observation, ScaleFailure
from trimtab.decide.horizontal.observation.pods import PodFacts, pod_facts
from trimtab.decide.horizontal.observation.samples import (
    Failed,
    PodSamples,
    Reading,
    Sample,
    Series,
)
from trimtab.decide.horizontal.records.record import Record, decide_again
from trimtab.decide.horizontal.selection.ambiguity import Rival
from trimtab.decide.horizontal.selection.owners import (
    Gone,
    Owner,
    Target,
    Unread,
    found_owner,
    owner_key,
    owners_to_find,
)
from trimtab.decide.horizontal.status.after_write import after_scale, after_status

__all__ = [
    "DEFAULT",
    "KUBERNETES_1_36",
    "Compat",
    "Decision",
    "Explanation",
    "Failed",
    "Gone",
    "Memory",
    "Observation",
    "Owner",
    "PodFacts",
    "PodSamples",
    "Reading",
    "Record",
    "Rival",
    "Sample",
    "ScaleFailure",
    "Series",
    "Settings",
    "Target",
    "Told",
    "Unread",
    "Verdict",
    "after_scale",
    "after_status",
    "decide",
    "decide_again",
    "explain",
    "found_owner",
    "owner_key",
    "owners_to_find",
    "pod_facts",
    "verdict_of",
]
