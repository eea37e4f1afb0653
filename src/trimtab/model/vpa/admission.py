"""Admission reviews of VPAs and VPAScopes, without I/O, for the webhook and the lab."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trimtab.model.feature_gates import FeatureGates
from trimtab.model.field_errors import FieldError, aggregate
from trimtab.model.groups import OWN_GROUP
from trimtab.model.json import wire
from trimtab.model.json.shape import misfits
from trimtab.model.vpa.defaults import default_patch, options_for
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope
from trimtab.model.vpa.validation import validate_scope, validate_vpa

UNPROCESSABLE = 422

T = TypeVar("T")


@dataclass(frozen=True)
class Review:
    """A request: its raw objects, and the scopes of the cluster."""

    operation: str
    name: str
    object: Any
    old_object: Any = None
    scopes: Collection[str] | None = None
    """Names of the VPAScopes in the namespace, or None to leave references unchecked."""
    group: str = OWN_GROUP


@dataclass(frozen=True)
class ReviewResponse:
    """A response: rejected with a Status, or allowed with a JSON patch and warnings."""

    allowed: bool
    patch: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    status: dict[str, Any] | None = None


def review_vpa(review: Review, gates: FeatureGates, *, checks_creates: bool = True) -> ReviewResponse:
    """Review a VPA that is created or updated.

    Upstream compares a new object with an empty one, so the rules for creates never apply; `checks_creates=False`
    reproduces that (compat `vpa-1.8`).
    """
    errors = misfits(review.object, VerticalPodAutoscaler)
    if errors:
        return _reject(review, "VerticalPodAutoscaler", errors)
    vpa = wire.convert(review.object, VerticalPodAutoscaler)
    old = _read(review.old_object, VerticalPodAutoscaler)
    options = options_for(
        gates,
        old,
        is_create=checks_creates and review.operation == "CREATE",
        checked_scopes=review.scopes if _names_another_scope(vpa, old) else None,
    )
    findings = validate_vpa(vpa, options)
    if findings.errors:
        return _reject(review, "VerticalPodAutoscaler", findings.errors, findings.warnings)
    return ReviewResponse(allowed=True, patch=default_patch(vpa), warnings=findings.warnings)


def named_scopes(review: Review) -> tuple[str, ...]:
    """Return the scopes that a VPA under review names, if it can be read."""
    vpa = _read(review.object, VerticalPodAutoscaler)
    return tuple(filter(None, vpa.scope_names)) if vpa is not None else ()


def review_scope(review: Review) -> ReviewResponse:
    """Review a VPAScope that is created or updated."""
    errors = misfits(review.object, VPAScope)
    errors = errors or validate_scope(wire.convert(review.object, VPAScope))
    return _reject(review, "VPAScope", errors) if errors else ReviewResponse(allowed=True)


def _names_another_scope(vpa: VerticalPodAutoscaler, old: VerticalPodAutoscaler | None) -> bool:
    """Return whether the reference is new. An unchanged one to a deleted scope must not freeze the VPA."""
    return old is None or vpa.scope_names != old.scope_names


def _read(data: Any, kind: type[T]) -> T | None:
    """Return an object, if there is one that can be read."""
    return None if not isinstance(data, dict) or misfits(data, kind) else wire.convert(data, kind)


def _reject(
    review: Review, kind: str, errors: Sequence[FieldError], warnings: Sequence[str] = ()
) -> ReviewResponse:
    name, group = review.name, review.group
    causes = [{"reason": error.type.value, "message": error.body, "field": error.field} for error in errors]
    status = {
        "metadata": {},
        "status": "Failure",
        "message": f'{kind}.{group} "{name}" is invalid: {aggregate(errors)}',
        "reason": "Invalid",
        "details": {"name": name, "group": group, "kind": kind, "causes": causes},
        "code": UNPROCESSABLE,
    }
    return ReviewResponse(allowed=False, warnings=list(warnings), status=status)
