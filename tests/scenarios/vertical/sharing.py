"""Several copies of the vertical loops that share the VPAs out, and what can be seen of them."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from tests.scenarios.copies import Copies, DividedByName
from tests.scenarios.vertical.stage import Actor, Stage
from tests.support.transport import Break, Line
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family
from trimtab.cluster.transport import Request
from trimtab.operator.vertical.kinds import VPAS
from trimtab.operator.vertical.recommender.history_loader import HistoryLoader

SHARDS = 6
MIB = 2**20
LOOPS = ("recommender", "updater", "roles")


class Copy:
    """One process with `--shards`: its loops, its Leases, and when it wrote what."""

    def __init__(
        self,
        stage: Stage,
        name: str,
        history: HistoryLoader | None = None,
        *,
        count: int = SHARDS,
        make: type[Family] = DividedByName,
        **settings: Any,
    ) -> None:
        """One process, by default one that divides the VPAs of the stage's namespace by name."""
        self.name = name
        self.stage = stage
        self.writes: list[tuple[float, str, str]] = []
        """When, what kind of object, which one."""
        self._line = Line(stage.transport)
        client = Client(stage.clock, self._line, seed=len(name))
        self.shards = make(client, stage.own_namespace, "trimtab-recommender", name, count)
        settings.setdefault("components", LOOPS)
        self.actor = Actor(stage, stage.settings(**settings), history=history, fence=self.shards)
        self.actor.line.break_write = self._note
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, *loops: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin to work: the recommender, or the loops that are named."""
        chosen = loops or (self.actor.recommender.run,)
        self._tasks = [asyncio.ensure_future(work()) for work in (*chosen, self.shards.run)]

    @property
    def is_dead(self) -> bool:
        return self._line.crashed.is_set()

    def crash(self) -> None:
        """Die without a word."""
        self._line.crashed.set()
        self.actor.line.crashed.set()

    def may_write(self, key: str) -> bool:
        return self.shards.of(key).may_write()

    def owns(self, vpa: str) -> bool:
        return self.may_write(f"{self.stage.namespace}/{vpa}")

    def caches(self) -> Iterable[Any]:
        return self.actor.site.view.all_caches()

    def recommends(self, vpa: str) -> bool:
        """Whether its last loop was about this VPA."""
        return self.actor.recommender.recommendation(f"{self.stage.namespace}/{vpa}") is not None

    def _note(self, number: int, request: Request) -> Break | None:
        parts = request.path.strip("/").split("/")
        place = parts.index("namespaces") + 2 if "namespaces" in parts else len(parts)
        kind, name = parts[place], parts[place + 1] if len(parts) > place + 1 else ""
        self.writes.append((self.stage.clock.monotonic(), kind, name))
        return None

    async def stop(self) -> None:
        """End in order, the loops before the Leases as in a process; or what is left of it after a crash."""
        for task in self._tasks:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self.actor.site.runtime.close()


class Troupe(Copies[Copy]):
    """All copies, and everything that is ever recommended."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage
        self.told: dict[str, list[tuple[float, int | str | None, int | str | None]]] = defaultdict(list)
        """Per VPA when which target was seen, of CPU and memory."""

    def add(self, name: str, history: HistoryLoader | None = None, **settings: Any) -> Copy:
        return self.begin(Copy(self.stage, name, history, **settings))

    async def pass_time(self, seconds: float, vpas: list[str], *, step: float = 5.0) -> None:
        """Let time pass; look at each moment how many may write for a VPA, and what is recommended."""
        for _ in range(int(seconds / step)):
            await self.stage.clock.sleep(step)
            self.count_owners(f"{self.stage.namespace}/{vpa}" for vpa in vpas)
            await self._look(vpas)

    async def _look(self, vpas: list[str]) -> None:
        now = self.stage.clock.monotonic()
        for vpa in vpas:
            found = (await self.stage.client.get(VPAS.untyped(), vpa, self.stage.namespace)).get("status", {})
            for entry in found.get("recommendation", {}).get("containerRecommendations", [{}]):
                target = entry.get("target", {})
                self.told[vpa].append((now, target.get("cpu"), target.get("memory")))

    def written(self, since: float = 0.0) -> dict[str, list[tuple[float, str]]]:
        """Return when and by whom each VPA's status was written."""
        found: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for copy in self.copies:
            for when, kind, name in copy.writes:
                if when >= since and kind == "verticalpodautoscalers":
                    found[name].append((when, copy.name))
        return {name: sorted(writes) for name, writes in found.items()}


def with_troupe(play: Callable[..., None], act: Callable[[Troupe], Awaitable[None]]) -> None:
    async def scenario(stage: Stage) -> None:
        async with Troupe(stage) as troupe:
            await act(troupe)

    play(scenario)
