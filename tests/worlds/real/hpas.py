"""A world of an HPA from its seed: a random spec, a random load, and what happens to the workload.

Load is an absolute amount per metric, and the replicas that it needs are load / target. Everything is a function of the seed, so
that both controllers live the same life.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.worlds.world import Happening

Json = dict[str, Any]
MEBIBYTE = 1024 * 1024
RESOURCE_KINDS = ("Resource", "ContainerResource")
_KINDS = ("Resource", *RESOURCE_KINDS, "Pods", "Object", "External")
_HAPPENINGS = (
    "outage", "outage", "outage", "stale", "pods", "pods", "rollout", "edit", "edit", "edit", "hand", "target", "hpa",
    "none", "none",
)  # fmt: skip


def quantity(resource: str | None, amount: float) -> str:
    """Return bytes of memory, or thousandths of anything else, as the API spells them."""
    return str(int(amount)) if resource == "memory" else f"{int(amount)}m"


@dataclass
class Metric:
    """A metric of a spec, and how its values are made."""

    kind: str
    name: str
    resource: str | None
    target_type: str
    request: int
    """Of a pod: thousandths, or bytes of memory. For metrics that are no resource: the amount at the target."""
    utilization: int
    cap: float | None
    """How many times the target a pod can use at most."""
    resolution: int
    delay: int
    noise: float

    @classmethod
    def draw(cls, random: Random, kind: str, number: int) -> "Metric":
        """Return a random metric of a kind."""
        resource = None
        if kind in RESOURCE_KINDS:
            resource = "memory" if random.random() < 0.2 else "cpu"
            request = 400 * MEBIBYTE if resource == "memory" else random.choice([100, 200, 500])
            target_type = random.choice(["Utilization", "Utilization", "AverageValue"])
            utilization, name = random.choice([40, 50, 60, 80]), resource
        else:
            target_type = "AverageValue" if kind == "Pods" else random.choice(["AverageValue", "Value"])
            name = f"{kind.lower()}-{number}"
            request, utilization = random.choice([5000, 10000, 20000]), 100
        is_capped = kind in ("Pods", *RESOURCE_KINDS) and resource != "memory"
        cap = random.choice([1.6, 2.5, 4.0]) if is_capped else None
        resolution, delay = random.choice([1, 1, 1, 2, 5]), random.choice([0, 0, 0, 1, 3])
        noise = random.choice([0, 0, 0.03, 0.08])
        return cls(kind, name, resource, target_type, request, utilization, cap, resolution, delay, noise)

    @property
    def target(self) -> float:
        """Return the load of one pod at its target."""
        return self.request * self.utilization / 100

    def spec(self, factor: float = 1.0) -> Json:
        """Return the metric as a spec has it, with its target times a factor."""
        target: Json = {"type": self.target_type}
        if self.target_type == "Utilization":
            target["averageUtilization"] = max(1, int(self.utilization * factor))
        else:
            key = "averageValue" if self.target_type == "AverageValue" else "value"
            target[key] = quantity(self.resource, self.target * factor)
        body: Json = {"name": self.resource} if self.resource else {"metric": {"name": self.name}}
        if self.kind == "ContainerResource":
            body["container"] = "main"
        if self.kind == "Object":
            body["describedObject"] = {"apiVersion": "v1", "kind": "Service", "name": "front"}
        return {"type": self.kind, self.kind[0].lower() + self.kind[1:]: {**body, "target": target}}


@dataclass
class Load:
    """Needed replicas over time, before bounds: steps, ramps, spikes."""

    points: list[tuple[float, float]]
    """Moments and levels, linear between them."""
    spikes: list[tuple[float, float, float]] = field(default_factory=list)
    """From, to, and how many times the level."""
    steps: list[tuple[float, float, float]] = field(default_factory=list)
    """The moment, the level before and after."""

    @classmethod
    def draw(cls, random: Random, seconds: float, top: int, *, reaches_zero: bool) -> "Load":
        """Return a random load of so many replicas at most, with nights of none if wanted."""
        at, level = 0.0, random.uniform(0.6, top * 0.8)
        load = cls([(at, level)])
        while at < seconds - 12:
            at += random.uniform(8, 25)
            if at >= seconds - 8:
                break
            what = random.choice(["step", "step", "step", "ramp", "spike", "stay"])
            new = 0.0 if reaches_zero and random.random() < 0.4 else random.uniform(0.4, top * 1.1)
            if what == "step":
                load.points += [(at, level), (at, new)]
                load.steps.append((at, level, new))
                level = new
            elif what == "ramp":
                length = random.uniform(5, 20)
                load.points += [(at, level), (at + length, new)]
                at, level = at + length, new
            elif what == "spike":
                load.spikes.append((at, at + random.uniform(2, 8), random.uniform(1.5, 4)))
        load.points.append((seconds + 60, level))
        return load

    def at(self, moment: float) -> float:
        """Return the replicas that are needed at a moment."""
        level = self.points[0][1]
        for (start, old), (end, new) in zip(self.points, self.points[1:], strict=False):
            if moment >= end:
                level = new
            elif moment >= start:
                level = old + (new - old) * (moment - start) / (end - start) if end > start else new
                break
        for start, end, times in self.spikes:
            if start <= moment < end:
                level = level * times + (0.5 if times > 2 else 0)
        return level

    def stretched(self, times: float) -> "Load":
        """Return the same load, so many times as long."""
        return Load(
            [(at * times, level) for at, level in self.points],
            [(start * times, end * times, factor) for start, end, factor in self.spikes],
            [(at * times, old, new) for at, old, new in self.steps],
        )


def draw_behavior(random: Random) -> Json | None:
    """Return a random `behavior` with windows of 0 to 20 s."""
    drawn = {}
    if random.random() < 0.8:
        drawn["scaleDown"] = _draw_rules(random, [0, 0, 3, 5, 10, 20])
    if random.random() < 0.6:
        drawn["scaleUp"] = _draw_rules(random, [0, 0, 0, 3, 6, 10])
    return {direction: rules for direction, rules in drawn.items() if rules} or None


def _draw_rules(random: Random, windows: list[int]) -> Json:
    rules: Json = {}
    if random.random() < 0.75:
        rules["stabilizationWindowSeconds"] = random.choice(windows)
    if random.random() < 0.6:
        rules["policies"] = [_draw_policy(random) for _ in range(random.choice([1, 1, 2]))]
        rules["selectPolicy"] = random.choice(["Max", "Max", "Min"])
    if random.random() < 0.06:
        rules["selectPolicy"] = "Disabled"
    if random.random() < 0.2:
        rules["tolerance"] = random.choice(["0", "0.05", "0.2", "0.3"])
    return rules


def _draw_policy(random: Random) -> Json:
    kind, values = ("Pods", [1, 1, 2, 4]) if random.random() < 0.5 else ("Percent", [10, 25, 50, 100, 200])
    return {"type": kind, "value": random.choice(values), "periodSeconds": random.choice([2, 5, 10, 20])}


@dataclass
class HpaWorld:
    """An HPA, its workload and its load."""

    name: str
    """`7.3` is world 3 of batch 7."""
    seconds: float
    minimum: int
    maximum: int
    metrics: list[Metric]
    load: Load
    shares: list[float]
    """Of the load, for each metric."""
    waves: list[float]
    behavior: Json | None
    pending: float
    """Seconds until a new pod runs."""
    start_up: float
    """Seconds until a running pod is ready."""
    burns_at_start: bool
    """Whether a pod that starts uses all the CPU that it can."""
    idle_pods_report: bool
    """Whether a pod that is not ready has a value of zero in metrics of type Pods, or none."""
    terminating: int
    replicas: int
    happenings: tuple[Happening, ...]
    phase: float
    """Of the scrapes of its metrics."""

    @property
    def spec(self) -> Json:
        """Return the HPA's spec."""
        spec: Json = {
            "minReplicas": self.minimum,
            "maxReplicas": self.maximum,
            "metrics": [metric.spec() for metric in self.metrics],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        }
        return spec | ({"behavior": self.behavior} if self.behavior else {})

    def demand(self, number: int, moment: float) -> float:
        """Return the load of a metric, without noise."""
        level = self.load.at(moment) * self.shares[number]
        if level and self.waves[number]:
            level *= 1 + self.waves[number] * math.sin(moment / 9)
        return level * self.metrics[number].target

    def noisy_demand(self, number: int, moment: float) -> float:
        """Return the load of a metric as it is measured."""
        noise = self.metrics[number].noise
        drawn = 2 * Random(f"{self.name} {number} {int(moment)}").random() - 1
        return self.demand(number, moment) * (1 + noise * drawn)

    def start_times(self, ordinal: int) -> tuple[float, float]:
        """Return the seconds that a pod is pending, and then not ready."""
        random = Random(f"{self.name} pod {ordinal}")
        return self.pending * random.uniform(0.7, 1.3), self.start_up * random.uniform(0.7, 1.4)

    def tell(self) -> list[str]:
        """Return what there is at the start, and what happens."""
        levels = " ".join(f"{at:.0f}s:{level:.1f}" for at, level in self.load.points)
        spikes = "".join(
            f", {times:.1f} times from {start:.0f} to {end:.0f} s" for start, end, times in self.load.spikes
        )
        burns = ", burning CPU" if self.burns_at_start else ""
        start = f"{self.replicas} pods at first, {self.minimum} to {self.maximum} allowed, a new pod is ready"
        return [
            f"{start} after {self.pending + self.start_up:.1f} s{burns}",
            *(str(metric) for metric in self.metrics),
            f"behavior {self.behavior}",
            f"replicas needed {levels}{spikes}",
            *(f"{each.at:.1f} s: {each.what} {dict(each.facts)}" for each in self.happenings),
        ]


