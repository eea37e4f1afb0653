"""Successive states of one HPA: what did not change is the same object in both.

Every write of a status brings the whole HPA back, and twenty of these are kept in its records. A status keeps its
conditions most of the time, and metadata nearly all of itself. The memory is left out: it is kept beside the object.
"""

from collections.abc import Sequence
from typing import TypeVar, overload

import msgspec

from trimtab.decide.horizontal import Record
from trimtab.decide.horizontal.records.compact import PackedRecord, pack, unpack
from trimtab.model.core.meta import Condition, ObjectMeta
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus

V = TypeVar("V")

MEMORY_ANNOTATION = "autoscaling.trimtab.dev/memory"
"""Where a native HPA carries its memory: its status has no field for it."""


def reuse_unchanged_metadata(before: ObjectMeta, new: ObjectMeta) -> ObjectMeta:
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


def reuse_unchanged_status(
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


class RecordHistory(Sequence[Record]):
    """Records, oldest first; when there are `most`, a new one takes the place of the oldest."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Not a deque: an empty one takes 760 bytes, and there is one for every HPA.
        self._packed: list[PackedRecord] = []
        self._last: Record | None = None

    def append(self, record: Record) -> None:
        """Take in the newest record."""
        if self._last is not None and self._most > 1:
            self._packed.append(pack(self._last, self._packed[-1] if self._packed else None))
            if len(self._packed) >= self._most:
                del self._packed[0]
        self._last = record if self._most else None

    def newer_than(self, moment: float) -> list[Record]:
        """Return the records of decisions after this moment, oldest first; no other is made whole."""
        newer = [unpack(one) for one in self._packed if one.now > moment]
        if self._last is not None and self._last.decision.now > moment:
            newer.append(self._last)
        return newer

    def __len__(self) -> int:
        return len(self._packed) + (self._last is not None)

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...

    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        """Return a record, or several; an older one is made whole again."""
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        position = place + len(self) if place < 0 else place
        if not 0 <= position < len(self):
            raise IndexError(place)
        if position < len(self._packed):
            return unpack(self._packed[position])
        assert self._last is not None
        return self._last
