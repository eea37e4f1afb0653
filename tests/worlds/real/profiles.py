"""What befalls the controllers of a batch of worlds, and the worlds of defects that are known."""

from dataclasses import dataclass, replace
from random import Random

from tests.worlds.real.hpas import HpaWorld, Load, Metric, draw, draw_for_defaults
from tests.worlds.world import Happening

LEASE_SECONDS = (8, 6, 1)
DEFAULT_LEASE_SECONDS = (15, 10, 2)
_DRAWN = ("plain", "plain", "plain", "kill", "kill", "takeover", "api", "api", "slow", "sync5")
_SYNC_SECONDS = {"slow": 15, "slow-long": 15, "sync5": 5}
_SECONDS = {"slow": 150, "slow-long": 210, "sync5": 110, "known-hand": 70, "known-etcd": 70, "shards": 110}


@dataclass(frozen=True)
class Profile:
    """Settings of both controllers, and what befalls both at the same moments."""

    name: str
    seconds: float
    sync: int
    window: int
    """Seconds of --horizontal-pod-autoscaler-downscale-stabilization."""
    cpu_initialization: int
    readiness: int
    copies: int = 1
    events: tuple[Happening, ...] = ()
    lease: tuple[int, int, int] = LEASE_SECONDS
    """Duration, renew deadline and retry period."""

    @property
    def flags(self) -> list[str]:
        """Return the flags that both controllers get."""
        duration, deadline, retry = self.lease
        prefix = "--horizontal-pod-autoscaler"
        return [
            f"{prefix}-sync-period={self.sync}s", f"{prefix}-downscale-stabilization={self.window}s",
            f"{prefix}-cpu-initialization-period={self.cpu_initialization}s",
            f"{prefix}-initial-readiness-delay={self.readiness}s", "--concurrent-horizontal-pod-autoscaler-syncs=16",
            f"--leader-elect-lease-duration={duration}s", f"--leader-elect-renew-deadline={deadline}s",
            f"--leader-elect-retry-period={retry}s",
        ]  # fmt: skip

    def tell(self) -> str:
        """Return the profile in a line."""
        events = "".join(f"; {each.at} s: {each.what} {dict(each.facts)}" for each in self.events)
        return (
            f"{self.name}, sync {self.sync} s, downscale stabilization {self.window} s, CPU initialization "
            f"{self.cpu_initialization} s, readiness {self.readiness} s, copies {self.copies}, {self.seconds} s{events}"
        )


def draw_profile(batch: str, wanted: str | None = None) -> Profile:
    """Return the profile of a batch's seed, or the wanted one with what else the seed says."""
    random = Random(f"batch {batch}")
    drawn = random.choice(_DRAWN)
    name = wanted or drawn
    window = random.choice([5, 10, 20]) if name != "slow" else random.choice([15, 30])
    profile = Profile(
        name, _SECONDS.get(name, 95), _SYNC_SECONDS.get(name, 1), window, random.choice([5, 10, 20]), random.choice([2, 5])
    )  # fmt: skip
    if name.startswith("real"):
        return _with_defaults(profile, random)
    if name == "takeover":
        return replace(profile, copies=2, events=_draw_takeovers(random))
    if name in _FIXED_EVENTS:
        return replace(profile, events=_FIXED_EVENTS[name], window=20 if name == "known-kill" else window)
    if name == "slow-long":
        return replace(profile, window=15)
    drawn_events = {"kill": _draw_kills, "api": _draw_api_faults}
    return replace(profile, events=drawn_events[name](random, window)) if name in drawn_events else profile


_FIXED_EVENTS = {
    # Away for a little longer than a window of 20 s.
    "known-kill": (Happening(22.0, "kill", {"for": 21.0}),),
    "known-etcd": (Happening(20.0, "etcd-stop", {"for": 4.5}),),
    "known-hand": (Happening(22.0, "kill", {"for": 0.0}),),
    # A copy of ours with --shards=2 beside the old one. Upstream starts a second copy.
    "shards": (Happening(20.0, "join"), Happening(80.0, "leave")),
    "api429": (Happening(20.0, "429", {"for": 4.0}), Happening(50.0, "429", {"for": 8.0})),
}


def _with_defaults(profile: Profile, random: Random) -> Profile:
    def at(low: float, high: float) -> float:
        return round(random.uniform(low, high), 1)

    events: tuple[Happening, ...] = ()
    if profile.name == "real-kill":
        events = (Happening(at(50, 65), "kill", {"for": 0.0}), Happening(at(120, 135), "kill", {"for": 46.0}))
    if profile.name == "real-takeover":
        killed = Happening(at(60, 75), "lead-kill", {"for": 20.0})
        events = (killed, Happening(at(150, 165), "lead-term", {"for": 20.0}))
    copies = 2 if profile.name == "real-takeover" else 1
    return Profile(profile.name, 240, 15, 60, 60, 15, copies, events, DEFAULT_LEASE_SECONDS)


