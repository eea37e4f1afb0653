"""Successive states of one HPA: what did not change is the same object in both.

Every write of a status brings the whole HPA back, and twenty of these are kept in its records. A status keeps its
conditions most of the time, and metadata nearly all of itself. The memory is left out: it is kept beside the object.
"""

from typing import TypeVar

import msgspec

from trimtab.model.core.meta import Condition, ObjectMeta
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus

V = TypeVar("V")

MEMORY_ANNOTATION = "autoscaling.trimtab.dev/memory"
"""Where a native HPA carries its memory: its status has no field for it."""


def metadata_after(before: ObjectMeta, new: ObjectMeta) -> ObjectMeta:
    """Return the new metadata, with the very values of the old where they are equal."""
    annotations = new.annotations
    if MEMORY_ANNOTATION in annotations:
        annotations = {key: text for key, text in annotations.items() if key != MEMORY_ANNOTATION}
    return msgspec.structs.replace(
        new,
        name=_same(before.name, new.name),
        namespace=_same(before.namespace, new.namespace),
        uid=_same(before.uid, new.uid),
        creation_timestamp=_same(before.creation_timestamp, new.creation_timestamp),
        labels=_same(before.labels, new.labels),
        annotations=_same(before.annotations, annotations),
    )


def status_after(
    before: HorizontalPodAutoscalerStatus, new: HorizontalPodAutoscalerStatus
) -> HorizontalPodAutoscalerStatus:
    """Return the new status, with the very conditions of the old where they are equal."""
    return msgspec.structs.replace(
        new,
        memory="",
        last_scale_time=_same(before.last_scale_time, new.last_scale_time),
        current_metrics=_same(before.current_metrics, new.current_metrics),
        conditions=_conditions_after(before.conditions, new.conditions),
    )


def _conditions_after(before: tuple[Condition, ...], new: tuple[Condition, ...]) -> tuple[Condition, ...]:
    if before == new:
        return before
    known = {one.type: one for one in before}
    return tuple([_same(known.get(one.type, one), one) for one in new])


def _same(before: V, new: V) -> V:
    return before if before == new else new
