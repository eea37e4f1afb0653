"""The rules of the scale subresource."""

from collections.abc import Mapping
from typing import Any

from trimtab.model import wire
from trimtab.model.fielderror import FieldError, FieldPath, invalid
from trimtab.model.metadata import NEGATIVE, WholeMeta, validate_metadata
from trimtab.model.scale import ScaleSpec
from trimtab.model.wire import Wire


class _StoredScale(Wire, frozen=True):
    metadata: WholeMeta = WholeMeta()
    spec: ScaleSpec = ScaleSpec()


def validate_scale(data: Mapping[str, Any]) -> list[FieldError]:
    """Check an autoscaling/v1 Scale of the right shape that someone writes."""
    scale = wire.convert(data, _StoredScale)
    errors = validate_metadata(scale.metadata)
    if scale.spec.replicas < 0:
        errors.append(invalid(FieldPath("spec").child("replicas"), scale.spec.replicas, NEGATIVE))
    return errors
