"""Whether a recommendation was learnt from the pods that its VPA now speaks for.

The recommender writes a hash of target, selector and scope beside each recommendation. Updater and admission apply a
recommendation only while the hash is that of the present objects, so an edited scope never gives one role the size of
another, and an edit of anything else changes nothing (spec 5.6).
"""

import hashlib

import msgspec

from trimtab.decide.vertical.control import Claim
from trimtab.decide.vertical.scope import Scope
from trimtab.model.labels.selector import Selector

_HEX_DIGITS = 16
_SAME = {"=": "in", "==": "in", "!=": "notin"}
"""Operators that ask the same with one value."""


def selector_hash(claim: Claim) -> str:
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


def is_recommendation_current(claim: Claim) -> bool:
    """Return whether the recommendation was learnt under the VPA's present target, selector and scope.

    Without a hash another recommender wrote the status. It is trusted on unscoped VPAs, as upstream trusts it. On
    scoped VPAs it must at least have seen the present generation.
    """
    status = claim.vpa.status
    if status.observed_selector_hash is not None:
        return status.observed_selector_hash == selector_hash(claim)
    if claim.vpa.spec.vpa_scope is None:
        return True
    observed = status.observed_generation
    return observed is not None and observed >= claim.vpa.metadata.generation


def _requirements(selector: Selector | None) -> list[tuple[str, str, list[str]]]:
    """Return what a selector asks for in one way of writing it."""
    found = selector.requirements if selector is not None else ()
    return sorted(
        (each.key, _SAME.get(each.operator, each.operator), sorted({*each.values})) for each in found
    )
