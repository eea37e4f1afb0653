"""Several copies of the HPA controller that share the HPAs out, and what can be seen of them."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Any

from tests.faults.horizontal.scene import held, load
from tests.scenarios.copies import Copies, DividedByName
from tests.scenarios.horizontal.stage import Actor, Stage
from tests.support.transport import Break, Line
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family
from trimtab.cluster.transport import Request

PERIOD, LEASE, LOOK = 15.0, 15.0, 2.5
SHARDS = 6
NAMES = [f"web-{number}" for number in range(12)]


class Copy:
    """One process with `--shards`: its rounds, its Leases, and when it wrote what."""

    def __init__(
        self,
        stage: Stage,
        name: str,
        count: int = SHARDS,
        make: type[Family] = DividedByName,
        **settings: Any,
    ) -> None:
        self.name = name
        self.writes: list[tuple[float, str]] = []
        self.crash_at = -1
        self._stage = stage
        self.lease_line = Line(stage.transport)
        client = Client(stage.clock, self.lease_line, seed=len(name))
        self.shards = make(client, stage.namespace, "trimtab", name, count)
        if make is DividedByName:
            settings["components"] = ("horizontal", "updater")  # it watches everything
        # A status in every sync shows who decided when.
        usual = {"sync_period": timedelta(seconds=PERIOD), "status_max_age": timedelta(0)}
        self.actor = Actor(stage, stage.settings(**usual | settings), fence=self.shards)
        self.actor.line.break_write = self._note
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.ensure_future(self.actor.run()),
            asyncio.ensure_future(self.shards.run()),
        ]

    @property
    def is_dead(self) -> bool:
        return self.lease_line.crashed.is_set()

    def crash(self) -> None:
        """Die without a word."""
        self.lease_line.crashed.set()
        self.actor.line.crashed.set()

    def may_write(self, key: str) -> bool:
        return self.actor.operator.ownership.owns(key)

    def caches(self) -> Iterable[Any]:
        return self.actor.operator.caches()

    def _note(self, number: int, request: Request) -> Break | None:
        name = request.path.split("/horizontalpodautoscalers/")[-1].split("/")[0]
        self.writes.append((self._stage.clock.monotonic(), name))
        if number == self.crash_at:
            self.lease_line.crashed.set()
            return Break.CRASH_AFTER
        return None

    async def stop(self) -> None:
        """End in order, or what is left of it after a crash."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Troupe(Copies[Copy]):
    """All copies, and the load that moves so that every decision has something to write."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage
        self.fixed: dict[str, int] = {}

    def add(self, name: str, shards: int = SHARDS) -> Copy:
        return self.begin(Copy(self.stage, name, shards))

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, move the load, and count at each moment how many may write for an HPA."""
        for _ in range(int(seconds * 4)):
            await self.stage.clock.sleep(0.25)
            second = int(self.stage.clock.monotonic())
            for name in NAMES:
                load(self.stage, self.fixed.get(name, 480 + second % 40), name)
            self.count_owners(f"{self.stage.namespace}/{name}" for name in NAMES)

    def decided(self, since: float = 0.0) -> dict[str, list[tuple[float, str]]]:
        """Return when and by whom each HPA's status was written."""
        found: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for copy in self.copies:
            for when, name in copy.writes:
                if when >= since:
                    found[name].append((when, copy.name))
        return {name: sorted(writes) for name, writes in found.items()}

    def longest_gap(self, since: float) -> float:
        return max(
            later - earlier
            for writes in self.decided(since).values()
            for (earlier, _), (later, _) in itertools.pairwise(writes)
        )


def with_troupe(play: Callable[..., None], act: Callable[[Troupe], Awaitable[None]]) -> None:
    async def scenario(stage: Stage) -> None:
        for name in NAMES:
            await held(stage, name)
        async with Troupe(stage) as troupe:
            await act(troupe)

    play(scenario)
