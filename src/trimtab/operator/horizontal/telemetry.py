"""What the horizontal loop counts, under upstream's names, plus ours."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from trimtab.decide.horizontal import Decision

_PREFIX = "horizontal_pod_autoscaler_controller_"
_BUCKETS = tuple(0.001 * 2**power for power in range(15))


class Telemetry:
    """The metrics of one loop."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reconciliations = Counter(
            f"{_PREFIX}reconciliations", "Decisions made.", ["action", "error"], registry=registry
        )
        self._duration = Histogram(
            f"{_PREFIX}reconciliation_duration_seconds",
            "Time from the last reading to the last write of a decision.",
            ["action", "error"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._computations = Counter(
            f"{_PREFIX}metric_computation",
            "Metrics evaluated.",
            ["action", "error", "metric_type"],
            registry=registry,
        )
        self._computation_duration = Histogram(
            f"{_PREFIX}metric_computation_duration_seconds",
            "Time that a metric's question took.",
            ["action", "error", "metric_type"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._desired = Gauge(
            f"{_PREFIX}desired_replicas",
            "Replicas last decided.",
            ["namespace", "hpa_name"],
            registry=registry,
        )
        self.autoscalers = Gauge(
            f"{_PREFIX}num_horizontal_pod_autoscalers", "HPAs that are acted on.", registry=registry
        )
        self._hits = Counter(
            f"{_PREFIX}cache_hits", "Owners found in the cache.", ["resource_kind"], registry=registry
        )
        self._misses = Counter(
            f"{_PREFIX}cache_misses", "Owners asked for.", ["resource_kind"], registry=registry
        )
        self.cycles = Counter("trimtab_cycles", "Rounds over all HPAs.", registry=registry)
        self.cycle_duration = Histogram(
            "trimtab_cycle_duration_seconds",
            "Time from the start of a round to its last decision, writes not counted.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.decided_again = Counter(
            "trimtab_decided_again", "Decisions dropped because their object had changed.", registry=registry
        )
        self.failures = Counter(
            "trimtab_failed_decisions", "Decisions that ended in an internal error.", registry=registry
        )

    def decided(self, namespace: str, name: str, decision: Decision, seconds: float) -> None:
        """Count one decision."""
        self._reconciliations.labels(decision.action, decision.error_label).inc()
        self._duration.labels(decision.action, decision.error_label).observe(seconds)
        for one in decision.computations:
            action = "none" if one.error != "none" else one.action
            self._computations.labels(action, one.error, one.type).inc()
            self._computation_duration.labels(action, one.error, one.type).observe(seconds)
        if decision.observed_desired is not None:
            self._desired.labels(namespace, name).set(decision.observed_desired)

    def forget(self, namespace: str, name: str) -> None:
        """Drop the gauge of an HPA that is gone."""
        try:
            self._desired.remove(namespace, name)
        except KeyError:
            return  # it was never decided

    def owner_looked_up(self, plural: str, hit: bool) -> None:
        """Count one look into the cache of owners."""
        (self._hits if hit else self._misses).labels(plural).inc()
