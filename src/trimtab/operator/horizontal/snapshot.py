"""Puts what the caches and the metrics APIs say into one `Observation` per autoscaler."""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.decide.horizontal import (
    ConflictingHpa,
    FetchFailure,
    HpaCompat,
    HpaSettings,
    Memory,
    MetricSamples,
    Observation,
    PodSnapshot,
    Target,
)
from trimtab.decide.horizontal.behavior.scale_to_zero import contradicts_condition, needs_metrics
from trimtab.decide.horizontal.selection.selection import (
    count_extra_pods,
    effective_strategy,
    expected_pods,
)
from trimtab.decide.horizontal.status.dry_run import must_not_scale
from trimtab.metrics.queries import Query
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import MetricSpec, SelectionStrategy
from trimtab.operator.horizontal.inputs.hpa_cache import HpaCache, HpaState
from trimtab.operator.horizontal.inputs.metric_queries import (
    Answer,
    MetricFetcher,
    MetricQueries,
    measured_by,
    queries_for_hpa,
    query_for,
    samples_for,
    usage_in,
)
from trimtab.operator.horizontal.inputs.owners import Found, OwnerCache
from trimtab.operator.horizontal.inputs.pod_index import PodIndex
from trimtab.operator.horizontal.inputs.pod_usage import NamespaceUsage
from trimtab.operator.horizontal.inputs.targets import ResolvedTarget


@dataclass(frozen=True, slots=True)
class DecisionConfig:
    """What every decision of this process goes by."""

    settings: HpaSettings
    gates: FeatureGates
    compat: HpaCompat


