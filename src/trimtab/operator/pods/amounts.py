"""Decodes the resources of pods.

An absurd amount counts as the largest one, so that its pod is not lost.

kube-apiserver stores `cpu: 1e2000`, which `Quantity` rejects because computing with it takes too long. The pod still
counts as a replica.
"""

from typing import Any, TypeVar

from trimtab.model.core.pod import ResourceList, ResourceRequirements
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity, QuantityError
from trimtab.operator.pods.interning import RawJson, decode

D = TypeVar("D")

LARGEST = Quantity.from_int(2**63 - 1)
"""The amount at which upstream's integers end."""


def decode_requirements(text: RawJson, default: D) -> ResourceRequirements | D:
    """Decode requests and limits, or return `default` if there are none."""
    try:
        return decode(text, ResourceRequirements, default)
    except wire.WireError:
        data = wire.decode(bytes(text), dict[str, Any])
        clamped = {name: _clamp(data.get(name)) for name in ("requests", "limits")}
        return wire.convert({**data, **clamped}, ResourceRequirements)


def decode_amounts(text: RawJson) -> ResourceList:
    """Decode amounts by resource."""
    try:
        return decode(text, ResourceList, {})
    except wire.WireError:
        return wire.convert(_clamp(wire.decode(bytes(text), dict[str, Any])), ResourceList)


def _clamp(amounts: Any) -> Any:
    if not isinstance(amounts, dict):
        return amounts
    return {
        resource: str(LARGEST) if isinstance(amount, str) and not _is_readable(amount) else amount
        for resource, amount in amounts.items()
    }


def _is_readable(amount: str) -> bool:
    try:
        Quantity.parse(amount)
    except QuantityError:
        return False
    return True
