"""Records that are kept for later, in a fraction of their memory.

A decision follows from what was seen, to the byte, so a packed record leaves it out and makes it again when somebody
asks. Samples become columns; their names are those of the pods. What two records in a row have in common is kept once.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.decide.horizontal.observation import Observation
from trimtab.decide.horizontal.pods import PodFacts
from trimtab.decide.horizontal.readings import PodSamples, Reading, Sample
from trimtab.decide.horizontal.record import Fate, Record, decided

_NOBODY: Any = {}
"""The owners that nobody asked for: one empty mapping for all."""


class PackedSamples(msgspec.Struct, frozen=True, gc=False):
    """Samples of pods as columns."""

    names: tuple[str, ...] | None
    """None: those of the pods that were seen, in their order."""
    columns: bytes
    timestamp: float


class PackedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record without its decision."""

    seen: Observation
    readings: tuple[Reading | PackedSamples, ...]
    now: float
    fate: Fate


def pack(record: Record, before: PackedRecord | None = None) -> PackedRecord:
    """Return the record for keeping; what it has in common with the one `before` is shared."""
    seen = record.observation
    pods = before.seen.pods if before is not None and before.seen.pods == seen.pods else seen.pods
    packed = tuple([_packed(one, pods) for one in seen.readings])
    slim = msgspec.structs.replace(seen, pods=pods, readings=(), owners=seen.owners or _NOBODY)
    return PackedRecord(slim, packed, record.decision.now, record.fate)


def unpack(packed: PackedRecord) -> Record:
    """Return the whole record, its decision made again."""
    readings = tuple([_unpacked(one, packed.seen.pods) for one in packed.readings])
    seen = msgspec.structs.replace(packed.seen, readings=readings, owners=dict(packed.seen.owners))
    return decided(seen, packed.now, packed.fate)


def _packed(reading: Reading, pods: tuple[PodFacts, ...]) -> Reading | PackedSamples:
    if not isinstance(reading, PodSamples):
        return reading
    names = tuple(reading.samples)
    samples = reading.samples.values()
    columns = (
        [one.value for one in samples],
        _once([one.timestamp for one in samples]),
        _once([one.window for one in samples]),
    )
    try:
        text = msgspec.msgpack.encode(columns)
    except OverflowError:
        return reading  # a number beyond 64 bits has no column
    return PackedSamples(None if names == _names(pods) else names, text, reading.timestamp)


def _unpacked(reading: Reading | PackedSamples, pods: tuple[PodFacts, ...]) -> Reading:
    if not isinstance(reading, PackedSamples):
        return reading
    names = _names(pods) if reading.names is None else reading.names
    values, times, windows = msgspec.msgpack.decode(reading.columns)
    samples: Mapping[str, Sample] = {
        name: Sample(value, time, window)
        for name, value, time, window in zip(
            names, values, _each(times, len(names)), _each(windows, len(names)), strict=True
        )
    }
    return PodSamples(samples=dict(samples), timestamp=reading.timestamp)


def _names(pods: tuple[PodFacts, ...]) -> tuple[str, ...]:
    return tuple([pod.name for pod in pods])


def _once(column: list[float]) -> list[float] | float:
    """Return a column, or its value if it is the same throughout; most are."""
    return column[0] if column and column.count(column[0]) == len(column) else column


def _each(column: list[float] | float, length: int) -> list[float]:
    return column if isinstance(column, list) else [column] * length
