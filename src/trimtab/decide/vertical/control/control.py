"""Which VPA controls a pod: the one question that recommender, updater and admission ask alike.

Among the active VPAs that match a pod the highest level wins, then the oldest, then the first by name. VPAs are
indexed by the controller they target, so asking for one pod looks only at its own workload's VPAs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.decide.vertical.control.controllers import (
    ControllerIndex,
    ControllerKey,
    topmost_controller,
)
from trimtab.decide.vertical.control.scope import (
    NodeLabels,
    Scope,
    ScopeError,
    mismatch,
    resolve_scope,
)
from trimtab.model.core.pod import Pod
from trimtab.model.labels.selector import Selector
from trimtab.model.times import ZERO_TIME
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler, VPAScope

CONFLICT_REASON = "VPAScopeConflict"
DRIVING_MODES = frozenset(
    {UpdateMode.RECREATE, UpdateMode.AUTO, UpdateMode.IN_PLACE_OR_RECREATE, UpdateMode.IN_PLACE}
)
"""Modes in which running pods are changed."""


@dataclass(frozen=True)
class VpaClaim:
    """A VPA with the selector of its target and its scope: what it may lay claim to."""

    vpa: VerticalPodAutoscaler
    selector: Selector | None
    """The label selector of the target; None if it could not be read, which matches nothing."""
    scope: Scope | ScopeError

    @cached_property
    def key(self) -> str:
        """Return the VPA's `namespace/name`."""
        return self.vpa.key

    @cached_property
    def mode(self) -> str:
        """Return the update mode; a mode we do not know is reported as it stands, and drives nothing."""
        policy = self.vpa.spec.update_policy
        return policy.update_mode if policy and policy.update_mode else UpdateMode.RECREATE.value

    @cached_property
    def level(self) -> int:
        """Return 1 for a VPA that speaks for a part of its target only."""
        return self.scope.level if isinstance(self.scope, Scope) else 0

    @cached_property
    def is_active(self) -> bool:
        """Return whether it takes part in control; Off only watches, an unusable scope does nothing."""
        return self.mode != UpdateMode.OFF and isinstance(self.scope, Scope)

    @cached_property
    def has_boost(self) -> bool:
        """Return whether it boosts the start of a container."""
        policy = self.vpa.spec.resource_policy
        own = policy.container_policies if policy else ()
        return self.vpa.spec.startup_boost is not None or any(each.startup_boost for each in own)

    @cached_property
    def _selector_mismatch(self) -> str:
        return f"labels do not match the target's selector {self.selector}"

    def mismatch(self, pod: Pod, nodes: NodeLabels) -> str | None:
        """Say why the VPA does not match a pod of its target; None if it does."""
        if isinstance(self.scope, ScopeError):
            return self.scope.message
        if self.selector is None:
            return "the selector of its target cannot be read"
        if not self.selector.matches(pod.metadata.labels):
            return self._selector_mismatch
        return mismatch(self.scope, pod, nodes)


@dataclass(frozen=True)
class ScopeConflict:
    """Two VPAs with scopes that match one pod: a misconfiguration, decided by age."""

    pod: str
    pod_uid: str
    winner: str
    loser: str
    is_preview: bool = False
    """Whether both are in mode Off: the conflict comes when they are active."""

    @property
    def message(self) -> str:
        """Return the text of the Warning event that both VPAs get."""
        controls = "would control" if self.is_preview else "controls"
        return (
            f"Pod {self.pod} matches the scopes of VPA {self.winner} and VPA {self.loser}; "
            f"{self.winner} {controls} it because it is older; make the scopes disjoint"
        )


@dataclass(frozen=True)
class Control:
    """Who controls a pod, who also matched, and why each of the workload's other VPAs did not get it."""

    claim: VpaClaim | None
    lost: tuple[tuple[VpaClaim, str], ...] = ()
    conflicts: tuple[ScopeConflict, ...] = ()
    reason: str = ""

    @property
    def key(self) -> str | None:
        """Return the controlling VPA's `namespace/name`."""
        return self.claim.key if self.claim else None


NOBODY = Control(None)


