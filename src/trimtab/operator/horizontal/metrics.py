"""The Prometheus metrics of the HPA controller: upstream's, under their names, and our own."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.standing import WriteReason
from trimtab.operator.ownership import shards_gauge
from trimtab.operator.prometheus import Durations, Values

_PREFIX = "horizontal_pod_autoscaler_controller_"
_BUCKETS = tuple(0.001 * 2**power for power in range(15))


class HpaControllerMetrics:
    """The metrics of one HPA controller."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        self._reconciliations = Durations(
            f"{_PREFIX}reconciliation_duration_seconds",
            "Time from the last reading to the last write of a decision.",
            ("action", "error"),
            counter=(f"{_PREFIX}reconciliations", "Decisions made."),
            bounds=_BUCKETS,
            registry=registry,
        )
        self._computations = Durations(
            f"{_PREFIX}metric_computation_duration_seconds",
            "Time that a metric's query took.",
            ("action", "error", "metric_type"),
            counter=(f"{_PREFIX}metric_computation", "Metrics evaluated."),
            bounds=_BUCKETS,
            registry=registry,
        )
        self._desired = Values(
            f"{_PREFIX}desired_replicas",
            "Replicas last decided.",
            ("namespace", "hpa_name"),
            registry=registry,
        )
        self.hpas = Gauge(
            f"{_PREFIX}num_horizontal_pod_autoscalers", "HPAs that are acted on.", registry=registry
        )
        self._hits = counter(f"{_PREFIX}cache_hits", "Owners found in the cache.", "resource_kind")
        self._misses = counter(f"{_PREFIX}cache_misses", "Owners asked for.", "resource_kind")
        self.stale_skips = counter(
            f"{_PREFIX}stale_sync_skips",
            "Syncs that ended without a decision because an object was newer than in the cache and the HPA could"
            " not be read again, by the HPA's group and resource.",
            "group",
            "resource",
        )
        self.shards = shards_gauge(registry)
        self.cycles = counter("trimtab_cycles", "Syncs, each over all HPAs or over those that are due.")
        self.cycle_duration = Histogram(
            "trimtab_cycle_duration_seconds",
            "Time from the start of a sync to its last decision, without writes.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.decided_again = counter(
            "trimtab_decided_again", "Decisions dropped because their object had changed."
        )
        self._repeats = counter(
            "trimtab_repeated_decisions",
            "Decisions left out because nothing had changed since the last one; they count as reconciliations too.",
        )
        self.early = counter(
            "trimtab_early_decisions",
            "Decisions that were written between two syncs because usage had left its bounds.",
        )
        self._status_writes = counter(
            "trimtab_status_writes",
            "Statuses of HPAs that were written, by why: memory (what a failover needs), substance (more than values and"
            " texts), age.",
            "reason",
        )
        self._deferred_statuses = counter(
            "trimtab_deferred_status_writes",
            "Statuses of HPAs that waited for a later sync because only values or texts moved.",
        )
        self.usage_checks = UsageCheckMetrics(registry)
        self.failures = counter("trimtab_failed_decisions", "Decisions that ended in an internal error.")

    def count_decision(self, namespace: str, name: str, decision: Decision, seconds: float) -> None:
        """Count one decision."""
        self._count(decision, seconds, 1)
        if decision.observed_desired is not None:
            self._desired.by_labels[namespace, name] = decision.observed_desired

    def count_unchanged(self, decisions: Iterable[Decision], seconds: float) -> None:
        """Count reconciles that were skipped because these decisions still hold."""
        groups: dict[tuple[object, ...], list[Decision]] = {}
        for decision in decisions:
            key = (decision.action, decision.error_label, decision.computations)
            groups.setdefault(key, []).append(decision)
        for equal in groups.values():
            self._count(equal[0], seconds, len(equal))
            self._repeats.inc(len(equal))

    def _count(self, decision: Decision, seconds: float, times: int) -> None:
        self._reconciliations.observe((decision.action, decision.error_label), seconds, times)
        for metric in decision.computations:
            labels = ("none" if metric.error != "none" else metric.action, metric.error, metric.type)
            self._computations.observe(labels, seconds, times)

    def count_status_write(self, reason: WriteReason | None, *, is_deferred: bool) -> None:
        """Count a status that was due, or that waits for a later sync."""
        if reason is not None:
            self._status_writes.labels(reason.value).inc()
        elif is_deferred:
            self._deferred_statuses.inc()

    def forget(self, namespace: str, name: str) -> None:
        """Drop the gauge of a deleted HPA."""
        self._desired.by_labels.pop((namespace, name), None)

    def count_owner_lookup(self, plural: str, hit: bool) -> None:
        """Count one lookup in the cache of owners."""
        (self._hits if hit else self._misses).labels(plural).inc()


class UsageCheckMetrics:
    """The metrics of usage checks between two syncs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._checks = Counter(
            "trimtab_usage_checks", "Checks of usage between two syncs.", registry=registry
        )
        self._skipped = Counter(
            "trimtab_usage_checks_skipped",
            "Checks left out, by what limits them: their share of a core (cpu), the lists of usage per second"
            " (requests), or a check that was still waiting for its source (slow).",
            ["limit"],
            registry=registry,
        )
        self._cpu = Counter(
            "trimtab_usage_check_cpu_seconds",
            "CPU seconds that checks of usage took, with decoding the lists. At most 10 % of one core.",
            registry=registry,
        )

    def count(self, cpu_seconds: float, limit: str, *, skipped: int) -> None:
        """Count a check, and those that its cost leaves out."""
        self._checks.inc()
        self._cpu.inc(cpu_seconds)
        if skipped > 0:
            self._skipped.labels(limit).inc(skipped)
