"""Worlds of HPAs: which there are, and what counts in them. `hpas_life` plays them, `oracle` judges the sizes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor
from random import Random
from typing import Any

from tests.worlds.hpas_life import COUNT, Record, live, metric_name
from tests.worlds.hpas_workload import unit_of
from tests.worlds.oracle import forgotten, promises, tolerance_of, undone
from tests.worlds.world import Happening, Life, Rules, World
from trimtab.cluster.resource import Json

Facts = dict[str, Any]
LASTS = (20.0, 45.0, 90.0, 180.0, 320.0, 400.0)
"""How long troubles last: from a fail-over to longer than a usual window."""
LONG = 100
"""One world of so many lasts 24 times as long, up to a day. An hour costs some seconds of CPU time."""
REVERSAL = 300.0
"""A change against the last one within so many seconds is a reversal."""


@dataclass(frozen=True)
class Kind:
    """A row of the table of happenings."""

    theme: str
    draw: Callable[[Random, Facts], Facts]
    """Returns the facts of one, given the HPA that it befalls."""
    tell: str


def _lasting(random: Random) -> Facts:
    return {"lasts": random.choice(LASTS)}


def _elsewhere(random: Random, hpa: Facts) -> Facts:
    """Return another target, which mostly has what it needs."""
    replicas = random.randint(1, 3)
    load = round(replicas * random.uniform(0.4, 1), 1) if random.random() < 0.7 else _level(random, hpa)
    return {"replicas": replicas, "load": load}


def _level(random: Random, hpa: Facts) -> float:
    """Return a load in pods of the target; it may be more than the most replicas can bear."""
    return round(
        random.choice([random.uniform(0.3, 2), random.uniform(1, hpa["spec"]["maxReplicas"] * 1.1)]), 1
    )


def _edited(random: Random, hpa: Facts) -> Facts:
    lowest, highest = hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]
    return random.choice(
        [
            {"minReplicas": random.randint(lowest, highest)},
            {"maxReplicas": random.randint(max(lowest, 1), highest + 4)},
            {"behavior": behavior_of(random)},
            {
                "metrics": [
                    _with_target(metric, random.choice([0.5, 0.7, 1.5, 2.0]))
                    for metric in hpa["spec"]["metrics"]
                ]
            },
        ]
    )


HAPPENINGS = {
    "load": Kind(
        "load", lambda random, hpa: {"to": _level(random, hpa)}, "the load of {hpa} becomes {to} pods' worth"
    ),
    "ramp": Kind(
        "load",
        lambda random, hpa: {"to": _level(random, hpa), "over": random.choice([60.0, 180.0, 600.0])},
        "the load of {hpa} goes to {to} pods' worth over {over:g} s",
    ),
    "burst": Kind(
        "load",
        lambda random, _: {
            "times": random.choice([2.0, 3.0, 5.0]),
            "lasts": random.choice([10.0, 30.0, 60.0]),
        },
        "{times:g} times the load of {hpa} for {lasts:g} s",
    ),
    "idle": Kind("load", lambda random, _: _lasting(random), "no load of {hpa} for {lasts:g} s"),
    "metrics lost": Kind(
        "metrics",
        lambda random, hpa: {
            **_lasting(random),
            "how": random.choice(["error", "empty", "frozen"]),
            "hpa": random.choice([hpa["name"], "all"]),
        },
        "metrics of {hpa} are lost for {lasts:g} s: {how}",
    ),
    "kill": Kind(
        "programs",
        lambda random, _: {**_lasting(random), "which": random.choice(["leader", "leader", "all"])},
        "kill -9 of {which}, back after {lasts:g} s",
    ),
    "stop": Kind(
        "programs",
        lambda random, _: {**_lasting(random), "which": random.choice(["leader", "leader", "all"])},
        "orderly stop of {which}, back after {lasts:g} s",
    ),
    "cut": Kind(
        "programs",
        lambda random, _: {
            **_lasting(random),
            "which": random.choice(["leader", "leader", "all"]),
            "from": random.choice(["leases", "everything"]),
        },
        "{which} is cut off from {from} for {lasts:g} s",
    ),
    "upgrade": Kind(
        "shards",
        lambda random, _: {
            "shards": random.choice([1, 1, 2, 4]),
            "lasts": random.choice([20.0, 60.0, 240.0]),
        },
        "new programs with --shards={shards} start, the old ones stop after {lasts:g} s",
    ),
    "too many requests": Kind(
        "server",
        lambda random, _: {"lasts": random.choice([8.0, 20.0, 60.0]), "only writes": random.random() < 0.5},
        "the server answers 429 for {lasts:g} s (only writes: {only writes})",
    ),
    "lost answers": Kind(
        "server", lambda random, _: _lasting(random), "half of the answers to writes are lost for {lasts:g} s"
    ),
    "edit": Kind("edits", lambda random, hpa: {"spec": _edited(random, hpa)}, "{hpa} is edited: {spec}"),
    "recreate hpa": Kind(
        "edits",
        lambda random, _: {"lasts": random.choice([1.0, 30.0])},
        "{hpa} is deleted, and made again after {lasts:g} s",
    ),
    "retarget": Kind(
        "edits",
        _elsewhere,
        "{hpa} is pointed to another Deployment with {replicas} replicas and a load of {load}",
    ),
    "hand": Kind(
        "target",
        lambda random, hpa: {"to": random.choice([0, 1, random.randint(1, hpa["spec"]["maxReplicas"])])},
        "a user scales {hpa} to {to}",
    ),
    "recreate target": Kind(
        "target",
        lambda random, _: {"lasts": random.choice([1.0, 20.0]), "replicas": random.randint(1, 4)},
        "the target of {hpa} is deleted, and made again with {replicas} replicas after {lasts:g} s",
    ),
    "rollout": Kind(
        "target",
        lambda random, _: {"surge": random.choice([1, 2, 4])},
        "rollout of {hpa} with a surge of {surge}",
    ),
    "not ready": Kind(
        "target",
        lambda random, _: {"share": random.choice([0.3, 1.0]), "lasts": random.choice([10.0, 40.0, 120.0])},
        "{share:.0%} of the pods of {hpa} are not ready for {lasts:g} s",
    ),
    "canary": Kind(
        "target",
        lambda random, _: {**_lasting(random), "pods": random.randint(1, 3)},
        "{pods} foreign pods with the labels of {hpa} for {lasts:g} s",
    ),
    "slow start": Kind(
        "target",
        lambda random, _: {**_lasting(random), "times": random.choice([3.0, 8.0])},
        "pods of {hpa} take {times:g} times as long to start for {lasts:g} s",
    ),
}
THEMES = ("metrics", "programs", "programs", "shards", "server", "edits", "target")
OF_ALL = ("kill", "stop", "cut", "upgrade", "too many requests", "lost answers")
"""What befalls no HPA in particular."""
HINDER_WRITES = ("cut", "upgrade", "too many requests", "lost answers")
"""What keeps a program from storing what it remembers, or gives that to two programs."""


def behavior_of(random: Random) -> Json:
    """Return the behavior of an HPA, both directions or one of them."""
    behavior: Json = {}
    if random.random() < 0.8:
        behavior["scaleDown"] = _rules(random, (0, 0, 60, 60, 120, 300))
    if random.random() < 0.6:
        behavior["scaleUp"] = _rules(random, (0, 0, 0, 60, 120))
    return behavior


def _rules(random: Random, windows: tuple[int, ...]) -> Json:
    rules: Json = {"stabilizationWindowSeconds": random.choice(windows)}
    if random.random() < 0.5:
        rules["policies"] = [
            random.choice(
                [
                    {
                        "type": "Pods",
                        "value": random.choice([1, 2, 4]),
                        "periodSeconds": random.choice([15, 30, 60, 300]),
                    },
                    {
                        "type": "Percent",
                        "value": random.choice([10, 50, 100]),
                        "periodSeconds": random.choice([15, 30, 60]),
                    },
                ]
            )
            for _ in range(random.choice([1, 1, 2]))
        ]
        rules["selectPolicy"] = random.choice(["Max", "Max", "Disabled", "Min"])
    if random.random() < 0.15:
        rules["tolerance"] = random.choice(["0", "0.05", "0.2"])
    return rules


def _metric(random: Random, hpa: str, number: int, kinds: tuple[str, ...]) -> Json:
    kind = random.choice(kinds)
    name = metric_name(hpa, number)
    value = f"{random.choice([10, 100, 500])}"
    if kind in ("Resource", "ContainerResource"):
        resource = random.choice(["cpu", "cpu", "cpu", "memory"])
        target: Json = {"type": "Utilization", "averageUtilization": random.choice([50, 60, 80])}
        if random.random() < 0.3:
            target = {
                "type": "AverageValue",
                "averageValue": "100m" if resource == "cpu" else f"{160 * 2**20}",
            }
        body = {
            "name": resource,
            "target": target,
            **({"container": "app"} if kind == "ContainerResource" else {}),
        }
        return {"type": kind, kind[0].lower() + kind[1:]: body}
    if kind == "Pods":
        return {
            "type": kind,
            "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": value}},
        }
    target = {"type": "AverageValue", "averageValue": value}
    if random.random() < 0.2:
        target = {"type": "Value", "value": value}
    described = (
        {"describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"}}
        if kind == "Object"
        else {}
    )
    return {"type": kind, kind.lower(): {**described, "metric": {"name": name}, "target": target}}


def _with_target(metric: Json, factor: float) -> Json:
    """Return a metric with a target that is so many times as high."""
    key = metric["type"][0].lower() + metric["type"][1:]
    target = metric[key]["target"]
    if target["type"] == "Utilization":
        changed = {**target, "averageUtilization": round(target["averageUtilization"] * factor)}
    else:
        field = "value" if target["type"] == "Value" else "averageValue"
        amount = unit_of(metric) * factor
        changed = {
            **target,
            field: f"{amount:.0f}" if metric[key].get("name") == "memory" else f"{amount:.0f}m",
        }
    return {**metric, key: {**metric[key], "target": changed}}


def _hpa(random: Random, name: str, *, has_zero: bool) -> Facts:
    kinds = (
        ("External", "Object")
        if has_zero
        else ("Resource", "Resource", "ContainerResource", "Pods", "Object", "External", "External")
    )
    metrics = [_metric(random, name, 0, kinds)]
    if random.random() < 0.2:
        metrics.append(_metric(random, name, 1, ("Pods", "External")))
    lowest = 0 if has_zero else random.choice([1, 1, 2])
    spec: Json = {"minReplicas": lowest, "maxReplicas": random.choice([6, 10, 16]), "metrics": metrics}
    if random.random() < 0.75:
        spec["behavior"] = behavior_of(random)
    load = round(random.uniform(0.8, spec["maxReplicas"] * 0.8), 1)
    remembers = all(metric["type"] not in ("Resource", "ContainerResource") for metric in metrics)
    return {
        "name": name,
        "policy": remembers and random.random() < 0.4,
        "spec": spec,
        "load": load,
        "replicas": max(ceil(load), lowest, 1),
        "shares": [1.0, *(round(random.uniform(0.4, 1.0), 2) for _ in metrics[1:])],
        "noise": random.choice([0.0, 0.0, 0.05]),
        "starts in": random.choice([2.0, 10.0, 30.0, 60.0]),
        "burns at start": random.random() < 0.2,
    }


def _rival(random: Random, hpa: Facts) -> Facts:
    """Return another HPA of the same target, and make that a custom kind; the second asks for another size."""
    name = "rival"
    metric: Facts = {
        "type": "External",
        "external": {
            "metric": {"name": metric_name(hpa["name"], 0)},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    }
    hpa |= {"kind": "Queue", "policy": False, "shares": [1.0]}
    hpa["spec"] = {**hpa["spec"], "minReplicas": max(hpa["spec"]["minReplicas"], 1), "metrics": [metric]}
    other = {
        **metric["external"],
        "metric": {"name": metric_name(name, 0)},
    }
    asked = {**metric, "external": other}
    return {
        **hpa,
        "name": name,
        "target": hpa["name"],
        "spec": {**hpa["spec"], "metrics": [_with_target(asked, random.choice([0.5, 2.0]))]},
    }


class Hpas:
    """The family `hpas`."""

    name = "hpas"

    def make(self, seed: int, *, is_short: bool = False) -> World:
        random = Random(f"hpas {seed} {is_short}")
        seconds = (
            random.choice([300.0, 420.0, 600.0])
            if is_short
            else random.choice([600.0, 900.0, 900.0, 1200.0, 1200.0, 1800.0, 3600.0])
        )
        if not is_short and seed % LONG == 0:
            seconds *= 24
        number = 1 if is_short else random.choice([1, 1, 1, 1, 2, 3])
        hpas = [_hpa(random, f"web{index}", has_zero=random.random() < 0.2) for index in range(number)]
        others = [] if is_short or random.random() < 0.9 else [_rival(random, hpas[0])]
        start = {
            "hpas": [*hpas, *others],
            "copies": random.choice([1, 1, 2] if is_short else [1, 2, 2]),
            "shards": random.choice([1, 1, 1, 2]),
            "resolution": random.choice([15, 15, 15, 30, 60]),
            "native": random.random() < 0.2,
        }
        if others:
            start |= {"copies": 2, "shards": 2}
        themes = random.sample(THEMES, random.choice([1, 1, 2, 2, 3]))
        happenings = [*self._loads(random, hpas, seconds), *self._troubles(random, hpas, seconds, themes)]
        return World(
            "hpas", seed, seconds, start, tuple(sorted(happenings, key=lambda one: one.at)), is_short
        )

    def _loads(self, random: Random, hpas: list[Facts], seconds: float) -> Iterable[Happening]:
        for hpa in hpas:
            at = random.uniform(20, 200)
            while at < seconds - 60:
                what = random.choice(["load", "load", "load", "ramp", "burst", "idle"])
                yield self._happening(random, round(at), what, hpa)
                at += random.choice([random.uniform(20, 90), random.uniform(60, 500)])

    def _troubles(
        self, random: Random, hpas: list[Facts], seconds: float, themes: list[str]
    ) -> Iterable[Happening]:
        """Yield what befalls the HPAs and the programs; half of it comes right after something else."""
        kinds = [what for what, kind in HAPPENINGS.items() if kind.theme in themes]
        at = random.uniform(30, seconds / 3)
        while at < seconds - 60:
            yield self._happening(random, round(at), random.choice(kinds), random.choice(hpas))
            at += random.choice([random.uniform(1, 40), random.uniform(60, seconds / 2)])

    def _happening(self, random: Random, at: float, what: str, hpa: Facts) -> Happening:
        of = {} if what in OF_ALL else {"hpa": hpa["name"]}
        return Happening(float(at), what, {**of, **HAPPENINGS[what].draw(random, hpa)})

    def play(self, world: World, rules: Rules) -> Life:
        lived = live(world, rules)
        life = Life(log=lived.log)
        life.add("writes", lived.writes)
        for hpa in world.start["hpas"]:
            record = lived.records[hpa["name"]]
            if "target" in hpa:
                life.broken += undone(hpa["target"], record)
                continue
            _count(life, hpa, record)
            if "kind" not in hpa:
                life.broken += promises(hpa["name"], record, hpa, world.seconds)
            if not world.kinds & set(HINDER_WRITES):
                life.broken += forgotten(hpa["name"], record)
        return life

    def simpler(self, world: World) -> Iterable[World]:
        start = world.start
        for hpa in start["hpas"]:
            rest = [other for other in start["hpas"] if other is not hpa]
            kept = [one for one in world.happenings if one.facts.get("hpa") != hpa["name"]]
            if rest and all(other.get("target") != hpa["name"] for other in rest):
                yield replace(world, start={**start, "hpas": rest}, happenings=tuple(kept))
        for usual in ({"copies": 1}, {"shards": 1}, {"native": False}, {"resolution": 15}):
            if {**start, **usual} != start:
                yield replace(world, start={**start, **usual})
        for number, hpa in enumerate(start["hpas"]):
            for simple in _simpler_hpas(hpa):
                yield replace(
                    world,
                    start={**start, "hpas": [*start["hpas"][:number], simple, *start["hpas"][number + 1 :]]},
                )

    def tell(self, world: World) -> list[str]:
        start = world.start
        kind = "native HPAs" if start["native"] else "HPAs"
        lines = [
            f"{start['copies']} copies with --shards={start['shards']}, {kind}, samples every {start['resolution']} s"
        ]
        for hpa in start["hpas"]:
            spec = hpa["spec"]
            metrics = " and ".join(
                f"{metric['type']} {metric[metric['type'][0].lower() + metric['type'][1:]]['target']}"
                for metric in spec["metrics"]
            )
            lines.append(
                f"{hpa['name']}: {spec['minReplicas']} to {spec['maxReplicas']}, {metrics}, behavior {spec.get('behavior', 'not set')}; "
                f"{hpa['replicas']} replicas, a load of {hpa['load']} pods' worth, ready in about {hpa['starts in']:g} s"
                + (", with a replica policy that remembers" if hpa.get("policy") else "")
                + (
                    f"; of the {hpa['kind']} {hpa.get('target', hpa['name'])} in a split namespace"
                    if "kind" in hpa
                    else ""
                )
            )
        return lines

    def tell_happening(self, happening: Happening) -> str:
        return HAPPENINGS[happening.what].tell.format(**happening.facts)


def _simpler_hpas(hpa: Facts) -> Iterable[Facts]:
    spec = hpa["spec"]
    if hpa.get("policy"):
        yield {**hpa, "policy": False}
    for usual in ({"noise": 0.0}, {"burns at start": False}, {"starts in": 2.0}):
        if {**hpa, **usual} != hpa:
            yield {**hpa, **usual}
    if len(spec["metrics"]) > 1:
        yield {**hpa, "spec": {**spec, "metrics": spec["metrics"][:1]}, "shares": [1.0]}
    behavior = spec.get("behavior")
    if behavior is not None:
        yield {**hpa, "spec": {key: value for key, value in spec.items() if key != "behavior"}}
        for way, rules in behavior.items():
            yield {
                **hpa,
                "spec": {**spec, "behavior": {key: value for key, value in behavior.items() if key != way}},
            }
            for key in ("policies", "tolerance"):
                if key in rules:
                    fewer = {
                        name: value for name, value in rules.items() if name not in (key, "selectPolicy")
                    }
                    yield {**hpa, "spec": {**spec, "behavior": {**behavior, way: fewer}}}


def _count(life: Life, hpa: Mapping[str, Any], record: Record) -> None:
    """Add up what came of one HPA."""
    changes = [size for size in record.sizes if size.by]
    life.add("replica changes", len(changes))
    life.add(
        "reversals",
        sum(
            (after.new > after.old) != (before.new > before.old) and after.at - before.at < REVERSAL
            for before, after in pairwise(changes)
        ),
    )
    below = above = 0.0
    for _, load, ready, size, spec in record.counts:
        if spec:
            fewest, most = needed(load, hpa, spec)
            below += max(fewest - ready, 0)
            above += max(size - most, 0)
    life.add("pod-minutes below the needed replicas", below * COUNT / 60)
    life.add("pod-minutes above the needed replicas", above * COUNT / 60)


def needed(load: float, hpa: Mapping[str, Any], spec: Json) -> tuple[int, int]:
    """Return the fewest and the most replicas that are right for a load, by the tolerance of the spec in force."""
    loads = [
        load * share * unit_of(first) / unit_of(metric)
        for first, metric, share in zip(hpa["spec"]["metrics"], spec["metrics"], hpa["shares"], strict=True)
    ]
    lowest, highest = spec["minReplicas"], spec["maxReplicas"]
    fewest = ceil(max(loads) / (1 + tolerance_of(spec, is_up=True)) - 1e-6)
    most = max(floor(max(loads) / (1 - tolerance_of(spec, is_up=False)) + 1e-6), ceil(max(loads)), 1)
    return min(max(fewest, lowest), highest), min(max(most, lowest), highest)


FAMILY = Hpas()