@dataclass(frozen=True)
class VPAIndex:
    """All VPAs, by the controller they target."""

    by_target: Mapping[ControllerKey, tuple[VpaClaim, ...]]
    compat: VpaCompat = DEFAULT
    errors: Mapping[str, ScopeError] = field(default_factory=dict)
    """Per VPA whose scope cannot be used: why."""

    def claims_on(self, target: ControllerKey) -> tuple[VpaClaim, ...]:
        """Return the VPAs of one workload, strongest first."""
        return self.by_target.get(target, ())

    def for_updater(self) -> "VPAIndex":
        """Return the VPAs among which the updater looks: all of them, unless upstream's way is asked for.

        Upstream drops modes Off and Initial before it chooses, so that another VPA may resize a pod whose
        creation an Initial one decided (edge case 5.3-9).
        """
        if self.compat.initial_keeps_control:
            return self
        driving = {
            target: tuple(claim for claim in claims if claim.mode in DRIVING_MODES)
            for target, claims in self.by_target.items()
        }
        return VPAIndex(driving, self.compat, self.errors)


def index_vpas(
    vpas: Iterable[tuple[VerticalPodAutoscaler, Selector | None]],
    scopes: Mapping[str, VPAScope] | None = None,
    *,
    is_gate_on: bool = False,
    compat: VpaCompat = DEFAULT,
) -> VPAIndex:
    """Resolve every VPA's scope and order the VPAs of each target by strength."""
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
        {key: tuple(sorted(claims, key=_strength)) for key, claims in grouped.items()}, compat, errors
    )


def _strength(claim: VpaClaim) -> tuple[int, object, str]:
    metadata = claim.vpa.metadata
    return -claim.level, metadata.creation_timestamp or ZERO_TIME, metadata.name


def controlling_vpa(pod: Pod, index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels) -> Control:
    """Return which VPA controls the pod, which ones lost it, and to what."""
    target = topmost_controller(pod, owners)
    if target is None:
        return Control(None, reason="the pod has no controller that a VPA can target")
    claims = index.claims_on(target)
    matching: list[VpaClaim] = []
    watching: list[VpaClaim] = []
    lost: list[tuple[VpaClaim, str]] = []
    for claim in claims:
        mismatched = claim.mismatch(pod, nodes)
        if why := mismatched or _abstains(claim):
            lost.append((claim, why))
            if mismatched is None and claim.mode == UpdateMode.OFF:
                watching.append(claim)
        else:
            matching.append(claim)
    if not matching:
        preview = _conflicts(pod, watching[0], watching[1:], is_preview=True) if watching else ()
        return Control(None, tuple(lost), tuple(preview), f"no active VPA of {target} matches the pod")
    winner, *others = matching
    lost.extend((other, _why_weaker(winner, other)) for other in others)
    return Control(winner, tuple(lost), tuple(_conflicts(pod, winner, others)), _why_wins(winner, others))


def boosting_vpa(pod: Pod, index: VPAIndex, owners: ControllerIndex, nodes: NodeLabels) -> Control:
    """Return which VPA boosts the start of a pod: the one that controls it, else one in mode Off that has a boost."""
    control = controlling_vpa(pod, index, owners, nodes)
    target = topmost_controller(pod, owners)
    if control.claim is not None or target is None:
        return control
    for claim in index.claims_on(target):
        if claim.mode == UpdateMode.OFF and claim.has_boost and claim.mismatch(pod, nodes) is None:
            return replace(control, claim=claim, reason=f"VPA {claim.key} boosts its start, in mode Off")
    return control


def new_conflicts(
    seen: Iterable[ScopeConflict], told: frozenset[tuple[str, str, str]]
) -> tuple[tuple[ScopeConflict, ...], frozenset[tuple[str, str, str]]]:
    """Return the conflicts not yet told, and what has been told now; a pair is told once until it ends."""
    current = {(conflict.pod_uid, conflict.winner, conflict.loser): conflict for conflict in seen}
    fresh = tuple(conflict for key, conflict in current.items() if key not in told)
    return fresh, frozenset(current)


def _abstains(claim: VpaClaim) -> str | None:
    return None if claim.is_active else f"its update mode is {claim.mode}"


def _why_weaker(winner: VpaClaim, other: VpaClaim) -> str:
    if winner.level != other.level:
        return f"VPA {winner.key} speaks for a part of the workload and precedes it"
    return f"VPA {winner.key} is older, or first by name"


def _why_wins(winner: VpaClaim, others: list[VpaClaim]) -> str:
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
