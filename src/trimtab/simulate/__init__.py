"""Backtest on the production decisions with a virtual clock, to see what an autoscaler would have done.

`Trace` is recorded load, `Model` says how the simulated workload behaves, `play` lets `decide` act on both sync by sync
and `Tally` adds up what came of it. Nothing here reads a clock, a cluster or the network; whoever calls brings the
load along. What belongs here: how a simulated workload answers a decision. What does not: any rule that decides.
"""

from trimtab.simulate.backtest import Candidate, SyncStep, backtest
from trimtab.simulate.model import Model, ModelError
from trimtab.simulate.results import Carried, Figures, Results, run, tally
from trimtab.simulate.trace import Trace, TraceError, read_trace

__all__ = [
    "Candidate",
    "Carried",
    "Figures",
    "Model",
    "ModelError",
    "Results",
    "SyncStep",
    "Trace",
    "TraceError",
    "backtest",
    "read_trace",
    "run",
    "tally",
]
