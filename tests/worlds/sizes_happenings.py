"""The table of what happens to sized workloads: how each happening is drawn, where it can happen, and how it is told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.worlds.world import Happening

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
EARLY = ("metrics are missing", "resizes are not taken up", "resizes are refused")
Start = Mapping[str, Any]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """One line of the table."""

    what: str
    tells: str
    """A template of its facts."""
    draw: Callable[[Random, Start], Facts] = lambda _random, _start: {}
    fits: Callable[[Start], bool] = lambda _: True
    weight: float = 1.0


def has_roles(start: Start) -> bool:
    return any(vpa["scope"] for vpa in start["vpas"]) and "leader" in start["roles"]


def has_scopes(start: Start) -> bool:
    return any(vpa["scope"] for vpa in start["vpas"])


def by_simulation(start: Start) -> bool:
    return bool(start["player"] == "simulation")


def by_programs(start: Start) -> bool:
    return bool(start["player"] == "programs")


def _span(random: Random, start: Start, *choices: float) -> float:
    """Return a number of seconds, at most half of the life."""
    return min(random.choice(choices), float(start["hours"]) * HOUR / 2)


def _scoped(random: Random, start: Start) -> str:
    return str(random.choice([vpa["name"] for vpa in start["vpas"] if vpa["scope"]]))


def _any_vpa(random: Random, start: Start) -> str:
    return str(random.choice([vpa["name"] for vpa in start["vpas"]]))


def _any_role(random: Random, start: Start) -> str:
    return str(random.choice(["", *start["roles"]]))


def _scale(random: Random, start: Start) -> Facts:
    """Return another number of pods, and for how long: nobody for longer than history is kept, too."""
    to = random.choice([0, 0, 1, start["pods"] * 2])
    windows = random.choice([1, 3, 9, 9]) * start["day"]
    return {"to": to, "for": min(windows if to == 0 else HOUR, start["hours"] * HOUR * 0.8)}


TABLE = {
    kind.what: kind
    for kind in (
        Kind("the role moves", "leadership moves to the next pod, {gap:.0f} s without a leader",
             lambda random, _: {"gap": random.choice([0.0, 0.0, 1.0, 5.0, 30.0])}, has_roles, 3),
        Kind("the role moves often", "leadership moves every {every:.0f} s for {for:.0f} s",
             lambda random, start: {"every": random.choice([60.0, 180.0, 180.0, 600.0]), "for": _span(random, start, 1800.0, 1800.0, 3600.0)}, has_roles, 2),
        Kind("the leader is killed for memory", "the leader is killed for memory; the label moves {after:.0f} s later",
             lambda random, _: {"after": random.choice([0.0, 16.0, 16.0, 40.0, 90.0])}, lambda start: has_roles(start) and start["limit"] > 0, 2),
        Kind("the leader fails", "the leader crash-loops for {for:.0f} s; leadership moves 15 s later",
             lambda random, start: {"for": _span(random, start, 600.0, HOUR, 6 * HOUR)}, has_roles, 2),
        Kind("nobody has the role", "nobody leads for {for:.0f} s",
             lambda random, start: {"for": _span(random, start, 600.0, 2 * HOUR, 2 * DAY, 7 * DAY)}, has_roles),
        Kind("labels are written", "others write a label of every pod each {every:.0f} s for {for:.0f} s",
             lambda random, start: {"every": max(start["day"] / random.choice([24, 72, 72, 288]), 60.0), "for": _span(random, start, 2 * HOUR, 12 * HOUR, 4 * DAY)}, weight=2),
        Kind("a node is down", "the node of the last pod is NotReady for {for:.0f} s",
             lambda random, start: {"for": _span(random, start, 600.0, 2 * HOUR, 7 * DAY)}, lambda start: start["nodes"]["count"] > 1, 2),
        Kind("the nodes are full", "other pods take all free room of the nodes for {for:.0f} s",
             lambda random, start: {"for": _span(random, start, 600.0, HOUR, 12 * HOUR)}),
        Kind("resizes are refused", "the API server refuses resizes with {code} for {for:.0f} s",
             lambda random, start: {"code": random.choice([403, 422, 422, 404]), "for": _span(random, start, 1800.0, 6 * HOUR)}, weight=1.5),
        Kind("resizes are not taken up", "the kubelets take up no resize for {for:.0f} s",
             lambda random, _: {"for": random.choice([1800.0, 6 * HOUR, 6 * HOUR])}, by_simulation),
        Kind("evictions are refused", "a budget refuses all evictions for {for:.0f} s",
             lambda random, start: {"for": _span(random, start, 1800.0, 6 * HOUR)}),
        Kind("metrics are missing", "the metrics API has no {what} for {for:.0f} s",
             lambda random, start: {"what": random.choice(["usage", "usage", "cpu", "memory"]), "for": _span(random, start, 300.0, HOUR, 6 * HOUR, 2 * DAY)}, weight=1.5),
        Kind("the recommender restarts", "the recommender is away for {away:.0f} s; its checkpoints are {checkpoints}; there is no usage for {blind:.0f} s then",
             lambda random, start: {"away": _span(random, start, 5.0, 60.0, HOUR, 8 * HOUR), "checkpoints": random.choice(["fresh", "fresh", "fresh", "an hour old", "half", "missing"]), "blind": random.choice([0.0, 0.0, 900.0])}, weight=2),
        Kind("the updater restarts", "the updater is away for {away:.0f} s",
             lambda random, start: {"away": _span(random, start, 5.0, 60.0, HOUR, 8 * HOUR)}),
        Kind("the webhook is away", "the webhook is away for {for:.0f} s",
             lambda random, start: {"for": _span(random, start, 60.0, HOUR)}),
        Kind("a scope is deleted", "the VPAScope of {vpa} is deleted, and made again {for:.0f} s later",
             lambda random, start: {"vpa": _scoped(random, start), "for": _span(random, start, 60.0, HOUR)}, has_scopes),
        Kind("a scope is edited", "the VPAScope of {vpa} selects role={to} for {for:.0f} s; the recommender is away for {away:.0f} s then",
             lambda random, start: {"vpa": _scoped(random, start), "to": "follower", "for": _span(random, start, HOUR, 12 * HOUR), "away": random.choice([0.0, 120.0])},
             lambda start: has_roles(start) and len(start["roles"]) > 1),
        Kind("a VPA is made again", "VPA {vpa} is deleted, and made again {for:.0f} s later",
             lambda random, start: {"vpa": _any_vpa(random, start), "for": _span(random, start, 5.0, HOUR)}),
        Kind("a VPA's mode is edited", "VPA {vpa} is in mode {mode} for {for:.0f} s",
             lambda random, start: {"vpa": _any_vpa(random, start), "mode": random.choice(["Off", "Initial", "Recreate", "InPlaceOrRecreate"]), "for": _span(random, start, HOUR, 12 * HOUR)}),
        Kind("the gate is off", "VPASelectorRefinement is off for {for:.0f} s",
             lambda random, start: {"for": _span(random, start, 300.0, HOUR)}, lambda start: has_scopes(start) and by_programs(start), 0.5),
        Kind("the target is edited", "the template asks for {factor:g} times its memory: a rollout",
             lambda random, _: {"factor": random.choice([0.5, 2.0])}),
        Kind("a rollout", "a rollout of the same template", weight=1.5),
        Kind("a canary", "a canary with the same labels, which uses ten times as much, lives for {for:.0f} s",
             lambda random, start: {"for": _span(random, start, 1800.0, 6 * HOUR)}, by_programs),
        Kind("the workload is scaled", "the workload is scaled to {to} for {for:.0f} s",
             _scale, weight=1.5),
        Kind("pods are made too large", "the template asks for {factor:g} times a node's memory, while the webhook is away for {for:.0f} s",
             lambda random, _: {"factor": random.choice([1.5, 3.0]), "for": 120.0}, lambda start: by_simulation(start) and not start["limit"], 0.5),
        Kind("use bursts", "pods with role {whom!r} use {factor:g} times as much {resource} for {for:.0f} s",
             lambda random, start: {"whom": _any_role(random, start), "factor": random.choice([1.3, 2.0, 4.0]), "resource": random.choice(["cpu", "memory", "memory"]), "for": _span(random, start, 120.0, 1800.0, 3 * HOUR)}, weight=2),
        Kind("CPU is saturated", "pods use all CPU of their nodes, and a hair more, for {for:.0f} s",
             lambda random, start: {"for": _span(random, start, HOUR, 3 * HOUR)}, lambda start: start["nodes"]["cpu"] <= 2 and start["pods"] == 1 and not start["limit"], 4),
        Kind("pods start slowly", "pods take {seconds:.0f} s to start, for {for:.0f} s",
             lambda random, start: {"seconds": random.choice([120.0, 600.0, 1200.0]), "for": _span(random, start, HOUR, 12 * HOUR)}),
        Kind("a pod crashes", "the first pod's container crashes"),
        Kind("a second budget", "a second PodDisruptionBudget covers the first pod for {for:.0f} s; all pods use {factor:g} times as much memory then",
             lambda random, start: {"for": _span(random, start, HOUR, 6 * HOUR), "factor": random.choice([2.0, 4.0])}, lambda start: by_programs(start) and bool(start["budget"]), 6),
    )
}  # fmt: skip


def draw(random: Random, start: Start, number: int) -> tuple[Happening, ...]:
    """Return some happenings that fit the start, by time."""
    kinds = [kind for kind in TABLE.values() if kind.fits(start)]
    seconds = start["hours"] * HOUR
    found = []
    for _ in range(number):
        kind = random.choices(kinds, [kind.weight for kind in kinds])[0]
        facts = kind.draw(random, start)
        # Some things are so from the very beginning; most come when sizes have settled, and what lasts comes in time.
        at = (
            0.0
            if kind.what in EARLY and random.random() < 0.4
            else round(random.uniform(0.1, 0.3 if facts.get("for", 0.0) > seconds / 2 else 0.9) * seconds)
        )
        found.append(Happening(at, kind.what, facts))
    return tuple(sorted(found, key=lambda happening: (happening.at, happening.what)))


def tell(happening: Happening) -> str:
    return TABLE[happening.what].tells.format(**happening.facts)
