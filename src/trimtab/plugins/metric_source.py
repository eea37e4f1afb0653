"""The protocol of metric sources: the series of a named metric, from wherever they are.

A source is a coroutine function. The adapter serves its answers as external metrics to any client:

    async def jobs(seen: MetricRequest) -> list[MetricValue]:
        return [MetricValue(value=await count_jobs(seen.labels["queue"]), labels=seen.labels)]

It runs on a thread of its own, so that it may block without delaying anything but its own answers.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Protocol

import msgspec

from trimtab.plugins.errors import WrongAnswerError, wrong_type

MOST_SERIES = 1000
MOST_LABELS = 32
LONGEST_LABEL = 1024
LARGEST_VALUE = 9_223_372_036_854_775
"""Autoscalers count thousandths in 64 bits."""
CLOCK_SKEW = timedelta(minutes=1)
"""How far the time of a value may be ahead of the adapter's clock."""

_EMPTY: Mapping[str, Any] = {}


class LabelRequirement(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of the client's selector: `=`, `!=`, `in`, `notin`, `exists`, `!`, `gt` or `lt`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class MetricRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks for."""

    namespace: str
    metric: str
    selector: tuple[LabelRequirement, ...] = ()
    """All conditions of the client. The adapter leaves out series that do not meet them."""
    parameters: Mapping[str, Any] = _EMPTY
    """What the adapter's configuration gives the source."""

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels that can have one value only, as with `queue=orders`."""
        return {
            requirement.key: requirement.values[0]
            for requirement in self.selector
            if requirement.operator in {"=", "==", "in"} and len(requirement.values) == 1
        }


class MetricValue(msgspec.Struct, frozen=True, kw_only=True):
    """The value of one series."""

    value: float | Decimal
    """A number that is 0 or more."""
    labels: Mapping[str, str] = _EMPTY
    time: datetime | None = None
    """When it was measured, with a time zone; None for the time of the call."""


class MetricSource(Protocol):
    """Returns the series of a metric."""

    async def __call__(self, seen: MetricRequest, /) -> Iterable[MetricValue]:
        """Return the series; none means that there is no value."""
        ...


def check_series(answer: Any, now: datetime) -> list[MetricValue]:
    """Return the answer of a source that was called at `now`, each value with its time, or raise WrongAnswerError."""
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        raise wrong_type(answer, "a list of MetricValue")
    series: list[MetricValue] = []
    for value in answer:
        if len(series) == MOST_SERIES:
            raise WrongAnswerError(f"more than {MOST_SERIES} series")
        if not isinstance(value, MetricValue):
            raise WrongAnswerError(f"a series of type {type(value).__name__}, not a MetricValue")
        series.append(
            MetricValue(value=_number(value.value), labels=_labels(value.labels), time=_time(value.time, now))
        )
    return series


def _number(number: Any) -> Decimal:
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        raise WrongAnswerError(f"a value of type {type(number).__name__}, not a number")
    if isinstance(number, int) and abs(number) > LARGEST_VALUE:
        raise WrongAnswerError(f"a value above {LARGEST_VALUE}")  # its digits may be too many to print
    if not isfinite(number) or not 0 <= number <= LARGEST_VALUE:
        raise WrongAnswerError(f"the value {number}; 0 to {LARGEST_VALUE} are possible")
    return Decimal(number)


def _labels(labels: Any) -> dict[str, str]:
    if not isinstance(labels, Mapping) or len(labels) > MOST_LABELS:
        raise WrongAnswerError(f"labels that are no mapping of at most {MOST_LABELS} texts")
    for text in (*labels, *labels.values()):
        if not isinstance(text, str) or len(text) > LONGEST_LABEL:
            raise WrongAnswerError(f"a label that is no text of at most {LONGEST_LABEL} characters")
    return dict(labels)


def _time(moment: Any, now: datetime) -> datetime:
    if moment is None:
        return now
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise WrongAnswerError("a time that is no datetime with a time zone")
    if moment > now + CLOCK_SKEW:
        raise WrongAnswerError(f"a value of the future: {moment.isoformat()}")
    return moment
