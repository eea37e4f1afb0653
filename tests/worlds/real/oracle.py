"""Which sizes were allowed at each moment, from the spec, the metrics that were served, and the sizes that were applied.

A promise counts as broken only where no timing within the slack explains the size. A clean sample is one whose meaning is beyond
dispute: every live pod is ready and measured, sizes and status agree, and nothing is near a tolerance.
"""

import math
from typing import Any, NamedTuple

from tests.worlds.real.hpas import RESOURCE_KINDS, Json

SLACK = 1.3
"""Seconds between a decision and what is seen of it."""
EDGE = 0.5
"""Seconds by which two changes may be nearer than a period: both are seen a moment after they were written."""
_UP: Json = {
    "stabilizationWindowSeconds": 0, "selectPolicy": "Max",
    "policies": [
        {"type": "Percent", "value": 100, "periodSeconds": 15}, {"type": "Pods", "value": 4, "periodSeconds": 15}
    ],
}  # fmt: skip
_DOWN: Json = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


class Broken(NamedTuple):
    """A promise that a size broke."""

    at: float
    promise: str
    text: str


class Served(NamedTuple):
    """What a controller was told of a metric, and what there was at that moment."""

    at: float
    metric: int
    how: str
    value: Any
    live: int
    ready: int
    youngest: float | None
    """Seconds since the youngest ready pod became ready."""
    wanted: int
    pods: int
    age: float


class Size(NamedTuple):
    """A change of the replicas."""

    at: float
    old: int
    new: int
    by: str


class Asked(NamedTuple):
    """The replicas that a clean sample asks for: at least, and at most."""

    at: float
    metric: int
    low: int
    high: int


def broken_promises(life: Json) -> list[Broken]:
    """Return what the sizes of a life broke."""
    return Oracle(life).judge()


def target_of(metric: Json) -> tuple[str, str, float]:
    """Return the name of a metric in a spec, the type of its target, and its amount."""
    kind = metric["type"]
    body = metric[kind[0].lower() + kind[1:]]
    target = body["target"]
    name = str(body["name"] if kind in RESOURCE_KINDS else body["metric"]["name"])
    if target["type"] == "Utilization":
        return name, "Utilization", float(target["averageUtilization"])
    amount = target.get("averageValue") or target.get("value")
    return name, target["type"], float(amount.removesuffix("m"))


def rules_of(spec: Json, window: int, *, up: bool) -> Json:
    """Return the rules of a direction, with the API's defaults and the flag's window."""
    if "behavior" not in spec:  # Sizes double per sync at most.
        return {"stabilizationWindowSeconds": 0 if up else window, "selectPolicy": "Max", "policies": None}
    usual = _UP if up else {**_DOWN, "stabilizationWindowSeconds": window}
    return {**usual, **spec["behavior"].get("scaleUp" if up else "scaleDown", {})}


def rules_at(life: Json, moment: float, *, up: bool) -> Json:
    """Return the rules of a direction that a life had at a moment."""
    spec = next((spec for at, spec in reversed(life["specs"]) if at <= moment), life["specs"][0][1])
    return rules_of(spec, life["settings"]["window"], up=up)


