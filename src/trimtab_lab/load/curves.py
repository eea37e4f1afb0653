"""Curves as data: a value at any time.

In JSON and YAML each curve has a `type`: constant, ramp, daily, spikes, steps, recorded. Times are seconds since the load
began; the hours of `daily` are hours of the day in UTC. Values are quantities.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime

from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity

DAY_HOURS = 24.0
SATURDAY = 5


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, as seconds since the load began and as a date."""

    since: float
    now: datetime


class Constant(Wire, frozen=True, tag="constant", tag_field="type"):
    """A constant value."""

    value: Quantity

    def at(self, _moment: Moment) -> float:
        return self.value.as_float()


class Ramp(Wire, frozen=True, tag="ramp", tag_field="type"):
    """A straight line from one value to another in `lasts` seconds, after `after` seconds."""

    start: Quantity
    end: Quantity
    lasts: float
    after: float = 0.0

    def at(self, moment: Moment) -> float:
        share = (moment.since - self.after) / self.lasts if self.lasts > 0 else 1.0
        low, high = self.start.as_float(), self.end.as_float()
        return low + (high - low) * min(max(share, 0.0), 1.0)


class Daily(Wire, frozen=True, tag="daily", tag_field="type"):
    """A wave with one peak per day. Values at weekends are multiplied by `weekend`."""

    low: Quantity
    high: Quantity
    peak_hour: float = 14.0
    weekend: float = 1.0

    def at(self, moment: Moment) -> float:
        now = moment.now
        hour = now.hour + now.minute / 60 + (now.second + now.microsecond / 1e6) / 3600
        wave = (1 + math.cos((hour - self.peak_hour) / DAY_HOURS * 2 * math.pi)) / 2
        low, high = self.low.as_float(), self.high.as_float()
        value = low + (high - low) * wave
        return value * self.weekend if now.weekday() >= SATURDAY else value


class Spikes(Wire, frozen=True, tag="spikes", tag_field="type"):
    """A base with a peak of `lasts` seconds every `every` seconds, first after `first` seconds."""

    base: Quantity
    peak: Quantity
    every: float
    lasts: float
    first: float = 0.0

    def at(self, moment: Moment) -> float:
        since = moment.since - self.first
        is_peak = since >= 0 and since % self.every < self.lasts
        return (self.peak if is_peak else self.base).as_float()


class CurveStep(Wire, frozen=True):
    """A value that holds from a time on."""

    at: float
    value: Quantity


class Steps(Wire, frozen=True, tag="steps", tag_field="type"):
    """A value that changes at given times. The first value also holds before the first time."""

    steps: tuple[CurveStep, ...]

    def at(self, moment: Moment) -> float:
        place = bisect_right(self.steps, moment.since, key=lambda step: step.at)
        return self.steps[max(place - 1, 0)].value.as_float() if self.steps else 0.0


class Recorded(Wire, frozen=True, tag="recorded", tag_field="type"):
    """Points of time and value, joined by straight lines. With `repeats` it starts over after the last.

    `file` names a CSV with a header in the folder of the plan.
    """

    points: tuple[tuple[float, float], ...] = ()
    file: str = ""
    time_column: str = "time"
    value_column: str = "value"
    repeats: bool = False

    def at(self, moment: Moment) -> float:
        if not self.points:
            return 0.0
        first, last = self.points[0][0], self.points[-1][0]
        since = moment.since
        if self.repeats and last > first:
            since = first + (since - first) % (last - first)
        place = bisect_right(self.points, since, key=lambda point: point[0])
        if place in (0, len(self.points)):
            return self.points[min(place, len(self.points) - 1)][1]
        (left, low), (right, high) = self.points[place - 1], self.points[place]
        return low + (high - low) * (since - left) / (right - left)


Curve = Constant | Ramp | Daily | Spikes | Steps | Recorded


def constant(value: str) -> Constant:
    """Return a constant curve of a quantity such as `40m`."""
    return Constant(value=Quantity.parse(value))
