"""Keeps the user's ratio of limit to request when the request changes.

CPU is scaled in whole millicores, memory in whole bytes. Upstream drops the fraction. Ours rounds up, so that a limit
above its request stays above it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from trimtab.decide.vertical.resources.container_resources import amount_of
from trimtab.model.core.pod import CPU, MEMORY, ResourceList
from trimtab.model.quantity import Quantity

LARGEST = 2**63 - 1
"""The API's amounts are int64. A larger scaled amount is capped, with a note."""


class FractionRounding(IntEnum):
    """How to round the fraction that scaling leaves. NONE and DOWN drop it."""

    NONE = 0
    UP = 1
    """Up for CPU only, as upstream does."""
    DOWN = 2
    CEILING = 3
    """Up for every resource."""


@dataclass(frozen=True)
class Scaled:
    """A scaled amount, and whether it had to be capped to int64."""

    quantity: Quantity
    is_capped: bool = False


@dataclass(frozen=True)
class ProportionalLimit:
    """A limit that keeps the ratio, or None with a note why there is none."""

    limit: Quantity | None
    note: str = ""


def units_of(resource: str) -> tuple[Callable[[Quantity], int], Callable[..., Quantity]]:
    """Return how to count a resource in whole units, and how to make an amount of them."""
    if resource == MEMORY:
        return Quantity.value, Quantity.from_int
    return Quantity.milli_value, Quantity.from_milli


def scale(
    resource: str,
    amount: Quantity,
    base: Quantity,
    result: Quantity,
    rounding: FractionRounding = FractionRounding.NONE,
) -> Scaled:
    """Return `amount` * `result` / `base`, or `amount` itself if `base` is zero."""
    counted, made = units_of(resource)
    divisor = counted(base)
    if divisor == 0:
        return Scaled(amount)
    quotient, remainder = divmod(counted(amount) * counted(result), abs(divisor))
    quotient = quotient if divisor > 0 else -quotient
    if not -LARGEST - 1 <= quotient <= LARGEST:
        return Scaled(made(LARGEST, amount.format), is_capped=True)
    # Upstream never rounds memory: its remainder is a fraction of a byte.
    if remainder and (
        rounding is FractionRounding.CEILING or (rounding is FractionRounding.UP and resource != MEMORY)
    ):
        quotient += 1
    return Scaled(made(quotient, amount.format))


def proportional_limit(
    resource: str,
    limit: Quantity | None,
    request: Quantity | None,
    recommended: Quantity | None,
    default_limit: Quantity | None,
    *,
    rounding: FractionRounding = FractionRounding.NONE,
) -> ProportionalLimit:
    """Return the limit for a recommended request. `default_limit` replaces an absent limit."""
    limit = _or_default(limit, default_limit)
    if _is_absent(limit):
        return ProportionalLimit(None, f"{resource}: limit NOT set since originalLimit is nil or 0")
    if recommended is None or recommended.value() == 0:
        return ProportionalLimit(None, f"{resource}: limit NOT set since recommendedRequest is nil or 0")
    assert limit is not None
    # Kubernetes sets an absent request to the limit, so the ratio is 1.
    if request is None or request.value() == 0 or request.milli_value() == limit.milli_value():
        return ProportionalLimit(recommended)
    scaled = scale(resource, limit, request, recommended, rounding)
    note = f"{resource}: failed to keep limit to request ratio; capping limit to int64"
    return ProportionalLimit(scaled.quantity, note if scaled.is_capped else "")


def proportional_limits(
    limits: Mapping[str, Quantity],
    requests: Mapping[str, Quantity],
    recommended: Mapping[str, Quantity],
    default_limits: Mapping[str, Quantity],
    *,
    rounding: FractionRounding = FractionRounding.NONE,
) -> tuple[ResourceList | None, tuple[str, ...]]:
    """Return the limits of CPU and memory for recommended requests, with notes."""
    scaled: ResourceList = {}
    notes: list[str] = []
    for resource in (CPU, MEMORY):
        result = proportional_limit(
            resource,
            amount_of(limits, resource),
            amount_of(requests, resource),
            amount_of(recommended, resource),
            amount_of(default_limits, resource),
            rounding=rounding,
        )
        if result.limit is not None:
            scaled[resource] = result.limit
        if result.note:
            notes.append(result.note)
    return (scaled, tuple(notes)) if scaled else (None, ())


def boundary_request(
    resource: str,
    request: Quantity | None,
    limit: Quantity | None,
    boundary: Quantity,
    default_limit: Quantity | None,
) -> Quantity:
    """Return the request at which the proportional limit reaches `boundary`, or zero if there is none."""
    limit = _or_default(limit, default_limit)
    if _is_absent(limit):
        return Quantity.zero
    assert limit is not None
    if request is None or request.value() == 0:
        return boundary
    return scale(resource, request, limit, boundary).quantity


def _or_default(limit: Quantity | None, default_limit: Quantity | None) -> Quantity | None:
    return default_limit if _is_absent(limit) and default_limit is not None else limit


def _is_absent(quantity: Quantity | None) -> bool:
    return quantity is None or quantity.value() == 0
