"""Which recommendation still fits its VPA: a hash of the target and the selectors it was computed for."""

import hashlib
from typing import Final

import msgspec

from trimtab.decide.vertical.control.control import VpaClaim
from trimtab.decide.vertical.control.scope import Scope
from trimtab.model.labels.selector import Selector

_HEX_DIGITS: Final = 16
_SYNONYMS: Final = {"=": "in", "==": "in", "!=": "notin"}
"""Operators that mean the same with a single value."""


def selector_hash(claim: VpaClaim) -> str:
    """Return a hash of the target, its selector and the scope's selectors.

    Scopes that select the same pods have the same hash, whatever their names.
    """
    target = claim.vpa.spec.target_ref
    scope = claim.scope if isinstance(claim.scope, Scope) else Scope()
    parts = (
        *((target.kind, target.name) if target else ("", "")),
        _requirements(claim.selector),
        _requirements(scope.pods),
        _requirements(scope.nodes),
    )
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:_HEX_DIGITS]


def is_recommendation_current(claim: VpaClaim) -> bool:
    """Return whether the recommendation belongs to the VPA's present target, selector and scope.

    Without a hash another recommender wrote the status. It is trusted on unscoped VPAs, as upstream trusts it. On
    scoped VPAs it must at least have observed the present generation.
    """
    status = claim.vpa.status
    if status.observed_selector_hash is not None:
        return status.observed_selector_hash == selector_hash(claim)
    if not claim.vpa.scope_names:
        return True
    observed = status.observed_generation
    return observed is not None and observed >= claim.vpa.metadata.generation


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
