"""Records that are kept for later, in a fraction of their memory.

A decision follows from what was observation, to the byte, so a packed record leaves it out and makes it again when somebody
asks. Of what was observation, two records in a row have nearly everything in common: that is kept once, as their ground. What
changes in every round (samples, the HPA's version, its figures, recommendations) becomes one short text.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.decide.horizontal.arithmetic import NEVER
from trimtab.decide.horizontal.memory import LastGood, Recommendation
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.observation.samples import MetricSamples, PodSamples, Sample
from trimtab.decide.horizontal.records.record import Fate, Record, decided
from trimtab.model.hpa.types import MetricStatus
from trimtab.model.json import wire

_NOBODY: Any = {}
"""The owners that nobody asked for: one empty mapping for all."""


class _Columns(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Samples of pods as columns; one that is the same throughout is a number."""

    names: tuple[str, ...] | None
    """None: those of the pods that were observation, in their order."""
    values: list[int]
    times: list[float] | float
    windows: list[float] | float
    timestamp: float | None
    """None: the default itself, which JSON leaves out; an equal number would be written."""


class _Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """In what an observation differs from its ground."""

    version: str
    metrics: tuple[MetricStatus, ...]
    recommendations: tuple[Recommendation, ...] | None
    last_good: tuple[LastGood, ...]
    readings: tuple[_Columns | None, ...]
    """None: the next of the record's `plain` ones."""


class PackedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record without its decision."""

    ground: Observation
    """What was observation, without what changes in every round: one object for all records in a row that agree in it."""
    change: bytes
    plain: tuple[MetricSamples, ...]
    """Readings that have no columns: single values, failures."""
    now: float
    fate: Fate


_encode = wire.packer().encode
_decode = wire.unpacker(_Change).decode


def pack(record: Record, before: PackedRecord | None = None) -> PackedRecord:
    """Return the record for keeping; what it has in common with the one `before` is shared."""
    observation = record.observation
    ground = _ground_of(observation)
    if before is not None and before.ground == ground:
        ground = before.ground
    change, plain = _change_of(observation)
    return PackedRecord(ground, change, plain, record.decision.now, record.fate)


def unpack(packed: PackedRecord) -> Record:
    """Return the whole record, its decision made again."""
    ground, change = packed.ground, _decode(packed.change)
    hpa, plain = ground.hpa, iter(packed.plain)
    observation = msgspec.structs.replace(
        ground,
        hpa=msgspec.structs.replace(
            hpa,
            metadata=msgspec.structs.replace(hpa.metadata, resource_version=change.version),
            status=msgspec.structs.replace(hpa.status, current_metrics=change.metrics),
        ),
        owners=dict(ground.owners),
        readings=tuple(
            [next(plain) if one is None else _samples(one, ground.pods) for one in change.readings]
        ),
        memory=msgspec.structs.replace(
            ground.memory, recommendations=change.recommendations, last_good=change.last_good
        ),
    )
    return decided(observation, packed.now, packed.fate)


def _ground_of(observation: Observation) -> Observation:
    hpa = observation.hpa
    return msgspec.structs.replace(
        observation,
        hpa=msgspec.structs.replace(
            hpa,
            metadata=msgspec.structs.replace(hpa.metadata, resource_version=""),
            status=msgspec.structs.replace(hpa.status, current_metrics=()),
        ),
        owners=observation.owners or _NOBODY,
        readings=(),
        memory=msgspec.structs.replace(observation.memory, recommendations=None, last_good=()),
    )


def _change_of(observation: Observation) -> tuple[bytes, tuple[MetricSamples, ...]]:
    """Return what a ground leaves out, and the readings that are kept as they are."""
    columns = [_columns(one, observation.pods) for one in observation.readings]
    change = _Change(
        observation.hpa.metadata.resource_version,
        observation.hpa.status.current_metrics,
        observation.memory.recommendations,
        observation.memory.last_good,
        tuple(columns),
    )
    try:
        plain = [
            reading for reading, column in zip(observation.readings, columns, strict=True) if column is None
        ]
        return _encode(change), tuple(plain)
    except OverflowError:
        # A number beyond 64 bits has no column.
        nothing = msgspec.structs.replace(change, readings=(None,) * len(columns))
        return _encode(nothing), observation.readings


def _columns(reading: MetricSamples, pods: tuple[PodSnapshot, ...]) -> _Columns | None:
    if not isinstance(reading, PodSamples):
        return None
    names = tuple(reading.samples)
    samples = reading.samples.values()
    return _Columns(
        None if names == _names(pods) else names,
        [one.value for one in samples],
        _once([one.timestamp for one in samples]),
        _once([one.window for one in samples]),
        None if reading.timestamp is NEVER else reading.timestamp,
    )


def _samples(columns: _Columns, pods: tuple[PodSnapshot, ...]) -> PodSamples:
    names = _names(pods) if columns.names is None else columns.names
    times, windows = _each(columns.times, len(names)), _each(columns.windows, len(names))
    samples: Mapping[str, Sample] = {
        name: Sample(value, time, window)
        for name, value, time, window in zip(names, columns.values, times, windows, strict=True)
    }
    return PodSamples(
        samples=dict(samples), timestamp=NEVER if columns.timestamp is None else columns.timestamp
    )


def _names(pods: tuple[PodSnapshot, ...]) -> tuple[str, ...]:
    return tuple([pod.name for pod in pods])


def _once(column: list[float]) -> list[float] | float:
    """Return a column, or its value if it is the same throughout; most are."""
    return column[0] if column and column.count(column[0]) == len(column) else column


def _each(column: list[float] | float, length: int) -> list[float]:
    return column if isinstance(column, list) else [column] * length
