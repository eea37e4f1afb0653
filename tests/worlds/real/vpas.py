"""A world of a VPA from its seed: pods that use memory and CPU by the hour of a short day, and what happens to them.

What lasts a day for both recommenders by default lasts `DAY` here. There are no roles, as upstream has none.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from tests.worlds.real.hpas import Json
from tests.worlds.world import Happening

DAY = 40
"""Seconds of a day."""
SECONDS = 6.5 * DAY
GIBIBYTE = 1024**3
_HAPPENINGS = (
    "labels", "labels", "standbys", "without", "without", "outage", "load", "load", "refusals", "vpa", "bounds", "rollout"
)  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """What befalls the programs of both sides."""

    events: tuple[Happening, ...] = ()
    seconds: float = SECONDS
    acts_after: float = 1.5 * DAY
    """Seconds for which the VPAs only recommend, so that both sides know the pods when they begin to size them.

    Outcomes count from then on.
    """

    def tell(self) -> str:
        """Return the profile in a line."""
        events = "".join(f"; {each.at} s: {each.what} {dict(each.facts)}" for each in self.events)
        return f"VPAs, {self.seconds} s, a day of {DAY} s{events}"


def draw_profile(batch: str) -> Profile:
    """Return the profile of a batch's seed: nothing happens, or the recommender or the updater is killed."""
    random = Random(f"vpa batch {batch}")
    if batch == "v" or random.random() < 0.4:
        return Profile()
    program = random.choice(["recommender", "recommender", "updater"])
    kills = sorted(round(random.uniform(60, 200), 1) for _ in range(random.choice([1, 2])))
    away = random.choice([0.0, 5.0, 30.0])
    return Profile(tuple(Happening(at, "kill", {"program": program, "for": away}) for at in kills))


@dataclass(frozen=True)
class Usage:
    """Of one resource by one pod: an idle level, and a busier one in some hours of each day."""

    idle: float
    peak: float
    starts: float
    """When the busy hours begin, as a share of a day."""
    lasts: float
    noise: float = 0.0
    """How far it varies from second to second, as a share."""

    def at(self, moment: float, factor: float, ordinal: int) -> float:
        """Return the usage at a moment. Pods differ by some percent."""
        hour = (moment / DAY - self.starts) % 1
        level = self.peak if hour < self.lasts else self.idle
        return (
            level
            * factor
            * (1 + 0.05 * math.sin(ordinal * 2.4))
            * (1 + self.noise * math.sin(ordinal + moment / 3))
        )


@dataclass(frozen=True)
class VpaWorld:
    """A StatefulSet, its VPA and its usage."""

    name: str
    pods: int
    mode: str
    usage: Mapping[str, Usage]
    """By resource: cores, and bytes of memory."""
    requests: Mapping[str, float]
    limit_ratio: float | None
    start_up: float
    happenings: tuple[Happening, ...]

    @property
    def resources(self) -> Json:
        """Return what the template of the pods asks for."""
        asked = {
            "cpu": f"{round(self.requests['cpu'] * 1000)}m",
            "memory": str(round(self.requests["memory"])),
        }
        if self.limit_ratio is None:
            return {"requests": asked}
        limits = {name: amount * self.limit_ratio for name, amount in self.requests.items()}
        return {
            "requests": asked,
            "limits": {"cpu": f"{round(limits['cpu'] * 1000)}m", "memory": str(round(limits["memory"]))},
        }

    def tell(self) -> list[str]:
        """Return what there is at the start, and what happens."""
        ratio = "no limits" if self.limit_ratio is None else f"limits {self.limit_ratio:.1f} times as high"
        cpu, memory = self.usage["cpu"], self.usage["memory"]
        size = f"{self.requests['cpu']:.2f} cores and {self.requests['memory'] / GIBIBYTE:.2f} GiB"
        return [
            f"{self.pods} pods, {self.mode}, requests {size}, {ratio}, ready after {self.start_up} s",
            f"memory {memory.idle / GIBIBYTE:.2f} GiB, {memory.peak / GIBIBYTE:.2f} for {memory.lasts:.0%} of a day of {DAY} s",
            f"CPU {cpu.idle:.2f} cores, {cpu.peak:.2f} for {cpu.lasts:.0%} of it",
            *(f"{each.at:.1f} s: {each.what} {dict(each.facts)}" for each in self.happenings),
        ]


