"""Workloads that VPAs size, with and without roles: which worlds there are, and how they are told.

Reading order: this module (what there is at the start), `sizes_happenings` (what happens), `sizes_demand` (what pods use),
`sizes_simulation` and `sizes_programs` (who plays them: `trimtab.library.simulator`, or whole programs on the lab), `sizes_judge`
(what came of it).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from random import Random
from typing import Any

from tests.worlds import sizes_happenings as happenings
from tests.worlds.sizes_happenings import DAY, HOUR
from tests.worlds.world import Happening, Life, Rules, World

GB = 1e9
PROGRAMS = 16
"""One world of so many is played by whole programs."""
BY_ROLE = " of roles"
SHARED = frozenset(
    {
        "OOM kills",
        "restarts",
        "evictions",
        "resizes",
        "throttled minutes",
        "unavailable pod-minutes",
        "writes",
    }
    | {f"{how} {unit}" for how in ("starved", "wasted") for unit in ("minutes", "core-hours", "GiB-hours")}
)
"""Outcomes with allowances of their own where roles are sized by themselves."""
MODES = (
    "InPlaceOrRecreate",
    "InPlaceOrRecreate",
    "InPlaceOrRecreate",
    "InPlace",
    "Recreate",
    "Initial",
    "Off",
)


class Sizes:
    """The family."""

    name = "sizes"

    def make(self, seed: int, *, is_short: bool = False) -> World:
        """Return the world of a seed."""
        random = Random(f"sizes/{seed}/{is_short}")
        is_played = not is_short and seed % PROGRAMS == PROGRAMS - 1
        start = _start(random, is_short=is_short, player="programs" if is_played else "simulation")
        found = happenings.draw(random, start, random.randint(1, 3 if is_short else 5))
        return World(self.name, seed, start["hours"] * HOUR, start, found, is_short)

    def play(self, world: World, rules: Rules) -> Life:
        """Play a world by the simulation, or by whole programs on the lab."""
        # Imported when needed: most worlds need no lab.
        player = import_module(f"tests.worlds.sizes_{world.start['player']}")
        life: Life = player.play(world, rules)
        if any(vpa["scope"] for vpa in world.start["vpas"]):
            # Upstream's plain VPA learns from all roles, so that its pods are as large as the largest role asks for.
            life.outcomes = {
                f"{name}{BY_ROLE if name in SHARED else ''}": sum_ for name, sum_ in life.outcomes.items()
            }
        return life

    def simpler(self, world: World) -> Iterable[World]:
        """Yield worlds with less in them: a shorter life, fewer pods and VPAs, plainer use."""
        start = world.start
        last = max(
            (one.at + one.facts.get("for", one.facts.get("away", 0.0)) for one in world.happenings),
            default=0.0,
        )
        for hours in (start["hours"] / 2, start["hours"] * 0.75):
            if 0.25 <= hours < start["hours"] * 0.9 and last < hours * HOUR:
                yield replace(world, seconds=hours * HOUR, start={**start, "hours": hours})
        for change in _plainer(start):
            yield replace(world, start={**start, **change})
        yield from _nearer(world)

    def tell(self, world: World) -> list[str]:
        """Return what there is at the start."""
        start = world.start
        asked = f"{start['requests']['cpu']:g} cores and {start['requests']['memory'] / GB:g} GB"
        limit = f"limits {start['limit']:g} times that" if start["limit"] else "no limits"
        lines = [
            f"{start['kind']} of {start['pods']}, {asked} each, {limit}, {start['starts']:g} s to start"
            + (", Ready only with its role" if start["active"] else "")
        ]
        for role, profile in start["usage"].items():
            count = f" ({start['roles'][role]})" if role in start["roles"] else ""
            shape = {
                "steady": "",
                "peak": f", {profile['peak']:g} times in one busy hour a day",
                "growth": f", {profile['growth']:.0%} more each day",
            }[profile["shape"]]
            lines.append(
                f"{role or 'others'}{count} use {profile['cpu']:g} cores, {profile['memory'] / GB:g} GB{shape}"
            )
        for vpa in start["vpas"]:
            scope = ", ".join(f"{key}={value}" for key, value in vpa["scope"].items())
            lines.append(f"VPA {vpa['name']}{f' for {scope}' if scope else ''}, {vpa['mode']}")
        nodes = start["nodes"]
        lines.append(
            f"{nodes['count']} nodes of {nodes['cpu']:g} cores and {nodes['memory'] / GB:g} GB"
            + (f", PodDisruptionBudget of {start['budget']}" if start["budget"] else "")
        )
        if start["day"] != DAY:
            lines.append(f"memory windows and half-lives of {start['day'] / 60:g} minutes")
        if start["range"]:
            lines.append(f"LimitRange: {start['range']}")
        return lines

    def tell_happening(self, happening: Happening) -> str:
        """Return one happening in a few words."""
        return happenings.tell(happening)


def _start(random: Random, *, is_short: bool, player: str) -> dict[str, Any]:
    style = random.choice(["leader", "leader", "standby", "hot", "plain", "plain"])
    pods = {
        "leader": random.choice([2, 3, 3, 3, 5]),
        "standby": random.choice([2, 2, 3, 5]),
        "hot": random.choice([3, 4, 6, 10]),
    }.get(style) or _many(random)
    if is_short or player == "programs":
        pods = min(pods, 3 if is_short else 4)
    day, hours = _span(random, is_short=is_short, is_played=player == "programs", is_large=pods > 5)
    kind = (
        random.choice(["Deployment", "StatefulSet", "DaemonSet"])
        if style == "plain"
        else random.choice(["StatefulSet", "StatefulSet", "Deployment"])
    )
    memory, cpu = random.choice([0.3, 1.0, 2.0]) * GB, random.choice([0.05, 0.2, 0.5])
    fits = random.choice([0.3, 1.0, 1.0, 3.0])
    roles = _roles(random, style, pods)
    usage = {"": _profile(random, cpu, memory)}
    for role in roles:
        factor = 1.0 if role == "follower" else random.choice([2.0, 4.0, 8.0])
        usage[role] = (
            dict(usage[""]) if role == "follower" else _profile(random, cpu * factor, memory * factor)
        )
    has_room = random.random() < 0.8
    most = max(profile["memory"] * profile["peak"] for profile in usage.values())
    nodes = {
        "count": pods if kind == "DaemonSet" else random.choice([1, 3]),
        "cpu": 64.0 if has_room else random.choice([1.0, 2.0]),
        "memory": max(256 * GB if has_room else 8 * GB, most * 3),
    }
    limit = random.choice([0.0, 0.0, 1.0, 1.5, 2.0]) if fits >= 1 else 0.0
    return {
        "player": player,
        "hours": hours,
        "day": day,
        "kind": kind,
        "pods": pods,
        "requests": {"cpu": cpu * fits, "memory": memory * fits},
        "limit": limit,
        "starts": random.choice([5.0, 20.0, 60.0]),
        "active": style == "standby" and random.random() < 0.7,
        "roles": roles,
        "usage": usage,
        "vpas": _vpas(random, style, roles),
        "nodes": nodes,
        "budget": random.choice([0, 0, 0, 1]) if pods > 1 else 0,
        "range": _range(random, most) if limit else {},
    }


def _range(random: Random, most: float) -> dict[str, Any]:
    """Return a LimitRange that bounds memory, or mostly none. It would refuse pods without limits."""
    if random.random() < 0.6:
        return {}
    return {"type": random.choice(["Container", "Pod"]), "max": most * random.choice([1.0, 3.0])}


def _span(random: Random, *, is_short: bool, is_played: bool, is_large: bool) -> tuple[float, float]:
    """Return the seconds of a memory window, which upstream calls a day, and the hours that the life lasts."""
    if is_short:
        return random.choice([900.0, 1800.0]), random.choice([0.3, 0.4, 0.5])
    if is_played:
        return random.choice([HOUR / 2, HOUR]), random.choice([1.0, 1.0, 2.0, 3.0])
    if random.random() < 0.985:
        day = random.choice([HOUR / 6, HOUR / 2, HOUR, HOUR, 2 * HOUR])
        return day, random.choice([0.75, 1.0, 1.5] if is_large else [1.0, 1.0, 1.5, 2.0, 3.0])
    # Real days cost some seconds of CPU time each, so they are few.
    return DAY, 12.0 if is_large else random.choice([24.0] * 8 + [80.0, 336.0])


def _many(random: Random) -> int:
    return random.choice([1, 1, 2, 2, 3, 3, 5, 5, 10, 50] if random.random() < 0.2 else [1, 2, 3, 4, 5])


def _roles(random: Random, style: str, pods: int) -> dict[str, int]:
    """Return how many pods have each role at the start; all others have none."""
    if style == "plain":
        return {}
    if style == "hot":
        return {"hot": random.randint(1, max(pods // 3, 1))}
    return {"leader": 1, **random.choice([{}, {}, {"follower": pods - 1}])}


def _profile(random: Random, cpu: float, memory: float) -> dict[str, Any]:
    return {
        "cpu": cpu,
        "memory": memory,
        "shape": random.choice(["steady", "steady", "peak", "growth"]),
        "peak": random.choice([2.0, 4.0, 6.0]),
        "hour": random.randint(1, 20),
        "growth": random.choice([0.03, 0.15]),
        "noise": random.choice([0.0, 0.05, 0.2]),
        "warm": random.choice([60.0, 600.0, 1800.0]),
    }


def _vpas(random: Random, style: str, roles: Mapping[str, int]) -> list[dict[str, Any]]:
    mode = random.choice(MODES[:-2] if random.random() < 0.9 else MODES)
    base = {"name": "base", "scope": {}, "mode": mode}
    if style == "plain" or (style == "standby" and random.random() < 0.4):
        return [base]
    role = "hot" if style == "hot" else "leader"
    scoped = {
        "name": role,
        "scope": {"role": role},
        "mode": random.choice([mode, "InPlaceOrRecreate", "InPlace"]),
    }
    if "follower" in roles:
        return [scoped, {"name": "follower", "scope": {"role": "follower"}, "mode": mode}]
    return [base, scoped] if random.random() < 0.9 else [scoped]


def _plainer(start: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield changes of the start that make it plainer, each alone."""
    if start["range"]:
        yield {"range": {}}
    if start["budget"]:
        yield {"budget": 0}
    if start["nodes"]["cpu"] != 64.0:
        yield {"nodes": {**start["nodes"], "cpu": 64.0, "memory": 256 * GB}}
    fewest = max(sum(count for role, count in start["roles"].items() if role != "follower") + 1, 2)
    for pods in (fewest, start["pods"] // 2):
        if fewest <= pods < start["pods"] and "follower" not in start["roles"]:
            yield {
                "pods": pods,
                **({"nodes": {**start["nodes"], "count": pods}} if start["kind"] == "DaemonSet" else {}),
            }
    if start["kind"] != "StatefulSet":
        yield {"kind": "StatefulSet"}
    for change in ({"shape": "steady"}, {"noise": 0.0}, {"warm": 60.0}):
        usage = {role: {**profile, **change} for role, profile in start["usage"].items()}
        if usage != start["usage"]:
            yield {"usage": usage}
    if start["limit"]:
        yield {"limit": 0.0, "range": {}}
    if start["active"]:
        yield {"active": False}
    if start["starts"] != 5.0:
        yield {"starts": 5.0}
    if any(vpa["mode"] != "InPlaceOrRecreate" for vpa in start["vpas"]):
        yield {"vpas": [{**vpa, "mode": "InPlaceOrRecreate"} for vpa in start["vpas"]]}


def _nearer(world: World) -> Iterator[World]:
    """Yield worlds in which one happening lasts half as long."""
    for number, one in enumerate(world.happenings):
        if one.facts.get("for", 0.0) > 600:
            shorter = replace(one, facts={**one.facts, "for": one.facts["for"] / 2})
            yield world.with_only([*world.happenings[:number], shorter, *world.happenings[number + 1 :]])


FAMILY = Sizes()