class SnapshotBuilder:
    """Makes observations."""

    def __init__(
        self,
        rules: DecisionConfig,
        autoscalers: HpaCache,
        pods: PodIndex,
        owners: OwnerCache,
        questions: MetricFetcher,
    ) -> None:
        self.rules = rules
        self._autoscalers = autoscalers
        self._pods = pods
        self._owners = owners
        self.questions = questions
        self._targets: dict[str, Target] = {}
        self._replicas: dict[str, int] = {}
        self._sights: dict[str, tuple[int, MatchedPods]] = {}

    def aimed(self, autoscaler: HpaState, aim: ResolvedTarget) -> None:
        """Take note of an autoscaler's target and label query, before anyone's rivals are looked for."""
        autoscaler.plan = None
        if aim.scale is None:
            self._pods.forget(autoscaler.uid)
            return
        self._replicas[autoscaler.uid] = expected_pods(aim.scale)
        reference, uid = autoscaler.hpa.spec.scale_target_ref, aim.scale.metadata.uid
        known = self._targets.get(autoscaler.uid)
        if known is None or known.uid != uid or known.name != reference.name or known.kind != reference.kind:
            self._targets[autoscaler.uid] = Target(
                api_version=reference.api_version, kind=reference.kind, name=reference.name, uid=uid
            )
        # The decision says what is wrong with a label query that is missing or does not parse.
        self._pods.watch(autoscaler.uid, autoscaler.hpa.metadata.namespace, aim.scale.status.selector)

    def forget(self, autoscaler: HpaState) -> None:
        """Drop everything kept for an autoscaler."""
        self._pods.forget(autoscaler.uid)
        self._targets.pop(autoscaler.uid, None)
        self._replicas.pop(autoscaler.uid, None)
        self._sights.pop(autoscaler.uid, None)

    def known_questions(
        self, autoscaler: HpaState, aim: ResolvedTarget
    ) -> tuple[Query | FetchFailure, ...] | None:
        """Return the questions to ask, if they are known without looking anything up."""
        if aim.scale is None or not self._needs_metrics(autoscaler, aim):
            return ()
        hpa, selector = autoscaler.hpa, aim.scale.status.selector
        made_for = autoscaler.questions_for
        if made_for is None or made_for[0] is not hpa.spec or made_for[1] != selector:
            asked = tuple(query_for(spec, hpa.metadata.namespace, selector) for spec in hpa.spec.metrics)
            found = tuple(one for one in asked if one is not None)
            if len(found) < len(asked):
                return None
            self._remember(autoscaler, selector, found)
        return autoscaler.questions

    def plan(self, autoscaler: HpaState, aim: ResolvedTarget) -> MetricQueries | None:
        """Return what to ask for an autoscaler; None if that has to be looked up."""
        known = autoscaler.plan
        if known is not None and known.is_for(autoscaler.hpa, aim):
            return known
        if self.must_read(autoscaler, aim):
            return None
        self.aimed(autoscaler, aim)
        questions = self.known_questions(autoscaler, aim)
        if questions is None:
            return None
        autoscaler.plan = queries_for_hpa(autoscaler.hpa, aim, questions)
        return autoscaler.plan

    def must_read(self, autoscaler: HpaState, aim: ResolvedTarget) -> bool:
        """Return whether a cached target contradicts the HPA's own condition, so that either may be too old.

        A condition that is taken back on an old target is lost: the workload would then sleep at zero for good.
        """
        if not self.rules.compat.clear_condition_above_zero:
            return False
        return aim.scale is not None and contradicts_condition(
            autoscaler.hpa.status.conditions, aim.scale.spec.replicas
        )

    async def find_questions(
        self, autoscaler: HpaState, aim: ResolvedTarget
    ) -> tuple[Query | FetchFailure, ...]:
        """Return the questions to ask, and remember them for this spec."""
        known = self.known_questions(autoscaler, aim)
        if known is not None or aim.scale is None:
            return known or ()
        hpa, selector = autoscaler.hpa, aim.scale.status.selector
        found = tuple(
            [
                await self.questions.of_metric(spec, hpa.metadata.namespace, selector)
                for spec in hpa.spec.metrics
            ]
        )
        self._remember(autoscaler, selector, found)
        return found

    def _remember(self, autoscaler: HpaState, selector: str, found: tuple[Query | FetchFailure, ...]) -> None:
        autoscaler.questions = found
        # A kind that could not be found may be found later: such an answer is not remembered.
        is_final = not any(isinstance(one, FetchFailure) for one in found)
        autoscaler.questions_for = (autoscaler.hpa.spec, selector) if is_final else None

    def look(self, autoscaler: HpaState) -> "MatchedPods":
        """Return the pods that an autoscaler's label query finds, and who else finds them."""
        version = self._pods.changes_in(autoscaler.hpa.metadata.namespace)
        known = self._sights.get(autoscaler.uid)
        if known is not None and known[0] == version:
            return known[1]
        pods = self._pods.of(autoscaler.uid)
        neighbours = self._pods.rivals(autoscaler.uid, pods)
        sight = MatchedPods(pods, self._rivals(autoscaler, neighbours))
        if neighbours:
            # What the neighbours aim at, and whether they are dry runs, may change while the pods do not.
            self._sights.pop(autoscaler.uid, None)
        else:
            self._sights[autoscaler.uid] = version, sight
        return sight

    def needs_owners(self, autoscaler: HpaState, sight: "MatchedPods") -> bool:
        """Return whether owners have to be known: for its own strategy or for that of a rival."""
        return bool(self._owner_targets(autoscaler, sight))

    async def find_owners(self, autoscaler: HpaState, sight: "MatchedPods") -> dict[str, Found]:
        """Look up the owners that this decision needs."""
        targets = self._owner_targets(autoscaler, sight)
        return await self._owners.of(sight.pods, targets, autoscaler.hpa.metadata.namespace)

    def known_owners(self, autoscaler: HpaState, sight: "MatchedPods") -> dict[str, Found] | None:
        """Return the owners that this decision needs, if all of them are known without asking."""
        targets = self._owner_targets(autoscaler, sight)
        if not targets:
            return {}
        return self._owners.known(sight.pods, targets, autoscaler.hpa.metadata.namespace)

    def observe(
        self,
        autoscaler: HpaState,
        aim: ResolvedTarget,
        sight: "MatchedPods",
        answers: Mapping[Query, Answer],
        owners: dict[str, Found],
        memory: Memory | None = None,
    ) -> Observation:
        """Return everything that the decision depends on; another memory than ours is given by who only looks."""
        if not owners and self._has_extra_pods(autoscaler, sight):
            owners = self._known_to_explain(autoscaler, sight)
        return Observation(
            hpa=autoscaler.hpa,
            scale=aim.scale,
            scale_failure=aim.failure,
            pods=sight.pods,
            owners=owners,
            rivals=sight.rivals,
            readings=_readings(autoscaler, answers, sight.pods),
            memory=autoscaler.memory.own if memory is None else memory,
            settings=self.rules.settings,
            gates=self.rules.gates,
            compat=self.rules.compat,
        )

    def repeats(
        self,
        autoscaler: HpaState,
        plan: MetricQueries,
        sight: "MatchedPods",
        answers: Mapping[Query, Answer],
        now: float,
    ) -> bool:
        """Return whether deciding would repeat the last decision; True only if the usage of pods alone shows it.

        That is so for nearly everyone nearly all the time, and takes a fourth of making an observation to compare.
        """
        held = autoscaler.steady
        if (
            held is None
            or held.values is None
            or not plan.is_only_usage
            or sight.rivals
            or plan.usage is None
        ):
            return False
        usage = usage_in(plan.usage, answers)
        return (
            isinstance(usage, NamespaceUsage)
            and held.covers_alone(autoscaler.hpa, plan.aim.scale, autoscaler.memory.own, now)
            and (sight.pods is held.observation.pods or sight.pods == held.observation.pods)
            and held.believes(usage.span, now)
            and _are_values(usage, sight.pods, autoscaler.hpa.spec.metrics, held.values)
        )

    def _owner_targets(self, autoscaler: HpaState, sight: "MatchedPods") -> list[Target]:
        by_owner = SelectionStrategy.OWNER_REFERENCE
        targets = [rival.target for rival in sight.rivals if rival.strategy == by_owner]
        if self._strategy(autoscaler) == by_owner:
            targets.append(self._targets.get(autoscaler.uid, Target()))
        return targets

    def _has_extra_pods(self, autoscaler: HpaState, sight: "MatchedPods") -> bool:
        """Return whether labels find more active pods than the target has, some of which are not its own."""
        has = self._replicas.get(autoscaler.uid)
        if has is None or len(sight.pods) <= has or not self.rules.gates.hpa_selection_strategy:
            return False
        return count_extra_pods(sight.pods, has) > 0

    def _known_to_explain(self, autoscaler: HpaState, sight: "MatchedPods") -> dict[str, Found]:
        """Return owners that name foreign pods, if they are known anyway: counting by labels sends no request."""
        target = self._targets.get(autoscaler.uid, Target())
        return self._owners.known(sight.pods, [target], autoscaler.hpa.metadata.namespace) or {}

    async def owners_of(self, seen: Observation) -> dict[str, Found]:
        """Look up the owners of the pods of an observation, for a person who looks at it."""
        if not seen.gates.hpa_selection_strategy or seen.scale is None:
            return seen.owners
        return await self._owners.of(seen.pods, [seen.target], seen.hpa.metadata.namespace)

    def _needs_metrics(self, autoscaler: HpaState, aim: ResolvedTarget) -> bool:
        assert aim.scale is not None
        return needs_metrics(autoscaler.hpa, aim.scale, self.rules.gates, self.rules.compat)

    def _strategy(self, autoscaler: HpaState) -> str:
        return effective_strategy(autoscaler.hpa.spec.selection_strategy, self.rules.gates)

    def _rivals(self, autoscaler: HpaState, neighbours: set[str]) -> tuple[ConflictingHpa, ...]:
        """Return the neighbours that scale what they aim at and would fight with this autoscaler."""
        if not neighbours:
            return ()
        others = sorted(
            (
                other
                for uid in neighbours
                if (other := self._autoscalers.get(uid)) is not None and self._competes(autoscaler, other)
            ),
            key=lambda other: (other.key, other.uid),
        )
        return tuple(
            ConflictingHpa(
                key=other.key,
                selector=self._pods.selector_of(other.uid),
                strategy=self._strategy(other),
                target=self._targets.get(other.uid, Target()),
            )
            for other in others
        )

    def _competes(self, autoscaler: HpaState, other: HpaState) -> bool:
        """Return whether two that count the same pods must not both act.

        A dry run, or an HPA that a misspelt annotation holds, writes no scale, so it competes with no HPA. It previews what it would do in the place of the HPA that
        scales its target now; another target with the same labels would still stop it.
        """
        gates = self.rules.gates
        if must_not_scale(other.hpa, gates):
            return False
        return not must_not_scale(autoscaler.hpa, gates) or self._targets.get(other.uid) != self._targets.get(
            autoscaler.uid
        )


@dataclass(frozen=True, slots=True)
class MatchedPods:
    """The pods in view of an autoscaler, and its rivals for them."""

    pods: tuple[PodSnapshot, ...]
    rivals: tuple[ConflictingHpa, ...]


def _readings(
    autoscaler: HpaState, answers: Mapping[Query, Answer], pods: tuple[PodSnapshot, ...]
) -> tuple[MetricSamples, ...]:
    if not answers:
        return tuple(one for one in autoscaler.questions if isinstance(one, FetchFailure))
    return tuple(
        question if isinstance(question, FetchFailure) else samples_for(spec, question, answers, pods)
        for spec, question in zip(autoscaler.hpa.spec.metrics, autoscaler.questions, strict=True)
    )


def _are_values(
    usage: NamespaceUsage,
    pods: tuple[PodSnapshot, ...],
    metrics: tuple[MetricSpec, ...],
    values: tuple[list[int], ...],
) -> bool:
    """Return whether each metric says of each pod what it said before."""
    for spec, before in zip(metrics, values, strict=True):
        resource, container = measured_by(spec)
        if usage.values(pods, resource, container) != before:
            return False
    return True
