"""Which VPA controls a pod, for recommender, updater and admission alike.

Among the active VPAs that match a pod the highest level wins, then the oldest, then the first by name. VPAs are indexed
by the controller they target, so the search for a pod's VPA covers only the VPAs of its workload.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from trimtab.decide.vertical.control.controllers import ControllerIndex, ControllerKey, topmost_controller
from trimtab.decide.vertical.control.scope import NodeLabels, Scope, ScopeError, mismatch, resolve_scope
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.pod import Pod
from trimtab.model.labels.selector import Selector
from trimtab.model.times import ZERO_TIME
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

    def mismatch(self, pod: Pod, nodes: NodeLabels) -> str | None:
        """Return why the VPA does not match a pod of its target, or None if it matches."""
        if isinstance(self.scope, ScopeError):
            return self.scope.message
        if self.selector is None:
            return "the selector of its target cannot be read"
        if not self.selector.matches(pod.metadata.labels):
            return self._selector_mismatch
        return mismatch(self.scope, pod, nodes)


@dataclass(frozen=True)
class ScopeConflict:
    """Two VPAs whose scopes match the same pod. The older VPA controls it."""

    pod: str
    pod_uid: str
    winner: str
    loser: str
    is_preview: bool = False
    """Whether both VPAs are in mode Off, so that the conflict begins when they become active."""

    @property
    def message(self) -> str:
        """The text of the Warning event on both VPAs."""
        controls = "would control" if self.is_preview else "controls"
        return (
            f"Pod {self.pod} matches the scopes of VPA {self.winner} and VPA {self.loser}; "
            f"{self.winner} {controls} it because it is older; make the scopes disjoint"
        )


@dataclass(frozen=True)
class Control:
    """The VPA that controls a pod, and why the other VPAs of the workload do not."""

    claim: VpaClaim | None
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


def controlling_vpa(pod: Pod, index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels) -> Control:
    """Return the VPA that controls a pod, and why the others do not."""
    target = topmost_controller(pod, owners)
    if target is None:
        return Control(None, reason="the pod has no controller that a VPA can target")
    claims = index.claims_on(target)
    matching: list[VpaClaim] = []
    previews: list[VpaClaim] = []
    lost: list[tuple[VpaClaim, str]] = []
    for claim in claims:
        mismatched = claim.mismatch(pod, nodes)
        if reason := mismatched or _inactive_reason(claim):
            lost.append((claim, reason))
            if mismatched is None and claim.mode == UpdateMode.OFF:
                previews.append(claim)
        else:
            matching.append(claim)
    if not matching:
        conflicts = _conflicts(pod, previews[0], previews[1:], is_preview=True) if previews else ()
        return Control(None, tuple(lost), tuple(conflicts), f"no active VPA of {target} matches the pod")
    winner, *others = matching
    lost.extend((other, _loss_reason(winner, other)) for other in others)
    return Control(winner, tuple(lost), tuple(_conflicts(pod, winner, others)), _win_reason(winner, others))


def boosting_vpa(pod: Pod, index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels) -> Control:
    """Return the VPA that boosts the start of a pod.

    It is the controlling VPA, or else a VPA in mode Off that has a boost.
    """
    control = controlling_vpa(pod, index, owners, nodes)
    target = topmost_controller(pod, owners)
    if control.claim is not None or target is None:
        return control
    for claim in index.claims_on(target):
        if claim.mode == UpdateMode.OFF and claim.has_boost and claim.mismatch(pod, nodes) is None:
            return replace(control, claim=claim, reason=f"VPA {claim.key} boosts its start, in mode Off")
    return control


def unreported_conflicts(
    conflicts: Iterable[ScopeConflict], reported: frozenset[tuple[str, str, str]]
) -> tuple[tuple[ScopeConflict, ...], frozenset[tuple[str, str, str]]]:
    """Return the conflicts to report, and the next `reported`. A conflict is reported once until it ends."""
    current = {(conflict.pod_uid, conflict.winner, conflict.loser): conflict for conflict in conflicts}
    fresh = tuple(conflict for key, conflict in current.items() if key not in reported)
    return fresh, frozenset(current)


def _inactive_reason(claim: VpaClaim) -> str | None:
    return None if claim.is_active else f"its update mode is {claim.mode}"


def _loss_reason(winner: VpaClaim, other: VpaClaim) -> str:
    if winner.level != other.level:
        return f"VPA {winner.key} speaks for a part of the workload and precedes it"
    return f"VPA {winner.key} is older, or first by name"


def _win_reason(winner: VpaClaim, others: list[VpaClaim]) -> str:
    if not others:
        return f"VPA {winner.key} alone matches"
    return f"VPA {winner.key} precedes {', '.join(other.key for other in others)}"


def _conflicts(
    pod: Pod, winner: VpaClaim, others: list[VpaClaim], *, is_preview: bool = False
) -> Iterator[ScopeConflict]:
    if winner.level == 0:
        return
    for other in others:
        if other.level == winner.level:
            yield ScopeConflict(pod.metadata.key, pod.metadata.uid, winner.key, other.key, is_preview)
