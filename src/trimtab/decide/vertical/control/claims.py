"""The VPAs of a workload, strongest first, and what their recommendations are good for.

Condition ComputedFor says what the amounts of a status were learnt for and computed for. `identity` names the history: the target and
the selectors of the scope. `share` names the part of the workload that was left to the VPA by those above it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Final

import msgspec

from trimtab.decide.vertical.control.controllers import ControllerKey
from trimtab.decide.vertical.control.scope import (
    WHOLE_TARGET,
    Match,
    NodeLabels,
    Scope,
    ScopeError,
    describe_named_scope,
    match,
    resolve_scope,
)
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.pod import Pod
from trimtab.model.labels.selector import Selector
from trimtab.model.times import ZERO_TIME
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler, VPAConditionType, VPAScope

DRIVING_MODES = frozenset(
    {UpdateMode.RECREATE, UpdateMode.AUTO, UpdateMode.IN_PLACE_OR_RECREATE, UpdateMode.IN_PLACE}
)
"""Modes in which the updater changes running pods."""
_HEX_DIGITS: Final = 16
_SYNONYMS: Final = {"=": "in", "==": "in", "!=": "notin"}
"""Operators that mean the same with a single value."""


class Trust(IntEnum):
    """Which pods may get the amounts of a VPA's status."""

    NOTHING = 0
    """None: they were learnt for another target or scope, or for the whole workload."""
    NEW_PODS = 1
    """New pods only: since then another VPA of the workload came or went, so that they may be those of other pods."""
    ALL = 2


@dataclass(frozen=True)
class VpaClaim:
    """A VPA with the selector of its target and its scope."""

    vpa: VerticalPodAutoscaler
    selector: Selector | None
    """The label selector of the target. None, if it could not be read, matches no pod."""
    scope: Scope | ScopeError
    above: frozenset[str] = frozenset()
    """The identities of the active VPAs that precede it, other than its own."""

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

    @cached_property
    def identity(self) -> str:
        """What its history is for. Scopes that select the same pods have one identity, whatever their names."""
        target = self.vpa.spec.target_ref
        scope = self.scope if isinstance(self.scope, Scope) else Scope()
        return _hash(
            *((target.kind, target.name) if target else ("", "")),
            _requirements(scope.pods),
            _requirements(scope.nodes),
        )

    @cached_property
    def share(self) -> str:
        """What its amounts are computed for."""
        return _hash(self.identity, sorted(self.above))

    @cached_property
    def computed_for(self) -> str:
        """The reason of condition ComputedFor."""
        return f"For:{self.identity}:{self.share}"

    @property
    def described(self) -> str:
        """Return which pods its history is for, as the message of condition ComputedFor."""
        return describe_named_scope(self.vpa, self.scope.name if isinstance(self.scope, Scope) else "")

    @property
    def trust(self) -> Trust:
        """Which pods may get the amounts of the status.

        Without the condition another recommender wrote them, which knows no scopes.
        """
        condition = self.vpa.status.condition(VPAConditionType.COMPUTED_FOR)
        if condition is None:
            return Trust.ALL if self.scope == WHOLE_TARGET else Trust.NOTHING
        if condition.reason == self.computed_for:
            return Trust.ALL
        return Trust.NEW_PODS if condition.reason.startswith(f"For:{self.identity}:") else Trust.NOTHING


def _hash(*parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:_HEX_DIGITS]


def _requirements(selector: Selector | None) -> list[tuple[str, str, list[str]]]:
    """Return a selector's requirements in canonical form."""
    requirements = selector.requirements if selector is not None else ()
    return sorted(
        (
            requirement.key,
            _SYNONYMS.get(requirement.operator, requirement.operator),
            sorted({*requirement.values}),
        )
        for requirement in requirements
    )


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
    return VPAIndex({key: _by_strength(claims) for key, claims in grouped.items()}, rules, errors)


def _by_strength(claims: Iterable[VpaClaim]) -> tuple[VpaClaim, ...]:
    above: frozenset[str] = frozenset()
    ordered = []
    for claim in sorted(claims, key=strength):
        ordered.append(replace(claim, above=above - {claim.identity}) if above else claim)
        if claim.is_active:
            above |= {claim.identity}
    return tuple(ordered)


def strength(claim: VpaClaim) -> tuple[int, object, str]:
    """Return a sort key: the highest level first, then the oldest, then the first by name."""
    metadata = claim.vpa.metadata
    return -claim.level, metadata.creation_timestamp or ZERO_TIME, metadata.name
