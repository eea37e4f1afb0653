"""What the pods of a sized workload use: by role, by the time of the day, and slowly after a role or a container is new."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

ROLE = "role"
"""The label that says which role a pod has."""
BUSY = 120.0
"""The shortest busy time of a day, where a day is short."""
FRESH = 0.1
"""Share of its level that a container uses of memory when it has just started."""


@dataclass
class _Held:
    """A role that a pod has, since when, and what the pod used of memory then."""

    role: str
    since: float
    memory: float
    started: float


@dataclass
class _Burst:
    """A time in which pods of a role, or one pod, use a multiple."""

    begin: float
    end: float
    whom: str
    factor: float
    resources: tuple[str, ...]


@dataclass
class Demand:
    """The use of each pod at each moment. The same world gives the same use under any rules."""

    usage: Mapping[str, Mapping[str, Any]]
    """By role: `cpu` in cores, `memory` in bytes, `shape`, `noise`, and `warm`, the seconds that memory takes to follow."""
    seed: int
    day: float = 86400.0
    bursts: list[_Burst] = field(default_factory=list)
    _held: dict[str, _Held] = field(default_factory=dict)

    def burst(
        self, begin: float, seconds: float, whom: str, factor: float, resources: tuple[str, ...]
    ) -> None:
        """Let a role's pods, or the pod of a name, use a multiple for some time."""
        self.bursts.append(_Burst(begin, begin + seconds, whom, factor, resources))

    def used(self, pod: str, role: str, started: float, at: float) -> tuple[float, float]:
        """Return cores and bytes that a running pod needs at a moment.

        `started` is when its container did. Memory moves from what it was to the role's level within `warm` seconds.
        """
        profile = self.usage.get(role) or self.usage[""]
        level = profile["memory"] * self._shape(profile, at) * self._factor("memory", pod, role, at)
        held = self._held.get(pod)
        if held is None or held.started != started:
            # What ran before the world began is warm.
            held = self._held[pod] = _Held(role, started, level if started <= 0 else FRESH * level, started)
        elif held.role != role:
            before = self._memory(held, self._level(held.role, pod, at), at)
            held = self._held[pod] = _Held(role, at, before, started)
        cores = profile["cpu"] * self._shape(profile, at) * self._factor("cpu", pod, role, at)
        noise = 1 + profile["noise"] * self._noise(pod, at)
        return cores * noise, self._memory(held, level, at) * (1 + (noise - 1) / 4)

    def forget(self, pod: str) -> None:
        """A pod is gone: one of the same name begins anew."""
        self._held.pop(pod, None)

    def _level(self, role: str, pod: str, at: float) -> float:
        profile = self.usage.get(role) or self.usage[""]
        return float(profile["memory"] * self._shape(profile, at) * self._factor("memory", pod, role, at))

    def _memory(self, held: _Held, level: float, at: float) -> float:
        warm = (self.usage.get(held.role) or self.usage[""])["warm"]
        left = max(1 - (at - held.since) / warm, 0.0) if warm else 0.0
        return level + (held.memory - level) * left

    def _shape(self, profile: Mapping[str, Any], at: float) -> float:
        days = at / self.day
        match profile["shape"]:
            case "peak":
                # One busy hour of the day's 24, and at least some samples.
                busy = max(1.0, BUSY / self.day * 24)
                return float(profile["peak"]) if 0 <= days % 1 * 24 - profile["hour"] < busy else 1.0
            case "growth":
                return 1.0 + float(profile["growth"]) * days
            case _:
                return 1.0

    def _factor(self, resource: str, pod: str, role: str, at: float) -> float:
        factor = 1.0
        for burst in self.bursts:
            if burst.begin <= at < burst.end and resource in burst.resources and burst.whom in (pod, role):
                factor *= burst.factor
        return factor

    def _noise(self, pod: str, at: float) -> float:
        """Return a number from -1 to 1 that depends on pod and minute alone."""
        return crc32(f"{self.seed}/{pod}/{at // 60:.0f}".encode()) / 2**31 - 1
