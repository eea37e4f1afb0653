"""Prometheus metrics of the vertical components, under upstream's names where upstream has the metric."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Sequence, Set

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from trimtab.clock import Clock
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.control.claims import VpaClaim
from trimtab.model.core.meta import NamespacedName
from trimtab.model.vpa.types import UpdateMode, VPAConditionType
from trimtab.operator.vertical.recommender.quality_metrics import QualityMetrics, label_bool

_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_FAST = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_LATENCY = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
_SIZE = "vpa_size_log2"
_SIZED = (_SIZE, "update_mode")


class StepTimer:
    """Measures the steps of one loop or review, and their total."""

    def __init__(self, clock: Clock, histogram: Histogram) -> None:
        self._clock = clock
        self._histogram = histogram
        self._began = self._last = clock.monotonic()

    def step(self, name: str) -> None:
        """Observe the time since the last step."""
        now = self._clock.monotonic()
        self._histogram.labels(name).observe(now - self._last)
        self._last = now

    def total(self) -> None:
        """Observe the time since the start."""
        self._histogram.labels("total").observe(self._clock.monotonic() - self._began)


class _Registered:
    """Creates metrics with a common prefix in one registry."""

    def __init__(self, registry: CollectorRegistry, prefix: str = "") -> None:
        self._registry = registry
        self._prefix = prefix

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(self._prefix + name, text, labels, registry=self._registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(self._prefix + name, text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(self._prefix + name, text, labels, buckets=buckets, registry=self._registry)


class RecommenderMetrics(_Registered):
    """The metrics of the recommender."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.objects = self._gauge(
            "vpa_recommender_vpa_objects_count",
            "VPA objects, by what is true of them.",
            *("update_mode", "has_recommendation", "api", "matches_pods", "unsupported_config"),
        )
        self.latency = self._histogram(
            "vpa_recommender_recommendation_latency_seconds",
            "Time from a VPA's creation to its first recommendation.",
            _LATENCY,
        )
        self.aggregates = self._gauge(
            "vpa_recommender_aggregate_container_states_count", "Container histories kept."
        )
        # Upstream's counters lack the suffix _total, without which only a gauge is exposed.
        self.responses = self._gauge(
            "vpa_recommender_metric_server_responses",
            "Answers of the metrics API.",
            *("is_error", "client_name"),
        )
        requests = "vpa_recommender_prometheus_client_api_requests"
        self.prometheus_requests = self._gauge(
            f"{requests}_count", "Requests to Prometheus.", "code", "method"
        )
        self.prometheus_seconds = self._histogram(
            f"{requests}_duration_seconds",
            "Time that requests to Prometheus took.",
            _SECONDS,
            *("code", "method"),
        )
        self.resources_read = self._gauge(
            "vpa_resources_get_resources_count",
            "How often the requests of a container were read, by where from.",
            "source",
        )
        self.steps = self._histogram(
            "vpa_recommender_execution_latency_seconds", "Time each step of the loop took.", _SECONDS, "step"
        )
        self.scoped = self._gauge(
            "vpa_recommender_vpa_scoped_objects_count",
            "VPA objects, by whether a scope narrows them.",
            "level",
        )
        self.refused = self._counter(
            "trimtab_recommender_refused_samples",
            "Usage samples that cannot be true and were not learnt from.",
            *("resource", "rule"),
        )
        self.quality = QualityMetrics(registry)
        self.history = self._gauge(
            "trimtab_recommender_history_namespaces",
            "Namespaces whose history is read from Prometheus, by how far it is.",
            "state",
        )
        self.history_samples = self._counter(
            "trimtab_recommender_history_samples", "Samples learnt from history in Prometheus."
        )

    def count_objects(self, states: Iterable[VPAState], unusable: frozenset[str]) -> None:
        """Set the number of VPAs per combination of labels."""
        tally: Tally[tuple[str, str, str, str, str]] = Tally()
        for state in states:
            tally[
                state.update_mode or UpdateMode.RECREATE.value,
                label_bool(state.has_recommendation),
                "v1",
                label_bool(state.has_matched_pods),
                label_bool(state.key in unusable or _is_unsupported(state)),
            ] += 1
        self.objects.clear()
        for labels, count in tally.items():
            self.objects.labels(*labels).set(count)

    def count_levels(self, claims: Iterable[VpaClaim]) -> None:
        """Set the numbers of VPAs with and without a scope."""
        tally = Tally(claim.level for claim in claims)
        for level in (0, 1):
            self.scoped.labels(str(level)).set(tally[level])


