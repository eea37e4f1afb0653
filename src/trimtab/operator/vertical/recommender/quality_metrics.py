"""Upstream's `vpa_quality_*` metrics, which compare usage with recommendations.

Upstream observes samples one by one. Here all samples of a step are counted at once.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.containers import UsageRows
from trimtab.decide.vertical.histogram.go_math import Floats
from trimtab.decide.vertical.recommend.quality import ComparedUsage, Expectations
from trimtab.model.core.pod import CPU, MEMORY

_CORES = [0.01 * 2**power for power in range(17)]
_BYTES = [1e6 * 2**power for power in range(17)]
_BELOW = [-1.0, -0.75, -0.5, -0.25, -0.1, -0.05, -0.025, -0.01, -0.005, -0.0025, -0.001]
_ABOVE = [
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
]
_RELATIVE = [*_BELOW, 0.0, *_ABOVE]


class BulkHistogram(Collector):
    """A Prometheus histogram that observes arrays."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self.name, self._text, self.labels = f"vpa_quality_{name}", text, tuple(labels)
        self._edges = np.array(buckets)
        self._counts: dict[tuple[str, ...], np.typing.NDArray[np.int64]] = {}
        self._sums: dict[tuple[str, ...], float] = {}
        registry.register(self)

    def observe(self, labels: tuple[str, ...], values: Floats) -> None:
        """Count values into buckets. An edge belongs to the bucket below it."""
        if not len(values):
            return
        places = np.searchsorted(self._edges, values, side="left")
        counts = np.bincount(places, minlength=len(self._edges) + 1)
        self._counts[labels] = self._counts.get(labels, 0) + counts
        self._sums[labels] = self._sums.get(labels, 0.0) + float(values.sum())

    def collect(self) -> Iterator[Metric]:
        """Return the metric family."""
        family = Metric(self.name, self._text, "histogram")
        edges = [*(str(edge) for edge in self._edges.tolist()), "+Inf"]
        for values, counts in sorted(self._counts.items()):
            labels = dict(zip(self.labels, values, strict=True))
            for edge, count in zip(edges, np.cumsum(counts).tolist(), strict=True):
                family.add_sample(f"{self.name}_bucket", {**labels, "le": edge}, count)
            # The library's own family omits sum and count where buckets are negative.
            family.add_sample(f"{self.name}_count", labels, int(counts.sum()))
            family.add_sample(f"{self.name}_sum", labels, self._sums[values])
        yield family


class QualityMetrics:
    """Measures how well recommendations match usage."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(
            name: str, text: str, labels: Sequence[str], buckets: Sequence[float] = _RELATIVE
        ) -> BulkHistogram:
            return BulkHistogram(name, text, labels, buckets, registry)

        mode, missing, oom = "update_mode", "recommendation_missing", "is_oom"
        self.relative = histogram(
            "usage_recommendation_relative_diffs",
            "Usage minus recommendation, as a share of the recommendation.",
            (mode, "resource", oom),
        )
        # Upstream's counter has no suffix _total, which only a gauge is exposed without.
        self.missing = Gauge(
            "vpa_quality_usage_sample_missing_recommendation_count",
            "Samples of containers that should have a recommendation and have none.",
            (mode, "resource", oom),
            registry=registry,
        )
        self.cpu_over = histogram(
            "cpu_recommendation_over_usage_diffs_cores",
            "How far CPU usage is below its recommendation.",
            (mode, missing),
            _CORES,
        )
        self.cpu_under = histogram(
            "cpu_recommendation_lower_equal_usage_diffs_cores",
            "How far CPU usage is above its recommendation.",
            (mode, missing),
            _CORES,
        )
        self.memory_over = histogram(
            "mem_recommendation_over_usage_diffs_bytes",
            "How far memory usage is below its recommendation.",
            (mode, missing, oom),
            _BYTES,
        )
        self.memory_under = histogram(
            "mem_recommendation_lower_equal_usage_diffs_bytes",
            "How far memory usage is above its recommendation.",
            (mode, missing, oom),
            _BYTES,
        )
        self.cpu = histogram(
            "cpu_recommendations_cores", "CPU recommended, sample by sample.", (mode,), _CORES
        )
        self.memory = histogram(
            "mem_recommendations_bytes", "Memory recommended, sample by sample.", (mode, oom), _BYTES
        )
        self.change = histogram(
            "relative_recommendation_changes",
            "Changes of recommendations from loop to loop, as a share of what they were.",
            (mode, "resource", "vpa_size_log2"),
        )

    def judge(
        self,
        state: ClusterState,
        expected: Expectations,
        resource: str,
        usage: UsageRows,
        *,
        is_oom: bool = False,
    ) -> None:
        """Compare accepted samples of one resource with the recommendations."""
        for judged in expected.compare(state, resource, usage):
            self._judge(judged, resource, is_oom)

    def _judge(self, judged: ComparedUsage, resource: str, is_oom: bool) -> None:
        mode, oom = judged.group.update_mode, label_bool(is_oom)
        is_missing = np.isnan(judged.recommended)
        if is_missing.any():
            self.missing.labels(mode, resource, oom).inc(int(is_missing.sum()))
        for missing in (False, True):
            chosen = is_missing == missing
            wanted = np.nan_to_num(judged.recommended[chosen])
            self._differ(judged.used[chosen], wanted, resource, (mode, label_bool(missing)), oom)
        used, wanted = judged.used[~is_missing], judged.recommended[~is_missing]
        if resource == CPU:
            self.cpu.observe((mode,), wanted)
        else:
            self.memory.observe((mode, oom), wanted)
        counts = wanted > 0
        self.relative.observe((mode, resource, oom), (used[counts] - wanted[counts]) / wanted[counts])

    def _differ(self, used: Floats, wanted: Floats, resource: str, labels: tuple[str, ...], oom: str) -> None:
        over, difference = wanted > used, np.abs(used - wanted)
        above, below = (self.cpu_over, self.cpu_under)
        if resource == MEMORY:
            above, below, labels = self.memory_over, self.memory_under, (*labels, oom)
        above.observe(labels, difference[over])
        below.observe(labels, difference[~over])

    def compare(self, before: Expectations, after: Expectations) -> None:
        """Count how recommendations changed since the last step."""
        for group, resource, changes in before.changes(after):
            self.change.observe((group.update_mode, resource, group.size_log2), changes)


def label_bool(value: bool) -> str:
    """Return a boolean as the value of a metric label."""
    return "true" if value else "false"
