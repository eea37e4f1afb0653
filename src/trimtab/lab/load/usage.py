"""What the containers of one workload use, once its load is known (pure)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from trimtab.lab.load.curves import Moment
from trimtab.lab.load.members import Member
from trimtab.lab.load.noise import noise
from trimtab.lab.load.plan import WorkloadLoad

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