class Oracle:
    """What may be expected of one life."""

    def __init__(self, life: Json) -> None:
        self._metrics, self._settings = life["metrics"], life["settings"]
        self._sync: int = self._settings["sync"]
        self._gone, self._specs = life["gone"], life["specs"]
        self._sizes = [Size(*each) for each in life["sizes"]]
        self._served = [Served(*each) for each in life["served"]]
        self._clean = [asked for served in self._served if (asked := self._asked(served))]

    def judge(self) -> list[Broken]:
        """Return what the controller's own changes broke."""
        found: list[Broken] = []
        own: list[Size] = []
        for size in self._sizes:
            if size.by != "controller":
                continue
            specs = [spec for at, spec in self._specs if size.at - SLACK < at <= size.at]
            specs += [spec for spec in (self._spec_at(size.at - SLACK), self._spec_at(size.at)) if spec]
            since = max([0.0, *(end for what, _, end in self._gone if what == "hpa" and end <= size.at)])
            before = [each for each in own if each.at > since]
            broken = [self._broken(size, spec, before, since) for spec in specs]
            if not specs:
                found.append(Broken(size.at, "no-hpa", f"{size.old}->{size.new} without an HPA"))
            elif not self._is_disturbed(size.at) and all(broken):
                found += [each for each in broken[-1:] if each]
            own.append(size)
        return found

    def _spec_at(self, moment: float) -> Json | None:
        return next((spec for at, spec in reversed(self._specs) if at <= moment), None)

    def _is_disturbed(self, moment: float) -> bool:
        """Return whether the size was set by hand, or the target was away, right before."""
        by_hand = any(abs(each.at - moment) < SLACK for each in self._sizes if each.by == "hand")
        return by_hand or any(
            start - 0.5 < moment < end + SLACK for what, start, end in self._gone if what == "target"
        )

    def _number(self, metric: Json) -> int:
        name = target_of(metric)[0]
        return next(
            number for number, each in enumerate(self._metrics)
            if each["name"] == name and each["kind"] == metric["type"]
        )  # fmt: skip

    # What a sample asks for.

    def _asked(self, served: Served) -> Asked | None:
        spec = self._spec_at(served.at)
        changes = [at for at, _ in self._specs] + [size.at for size in self._sizes]
        agrees = served.live == served.ready == served.wanted == served.pods > 0
        if served.how != "ok" or spec is None or served.age > 60 or not agrees:
            return None
        if any(abs(served.at - at) < 0.5 for at in changes):
            return None
        metric = next((each for each in spec["metrics"] if self._number(each) == served.metric), None)
        if metric is None or (ratio := self._ratio(served, metric)) is None:
            return None
        behavior = spec.get("behavior", {}).get("scaleUp" if ratio > 1 else "scaleDown", {})
        tolerance = float(behavior.get("tolerance", 0.1))
        if abs(abs(ratio - 1) - tolerance) < 0.03:
            return None
        if abs(ratio - 1) <= tolerance:
            low = high = served.wanted
        else:
            is_rounded = target_of(metric)[1] == "Utilization"  # To whole percents.
            slack = 0.03 + (0.02 * served.live if is_rounded else 0)
            low = max(0, math.ceil(ratio * served.live - slack))
            high = math.ceil(ratio * served.live + slack)
        # While another metric is lost, nothing is lowered, and a low value says nothing.
        is_lost = any(
            (other.how != "ok" or other.age > 60)
            and other.metric != served.metric
            and abs(other.at - served.at) < self._sync + SLACK
            for other in self._served
        )
        return None if is_lost and low < served.wanted else Asked(served.at, served.metric, low, high)

    def _ratio(self, served: Served, metric: Json) -> float | None:
        kind, target = target_of(metric)[1:]
        drawn = self._metrics[served.metric]
        if isinstance(served.value, list):
            is_young = served.youngest is None or served.youngest < drawn["resolution"] + 1
            if len(served.value) != served.live or is_young:
                return None
            per_pod = float(sum(served.value)) / served.live
            return per_pod * 100 / drawn["request"] / target if kind == "Utilization" else per_pod / target
        return float(served.value / target / (1 if kind == "Value" else served.live))

    def _held(self, start: float, end: float, *, low: bool) -> int | None:
        """Return what every decision of some whole sync within a window must have asked for: at least (low) or at most."""
        need = self._sync + 1.0
        clean = [asked for asked in self._clean if start <= asked.at <= end]
        if low:
            return max((run for metric in {asked.metric for asked in clean}
                        for run in self._runs(metric, start, end, need)), default=None)  # fmt: skip
        highest: list[int] = []
        for number in {self._number(metric) for metric in (self._spec_at(end) or {"metrics": []})["metrics"]}:
            of_metric = [asked for asked in clean if asked.metric == number]
            times = [each.at for each in self._served if each.metric == number and start <= each.at <= end]
            if not of_metric or len(of_metric) != len(times) or times[-1] - times[0] < need:
                return None
            highest += [asked.high for asked in of_metric]
        return max(highest, default=None)

    def _runs(self, metric: int, start: float, end: float, need: float) -> list[int]:
        """Return the least of each stretch of clean samples of a metric that is long enough."""
        clean = {asked.at: asked for asked in self._clean if asked.metric == metric}
        found: list[int] = []
        run: list[Asked] = []
        for served in self._served:
            if served.metric != metric or not start <= served.at <= end:
                continue
            run = [*run, clean[served.at]] if served.at in clean else []
            while len(run) > 1 and run[-1].at - run[1].at >= need:
                run.pop(0)
            if run and run[-1].at - run[0].at >= need:
                found.append(min(asked.low for asked in run))
        return found

    # The promises.

    def _broken(self, size: Size, spec: Json, own: list[Size], since: float) -> Broken | None:
        """Return which promise a change broke under a spec."""
        least, most = spec["minReplicas"], spec["maxReplicas"]
        up, step = size.new > size.old, f"{size.old}->{size.new}"
        rules = rules_of(spec, self._settings["window"], up=up)
        is_on_its_way = size.new > most and not up and rules["policies"] is not None
        if not least <= size.new <= most and not is_on_its_way:
            return Broken(size.at, "bounds", f"{step} outside {least}..{most}")
        is_paused = next(
            (each.by == "hand" for each in reversed(self._sizes) if each.at < size.at - 0.01), False
        )
        if size.old > most and size.new == most:
            return None
        if size.old < least and size.new == least and (size.old > 0 or not is_paused):
            return None
        if size.old == 0 and least >= 1 and is_paused:
            return Broken(size.at, "zero-paused", f"{step} although the user paused it")
        if rules["selectPolicy"] == "Disabled":
            return Broken(size.at, "disabled", f"{step} although this direction is disabled")
        limit = self._limit(size, rules, own)
        if size.new > max(limit, size.old) if up else size.new < min(limit, size.old):
            return Broken(
                size.at, "rate", f"{step} passes {limit} of {rules['policies']} {rules['selectPolicy']}"
            )
        return self._broken_window(size, rules, since) or self._broken_blindly(size, spec, rules, since)

    def _limit(self, size: Size, rules: Json, own: list[Size]) -> int:
        up = size.new > size.old
        if rules["policies"] is None:
            return max(2 * size.old, 4) if up else 0
        limits: list[int] = []
        for policy in rules["policies"]:
            start, begin = size.old, size.at - policy["periodSeconds"]
            for each in own:  # A change at the edge of the period counts only if that allows more.
                is_at_edge = abs(each.at - begin) <= EDGE
                if (each.new < each.old) == up if is_at_edge else each.at > begin:
                    start -= each.new - each.old
            change = policy["value"] if policy["type"] == "Pods" else start * policy["value"] / 100
            least = 1 if policy["type"] == "Percent" else 0
            limits.append(max(math.ceil(start + change), least) if up else math.floor(start - change))
        return (max if (rules["selectPolicy"] == "Max") == up else min)(limits)

    def _broken_window(self, size: Size, rules: Json, since: float) -> Broken | None:
        window, up = rules["stabilizationWindowSeconds"], size.new > size.old
        if window < self._sync + 3:
            return None
        edited = max([since, *(at for at, _ in self._specs if at <= size.at)])
        start = max(size.at - window + SLACK, since + self._sync + SLACK)
        held = self._held(start, size.at - 1.0, low=not up)
        if held is None or (up and edited >= start):
            return None
        spec = self._spec_at(size.at)
        if size.new > held if up else size.new < min(held, spec["maxReplicas"] if spec else held):
            how = "at most" if up else "at least"
            text = f"{size.old}->{size.new}, but {how} {held} was asked for within the last {window} s"
            return Broken(size.at, "window", text)
        return None

    def _broken_blindly(self, size: Size, spec: Json, rules: Json, since: float) -> Broken | None:
        used, step = {self._number(metric) for metric in spec["metrics"]}, f"{size.old}->{size.new}"
        recent = [
            each for each in self._served
            if each.metric in used and size.at - self._sync - 3.0 <= each.at <= size.at
        ]  # fmt: skip
        is_resumed = size.old == 0 and spec["minReplicas"] >= 1
        if not any(each.how == "ok" for each in recent) and not is_resumed:
            return Broken(size.at, "blind", f"{step} with no metric served within the last sync")
        if size.new > size.old:
            return None
        for number in used:
            of_metric = [each.how for each in recent if each.metric == number]
            is_simple = self._metrics[number]["kind"] in ("Object", "External")
            if is_simple and of_metric and "ok" not in of_metric:
                return Broken(size.at, "lost", f"{step} while metric {number} was lost")
        if size.new > 0:
            return None
        window = rules["stabilizationWindowSeconds"]
        simple = [each for each in self._served if each.metric in used and not isinstance(each.value, list)]
        busy = [each.at for each in simple if each.how == "ok" and each.value > 0]
        start, end = max(since, size.at - window + SLACK), size.at - self._sync - SLACK
        if window and any(start < at < end for at in busy):
            return Broken(size.at, "zero", f"{step}, but a metric was above zero within the last {window} s")
        last = [each.at for each in simple if each in recent]
        return (
            Broken(size.at, "zero", f"{step} while a metric was above zero")
            if last and set(last) <= set(busy)
            else None
        )
