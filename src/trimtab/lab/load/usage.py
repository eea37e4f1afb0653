"""What the containers of one workload use, once its load is known (pure)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from trimtab.lab.controllers.base.kinds import RunPod
from trimtab.lab.load.curves import Moment
from trimtab.lab.load.plan import Even, HotShard, Leader, Share, WorkloadLoad
from trimtab.lab.load.pods import Member

LeaseHolder = Callable[[str, str], str]
"""Returns the holder of a lease, by namespace and name; empty if there is none."""


def nobody(_namespace: str, _lease: str) -> str:
    """Return that no lease is held."""
    return ""


def weights(share: Share, pods: Sequence[RunPod], holder: LeaseHolder = nobody) -> list[float]:
    """Return each pod's part of the load, in the order of `pods`; the parts add up to 1."""
    if not pods:
        return []
    match share:
        case Leader():
            leader = _leader(share, pods, holder)
            if leader is None or len(pods) == 1:
                return weights(Even(), pods)
            rest = (1.0 - share.share) / (len(pods) - 1)
            return [share.share if pod is leader else rest for pod in pods]
        case HotShard():
            hot = _by_ordinal(pods)[min(share.ordinal, len(pods) - 1)]
            total = len(pods) - 1 + share.weight
            return [(share.weight if pod is hot else 1.0) / total for pod in pods]
        case _:
            return [1.0 / len(pods)] * len(pods)


def _leader(share: Leader, pods: Sequence[RunPod], holder: LeaseHolder) -> RunPod | None:
    if not share.lease:
        return next((pod for pod in pods if pod.metadata.labels.get(share.label) == share.value), None)
    name = holder(pods[0].metadata.namespace, share.lease)
    # Many programs append something of their own to the pod's name, after an underscore.
    return next((pod for pod in pods if name.partition("_")[0] == pod.metadata.name), None)


def _by_ordinal(pods: Sequence[RunPod]) -> list[RunPod]:
    """Order pods by name, the shorter number first: web-2 comes before web-10."""
    return sorted(pods, key=lambda pod: (len(pod.metadata.name), pod.metadata.name))


_MASK = 2**64 - 1
_HALF = 2**32


def noise(seed: int, salt: int, tick: int) -> float:
    """Return a number between -1 and 1, more often near 0, that depends on nothing but its arguments.

    The three numbers are stirred as SplitMix64 stirs its counter, which is quick and leaves no pattern to the eye.
    """
    mixed = (seed * 0x9E3779B97F4A7C15 + salt * 0xD1342543DE82EF95 + tick * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    mixed ^= mixed >> 31
    return ((mixed >> 32) + (mixed & 0xFFFFFFFF)) / _HALF - 1.0


#: Seconds for which one drawing of noise holds.
NOISE_SECONDS = 15
HOUR = 3600.0


class Use(NamedTuple):
    """What one container uses: millicores, and bytes of memory."""

    cpu_millicores: int
    memory_bytes: int


PodUse = Mapping[str, Use]


class Arithmetic:
    """The numbers of a load, read from their quantities once."""

    def __init__(self, one: WorkloadLoad, seed: int) -> None:
        self.load = one
        self._seed = seed
        self._idle = one.idle_cpu.as_float()
        self._base = one.memory.base.as_float()
        self._per_core = one.memory.per_core.as_float()
        self._growth = one.memory.growth_per_hour.as_float() / HOUR
        self._others = {
            name: Use(other.cpu.milli_value(), other.memory.value()) for name, other in one.others.items()
        }

    def uses(
        self, members: Iterable[Member], parts: Mapping[str, float], cores: float, each: float, moment: Moment
    ) -> Iterator[tuple[str, PodUse]]:
        """Yield what each pod uses, by uid: its part of `cores`, and `each` on top; who has no part is idle."""
        total = self.load.memory.total
        shared = total.at(moment) if total is not None else 0.0
        now, tick = moment.now.timestamp(), int(moment.since // NOISE_SECONDS)
        for member in members:
            part = parts.get(member.uid)
            used = self._idle
            if part is not None:
                used = max(cores * part + each, used)
                if self.load.noise:
                    used *= 1 + self.load.noise * noise(self._seed, member.salt, tick)
            yield member.uid, self._pod(member, used, shared * (part or 0.0), now)

    def _pod(self, member: Member, cores: float, shared: float, now: float) -> PodUse:
        found: dict[str, Use] = {}
        main = self.load.container
        for place, container in enumerate(member.containers):
            name = container.name
            if name == main or (not main and place == 0 and name not in self._others):
                size = self._base + self._per_core * cores + self._growth * max(now - container.started, 0.0)
                found[name] = Use(round(cores * 1000), round(size + shared))
            else:
                found[name] = self._others.get(name) or Use(1, round(self._base))
        return found


#: Seconds of one step; finer than any sample, so a queue that fills between two samples is seen to.
STEP = 1.0


class Backlog:
    """The items that wait, advanced step by step on a fixed grid, so that who asks when changes nothing."""

    def __init__(self, items: float, since: float) -> None:
        self.items = items
        self.done_per_second = 0.0
        self._since = since

    def advance(self, to: float, arrivals: Callable[[float], float], capacity: float) -> None:
        """Move on to a time, with `capacity` items done per second at most."""
        while self._since + STEP <= to:
            arrived = max(arrivals(self._since), 0.0) * STEP
            done = min(self.items + arrived, capacity * STEP)
            self.items += arrived - done
            self.done_per_second = done / STEP
            self._since += STEP
