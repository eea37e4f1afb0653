"""Keeps records in a fraction of their memory.

A decision follows from its observation to the byte, so a packed record leaves the decision out and replays it on demand. Two
records in a row have nearly their whole observation in common, which they share as their base. What changes in every sync
(samples, the HPA's version and metrics, recommendations) is packed into bytes.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.decide.horizontal.arithmetic import NEVER
from trimtab.decide.horizontal.memory import EMPTY, LastGood, Recommendation
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.observation.samples import MetricSamples, Move, PodSamples, Sample
from trimtab.decide.horizontal.records.record import Fate, Record, decide_and_complete
from trimtab.model.hpa.types import MetricStatus
from trimtab.model.json import wire

_NO_OWNERS: Any = {}
"""One empty mapping for all observations without owner lookups."""


class _Columns(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Samples of pods as columns, or as a number where a column is constant."""

    names: tuple[str, ...] | None
    """None: those of the observed pods, in their order."""
    values: list[int]
    times: list[float] | float
    windows: list[float] | float
    timestamp: float | None
    """None: the default itself, which JSON leaves out; an equal number would be written."""
    moves: tuple[Move, ...]


class _Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The difference between an observation and its base."""

    version: str
    metrics: tuple[MetricStatus, ...]
    recommendations: tuple[Recommendation, ...] | None
    last_good: tuple[LastGood, ...]
    remembered_at: float | None
    """None: the default itself."""
    samples: tuple[_Columns | None, ...]
    """None: the next of the record's `plain` samples."""


class PackedRecord(msgspec.Struct, frozen=True, gc=False):
    """A record without its decision."""

    base: Observation
    """The observation without what changes in every sync; records in a row that agree in it share one object."""
    change: bytes
    plain: tuple[MetricSamples, ...]
    """Samples that have no columns: single values, failures."""
    now: float
    fate: Fate


_encode = wire.packer().encode
_decode = wire.unpacker(_Change).decode


def pack(record: Record, before: PackedRecord | None = None) -> PackedRecord:
    """Pack a record, and share its base with the record `before` if they agree."""
    observation = record.observation
    base = _base_of(observation)
    fate = record.fate
    if before is not None:
        base = before.base if before.base == base else base
        fate = before.fate if before.fate == fate else fate
    change, plain = _change_of(observation)
    return PackedRecord(base, change, plain, record.decision.now, fate)


def unpack(packed: PackedRecord) -> Record:
    """Return the whole record, with its decision replayed."""
    base, change = packed.base, _decode(packed.change)
    hpa, plain = base.hpa, iter(packed.plain)
    observation = msgspec.structs.replace(
        base,
        hpa=msgspec.structs.replace(
            hpa,
            metadata=msgspec.structs.replace(hpa.metadata, resource_version=change.version),
            status=msgspec.structs.replace(hpa.status, current_metrics=change.metrics),
        ),
        owners=dict(base.owners),
        samples=tuple(
            [next(plain) if columns is None else _samples(columns, base.pods) for columns in change.samples]
        ),
        memory=msgspec.structs.replace(
            base.memory,
            recommendations=change.recommendations,
            last_good=change.last_good,
            at=EMPTY.at if change.remembered_at is None else change.remembered_at,
        ),
    )
    return decide_and_complete(observation, packed.now, packed.fate)


def _base_of(observation: Observation) -> Observation:
    hpa = observation.hpa
    return msgspec.structs.replace(
        observation,
        hpa=msgspec.structs.replace(
            hpa,
            metadata=msgspec.structs.replace(hpa.metadata, resource_version=""),
            status=msgspec.structs.replace(hpa.status, current_metrics=()),
        ),
        owners=observation.owners or _NO_OWNERS,
        samples=(),
        memory=msgspec.structs.replace(observation.memory, recommendations=None, last_good=(), at=EMPTY.at),
    )


def _change_of(observation: Observation) -> tuple[bytes, tuple[MetricSamples, ...]]:
    """Return what a base leaves out, and the samples that have no columns."""
    columns = [_columns(samples, observation.pods) for samples in observation.samples]
    change = _Change(
        observation.hpa.metadata.resource_version,
        observation.hpa.status.current_metrics,
        observation.memory.recommendations,
        observation.memory.last_good,
        None if observation.memory.at is EMPTY.at else observation.memory.at,
        tuple(columns),
    )
    try:
        plain = [
            reading for reading, column in zip(observation.samples, columns, strict=True) if column is None
        ]
        return _encode(change), tuple(plain)
    except OverflowError:
        # A number beyond 64 bits has no column.
        nothing = msgspec.structs.replace(change, samples=(None,) * len(columns))
        return _encode(nothing), observation.samples


def _columns(metric: MetricSamples, pods: tuple[PodSnapshot, ...]) -> _Columns | None:
    if not isinstance(metric, PodSamples):
        return None
    names = tuple(metric.samples)
    samples = metric.samples.values()
    return _Columns(
        None if names == _names(pods) else names,
        [sample.value for sample in samples],
        _once([sample.timestamp for sample in samples]),
        _once([sample.window for sample in samples]),
        None if metric.timestamp is NEVER else metric.timestamp,
        metric.moves,
    )


def _samples(columns: _Columns, pods: tuple[PodSnapshot, ...]) -> PodSamples:
    names = _names(pods) if columns.names is None else columns.names
    times, windows = _each(columns.times, len(names)), _each(columns.windows, len(names))
    samples: Mapping[str, Sample] = {
        name: Sample(value, time, window)
        for name, value, time, window in zip(names, columns.values, times, windows, strict=True)
    }
    return PodSamples(
        samples=dict(samples),
        timestamp=NEVER if columns.timestamp is None else columns.timestamp,
        moves=columns.moves,
    )


def _names(pods: tuple[PodSnapshot, ...]) -> tuple[str, ...]:
    return tuple([pod.name for pod in pods])


def _once(column: list[float]) -> list[float] | float:
    # Most columns hold the same number throughout.
    return column[0] if column and column.count(column[0]) == len(column) else column


def _each(column: list[float] | float, length: int) -> list[float]:
    return column if isinstance(column, list) else [column] * length
