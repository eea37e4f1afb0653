"""Settings of decisions, and the rulings where they differ from Kubernetes.

Every switch of `HpaCompat` says what Trimtab does when it is on. `DEFAULT` has all of them on. `KUBERNETES_1_36` decides as upstream
v1.36.3 does and `KUBERNETES_1_37` as v1.37.1 does, defects included: only the switches whose behaviour that version shares
with Trimtab are on. Each ruling has a page in docs/decisions/.
"""

from trimtab.model.json.wire import Wire


class HpaCompat(Wire):
    """The rulings in force for a decision."""

    saturate: bool = True
    """Sums are exact and conversions stop at the largest integer, instead of wrapping around."""

    requests_without_overhead: bool = True
    """Pod overhead is not added to pod-level requests, because usage is that of containers (1.38 too)."""

    clear_messages: bool = True
    """Object metrics are called `KIND metric NAME`, and a workload raised to minReplicas, or to an earlier
    recommendation, says why."""

    cause_after_object: bool = True
    """The error of an Object metric names the metric, the object and the cause, in this order (1.37 too)."""

    spec_replicas_within_tolerance: bool = True
    """An AverageValue metric inside its tolerance keeps spec.replicas, not the surged status.replicas."""

    negative_sums: bool = True
    """A negative external sum is a negative number, not a sign of overflow."""

    reject_implausible_samples: bool = True
    """Stale, future and negative samples are rejected, and the rule is named."""

    ignore_foreign_samples: bool = True
    """Only samples of the pods that are counted enter the averages."""

    wait_for_first_samples: bool = True
    """Pods that are too young for a sample are the reason WarmingUp, without a Warning, and not a failure."""

    loss_policies: bool = True
    """A metric's `onLoss` says what it counts as while it cannot be read."""

    effective_ambiguity: bool = True
    """Two HPAs conflict when pods that both really count overlap, not when their labels do."""

    name_conflicting_hpas: bool = True
    """The message of an ambiguous selector names the conflicting HPAs (1.36 too), not any two of them."""

    fallback_never_shrinks: bool = True
    """While owners cannot be read and all label-matched pods count, replicas are never lowered."""

    stale_never_shrinks: bool = True
    """While a cache that the decision depends on is stale, replicas are never lowered."""

    raise_to_min_without_metrics: bool = True
    """At zero, with minReplicas raised to 1 or more, the workload starts even if every metric fails."""

    keep_condition_while_gate_off: bool = True
    """`ScaledToZero` stays in the status while the gate is off, so that switching it on again resumes."""

    floor_one_while_gate_off: bool = True
    """With the gate off a stored minReplicas of 0 counts as 1, because the HPA could not leave zero again."""

    hold_without_ready_pods: bool = True
    """A Value metric above zero with no ready pod yet keeps the replicas (at least one) instead of asking for 0."""

    undivided_average_at_zero: bool = True
    """An AverageValue metric at zero replicas reports the undivided total."""

    percent_policy_leaves_zero: bool = True
    """A Percent policy allows one replica when the period started at zero."""

    clear_condition_above_zero: bool = True
    """`ScaledToZero` turns False as soon as there are replicas, however they were raised."""

    intent_before_scale: bool = True
    """`ScaledToZero` is written before the scale, so that a crash in between does not look like a manual stop."""

    memory_follows_uid: bool = True
    """An HPA that was created again under the same name starts with an empty memory."""

    compact_memory: bool = True
    """Recommendations and scale events that can no longer matter are dropped at once."""

    limit_repeated_events: bool = True
    """An event that would repeat every sync is emitted once per interval."""

    report_external_changes: bool = True
    """A change of replicas by another client is reported as an event."""

    report_extra_pods: bool = True
    """The condition `SelectorMatchesExtraPods` reports a selector that matches more active pods than its target has."""

    report_ignored_fields: bool = True
    """The condition `FieldsIgnored` names fields that have no effect because their feature gate is off."""

    observe_generation: bool = True
    """status.observedGeneration is the generation of the spec that was decided on (1.37 too)."""

    observe_generation_without_scale: bool = True
    """status.observedGeneration follows the spec although the target's scale cannot be read."""

    skip_generation_zero: bool = True
    """An HPA that the server gave no generation keeps its status.observedGeneration instead of getting 0."""

    condition_generations: bool = True
    """Each condition that a decision sets names the generation of the spec that it describes."""


DEFAULT = HpaCompat()


def _upstream(*shared: str) -> HpaCompat:
    """Return the rulings of an upstream version that shares the named ones with Trimtab."""
    return HpaCompat(**{switch: switch in shared for switch in HpaCompat.__struct_fields__})


KUBERNETES_1_36 = _upstream("name_conflicting_hpas")
KUBERNETES_1_37 = _upstream("cause_after_object", "observe_generation")

NAMED = {"trimtab": DEFAULT, "kubernetes-1.36": KUBERNETES_1_36, "kubernetes-1.37": KUBERNETES_1_37}
"""The values that `--compat` accepts."""


class HpaSettings(Wire):
    """Controller settings, with the defaults of kube-controller-manager unless noted."""

    tolerance: float = 0.1
    """How far usage may be from its target before an HPA acts, as a share of the target."""

    cpu_initialization_period: float = 300.0
    """Seconds after its start in which a pod's CPU samples count only if it was Ready."""

    initial_readiness_delay: float = 30.0
    """A pod that turned unready within this time of its start was never ready."""

    downscale_stabilization: float = 300.0
    """How far back the highest recommendation counts before replicas are lowered."""

    scale_up_limit_factor: float = 2.0
    """Without `behavior`, replicas may grow by this factor per sync ..."""

    scale_up_limit_minimum: float = 4.0
    """... or to this number, whichever is more."""

    stale_windows: float = 3.0
    """A sample older than this many of its windows is rejected (ours) ..."""

    stale_after: float = 120.0
    """... but never before this age (ours)."""

    ahead_limit: float = 60.0
    """A sample dated further in the future than this is rejected (ours)."""

    event_interval: float = 300.0
    """Seconds between two emissions of an event that would repeat every sync (ours)."""


DEFAULT_SETTINGS = HpaSettings()
