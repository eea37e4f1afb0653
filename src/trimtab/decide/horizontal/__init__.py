"""How many replicas a workload gets, and why.

`decide` takes an `Observation` and the time, and returns a `Decision`: replicas, status, events, memory and trace. `after_scale`
completes it once the scale was written. `explain` puts it into words, and a `Record` keeps it for `replay`. Every rule that decides
replicas belongs here; reading and writing do not, and no clock is read. Read `decide` and `reasons`, then the steps in the order
of the data: observation, selection, metrics, limits, status, records, explain.
"""

from trimtab.decide.horizontal.decide import decide
from trimtab.decide.horizontal.decision import Decision, EventToRecord
from trimtab.decide.horizontal.explain import Explanation, explain
from trimtab.decide.horizontal.memory import Memory
from trimtab.decide.horizontal.observation.observation import Observation, ScaleFailure
from trimtab.decide.horizontal.observation.owners import (
    ConflictingHpa,
    Owner,
    OwnerNotFound,
    OwnerUnavailable,
    Target,
    found_owner,
    owner_key,
)
from trimtab.decide.horizontal.observation.pods import PodSnapshot, snapshot_pod
from trimtab.decide.horizontal.observation.samples import (
    FetchFailure,
    MetricSamples,
    PodSamples,
    Sample,
    Series,
)
from trimtab.decide.horizontal.reasons import Code, Count, Reason
from trimtab.decide.horizontal.records.record import Record, replay
from trimtab.decide.horizontal.rules import HpaSettings, Rules
from trimtab.decide.horizontal.selection.owners import owners_to_find
from trimtab.decide.horizontal.status.after_write import after_scale, after_status

__all__ = [
    "Code",
    "ConflictingHpa",
    "Count",
    "Decision",
    "EventToRecord",
    "Explanation",
    "FetchFailure",
    "HpaSettings",
    "Memory",
    "MetricSamples",
    "Observation",
    "Owner",
    "OwnerNotFound",
    "OwnerUnavailable",
    "PodSamples",
    "PodSnapshot",
    "Reason",
    "Record",
    "Rules",
    "Sample",
    "ScaleFailure",
    "Series",
    "Target",
    "after_scale",
    "after_status",
    "decide",
    "explain",
    "found_owner",
    "owner_key",
    "owners_to_find",
    "replay",
    "snapshot_pod",
]