def draw(name: str, seconds: float, *, is_slow: bool = False) -> HpaWorld:
    """Return the world of a seed. A slow one has samples every 5 to 15 s."""
    # The order of these draws is the meaning of a seed. A new draw goes to the end or to a generator of its own.
    random = Random(f"world {name}")
    reaches_zero = random.random() < 0.25
    minimum = 0 if reaches_zero else random.choice([1, 1, 1, 2, 3])
    maximum = random.choice([4, 6, 8, 10, 12])
    metrics = _draw_metrics(random, reaches_zero=reaches_zero)
    if is_slow:
        metrics = [replace(metric, resolution=random.choice([5, 15, 15]), delay=0) for metric in metrics]
    load = Load.draw(random, seconds, maximum, reaches_zero=reaches_zero)
    shares = [1.0] + [random.uniform(0.3, 1.05) for _ in metrics[1:]]
    waves = [0.0] + [random.uniform(0, 0.2) for _ in metrics[1:]]
    behavior = draw_behavior(random)
    pending, start_up = random.choice([0, 0, 0.5, 2]), random.choice([0.5, 1, 2, 4, 8, 15])
    burns_at_start, idle_pods_report = random.random() < 0.25, random.choice([True, False])
    terminating = random.choice([0, 0, 0, 2])
    happenings = [
        drawn
        for _ in range(random.choice([1, 2, 2, 3, 3, 4, 5]))
        for drawn in _draw_happening(random, seconds, minimum, maximum, len(metrics))
    ]
    return HpaWorld(
        name, seconds, minimum, maximum, metrics, load, shares, waves, behavior, pending, start_up, burns_at_start,
        idle_pods_report, terminating, min(maximum, max(1, round(load.at(0)))),
        tuple(sorted(happenings, key=lambda happening: happening.at)), Random(f"phase {name}").random() * 15,
    )  # fmt: skip


