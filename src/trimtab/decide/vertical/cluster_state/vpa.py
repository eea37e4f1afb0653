"""A VPA in the cluster state: its aggregates, its recommendation and its conditions."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from trimtab.decide.vertical.cluster_state.aggregates import Aggregate
from trimtab.decide.vertical.cluster_state.estimator_state import EstimatorState
from trimtab.decide.vertical.resources.container_resources import policy_for
from trimtab.model import times
from trimtab.model.core.meta import Condition
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import (
    RecommendedPodResources,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerStatus,
    VPAConditionType,
)

NO_PODS_MATCHED: Final = "NoPodsMatched"
NO_PODS_MESSAGE: Final = "No pods match this VPA object"


class AggregateKey(NamedTuple):
    """The properties that the containers of an aggregate share."""

    namespace: str
    container: str
    labels: str
    """All labels of the pods, as sorted `key=value` pairs joined by commas."""
    partition: str = ""
    """Owner and node scopes of the pods, which decide about control besides their labels."""


class VPAState:
    """A VPA, its aggregates, its loaded history and its next status."""

    def __init__(self, vpa: VerticalPodAutoscaler, selector: Selector) -> None:
        self.vpa = vpa
        self.key = vpa.key
        """The VPA's `namespace/name`."""
        self.selector = selector
        self.aggregates: dict[AggregateKey, Aggregate] = {}
        self.initial: dict[str, Aggregate] = {}
        """History loaded from checkpoints, by container. Every recommendation includes it."""
        self.pod_count = 0
        self.unsupported: str | None = None
        """The message of condition ConfigUnsupported. While it is set, the recommendation does not change."""
        self.conditions: dict[str, Condition] = {}
        self.recommendation: RecommendedPodResources | None = None
        self.computed_for: tuple[str, str] | None = None
        """Reason and message of condition ComputedFor, written with the amounts; None by upstream's rules."""
        self.keeps_amounts = False
        """Whether the stored amounts are for the pods that the VPA has now, so that they stay until there are samples."""
        self.estimator: EstimatorState | None = None
        """What is kept for the estimator that the VPA names, None for the built-in recommender."""

    @property
    def update_mode(self) -> str | None:
        """The update mode as written, or None without an update policy."""
        policy = self.vpa.spec.update_policy
        return policy.update_mode if policy else None

    @property
    def has_recommendation(self) -> bool:
        """Whether the recommendation names a container."""
        return bool(self.recommendation and self.recommendation.container_recommendations)

    @property
    def has_matched_pods(self) -> bool:
        """Whether condition NoPodsMatched is not True. Every recommendation updates it."""
        condition = self.conditions.get(VPAConditionType.NO_PODS_MATCHED)
        return condition is None or condition.status != "True"

    def matches(self, key: AggregateKey, labels: Mapping[str, str]) -> bool:
        """Return whether namespace and target selector match, the only criteria of upstream."""
        return key.namespace == self.vpa.metadata.namespace and self.selector.matches(labels)

    def use(self, key: AggregateKey, aggregate: Aggregate, *, per_vpa: bool) -> None:
        """Add an aggregate to the history of the VPA."""
        if key in self.aggregates:
            return
        self.aggregates[key] = aggregate
        aggregate.is_under_vpa = True
        aggregate.update_mode = self.update_mode
        aggregate.apply_policy(policy_for(key.container, self.vpa.spec.resource_policy), per_vpa=per_vpa)

    def drop(self, key: AggregateKey) -> None:
        """Remove an aggregate from the history of the VPA."""
        aggregate = self.aggregates.pop(key, None)
        if aggregate is not None:
            aggregate.mark_not_autoscaled()

    def drop_all(self) -> None:
        """Remove all aggregates."""
        for key in list(self.aggregates):
            self.drop(key)

    def update(self, vpa: VerticalPodAutoscaler, *, per_vpa: bool) -> None:
        """Apply a new version of the object: policies, conditions and recommendation."""
        had_policy = self.vpa.spec.resource_policy is not None
        self.vpa = vpa
        self.conditions = {condition.type: condition for condition in vpa.status.conditions}
        provided = self.conditions.get(VPAConditionType.RECOMMENDATION_PROVIDED)
        is_provided = provided is not None and provided.status == "True"
        self.recommendation = vpa.status.recommendation if is_provided else None
        for key, aggregate in self.aggregates.items():
            aggregate.update_mode = self.update_mode
            # Upstream applies nothing if there is no policy before and after.
            if had_policy or vpa.spec.resource_policy is not None:
                aggregate.apply_policy(policy_for(key.container, vpa.spec.resource_policy), per_vpa=per_vpa)

    def mark_unsupported(self, message: str, now_ns: int) -> None:
        """Set condition ConfigUnsupported and keep the recommendation."""
        self.set_condition(VPAConditionType.CONFIG_UNSUPPORTED, True, "", message, now_ns)

    def recommend(
        self, recommendation: RecommendedPodResources, now_ns: int, *, is_computed: bool = True
    ) -> None:
        """Store a recommendation, computed now or before, and set the conditions that follow from it."""
        for entry in recommendation.container_recommendations:
            for key, aggregate in self.aggregates.items():
                if key.container == entry.container_name:
                    aggregate.last_recommendation = entry.uncapped_target
        self.recommendation = recommendation
        if is_computed:
            self._set_computed_for(now_ns)
        self.conditions.pop(VPAConditionType.CONFIG_UNSUPPORTED, None)
        reason, message = "", ""
        if self.pod_count > 0:
            self.conditions.pop(VPAConditionType.NO_PODS_MATCHED, None)
        else:
            reason, message = NO_PODS_MATCHED, NO_PODS_MESSAGE
            self.set_condition(VPAConditionType.NO_PODS_MATCHED, True, reason, message, now_ns)
        if self.has_recommendation:
            reason, message = "", ""
        self.set_condition(
            VPAConditionType.RECOMMENDATION_PROVIDED, self.has_recommendation, reason, message, now_ns
        )

    def _set_computed_for(self, now_ns: int) -> None:
        """Say what the amounts are for. The transition time is that of the first sample of this history."""
        stored = self.conditions.pop(VPAConditionType.COMPUTED_FOR, None)
        if self.computed_for is None or not self.has_recommendation:
            return
        reason, message = self.computed_for
        histories = (*self.aggregates.values(), *self.initial.values())
        first = min(
            (history.first_sample_ns for history in histories if not history.is_empty), default=now_ns
        )
        since = times.from_ns(first).replace(microsecond=0)
        if (
            stored is not None
            and stored.last_transition_time
            and _identity(stored.reason) == _identity(reason)
        ):
            since = min(since, stored.last_transition_time)
        self.conditions[VPAConditionType.COMPUTED_FOR] = Condition(
            type=VPAConditionType.COMPUTED_FOR,
            status="True",
            last_transition_time=since,
            reason=reason,
            message=message,
        )

    def set_obstacle(self, kind: VPAConditionType, message: str, now_ns: int) -> None:
        """Set a condition that keeps pods from their size, or remove it if the message is empty."""
        if message:
            self.set_condition(kind, True, kind, message, now_ns)
        else:
            self.conditions.pop(kind, None)

    def set_condition(self, kind: str, is_true: bool, reason: str, message: str, now_ns: int) -> None:
        """Set a condition. Its transition time changes only with its status."""
        status = "True" if is_true else "False"
        old = self.conditions.get(kind)
        moment = old.last_transition_time if old and old.status == status else times.from_ns(now_ns)
        self.conditions[kind] = Condition(
            type=kind, status=status, last_transition_time=moment, reason=reason, message=message
        )

    def status(self) -> VerticalPodAutoscalerStatus:
        """Return the status to write, with conditions sorted by type."""
        return VerticalPodAutoscalerStatus(
            recommendation=self.recommendation,
            conditions=tuple(self.conditions[kind] for kind in sorted(self.conditions)),
            observed_generation=self.vpa.metadata.generation,
        )


def _identity(reason: str) -> str:
    return reason.rpartition(":")[0]
