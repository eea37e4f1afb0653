"""Reads a long past out of Prometheus: piece by piece, bounded, telling how far it is.

One port for all who need history: the recommender fills its histograms from it, a simulation plays it back. Prometheus
gives at most 11,000 points of a series at once and refuses what would load too many samples, so a range is asked for in
pieces, oldest first, and a piece that is too much is asked for again in halves. A piece that cannot be had is an error
that names the part of the past that is missing: half a history looks like a quiet week.
"""

from array import array
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import isfinite

from trimtab.metrics.prometheus import (
    PrometheusClient,
    PrometheusError,
    PrometheusSeries,
    QueryRefusedError,
)
from trimtab.model.times import format_time

MOST_STEPS = 10_000
"""Points of a series in one piece; Prometheus refuses more than 11,000."""

MOST_HALVINGS = 4
"""How often a piece that is refused or lost is tried in halves before that is an error."""

MOST_SAMPLES = 50_000_000
"""Samples of one history: 800 MB here. Beyond it the question is too wide for one process."""


class HistoryError(PrometheusError):
    """A part of the past could not be read; the message says which, and why."""


@dataclass(frozen=True, slots=True)
class Range:
    """A stretch of time, looked at every `step` seconds from its start to its end."""

    start: datetime
    end: datetime
    step: float

    def __post_init__(self) -> None:
        """Refuse what is no stretch."""
        if self.end < self.start or self.step <= 0:
            raise ValueError(
                f"a history from {format_time(self.start)} to {format_time(self.end)} every {self.step:g} s is empty"
            )

    @property
    def steps(self) -> int:
        """Return how many moments are looked at."""
        return int((self.end - self.start).total_seconds() // self.step) + 1

    def part(self, first: int, count: int) -> "Range":
        """Return the stretch from moment `first` over `count` moments."""
        begin = self.start + timedelta(seconds=first * self.step)
        return Range(begin, begin + timedelta(seconds=(count - 1) * self.step), self.step)

    def __str__(self) -> str:
        return f"{format_time(self.start)} to {format_time(self.end)}"


@dataclass(frozen=True, slots=True)
class Piece:
    """One stretch of the past, and how much of the whole is read with it."""

    traces: list[PrometheusSeries]
    done: int
    of: int
    """Moments read so far, and of how many."""

    @property
    def samples(self) -> int:
        """Return how many samples the piece holds."""
        return sum(len(trace.points) for trace in self.traces)


@dataclass(frozen=True, slots=True)
class RangeSeries:
    """One series over the whole range: moments in Unix seconds, ascending, and their values, all of them numbers."""

    labels: Mapping[str, str]
    at: "array[float]" = field(default_factory=lambda: array("d"))
    values: "array[float]" = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a history is read."""

    share: float
    """From 0 to 1."""
    series: int
    samples: int


async def pieces(client: PrometheusClient, query: str, wanted: Range) -> AsyncIterator[Piece]:
    """Yield the past piece by piece, oldest first; for whoever need not hold it all at once."""
    done, size, halvings = 0, MOST_STEPS, 0
    while done < wanted.steps:
        part = wanted.part(done, min(size, wanted.steps - done))
        try:
            traces = await client.history(query, part.start, part.end, part.step)
        except PrometheusError as error:
            if not _may_be_smaller(error) or halvings == MOST_HALVINGS or part.steps == 1:
                raise HistoryError(f"reading {query} from {part}: {error}") from error
            halvings, size = halvings + 1, max(part.steps // 2, 1)
            continue
        done += part.steps
        yield Piece(traces, done, wanted.steps)


def _may_be_smaller(error: PrometheusError) -> bool:
    """Return whether less might be had: not of a wrong question, but of one that is too much or took too long."""
    return not isinstance(error, QueryRefusedError) or "too many samples" in str(error)


async def read_history(
    client: PrometheusClient,
    query: str,
    wanted: Range,
    *,
    told: Callable[[Progress], None] | None = None,
    most_samples: int = MOST_SAMPLES,
) -> list[RangeSeries]:
    """Return every series of a query over a range, ordered by labels; what is no finite number is left out.

    `told` hears after every piece how far it is. HistoryError if a piece cannot be read, or if the whole is too much.
    """
    found: dict[tuple[tuple[str, str], ...], RangeSeries] = {}
    count = 0
    async for piece in pieces(client, query, wanted):
        count += piece.samples
        if count > most_samples:
            raise HistoryError(
                f"reading {query} from {wanted}: more than {most_samples} samples in {len(found)} series; ask for fewer "
                "series (a namespace, a name), a shorter range or a longer step"
            )
        for trace in piece.traces:
            key = tuple(sorted(trace.labels.items()))
            _add(found.setdefault(key, RangeSeries(dict(key))), trace)
        if told is not None:
            told(Progress(piece.done / piece.of, len(found), count))
    return [found[key] for key in sorted(found) if len(found[key])]


def _add(series: RangeSeries, trace: PrometheusSeries) -> None:
    for at, text in trace.points:
        try:
            value = float(text)
        except ValueError:
            raise HistoryError(
                f"{dict(series.labels)} at {format_time(datetime.fromtimestamp(at, UTC))}: {text!r} is no number"
            ) from None
        # A rate over a gap is NaN: nothing was measured, which is not the same as zero.
        if isfinite(value):
            series.at.append(at)
            series.values.append(value)
