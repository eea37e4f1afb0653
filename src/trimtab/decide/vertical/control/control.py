"""Which VPA controls a pod, for recommender, updater and admission alike.

Among the active VPAs that match a pod the highest level wins, then the oldest, then the first by name. VPAs are indexed
by the controller they target, so the search for a pod's VPA covers only the VPAs of its workload.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from trimtab.decide.vertical.control.controllers import ControllerIndex, ControllerKey, topmost_controller
from trimtab.decide.vertical.control.scope import Match, NodeLabels, Scope, ScopeError, match, resolve_scope
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.pod import Pod
from trimtab.model.labels.selector import Selector
from trimtab.model.times import ZERO_TIME
from trimtab.model.vpa.defaults import recommender_of
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler, VPAScope

CONFLICT_REASON = "VPAScopeConflict"
DRIVING_MODES = frozenset(
    {UpdateMode.RECREATE, UpdateMode.AUTO, UpdateMode.IN_PLACE_OR_RECREATE, UpdateMode.IN_PLACE}
)
"""Modes in which the updater changes running pods."""


@dataclass(frozen=True)
class VpaClaim:
    """A VPA with the selector of its target and its scope."""

    vpa: VerticalPodAutoscaler
    selector: Selector | None
    """The label selector of the target. None, if it could not be read, matches no pod."""
    scope: Scope | ScopeError

    @cached_property
    def key(self) -> str:
        """The VPA's `namespace/name`."""
        return self.vpa.key

    @cached_property
    def mode(self) -> str:
        """The update mode. An unknown mode is returned as written and drives no update."""
        policy = self.vpa.spec.update_policy
        return policy.update_mode if policy and policy.update_mode else UpdateMode.RECREATE.value

    @cached_property
    def level(self) -> int:
        """1 for a VPA that claims only a part of its target, else 0."""
        return self.scope.level if isinstance(self.scope, Scope) else 0

    @cached_property
    def is_active(self) -> bool:
        """Whether the VPA can control pods: its mode is not Off and its scope is usable."""
        return self.mode != UpdateMode.OFF and isinstance(self.scope, Scope)

    @cached_property
    def has_boost(self) -> bool:
        """Whether the VPA boosts the start of a container."""
        policy = self.vpa.spec.resource_policy
        containers = policy.container_policies if policy else ()
        return self.vpa.spec.startup_boost is not None or any(
            container.startup_boost for container in containers
        )

    @cached_property
    def _selector_mismatch(self) -> str:
        return f"labels do not match the target's selector {self.selector}"

    def match(self, pod: Pod, nodes: NodeLabels) -> Match:
        """Return whether the VPA matches a pod of its target, which is unknown while its scope cannot be read."""
        if self.selector is None:
            return Match(False, "the selector of its target cannot be read")
        if not self.selector.matches(pod.metadata.labels):
            return Match(False, self._selector_mismatch)
        if isinstance(self.scope, ScopeError):
            return Match(None, self.scope.message)
        return match(self.scope, pod, nodes)


@dataclass(frozen=True)
class ScopeConflict:
    """Two VPAs whose scopes match the same pod. The older VPA controls it, or the first by name."""

    pod: str
    pod_uid: str
    winner: str
    loser: str
    is_preview: bool = False
    """Whether both VPAs are in mode Off, so that the conflict begins when they become active."""
    is_tie: bool = False
    """Whether both VPAs are equally old, so that the name decides."""

    @property
    def message(self) -> str:
        """The text of the Warning event on both VPAs."""
        controls = "would control" if self.is_preview else "controls"
        return (
            f"Pod {self.pod} matches the scopes of VPA {self.winner} and VPA {self.loser}; "
            f"{self.winner} {controls} it because it is {'first by name' if self.is_tie else 'older'}; make the scopes disjoint"
        )


@dataclass(frozen=True)
class Control:
    """Which VPAs size a pod, boost its start and learn from it, and why the other VPAs of the workload do not."""

    claim: VpaClaim | None
    """The VPA that sizes the pod: the strongest active one that matches."""
    undecided: str = ""
    """Why it is not known whether a scope has the pod. Then no VPA changes it and none learns from it."""
    target: ControllerKey | None = None
    matching: tuple[VpaClaim, ...] = ()
    """The VPAs that certainly match, strongest first."""
    booster: VpaClaim | None = None
    """The controlling VPA, or else a VPA in mode Off that has a boost."""
    receivers: tuple[VpaClaim, ...] = ()
    """The VPAs that learn from the pod. The controlling VPA is first, VPAs in mode Off follow."""
    lost: tuple[tuple[VpaClaim, str], ...] = ()
    conflicts: tuple[ScopeConflict, ...] = ()
    reason: str = ""

    @property
    def key(self) -> str | None:
        """The controlling VPA's `namespace/name`."""
        return self.claim.key if self.claim else None


NO_CONTROL = Control(None)


@dataclass(frozen=True)
class VPAIndex:
    """All VPAs, by the controller they target."""

    by_target: Mapping[ControllerKey, tuple[VpaClaim, ...]]
    rules: Rules = Rules.TRIMTAB
    errors: Mapping[str, ScopeError] = field(default_factory=dict)
    """Errors of unusable scopes, by VPA."""

    def claims_on(self, target: ControllerKey) -> tuple[VpaClaim, ...]:
        """Return the VPAs of a workload, strongest first."""
        return self.by_target.get(target, ())

    def for_updater(self) -> "VPAIndex":
        """Return the index for the updater: all VPAs, or in upstream's setting the driving ones.

        Upstream drops modes Off and Initial first, so that another VPA may resize a pod whose creation a VPA in mode
        Initial decided (edge case 5.3-9).
        """
        if self.rules.ours:
            return self
        driving = {
            target: tuple(claim for claim in claims if claim.mode in DRIVING_MODES)
            for target, claims in self.by_target.items()
        }
        return VPAIndex(driving, self.rules, self.errors)


