"""Reads long ranges from Prometheus in pieces, with progress.

The recommender loads its history and `trimtab trace` records load by this module. Prometheus returns at most 11,000
points of a series, and rejects queries that load too many samples. A range is therefore read in pieces, oldest first.
A piece that is too large is read in halves. A piece that cannot be read is an error that names the missing range,
because an incomplete history looks like a quiet week.
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
"""Points of a series per piece. Prometheus rejects more than 11,000."""

MOST_HALVINGS = 4
"""How often a failed piece is halved before the error is final."""

MOST_SAMPLES = 50_000_000
"""Maximum samples of a history, about 800 MB."""


class HistoryError(PrometheusError):
    """A part of the range could not be read. The message names the part and the cause."""


@dataclass(frozen=True, slots=True)
class Range:
    """A time range with a step in seconds."""

    start: datetime
    end: datetime
    step: float

    def __post_init__(self) -> None:
        """Reject an empty range."""
        if self.end < self.start or self.step <= 0:
            raise ValueError(
                f"a history from {format_time(self.start)} to {format_time(self.end)} every {self.step:g} s is empty"
            )

    @property
    def steps(self) -> int:
        """Return the number of steps."""
        return int((self.end - self.start).total_seconds() // self.step) + 1

    def part(self, first: int, count: int) -> "Range":
        """Return the part of `count` steps from step `first`."""
        begin = self.start + timedelta(seconds=first * self.step)
        return Range(begin, begin + timedelta(seconds=(count - 1) * self.step), self.step)

    def __str__(self) -> str:
        return f"{format_time(self.start)} to {format_time(self.end)}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the range, and the progress after it."""

    traces: list[PrometheusSeries]
    done: int
    of: int
    """Steps read so far, and of how many."""

    @property
    def samples(self) -> int:
        """Return the number of samples of the piece."""
        return sum(len(trace.points) for trace in self.traces)


@dataclass(frozen=True, slots=True)
class RangeSeries:
    """A series over the whole range: ascending Unix times and finite values."""

    labels: Mapping[str, str]
    at: "array[float]" = field(default_factory=lambda: array("d"))
    values: "array[float]" = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of reading a range."""

    share: float
    """Between 0 and 1."""
    series: int
    samples: int


async def pieces(client: PrometheusClient, query: str, wanted: Range) -> AsyncIterator[Piece]:
    """Yield the range piece by piece, oldest first, for callers that do not hold it whole."""
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
    """Return whether a smaller piece may succeed: the query was too large or too slow, and not wrong."""
    return not isinstance(error, QueryRefusedError) or "too many samples" in str(error)


async def read_history(
    client: PrometheusClient,
    query: str,
    wanted: Range,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    most_samples: int = MOST_SAMPLES,
) -> list[RangeSeries]:
    """Return every series of a query over a range, ordered by labels, without values that are not finite.

    `on_progress` is called after every piece. Raises HistoryError if a piece cannot be read or the whole is too large.
    """
    series_by_labels: dict[tuple[tuple[str, str], ...], RangeSeries] = {}
    count = 0
    async for piece in pieces(client, query, wanted):
        count += piece.samples
        if count > most_samples:
            raise HistoryError(
                f"reading {query} from {wanted}: more than {most_samples} samples in {len(series_by_labels)} series; ask for fewer "
                "series (a namespace, a name), a shorter range or a longer step"
            )
        for trace in piece.traces:
            key = tuple(sorted(trace.labels.items()))
            _add(series_by_labels.setdefault(key, RangeSeries(dict(key))), trace)
        if on_progress is not None:
            on_progress(Progress(piece.done / piece.of, len(series_by_labels), count))
    return [series_by_labels[key] for key in sorted(series_by_labels) if len(series_by_labels[key])]


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