def _draw_takeovers(random: Random) -> tuple[Happening, ...]:
    at, events = random.uniform(18, 30), []
    for _ in range(2):
        events.append(Happening(round(at, 1), random.choice(["lead-kill", "lead-term"]), {"for": 8.0}))
        at += random.uniform(25, 35)
    return tuple(events)


def _draw_kills(random: Random, window: int) -> tuple[Happening, ...]:
    at, events = random.uniform(18, 30), []
    for away in random.sample([0.0, 5.0, window + 1.0], 2):
        events.append(Happening(round(at, 1), "kill", {"for": away}))
        at += away + random.uniform(18, 28)
    return tuple(events)


def _draw_api_faults(random: Random, window: int) -> tuple[Happening, ...]:
    at, events = random.uniform(14, 24), []
    for what in random.sample(["429", "etcd-stop", "api-stop", "429-writes"], 2):
        events.append(Happening(round(at, 1), what, {"for": round(random.uniform(3, 8), 1)}))
        at += random.uniform(22, 32)
    return tuple(events)


@dataclass(frozen=True)
class Known:
    """A world in which a known defect shows, and the review item that describes it."""

    item: str
    profile: str
    levels: tuple[float, ...]
    """The replicas that are needed, each until the next moment."""
    moments: tuple[float, ...]
    behavior: dict[str, object]
    happenings: tuple[Happening, ...] = ()
    resolution: int = 1


_TO_THREE = Happening(21.9, "hand", {"to": 3})
KNOWN = {
    # One sample, many steps: a window of 0, and samples every 15 s.
    "k.1": Known("R4-3", "slow", (8, 4), (50,), {"scaleDown": {"stabilizationWindowSeconds": 0}}, (), 15),
    # A step is decided while the server cannot write. The next one is due a period after the write.
    "k.2": Known(
        "W2", "known-etcd", (3, 12), (20.5,),
        {"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 20}]}},
    ),
    # Two deciders: a rate of 1 pod in 20 s must hold.
    "k.3": Known(
        "R4-8", "shards", (3, 10), (15,),
        {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 20}]}},
    ),
    # Away for as long as the window. The load falls meanwhile, and comes back after the controllers.
    "k.4": Known(
        "R4-6", "known-kill", (9, 1, 9), (24, 64), {"scaleDown": {"stabilizationWindowSeconds": 20}}
    ),
    # A scale by hand right before a kill, and a narrow rate: it is not a change of the controller's own.
    "k.6": Known(
        "W3", "known-hand", (8,), (),
        {"scaleUp": {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 30}]}}, (_TO_THREE,),
    ),
    # A policy's period is one sync: growth by the API's own default of 15 s, then 3 pods per sync down.
    "k.7": Known(
        "W1", "slow-long", (1, 24, 1), (20, 95),
        {"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 3, "periodSeconds": 15}]}},
    ),
}  # fmt: skip


def make_world(name: str, profile: Profile) -> HpaWorld:
    """Return the world of a name under a profile."""
    if name in KNOWN:
        return _known_world(name, KNOWN[name], profile)
    if profile.name.startswith("real"):
        return draw_for_defaults(name, profile.seconds)
    return draw(name, profile.seconds, is_slow=profile.name.startswith("slow"))


def _known_world(name: str, known: Known, profile: Profile) -> HpaWorld:
    metric = Metric("Resource", "cpu", "cpu", "Utilization", 100, 50, 2.5, known.resolution, 0, 0)
    if name == "k.7":
        metric = Metric("External", "external-0", None, "AverageValue", 10000, 100, None, 1, 0, 0)
    points = [(0.0, known.levels[0])]
    for at, old, new in zip(known.moments, known.levels, known.levels[1:], strict=False):
        points += [(at, old), (at, new)]
    load = Load([*points, (300.0, known.levels[-1])])
    if known.moments:
        load.steps.append((known.moments[0], known.levels[0], known.levels[1]))
    base = draw(name, profile.seconds)
    return replace(
        base, minimum=1, maximum=24 if name == "k.7" else 12, metrics=[metric], load=load, shares=[1.0], waves=[0.0],
        behavior=known.behavior, pending=0, start_up=1, burns_at_start=False, terminating=0, replicas=round(known.levels[0]),
        happenings=known.happenings,
    )  # fmt: skip
