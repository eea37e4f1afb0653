"""Notes when the samples of each source were first dated as they are, by our own monotonic clock.

The dates are those of other clocks, with which ours is not compared. A date that is new in a list has moved since the list before
was asked for. So a sample is as old as the time since then, and it may have begun its window and a delay before that list. A date
that went back is no newer sample. It says itself how old its sample is, as the dates in the first list do.
"""

from collections.abc import Hashable, Iterable, Mapping
from math import inf
from typing import NamedTuple

import msgspec

from trimtab.clock import Clock
from trimtab.decide.horizontal.arithmetic import NEVER, seconds_of
from trimtab.decide.horizontal.observation.samples import MetricSamples, Move, PodSamples, Series
from trimtab.model.metrics_api import PodMetrics

FORGOTTEN_AFTER = 600.0
"""Seconds after which a source that is not asked any more is new again."""

Moves = Mapping[float, Move]


class _Source(NamedTuple):
    moves: dict[float, Move]
    asked_at: float


class SampleMoves:
    """The dates in the last list of each source, with the times when they were first seen."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sources: dict[Hashable, _Source] = {}
        self._swept_at = clock.monotonic()

    def note(self, source: Hashable, dates: Iterable[float], asked_at: float) -> Moves:
        """Note the dates in a list that was asked for then, and return when each was first seen."""
        now, known = self._clock.monotonic(), self._sources.get(source)
        before: dict[float, Move] = {} if known is None else known.moves
        lacked_at = None if known is None else known.asked_at
        found, first = set(dates), min(before, default=-inf)
        moves = before
        if found != before.keys():
            moves = {
                date: before.get(date) or Move(date, now, lacked_at if date >= first else None)
                for date in found
            }
        self._sources[source] = _Source(moves, asked_at if lacked_at is None else max(asked_at, lacked_at))
        self._sweep(now)
        return moves

    def note_usage(self, namespace: str, items: Iterable[PodMetrics], asked_at: float) -> Moves:
        """Note the dates in a list of the usage of pods of a namespace."""
        dates = set()
        for text in {item.timestamp for item in items} - {None}:
            try:
                dates.add(seconds_of(text))
            except ValueError:
                dates.add(-inf)  # nobody knows how old it is
        return self.note(namespace, dates, asked_at)

    def _sweep(self, now: float) -> None:
        if now - self._swept_at > FORGOTTEN_AFTER:
            self._swept_at, oldest = now, now - FORGOTTEN_AFTER
            self._sources = {key: source for key, source in self._sources.items() if source.asked_at > oldest}


def dates_of(samples: MetricSamples) -> set[float]:
    """Return the dates of samples, without those that have none."""
    if isinstance(samples, PodSamples):
        return {sample.timestamp for sample in samples.samples.values()} - {NEVER}
    return (
        {sample.timestamp for sample in samples.samples} - {NEVER} if isinstance(samples, Series) else set()
    )


def oldest_move(moves: Moves, now: float) -> float:
    """Return when the date moved that has not moved for the longest time. One that never moved may be of any age."""
    if -inf in moves:
        return -inf
    times = [-inf if move.lacked_at is None else move.at for move in moves.values()]
    return min(times, default=now)


def with_moves(samples: MetricSamples, moves: Moves, shift: float) -> MetricSamples:
    """Return samples with the moves of their dates, by a clock that is `shift` ahead of the monotonic one."""
    if not isinstance(samples, PodSamples | Series):
        return samples
    found = tuple([_shifted(moves[date], shift) for date in sorted(dates_of(samples)) if date in moves])
    return msgspec.structs.replace(samples, moves=found)


def _shifted(move: Move, shift: float) -> Move:
    lacked_at = None if move.lacked_at is None else round(move.lacked_at + shift, 3)
    return Move(move.timestamp, round(move.at + shift, 3), lacked_at)
