"""Prometheus metrics of the vertical loops, under upstream's names, plus a few of our own."""

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from trimtab.clock import Clock
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.control.control import VpaClaim
from trimtab.model.vpa.types import UpdateMode, VPAConditionType
from trimtab.operator.vertical.recommender.quality_metrics import QualityMetrics

_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_FAST = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_LATENCY = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
_SIZE = "vpa_size_log2"
_SIZED = (_SIZE, "update_mode")


class StepTimer:
    """Measures the steps of one loop or review under upstream's names, and their total."""

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
        """Observe the time since the beginning."""
        self._histogram.labels("total").observe(self._clock.monotonic() - self._began)


class RecommenderMetrics:
    """What the recommender counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.objects = Gauge(
            "vpa_recommender_vpa_objects_count",
            "VPA objects, by what is true of them.",
            ("update_mode", "has_recommendation", "api", "matches_pods", "unsupported_config"),
            registry=registry,
        )
        self.latency = Histogram(
            "vpa_recommender_recommendation_latency_seconds",
            "Time from a VPA's creation to its first recommendation.",
            buckets=_LATENCY,
            registry=registry,
        )
        self.aggregates = Gauge(
            "vpa_recommender_aggregate_container_states_count",
            "Container histories kept.",
            registry=registry,
        )
        # Upstream's counter has no suffix _total, which only a gauge is exposed without.
        self.responses = Gauge(
            "vpa_recommender_metric_server_responses",
            "Answers of the metrics API.",
            ("is_error", "client_name"),
            registry=registry,
        )
        self.prometheus_requests = Gauge(
            "vpa_recommender_prometheus_client_api_requests_count",
            "Requests to Prometheus.",
            ("code", "method"),
            registry=registry,
        )
        self.prometheus_seconds = Histogram(
            "vpa_recommender_prometheus_client_api_requests_duration_seconds",
            "Time that requests to Prometheus took.",
            ("code", "method"),
            buckets=_SECONDS,
            registry=registry,
        )
        self.resources_read = Gauge(
            "vpa_resources_get_resources_count",
            "How often the requests of a container were read, by where from.",
            ("source",),
            registry=registry,
        )
        self.steps = Histogram(
            "vpa_recommender_execution_latency_seconds",
            "Time each step of the loop took.",
            ("step",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.scoped = Gauge(
            "vpa_recommender_vpa_scoped_objects_count",
            "VPA objects, by whether a scope narrows them.",
            ("level",),
            registry=registry,
        )
        self.refused = Counter(
            "trimtab_recommender_refused_samples",
            "Usage samples that cannot be true and were not learnt from.",
            ("resource", "rule"),
            registry=registry,
        )

        self.quality = QualityMetrics(registry)
        self.history = Gauge(
            "trimtab_recommender_history_namespaces",
            "Namespaces whose history is read from Prometheus, by how far it is.",
            ("state",),
            registry=registry,
        )
        self.history_samples = Counter(
            "trimtab_recommender_history_samples",
            "Samples learnt from history in Prometheus.",
            registry=registry,
        )

    def count_objects(self, states: Iterable[VPAState], unusable: frozenset[str]) -> None:
        """Count the VPAs anew."""
        tally: Tally[tuple[str, str, str, str, str]] = Tally()
        for state in states:
            tally[
                state.update_mode or UpdateMode.RECREATE.value,
                _truth(state.has_recommendation),
                "v1",
                _truth(state.has_matched_pods),
                _truth(state.key in unusable or _is_unsupported(state)),
            ] += 1
        self.objects.clear()
        for labels, count in tally.items():
            self.objects.labels(*labels).set(count)

    def count_levels(self, claims: Iterable[VpaClaim]) -> None:
        """Count VPAs with and without a scope."""
        tally = Tally(claim.level for claim in claims)
        for level in (0, 1):
            self.scoped.labels(str(level)).set(tally[level])


class UpdaterMetrics:
    """What the updater counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, labels: tuple[str, ...] = _SIZED) -> Gauge:
            return Gauge(f"vpa_updater_{name}", text, labels, registry=registry)

        def counter(name: str, text: str, labels: tuple[str, ...]) -> Counter:
            return Counter(f"vpa_updater_{name}", text, labels, registry=registry)

        self.controlled = gauge("controlled_pods_total", "Pods controlled by VPAs that change running pods.")
        self.evictable = gauge("evictable_pods_total", "Pods that should be evicted.")
        self.vpas_evictable = gauge(
            "vpas_with_evictable_pods_total", "VPAs with pods that should be evicted."
        )
        self.vpas_evicted = gauge("vpas_with_evicted_pods_total", "VPAs of which pods were evicted.")
        self.in_place = gauge(
            "in_place_updatable_pods_total", "Pods that should be resized in place.", (_SIZE,)
        )
        self.vpas_in_place = gauge(
            "vpas_with_in_place_updatable_pods_total",
            "VPAs with pods that should be resized in place.",
            (_SIZE,),
        )
        self.vpas_resized = gauge(
            "vpas_with_in_place_updated_pods_total", "VPAs of which pods were resized in place.", (_SIZE,)
        )
        where = (*_SIZED, "vpa_name", "vpa_namespace")
        resized = (_SIZE, "vpa_name", "vpa_namespace")
        self.evicted = counter("evicted_pods_total", "Pods evicted.", where)
        self.failed = counter(
            "failed_eviction_attempts_total", "Evictions that were refused.", (*where, "reason")
        )
        self.resized = counter("in_place_updated_pods_total", "Pods resized in place.", resized)
        self.resize_failed = counter(
            "failed_in_place_update_attempts_total", "Resizes that were refused.", (*resized, "reason")
        )
        self.infeasible = counter(
            "in_place_infeasible_skip_pods_total", "Pods whose resize would not fit on their node.", resized
        )
        self.admission_invalid = counter(
            "admission_controller_status_invalid_total",
            "Loops in which admission was not proved.",
            ("reason",),
        )
        self.steps = Histogram(
            "vpa_updater_execution_latency_seconds",
            "Time each step of the loop took.",
            ("step",),
            buckets=_SECONDS,
            registry=registry,
        )


class AdmissionMetrics:
    """What the webhook counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.pods = Counter(
            "vpa_admission_controller_admission_pods_total",
            "Pods reviewed.",
            ("applied",),
            registry=registry,
        )
        self.latency = Histogram(
            "vpa_admission_controller_admission_latency_seconds",
            "Time an answer took.",
            ("status", "resource"),
            buckets=_FAST,
            registry=registry,
        )
        self.steps = Histogram(
            "vpa_admission_controller_execution_latency_seconds",
            "Time each step of an answer took.",
            ("step",),
            buckets=_FAST,
            registry=registry,
        )
        self.certificate_expiry = Gauge(
            "trimtab_admission_certificate_expiry_seconds",
            "When the certificate in use ends, in seconds since 1970.",
            registry=registry,
        )


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _is_unsupported(state: VPAState) -> bool:
    found = state.conditions.get(VPAConditionType.CONFIG_UNSUPPORTED)
    return found is not None and found.status == "True"