class UpdaterMetrics(_Registered):
    """The metrics of the updater."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry, "vpa_updater_")
        in_place = "vpas_with_in_place"
        self.controlled = self._gauge(
            "controlled_pods_total", "Pods controlled by VPAs that change running pods.", *_SIZED
        )
        self.evictable = self._gauge("evictable_pods_total", "Pods that should be evicted.", *_SIZED)
        self.vpas_evictable = self._gauge(
            "vpas_with_evictable_pods_total", "VPAs with pods that should be evicted.", *_SIZED
        )
        self.vpas_evicted = self._gauge(
            "vpas_with_evicted_pods_total", "VPAs of which pods were evicted.", *_SIZED
        )
        self.in_place = self._gauge(
            "in_place_updatable_pods_total", "Pods that should be resized in place.", _SIZE
        )
        self.vpas_in_place = self._gauge(
            f"{in_place}_updatable_pods_total", "VPAs with pods that should be resized in place.", _SIZE
        )
        self.vpas_resized = self._gauge(
            f"{in_place}_updated_pods_total", "VPAs of which pods were resized in place.", _SIZE
        )
        where = (*_SIZED, "vpa_name", "vpa_namespace")
        resized = (_SIZE, "vpa_name", "vpa_namespace")
        self.evicted = self._counter("evicted_pods_total", "Pods evicted.", *where)
        self.failed = self._counter(
            "failed_eviction_attempts_total", "Evictions that were refused.", *where, "reason"
        )
        self.resized = self._counter("in_place_updated_pods_total", "Pods resized in place.", *resized)
        self.resize_failed = self._counter(
            "failed_in_place_update_attempts_total", "Resizes that were refused.", *resized, "reason"
        )
        self.infeasible = self._counter(
            "in_place_infeasible_skip_pods_total", "Pods whose resize would not fit on their node.", *resized
        )
        self._of_vpas: dict[NamespacedName, dict[tuple[Counter, tuple[str, ...]], Counter]] = {}
        """The counters whose labels name a VPA, by VPA."""
        self.admission_invalid = self._counter(
            "admission_controller_status_invalid_total", "Loops in which admission was not proved.", "reason"
        )
        self.steps = self._histogram(
            "execution_latency_seconds", "Time each step of the loop took.", _SECONDS, "step"
        )

    def count_for(self, vpa: NamespacedName, counter: Counter, *labels: str) -> Counter:
        """Return a counter whose labels name a VPA. `labels` are all its labels."""
        children = self._of_vpas.setdefault(vpa, {})
        child = children.get((counter, labels))
        if child is None:
            child = children[counter, labels] = counter.labels(*labels)
        return child

    def keep_vpas(self, exists: Callable[[NamespacedName], bool]) -> None:
        """Drop the counters of VPAs that do not exist any more."""
        for vpa in [vpa for vpa in self._of_vpas if not exists(vpa)]:
            for counter, labels in self._of_vpas.pop(vpa):
                counter.remove(*labels)


ADMISSION_PARTS = ("caches", "certificate", "lease")
"""The parts of the webhook that may have a problem while it answers."""


class AdmissionMetrics(_Registered):
    """The metrics of the admission webhook."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        prefix = "vpa_admission_controller"
        self.pods = self._counter(f"{prefix}_admission_pods_total", "Pods reviewed.", "applied")
        self.latency = self._histogram(
            f"{prefix}_admission_latency_seconds", "Time an answer took.", _FAST, "status", "resource"
        )
        self.steps = self._histogram(
            f"{prefix}_execution_latency_seconds", "Time each step of an answer took.", _FAST, "step"
        )
        self.certificate_expiry = self._gauge(
            "trimtab_admission_certificate_expiry_seconds",
            "When the certificate in use ends, in seconds since 1970.",
        )
        self._problem = self._gauge(
            "trimtab_admission_problem",
            "1 while a part of the webhook has a problem that leaves it able to answer.",
            "part",
        )
        self.show_problems(set())

    def show_problems(self, parts: Set[str]) -> None:
        """Set the parts that have a problem now."""
        for part in ADMISSION_PARTS:
            self._problem.labels(part).set(part in parts)


def _is_unsupported(state: VPAState) -> bool:
    condition = state.conditions.get(VPAConditionType.CONFIG_UNSUPPORTED)
    return condition is not None and condition.status == "True"
