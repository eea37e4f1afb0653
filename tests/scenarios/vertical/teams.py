"""Recommenders with shards and teams: a namespace each, with StatefulSets, their pods, and a VPA for each StatefulSet."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from tests.scenarios.copies import TeamCopies
from tests.scenarios.vertical.conftest import play_on_lab
from tests.scenarios.vertical.sharing import Copy
from tests.scenarios.vertical.stage import Stage
from tests.scenarios.vertical.workloads import Played
from tests.support.objects import NAMESPACES, statefulset, vpa
from trimtab.cluster.leases.family import Family
from trimtab.cluster.resource import STATEFUL_SETS, Json
from trimtab.model.times import format_time
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS

SHARDS = 4
PLACES = [f"team-{number}" for number in range(8)]
LOOP, LEASE, LOOK = 12.0, 15.0, 2.5
TAKEOVER = LEASE + 3 * LOOK + LOOP
BUSY, IDLE = "4e9", "500e6"
"""What a pod uses of memory, in bytes."""


async def team(stage: Stage, place: str, *names: str, annotations: Json | None = None) -> None:
    """A namespace with StatefulSets of two pods, and a VPA for each. By default there is one, named as the namespace."""
    await stage.client.create(NAMESPACES, {"metadata": {"name": place}})
    for name in names or (place,):
        await workload(stage, place, name, annotations)


async def workload(stage: Stage, place: str, name: str, annotations: Json | None = None) -> None:
    await stage.client.create(STATEFUL_SETS.untyped(), statefulset(name, 2, annotations=annotations), place)
    await Played(stage.clock, stage.client, place).heal(name)
    await stage.client.create(VPAS, vpa(name), place)
    use(stage, place, BUSY, name)


def use(stage: Stage, place: str, memory: str, name: str = "") -> None:
    for index in range(2):
        stage.metrics.use(place, f"{name or place}-{index}", cpu="100m", memory=memory)


async def kill(stage: Stage, place: str, pod: str) -> None:
    """Play kubelet: the pod runs out of memory and runs again."""
    played = Played(stage.clock, stage.client, place)
    await played.run(pod, restarts=1, oom_at=format_time(stage.clock.now()))


class Teams(TeamCopies[Copy]):
    """The copies of a recommender, and what each recommends and saves."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(PLACES, SHARDS)
        self.stage = stage

    def add(self, name: str, *, gc: float = 600.0, **settings: Any) -> Copy:
        copy = Copy(
            self.stage,
            name,
            count=SHARDS,
            make=Family,
            components=settings.pop("components", ("recommender",)),
            watch_namespaces=(),
            recommender_interval=timedelta(seconds=LOOP),
            checkpoints_gc_interval=timedelta(seconds=gc),
            **settings,
        )
        return self.begin(copy)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and count at each moment how many may write for a VPA."""
        for _ in range(int(seconds * 2)):
            await self.stage.clock.sleep(0.5)
            self.count_owners_of_teams()

    def owner(self, key: str) -> Copy:
        return next(copy for copy in self.living if copy.may_write(key))

    def recommended(self, copy: Copy, since: float) -> set[str]:
        return {name for when, kind, name in copy.writes if when >= since and kind == VPAS.plural}

    async def target(self, place: str, name: str = "") -> int:
        found = await self.stage.client.get(VPAS.untyped(), name or place, place)
        (entry,) = found["status"]["recommendation"]["containerRecommendations"]
        return int(entry["target"]["memory"])

    async def checkpoints(self) -> dict[str, Json]:
        found = await self.stage.client.list(CHECKPOINTS.untyped())
        return {one["metadata"]["namespace"] + "/" + one["metadata"]["name"]: one for one in found.items}


def with_teams(act: Callable[[Teams], Awaitable[None]], **names: tuple[str, ...]) -> None:
    async def scenario(stage: Stage) -> None:
        for place in PLACES:
            await team(stage, place, *names.get(place.replace("-", "_"), ()))
        async with Teams(stage) as teams:
            await act(teams)

    play_on_lab(scenario)