def draw(name: str) -> VpaWorld:
    """Return the world of a seed."""
    random = Random(f"vpa {name}")
    idle = random.uniform(0.4, 2) * GIBIBYTE
    peak, noise = idle * random.choice([1, 1.5, 3, 6]), random.choice([0.0, 0.05])
    memory = Usage(idle, peak, random.random(), random.uniform(0.05, 0.4), noise)
    idle = random.uniform(0.05, 0.5)
    cpu = Usage(idle, idle * random.choice([1, 2, 5]), random.random(), random.uniform(0.05, 0.4), noise)
    requests = {"cpu": random.choice([0.1, 0.5, 2.0]), "memory": random.choice([0.5, 1, 4, 12]) * GIBIBYTE}
    drawn = [_draw_happening(random) for _ in range(random.choice([1, 1, 2, 2, 3]))]
    return VpaWorld(
        name, random.choice([2, 3, 3, 4]), random.choice(["InPlaceOrRecreate", "InPlaceOrRecreate", "Recreate"]),
        {"cpu": cpu, "memory": memory}, requests, random.choice([None, 1.0, 2.0]), random.choice([1, 3, 8]),
        tuple(sorted(drawn, key=lambda happening: happening.at)),
    )  # fmt: skip


def _draw_happening(random: Random) -> Happening:
    what, at = random.choice(_HAPPENINGS), round(random.uniform(0, SECONDS * 0.6), 1)
    lasts = {"for": round(random.uniform(20, SECONDS), 1)}
    if what == "labels":
        return Happening(at, what, {"every": random.choice([0.5, 1, 4]), **lasts})
    if what == "without":
        return Happening(
            random.choice([0.0, at]), what, {"resource": random.choice(["cpu", "memory"]), **lasts}
        )
    if what == "load":
        return Happening(at, what, {"times": random.choice([0.3, 0.6, 1.6, 2.5])})
    if what == "refusals":
        return Happening(at, what, {"how": random.choice(["Deferred", "Infeasible"]), **lasts})
    if what == "bounds":
        return Happening(at, what, {"memory": random.choice(["1Gi", "3Gi"])})
    facts = {"outage": {"for": random.choice([5, 30])}, "vpa": {"for": random.choice([1, 15])}, "rollout": {}}
    return Happening(0.0 if what == "standbys" else at, what, facts.get(what, {}))


_EVEN = Usage(3 * GIBIBYTE, 3 * GIBIBYTE, 0.0, 0.1)
_BUSY_HOUR = Usage(GIBIBYTE, 7.5 * GIBIBYTE, 0.4, 1 / 16)
_CORES = Usage(0.3, 0.3, 0.0, 0.1)
_BASE = VpaWorld(
    "v", 3, "InPlaceOrRecreate", {"cpu": _CORES, "memory": _EVEN}, {"cpu": 0.5, "memory": 4 * GIBIBYTE}, 1.0, 1, ()
)  # fmt: skip
KNOWN = {
    # CPU samples without memory samples, from the start.
    "v.12": ("NV-12", replace(_BASE, happenings=(Happening(0.0, "without", {"resource": "memory", "for": SECONDS}),))),
    # One busy hour a day, and a label that changes 40 times a day.
    "v.16": (
        "NV-16",
        replace(
            _BASE, usage={"cpu": _CORES, "memory": _BUSY_HOUR}, requests={"cpu": 0.5, "memory": 12 * GIBIBYTE},
            limit_ratio=None,
            happenings=(Happening(0.0, "labels", {"every": 1, "for": SECONDS}),),
        ),
    ),
    # One active pod, and standbys that are not Ready by design.
    "v.17": (
        "NV-17", replace(_BASE, requests={"cpu": 0.5, "memory": 12 * GIBIBYTE}, happenings=(Happening(0.0, "standbys"),))
    ),
}  # fmt: skip
"""The review item and the world of each known defect."""


def make_world(name: str) -> VpaWorld:
    """Return the world of a name."""
    return replace(KNOWN[name][1], name=name) if name in KNOWN else draw(name)