def index_vpas(
    vpas: Iterable[tuple[VerticalPodAutoscaler, Selector | None]],
    scopes: Mapping[str, VPAScope] | None = None,
    *,
    is_gate_on: bool = False,
    rules: Rules = Rules.TRIMTAB,
) -> VPAIndex:
    """Resolve the scope of every VPA and sort the VPAs of each target by strength."""
    grouped: dict[ControllerKey, list[VpaClaim]] = {}
    errors: dict[str, ScopeError] = {}
    for vpa, selector in vpas:
        claim = VpaClaim(vpa, selector, resolve_scope(vpa, scopes or {}, is_gate_on=is_gate_on))
        if isinstance(claim.scope, ScopeError):
            errors[claim.key] = claim.scope
        if (target := vpa.spec.target_ref) is not None:
            key = ControllerKey(vpa.metadata.namespace, target.kind, target.name)
            grouped.setdefault(key, []).append(claim)
    return VPAIndex(
        {key: tuple(sorted(claims, key=_strength)) for key, claims in grouped.items()}, rules, errors
    )


def _strength(claim: VpaClaim) -> tuple[int, object, str]:
    metadata = claim.vpa.metadata
    return -claim.level, metadata.creation_timestamp or ZERO_TIME, metadata.name


def control_of(
    pod: Pod, index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels, *, is_new: bool = False
) -> Control:
    """Return which VPA controls a pod, and why the others do not.

    A pod that no scope certainly has, and that a scope may have, is undecided: its role is unknown, so its size stays. A new pod
    has no size yet, and takes that of a VPA that certainly matches.
    """
    target = topmost_controller(pod, owners)
    if target is None:
        return Control(None, reason="the pod has no controller that a VPA can target")
    matching: list[VpaClaim] = []
    lost: list[tuple[VpaClaim, str]] = []
    doubt = ""
    for claim in index.claims_on(target):
        matched, reason = claim.match(pod, nodes)
        if matched:
            matching.append(claim)
        if not (matched and claim.is_active):
            lost.append((claim, reason or f"its update mode is {claim.mode}"))
        if matched is None and claim.mode != UpdateMode.OFF:
            doubt = doubt or f"which VPA controls it is not known: {reason}"
    active = [claim for claim in matching if claim.is_active]
    if doubt and not is_new and not (active and active[0].level):
        return Control(None, doubt, target, tuple(matching), lost=tuple(lost), reason=doubt)
    winner, others = (active[0], active[1:]) if active else (None, [])
    if winner is not None:
        lost.extend((other, _loss_reason(winner, other)) for other in others)
    return Control(
        claim=winner,
        target=target,
        matching=tuple(matching),
        booster=winner or next((claim for claim in matching if claim.has_boost), None),
        receivers=_receivers(winner, matching),
        lost=tuple(lost),
        conflicts=tuple(_conflicts(pod, active or matching, is_preview=winner is None)),
        reason=_win_reason(winner, others) if winner else f"no active VPA of {target} matches the pod",
    )


def _receivers(winner: VpaClaim | None, matching: Iterable[VpaClaim]) -> tuple[VpaClaim, ...]:
    """Return the VPAs that learn from a pod, given those that match it.

    A VPA in mode Off is a preview: it recommends what it would recommend if it were active. Of these VPAs, the strongest
    of each recommender receives samples, so that two recommenders can be compared on one workload. A controlling VPA of
    a higher level excludes weaker VPAs in mode Off. Beside a controlling VPA of the same level, a VPA in mode Off may be
    there to compare two policies (docs/decisions/a-single-function-decides-which-vpa-controls-a-pod.md).
    """
    previews: dict[str, VpaClaim] = {}
    for claim in matching:
        if claim.mode == UpdateMode.OFF:
            previews.setdefault(recommender_of(claim.vpa), claim)
    level = 0 if winner is None else winner.level
    off = tuple(claim for claim in previews.values() if claim.level >= level)
    return off if winner is None else (winner, *off)


def unreported_conflicts(
    conflicts: Iterable[ScopeConflict], reported: frozenset[tuple[str, str, str]]
) -> tuple[tuple[ScopeConflict, ...], frozenset[tuple[str, str, str]]]:
    """Return the conflicts to report, and the next `reported`. A conflict is reported once until it ends."""
    current = {(conflict.pod_uid, conflict.winner, conflict.loser): conflict for conflict in conflicts}
    fresh = tuple(conflict for key, conflict in current.items() if key not in reported)
    return fresh, frozenset(current)


def _loss_reason(winner: VpaClaim, other: VpaClaim) -> str:
    if winner.level != other.level:
        return f"VPA {winner.key} speaks for a part of the workload and precedes it"
    return f"VPA {winner.key} is older, or first by name"


def _win_reason(winner: VpaClaim, others: list[VpaClaim]) -> str:
    if not others:
        return f"VPA {winner.key} alone matches"
    return f"VPA {winner.key} precedes {', '.join(other.key for other in others)}"


def _conflicts(pod: Pod, claims: Sequence[VpaClaim], *, is_preview: bool) -> Iterator[ScopeConflict]:
    for other in claims[1:]:
        if other.level == claims[0].level == 1:
            is_tie = _strength(other)[:2] == _strength(claims[0])[:2]
            yield ScopeConflict(
                pod.metadata.key, pod.metadata.uid, claims[0].key, other.key, is_preview, is_tie
            )
