"""Backtest autoscalers: run the production code on recorded load, in virtual time.

Reading order: `candidates` (manifests to try), `trace` (recorded load), `model` (how the simulated workload behaves),
`workload` (its pods), `backtest` (one sync after another), `results` (the figures), `sizes` (all of this for VPAs, the
only module that needs numpy), `chart` (the pictures).

What belongs here: how a simulated workload responds to a decision. What does not: rules that decide, and any I/O.
"""

from trimtab.backtest.backtest import Candidate, SyncStep, backtest
from trimtab.backtest.model import Model, ModelError
from trimtab.backtest.results import Figures, LoadFigures, Results, run, run_all, run_with_progress
from trimtab.backtest.trace import Trace, TraceError, read_trace

__all__ = [
    "Candidate",
    "Figures",
    "LoadFigures",
    "Model",
    "ModelError",
    "Results",
    "SyncStep",
    "Trace",
    "TraceError",
    "backtest",
    "read_trace",
    "run",
    "run_all",
    "run_with_progress",
]
