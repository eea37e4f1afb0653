"""Says which sizes an HPA was allowed, from its spec, the metrics that were served and the sizes that were applied.

It shares no code with `decide`, and is lenient wherever a moment or a tolerance could be read either way: what it calls
broken is broken by any reading of the specification.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf
from typing import Any

from tests.worlds.hpas_life import Record, Size
from tests.worlds.hpas_workload import PER_POD, Sample, body_of, unit_of
from trimtab.cluster.resource import Json

SYNC = 15.0
SLACK = 2.0
"""Seconds between a decision and what is seen of it."""
SURE = SYNC + SLACK
"""What is served for so long is read by a sync."""
AWAY = 105.0
"""Seconds without a question for metrics after which nobody decides: longer than any fail-over, and than what may be bridged."""
ROUNDING = 0.03
"""Of a ratio: utilization is in whole percent."""


@dataclass(frozen=True)
class Asked:
    """What the metrics ask for, from one moment to another; the bounds are far apart where that can be disputed."""

    start: float
    end: float
    low: float
    high: float


def rules_of(spec: Json, *, is_up: bool) -> Json:
    """Return the rules of a direction, with the defaults of Kubernetes. Without `behavior` there are no policies."""
    behavior = spec.get("behavior")
    every = [{"type": "Percent", "value": 100, "periodSeconds": 15}]
    most = [*every, {"type": "Pods", "value": 4, "periodSeconds": 15}]
    defaults = {
        "stabilizationWindowSeconds": 0 if is_up else 300,
        "selectPolicy": "Max",
        "policies": most if is_up else every,
    }
    if behavior is None:
        return {**defaults, "policies": []}
    return {**defaults, **(behavior.get("scaleUp" if is_up else "scaleDown") or {})}


def tolerance_of(spec: Json, *, is_up: bool) -> float:
    return float(rules_of(spec, is_up=is_up).get("tolerance", 0.1))


class Oracle:
    """Judges the sizes of one HPA."""

    def __init__(self, name: str, record: Record, first: int, end: float) -> None:
        self.name, self.record, self.end = name, record, end
        self._first = first
        self._moments = [size.at for size in record.sizes]
        self._asked = list(self._asks())
        self._away = [(last, after) for last, after in pairwise([0.0, *record.asked]) if after - last > AWAY]

    def broken(self) -> Iterator[str]:
        """Yield the promises that the accepted sizes break."""
        for number, size in enumerate(self.record.sizes):
            spec = self._spec(size.at)
            if size.by and spec and not self._is_edge(size.at):
                yield from (f"{text} at {size.at:.0f} s" for text in self._judge(number, size, spec))
        yield from self._two_deciders()

    def _judge(self, number: int, size: Size, spec: Json) -> Iterator[str]:
        what = f"{self.name} {size.old} -> {size.new}"
        lowest, highest = spec.get("minReplicas", 1), spec["maxReplicas"]
        is_up = size.new > size.old
        rules = rules_of(spec, is_up=is_up)
        if (
            not lowest <= size.new <= highest
            and abs(size.new - size.old) > 0
            and not lowest <= size.old <= highest
        ):
            return  # on its way back between the bounds
        if not lowest <= size.new <= highest:
            yield f"bounds: {what}, outside {lowest} to {highest}"
        if not lowest <= size.old <= highest or size.old == 0:
            return
        if rules["selectPolicy"] == "Disabled":
            yield f"disabled direction: {what}"
            return
        limit = self._limit(number, size, rules, is_up=is_up)
        if size.new > limit if is_up else size.new < limit:
            yield f"rate: {what}, {limit:g} allowed by {rules['policies']}"
        window = rules["stabilizationWindowSeconds"]
        since = max([0.0, *(at for at in self.record.resets if at <= size.at)])
        held = self._held(max(size.at - window + SLACK, since), size.at - SLACK, is_up=is_up)
        if size.new > held if is_up else size.new < min(held, highest):
            yield f"window: {what}, {held:g} was recommended within the last {window} s"
        if not is_up:
            yield from self._after_an_outage(size, window, since, what)
            yield from self._by_the_newest_sample(size, spec, what)
        elif size.new > max(
            [lowest, *(one.high for one in self._asked if one.end > since and one.start <= size.at)]
        ):
            yield f"growth that was asked for: {what}, more than any sample of this target asks for"

    # Rates

    def _limit(self, number: int, size: Size, rules: Json, *, is_up: bool) -> float:
        """Return the size that the policies allow; a change at the edge of a period counts only if that allows more."""
        limits = []
        for policy in rules["policies"]:
            period, start = policy["periodSeconds"], size.old
            for earlier in self.record.sizes[:number]:
                age = size.at - earlier.at
                is_same = (earlier.new > earlier.old) == is_up
                if (
                    earlier.by
                    and age < period + (-SLACK if is_same else SLACK)
                    and earlier.at >= self._since(size.at)
                ):
                    start -= earlier.new - earlier.old
            amount = policy["value"] if is_up else -policy["value"]
            if policy["type"] == "Pods":
                limits.append(start + amount)
            else:
                limits.append(
                    max(ceil(start * (1 + amount / 100)), 1) if is_up else floor(start * (1 + amount / 100))
                )
        if not limits:
            # Without `behavior`, sizes double per sync at most.
            return max(2 * size.old, 4) if is_up else -inf
        is_wide = rules["selectPolicy"] != "Min"
        limit = (max if is_wide == is_up else min)(limits)
        return float(max(limit, size.old) if is_up else min(limit, size.old))

    # Windows

    def _held(self, start: float, end: float, *, is_up: bool) -> float:
        """Return the strongest of what every decision of some stretch within a window must have recommended."""
        best = inf if is_up else -inf
        inside = [one for one in self._asked if one.start < end and one.end > start]
        for first in range(len(inside)):
            low, high = inf, -inf
            for last in range(first, len(inside)):
                one = inside[last]
                if last > first and one.start > inside[last - 1].end + SLACK:
                    break
                low, high = min(low, one.low), max(high, one.high)
                if self._decided(max(inside[first].start, start), min(one.end, end)):
                    best = min(best, high) if is_up else max(best, low)
                    break
        return best

    def _decided(self, start: float, end: float) -> bool:
        """Return whether a program surely decided between two moments: it asked again and again for as long as a sync."""
        asked = self.record.asked[
            bisect_left(self.record.asked, start) : bisect_right(self.record.asked, end)
        ]
        if not asked or asked[-1] - asked[0] < SURE:
            return False
        return all(after - before < SURE + SLACK for before, after in pairwise(asked))

    def _after_an_outage(self, size: Size, window: float, since: float, what: str) -> Iterator[str]:
        for last, back in self._away:
            before = self._size(last)
            if (
                max(size.at - window + SLACK, since) < back <= size.at
                and last > since
                and size.new < before == self._size(back)
            ):
                yield f"size after an outage: {what}, {size.at - back:.0f} s after nobody had decided for {back - last:.0f} s (window {window} s)"

    def _by_the_newest_sample(self, size: Size, spec: Json, what: str) -> Iterator[str]:
        """A sample that has lowered the replicas already asks for no less than it did: its pods were more."""
        newest = next((samples for at, samples in reversed(self.record.samples) if at <= size.at), ())
        earlier = [one for one in self.record.sizes if one.at < size.at]
        if (
            not newest
            or not earlier
            or earlier[-1].at <= newest[0].taken
            or earlier[-1].new > earlier[-1].old
        ):
            return
        if not all(sample.is_complete for sample in newest) or len(newest) != len(spec["metrics"]):
            return
        asked = [
            sample.total / unit_of(metric)
            for metric, sample in zip(spec["metrics"], newest, strict=True)
            if body_of(metric)["target"]["type"] != "Value"
        ]
        needed = max(asked, default=0.0)
        if size.new < ceil(needed * (1 - ROUNDING) - 1e-6):
            yield f"one sample lowers once: {what}, although the newest sample asks for {needed:.1f} pods and was used already"

    # What the metrics ask for

    def _asks(self) -> Iterator[Asked]:
        """Yield what was asked for between each two moments at which a sample, the size or the spec changed."""
        record = self.record
        moments = sorted(
            {*(at for at, _ in record.samples), *self._moments, *(at for at, _ in record.specs), self.end}
        )
        for start, end in pairwise(moments):
            spec = self._spec(start)
            samples = next((samples for at, samples in reversed(record.samples) if at <= start), ())
            if spec and samples and len(samples) == len(spec["metrics"]):
                asks = [
                    self._ask(spec, metric, sample, start)
                    for metric, sample in zip(spec["metrics"], samples, strict=True)
                ]
                yield Asked(start, end, max(low for low, _ in asks), max(high for _, high in asks))

    def _ask(self, spec: Json, metric: Json, sample: Sample, at: float) -> tuple[float, float]:
        size, unit = self._size(at), unit_of(metric)
        is_value = body_of(metric)["target"]["type"] == "Value"
        before = self._size(max(at - SURE, self._since(at)))
        is_steady = sample.is_complete and size == sample.pods == before
        if (metric["type"] in PER_POD or is_value) and not is_steady:
            return 0.0, inf
        total = sample.total / unit * (size if is_value else 1)
        low, high = ceil(total * (1 - ROUNDING) - 1e-6), ceil(total * (1 + ROUNDING) + 1e-6)
        up, down = tolerance_of(spec, is_up=True), tolerance_of(spec, is_up=False)
        # The status may still have the size from before a change.
        sizes = {size, self._size(at - SLACK)}
        near = [one for one in sizes if one and 1 - down - ROUNDING <= total / one <= 1 + up + ROUNDING]
        if sizes == {size} and near and 1 - down + ROUNDING <= total / size <= 1 + up - ROUNDING:
            return size, size
        return min([low, *near]), max([high, *near])

    # The state at a moment

    def _spec(self, at: float) -> Json:
        return next((spec for since, spec in reversed(self.record.specs) if since <= at), {})

    def _is_edge(self, at: float) -> bool:
        """Return whether the spec or the target has just changed, or a user has scaled: old and new rules are right."""
        users = [size.at for size in self.record.sizes if not size.by]
        return any(
            0 <= at - moment < SLACK
            for moment in (*(since for since, _ in self.record.specs if since), *users)
        )

    def _since(self, at: float) -> float:
        return max([0.0, *(moment for moment in self.record.resets if moment <= at)])

    def _size(self, at: float) -> int:
        number = bisect_right(self._moments, at)
        return self.record.sizes[number - 1].new if number else self._first

    # Leases

    def _two_deciders(self) -> Iterator[str]:
        """Two programs that take turns decide at the same time: no hand-over is undone that fast, and no program comes back."""
        turns = [self.record.deciders[0]] if self.record.deciders else []
        turns += [turn for before, turn in pairwise(self.record.deciders) if turn[1] != before[1]]
        for first, second, third, fourth in zip(turns, turns[1:], turns[2:], turns[3:], strict=False):
            if first[1] == third[1] and second[1] == fourth[1] and fourth[0] - first[0] < 120:
                yield f"one decider: {first[1]} and {second[1]} took turns with {self.name} from {first[0]:.0f} to {fourth[0]:.0f} s"
                return


def forgotten(name: str, record: Record) -> Iterator[str]:
    """Yield what a policy had remembered for longer than a sync, and does not know any more."""
    for number, call in enumerate(record.remembered[1:], 1):
        known = call.at - SURE - SLACK, record.remembered[number - 1].at - SURE - SLACK
        since = max([0.0, *(at for at in record.resets if at <= call.at)])
        for earlier in record.remembered[:number]:
            if since < earlier.at <= min(known) and earlier.kept > call.seen:
                yield (
                    f"what a policy remembers: {name}'s has {call.seen} at {call.at:.0f} s, "
                    f"and had {earlier.kept} at {earlier.at:.0f} s"
                )
                return


def undone(name: str, record: Record) -> Iterator[str]:
    """Yield that what one autoscaler of a target did is undone by the other again and again."""
    for changes in zip(*(record.sizes[first:] for first in range(4)), strict=False):
        sizes = [(size.old, size.new) for size in changes]
        back = sizes[0][::-1]
        if sizes == [sizes[0], back] * 2 and changes[-1].at - changes[0].at < 4 * SURE:
            yield f"two autoscalers do not undo each other: {name} goes {back[1]}, {back[0]} and back from {changes[0].at:.0f} s on"
            return


def promises(name: str, record: Record, start: dict[str, Any], end: float) -> list[str]:
    """Return the promises that the life of one HPA breaks."""
    return list(Oracle(name, record, start["replicas"], end).broken())