def _draw_metrics(random: Random, *, reaches_zero: bool) -> list[Metric]:
    count = random.choice([1, 1, 1, 2, 2, 3])
    kinds = [random.choice(["Object", "External"] if reaches_zero else _KINDS)]
    if reaches_zero and random.random() < 0.6:
        count = 1
    while len(kinds) < count:
        kind = random.choice(_KINDS)
        if kind not in RESOURCE_KINDS or kind not in kinds:
            kinds.append(kind)
    metrics = [Metric.draw(random, kind, number) for number, kind in enumerate(kinds)]
    first = next((metric for metric in metrics if metric.resource), None)
    # A pod has one request and one usage, whoever asks.
    return [
        replace(metric, resource=first.resource, name=first.name, request=first.request)
        if first and metric.resource
        else metric
        for metric in metrics
    ]


def _draw_happening(
    random: Random, seconds: float, minimum: int, maximum: int, metrics: int
) -> Iterable[Happening]:
    what, at = random.choice(_HAPPENINGS), round(random.uniform(6, seconds - 18), 1)
    metric = random.randrange(metrics)
    if what == "outage":
        how = random.choice(["missing", "error", "empty"])
        length = random.choice([random.uniform(2, 8), random.uniform(8, 25)])
        yield Happening(at, "outage", {"metric": metric, "how": how, "for": round(length, 1)})
    elif what == "stale":
        how, length = random.choice(["frozen", "old"]), random.uniform(5, 20)
        yield Happening(at, "outage", {"metric": metric, "how": how, "for": round(length, 1)})
    elif what == "pods":
        what, length = random.choice(["never-ready", "crash", "slow"]), random.uniform(5, 25)
        yield Happening(at, what, {"for": round(length, 1), "share": random.choice([0.2, 0.5, 1.0])})
    elif what == "rollout":
        yield Happening(at, "rollout", {"surge": random.choice([1, 2, 3])})
    elif what == "hand":
        yield Happening(at, "hand", {"to": random.choice([0, 1, maximum + 2, random.randint(1, maximum)])})
    elif what == "target":
        length = round(random.uniform(1, 8), 1)
        yield Happening(at, "target", {"for": length, "replicas": random.randint(1, maximum)})
    elif what == "hpa":
        yield Happening(at, "hpa", {"for": round(random.choice([0.3, random.uniform(1, 10)]), 1)})
    elif what == "edit":
        yield Happening(at, "edit", _draw_edit(random, minimum, maximum, metric, is_only=metrics == 1))


