"""Backtest autoscalers: run the production code on recorded or invented load, in virtual time.

Reading order: `model` (assumptions), `workload` (pods and nodes), `load` (what pods use), `hpa_runs` and `vpa_runs` (production code in
the order of its programs; the latter alone needs numpy), `life` (one happening after another, and what came of it), `results` (the
figures of HPAs), `sizes` (those of VPAs), `chart` (the pictures).

A life with happenings:

    workload = Workload("db", template, kind="StatefulSet", replicas=3, now=RELATIVE_START)
    life = Life(workload, LoadByFunction(used), settings_of(compat=UPSTREAM_RULES), vpas=vpas, scopes=scopes)
    life.at(0, lambda life: life.move_role("db-0"))
    life.at(3600, lambda life: life.kill("db-0", "OOMKilled"))
    outcomes = life.run(86400).outcomes

`template` is the JSON of a pod template. `used(pod, now)` returns millicores and bytes by container. Happenings use the methods of
`Life` (`label`, `move_role`, `kill`, `scale`, `stop`, `begin`, `save_checkpoints`, `set_vpa`, `delete_vpa`, `set_scope`,
`delete_scope`, `load_changed`), its attributes (`missing`, `refusals`, `min_available`) and those of its `workload` (`roll_out`,
`set_node`, `remove_node`, `behaviour`). `log`, `sizes` and `outcomes` are what it leaves.

What belongs here: how a simulated workload responds to a decision. What does not: rules that decide, and any I/O.
"""

from trimtab.library.simulator.hpa_runs import Candidate
from trimtab.library.simulator.model import Model, ModelError
from trimtab.library.simulator.results import Figures, LoadFigures, Results, backtest, run
from trimtab.library.trace import Trace, TraceError, read_trace

__all__ = [
    "Candidate",
    "Figures",
    "LoadFigures",
    "Model",
    "ModelError",
    "Results",
    "Trace",
    "TraceError",
    "backtest",
    "read_trace",
    "run",
]
