"""Plug-ins: functions of other packages that a decision, the adapter or the recommender calls.

The protocols with their frozen values are here, and what all four kinds share: names, loading, guarded calls. The
callers, and what an answer changes, are in `decide`, `operator` and `adapter`. Nothing here reads a cluster; only `registry` imports code.

The names that are imported here are what authors of plug-ins use.

Read `kinds` (the four kinds and what a plug-in declares), `pod_filter`, `replica_policy`, `metric_source` and `estimator` (the
protocols), `answers` (what all may return), `registry` (loads the named plug-ins), then `guard` and `time_limit` (call one so that it
stops nothing else), `thread` (where a metric source runs), and `metrics` (counts for Prometheus). `testing` is the kit for tests of
plug-ins.
"""

from trimtab.plugins.errors import DeclinedError
from trimtab.plugins.estimator import (
    Amounts,
    Estimate,
    Estimator,
    EstimatorInput,
    UsageHistogram,
    UsageSample,
)
from trimtab.plugins.kinds import declare
from trimtab.plugins.metric_source import LabelRequirement, MetricRequest, MetricSource, MetricValue
from trimtab.plugins.pod_filter import (
    CannotFilterError,
    FilterNode,
    FilterPod,
    FilterTarget,
    PodFilter,
    PodFilterInput,
)
from trimtab.plugins.replica_policy import (
    PolicyMetric,
    ReplicaPolicy,
    ReplicaPolicyInput,
    ReplicaProposal,
)

__all__ = [
    "Amounts",
    "CannotFilterError",
    "DeclinedError",
    "Estimate",
    "Estimator",
    "EstimatorInput",
    "FilterNode",
    "FilterPod",
    "FilterTarget",
    "LabelRequirement",
    "MetricRequest",
    "MetricSource",
    "MetricValue",
    "PodFilter",
    "PodFilterInput",
    "PolicyMetric",
    "ReplicaPolicy",
    "ReplicaPolicyInput",
    "ReplicaProposal",
    "UsageHistogram",
    "UsageSample",
    "declare",
]