def _draw_edit(random: Random, minimum: int, maximum: int, metric: int, *, is_only: bool) -> Json:
    what = random.choice(["min", "max", "target", "behavior", "metric"])
    if what == "min":
        return {"minReplicas": random.randint(0 if minimum == 0 else 1, max(1, maximum - 2))}
    if what == "max":
        return {"maxReplicas": random.randint(2, 14)}
    if what == "target":
        return {"factor": random.choice([0.5, 0.7, 1.5, 2.0]), "metric": metric}
    if what == "behavior":
        return {"behavior": draw_behavior(random)}
    return {"factor": random.choice([0.5, 2.0]), "metric": metric} if is_only else {"drop": metric}


_USUAL_SECONDS = {0: 0, 2: 15, 3: 15, 5: 15, 6: 15, 10: 30, 20: 60}
STRETCH = 2.5


def draw_for_defaults(name: str, seconds: float) -> HpaWorld:
    """Return the world of a seed, 2.5 times as long, for both programs' defaults: syncs of 15 s and usual windows."""
    short = draw(name, seconds / STRETCH, is_slow=True)
    return replace(
        short,
        seconds=seconds,
        load=short.load.stretched(STRETCH),
        metrics=[
            replace(metric, resolution=15 if metric.resource else metric.resolution)
            for metric in short.metrics
        ],
        behavior=_usual(short.behavior),
        happenings=tuple(
            Happening(each.at * STRETCH, each.what, _usual_facts(each.facts)) for each in short.happenings
        ),
    )


def _usual(behavior: Json | None) -> Json | None:
    if behavior is None:
        return None
    return {direction: _usual_rules(rules) for direction, rules in behavior.items()}


def _usual_rules(rules: Json) -> Json:
    usual = dict(rules)
    if "stabilizationWindowSeconds" in rules:
        usual["stabilizationWindowSeconds"] = _USUAL_SECONDS[rules["stabilizationWindowSeconds"]]
    if "policies" in rules:
        usual["policies"] = [
            {**policy, "periodSeconds": _USUAL_SECONDS[policy["periodSeconds"]]}
            for policy in rules["policies"]
        ]
    return usual


def _usual_facts(facts: Any) -> Json:
    usual = dict(facts)
    if "for" in usual:
        usual["for"] = round(usual["for"] * 1.5, 1)
    if "behavior" in usual:
        usual["behavior"] = _usual(usual["behavior"])
    return usual
