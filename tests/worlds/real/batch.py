"""Plays worlds under a profile: each twice at once, upstream's controller in one namespace and ours in another."""

import asyncio
import gzip
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from random import Random

from tests.worlds.real.hpas import Json
from tests.worlds.real.metrics import Server
from tests.worlds.real.profiles import Profile, make_world
from tests.worlds.real.server import (
    HPA_API,
    SIDES,
    Api,
    ApiError,
    Controllers,
    count_writes,
    end,
    stop_refusing,
)
from tests.worlds.real.workload import Workload
from tests.worlds.world import Happening
from tools.peers.beside import Beside

_AT_ONCE = 12


class Batch:
    """Worlds that are played at once, under one profile."""

    def __init__(self, beside: Beside, api: Api, metrics: Server, profile: Profile, out: Path) -> None:
        self._api, self._metrics, self._profile, self._out = api, metrics, profile, out
        self._run = str(int(time.time()))
        self._controllers = Controllers(beside, api, profile, out / f"logs-{self._run}")
        self._audit_log = beside.cluster.directory / "audit.log"
        self._workloads: list[Workload] = []
        self._events: list[Json] = []
        self._lag = 0.0

    async def play(self, names: Sequence[str], replays: int) -> Path:
        """Play worlds, each so often at once, and return the file of what came of them."""
        worlds = [make_world(name, self._profile) for name in names]
        self._workloads = [
            Workload(world, side, replay, self._run, self._api)
            for world in worlds
            for replay in range(replays)
            for side in SIDES
        ]
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._set_up(tasks)
            start = self._audit_log.stat().st_size
            for workload in self._workloads:
                workload.begin()
                tasks += [
                    asyncio.create_task(workload.run()),
                    asyncio.create_task(self._create_hpa(workload)),
                ]
            await self._live(tasks)
        finally:
            self._controllers.stop()
            self._metrics.workloads.clear()
        await end(tasks)
        writes = count_writes(self._audit_log, start)
        path = self._out / f"{names[0]}-{self._run}.json.gz"
        with gzip.open(path, "wt") as file:
            json.dump(self._result(writes), file)
        await self._each(Workload.clean)
        return path

    async def _set_up(self, tasks: list[asyncio.Task[None]]) -> None:
        await stop_refusing(self._api)
        for side in SIDES:
            self._controllers.start(side, 0)
        await self._each(Workload.set_up)
        self._metrics.workloads.update({workload.namespace: workload for workload in self._workloads})
        selector = f"worlds={self._run}"
        watched = [
            "/apis/apps/v1/deployments",
            *(f"{api}/horizontalpodautoscalers" for api in HPA_API.values()),
        ]
        tasks += [asyncio.create_task(self._api.watch(path, selector, self._see)) for path in watched]
        await self._controllers.wait_for_leaders()
        if self._profile.copies == 2:  # The second copy starts when the first leads.
            for side in SIDES:
                self._controllers.start(side, 1)
            await asyncio.sleep(6)

    async def _each(self, do: Callable[[Workload], Awaitable[None]]) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def gated(workload: Workload) -> None:
            async with gate:
                await do(workload)

        await asyncio.gather(*[gated(workload) for workload in self._workloads])

    def _see(self, kind: str, item: Json) -> None:
        workload = self._metrics.workloads.get(item["metadata"]["namespace"])
        if workload is not None:
            see = workload.see_hpa if "metrics" in item["spec"] else workload.see_deployment
            see(kind, item)

    async def _create_hpa(self, workload: Workload) -> None:
        # Upstream's syncs have the phase of the creation, so each replay draws another.
        sync = self._profile.sync
        random = Random(f"{workload.world.name} {workload.replay} {self._run}")
        await asyncio.sleep(random.uniform(0, sync if sync > 1 else 0))
        await workload.make_hpa()

    async def _live(self, tasks: list[asyncio.Task[None]]) -> None:
        start = time.monotonic()
        plan: list[tuple[Happening, Workload | None]] = [(event, None) for event in self._profile.events]
        plan += [(each, workload) for workload in self._workloads for each in workload.world.happenings]
        plan.sort(key=lambda planned: planned[0].at)
        next_row = 0.0
        while (now := time.monotonic() - start) < self._profile.seconds:
            while plan and plan[0][0].at <= now:
                happening, workload = plan.pop(0)
                if workload is None:
                    tasks.append(asyncio.create_task(self._befall(happening, now)))
                else:
                    workload.spawn(workload.happen(happening))
            for workload in self._workloads:
                workload.usage.measure(workload.now, workload.pods.values())
            if now >= next_row:
                next_row += 0.5
                for workload in self._workloads:
                    workload.note_need()
                self._controllers.restart_ended()
            await asyncio.sleep(0.1)
            self._lag = max(self._lag, time.monotonic() - start - now - 0.1)

    async def _befall(self, event: Happening, now: float) -> None:
        noted: Json = {"what": event.what, "from": round(now, 2), "to": self._profile.seconds}
        self._events.append(noted)
        start = time.monotonic()
        with suppress(ApiError):
            await self._controllers.befall(event)
        noted["to"] = round(now + time.monotonic() - start, 2)

    def _result(self, writes: dict[str, dict[str, int]]) -> Json:
        for workload in self._workloads:
            workload.record |= {
                "writes": writes.get(workload.namespace, {}), "steps": workload.world.load.steps,
                "tell": workload.world.tell(), "metrics": [asdict(metric) for metric in workload.world.metrics],
                "settings": asdict(self._profile),
            }  # fmt: skip
        return {
            "profile": self._profile.name, "tell": self._profile.tell(), "events": self._events,
            "lag": round(self._lag, 2), "lives": [workload.record for workload in self._workloads],
        }  # fmt: skip
