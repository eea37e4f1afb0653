"""Random hand-overs in virtual time: what windows, rates and zeros promise must hold through all of them.

A schedule is a seed. It makes two or three copies of the operator that share one Lease, ten HPAs with windows, rates
and loads of their own, and troubles: copies that are killed, stopped, cut off from the Lease, whose clocks are wrong
or are set, whose watches lag, whose metrics hang, whose writes conflict and whose answers are lost. In every other schedule
of the later ones copies have numbers of shards, which rollouts change, and there are outages and edited targets. Each HPA of
a schedule lives through a sequence of its own. What is checked is what the API server accepted, in true time.

    python -m tests.faults.horizontal.hand_overs --first 0 --schedules 1000
"""

import argparse
import asyncio
import gc
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from math import ceil, inf
from random import Random
from typing import Any

from tests.faults.horizontal.copies import WallClock, is_about_leases
from tests.faults.horizontal.scene import load, queue
from tests.scenarios.copies import DividedByName
from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.metrics_stub import Send
from tests.support.transport import Break, Line, status
from trimtab.cluster.client import Client
from trimtab.cluster.errors import TransportError
from trimtab.cluster.leases.family import Family
from trimtab.cluster.leases.lease import LeaseTimes
from trimtab.cluster.transport import Request, Response
from trimtab.decide.horizontal.memory import QUIET_SECONDS
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.runtime import Runtime

HPAS = 10
PERIOD = 15.0
TIMES = LeaseTimes(duration=15, renew_deadline=10, retry=4)
TROUBLED, CALM = 900.0, 700.0
"""Seconds with troubles, and seconds without any after them, in which everything must come right."""
WITH_RISES = 1000
"""Schedules from this seed on have windows that hold growth; those before it found what they found without."""
WITH_SHARDS = 200
"""Of the schedules from this seed on every other one has shards, rollouts of other numbers, outages and edited targets."""
LATE = 60.0
SLACK = 20.0
"""Seconds by which a window may seem shorter: two looks at the Lease, a renewal under way, and a sync."""
AHEAD = QUIET_SECONDS + SLACK
"""The same after a hand-over to a clock that is ahead."""


@dataclass
class Workload:
    """One HPA and its target, with what was written to the target."""

    name: str
    lowest: int
    window: int
    rate: tuple[int, int]
    """At most so many more pods in so many seconds."""
    rise: int = 0
    """The window that holds growth, in seconds."""
    load: int = 0
    sizes: list[tuple[float, int, int]] = field(default_factory=list)
    """When the size was changed, from what, and to what."""
    target: str = ""
    """The target since the last edit, if it is not the first one."""

    @property
    def needed(self) -> int:
        return min(max(ceil(self.load / 100), self.lowest), 40)

    def behavior(self) -> dict[str, Any]:
        pods, seconds = self.rate
        return {
            "scaleDown": {"stabilizationWindowSeconds": self.window},
            "scaleUp": {
                "stabilizationWindowSeconds": self.rise,
                "policies": [{"type": "Pods", "value": pods, "periodSeconds": seconds}],
            },
        }

    def violations(self, ahead: list[float]) -> Iterator[str]:
        """Yield what the accepted sizes break.

        A hand-over to a clock that is `ahead` ends rates by as much earlier, and windows by the quiet time at most.
        """
        for number, (at, before, after) in enumerate(self.sizes):
            earlier = self.sizes[:number]
            has_jumped = any(
                at - 2 * max(self.window, self.rise, self.rate[1]) < moment <= at for moment in ahead
            )
            slack = AHEAD if has_jumped else SLACK
            if after < before:
                for when, was, size in earlier:
                    if size > was and size > after and when > at - self.window + slack:
                        yield (
                            f"{self.name}: {before} -> {after} at {at:.0f}, {at - when:.0f} s after {size} was "
                            f"recommended (window {self.window} s)"
                        )
            else:
                yield from self._too_early(at, before, after, earlier, slack)
                if not has_jumped:
                    yield from self._too_fast(at, before, after, earlier)

    def _too_early(
        self, at: float, before: int, after: int, earlier: list[tuple[float, int, int]], slack: float
    ) -> Iterator[str]:
        for when, was, size in earlier:
            if before > 0 and size < was and size < after and when > at - self.rise + slack:
                yield (
                    f"{self.name}: {before} -> {after} at {at:.0f}, {at - when:.0f} s after {size} was "
                    f"recommended (window {self.rise} s)"
                )

    def _too_fast(
        self, at: float, before: int, after: int, earlier: list[tuple[float, int, int]]
    ) -> Iterator[str]:
        pods, seconds = self.rate
        added = sum(max(size - was, 0) for when, was, size in earlier if when > at - seconds + SLACK)
        # A removal that no status tells of counts from the last renewal, which may be a lease and a sync later.
        removed = sum(max(was - size, 0) for when, was, size in earlier if when > at - seconds - LATE)
        allowed = before - added + removed + pods
        if before > 0 and after > max(allowed, before):
            yield f"{self.name}: {before} -> {after} at {at:.0f}, {allowed} allowed ({pods} in {seconds} s)"


class Copy:
    """One operator process: its election, its wall clock, its line to the server."""

    def __init__(self, world: "World", name: str, ahead: float) -> None:
        self.name = name
        self.clock = WallClock(world.stage.clock, ahead)
        self._world = world
        self.line = Line(world.stage.transport)
        self._tasks: list[asyncio.Task[None]] = []
        self.family: Family | None = None
        self.shards = 1
        self.operator: HpaController | None = None
        self.lives = 0

    def start(self) -> None:
        stage = self._world.stage
        self.lives += 1
        self.line = Line(stage.transport)
        identity = f"{self.name}-{self.lives}"
        client = Client(self.clock, self.line, seed=self._world.random.randrange(2**32))
        # It watches everything, so that its shards may divide one namespace.
        settings = stage.settings(
            sync_period=timedelta(seconds=PERIOD), components=("horizontal", "updater"), shards=self.shards
        )
        family = DividedByName(client, stage.namespace, "trimtab", identity, self.shards, times=TIMES)
        family.serve(self)
        self.family = family
        runtime = Runtime(self.clock, client, settings, fence=family, instance=identity)
        self.operator = HpaController(runtime, config=decision_config(settings))
        self._tasks = [asyncio.ensure_future(family.run()), asyncio.ensure_future(self.operator.run())]

    def shard_gained(self, shard: int) -> None:
        self._world.leads(self, shard)

    def shard_lost(self, shard: int) -> None:
        pass

    def is_shard_busy(self, shard: int) -> bool:
        return False

    async def stop(self) -> None:
        if not self._tasks:
            return
        assert self.operator is not None
        lease, work = self._tasks
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await self.operator.runtime.close()
        lease.cancel()
        await asyncio.gather(lease, return_exceptions=True)
        self._tasks = []

    async def kill(self) -> None:
        self.line.crashed.set()
        await self.stop()

    def may_write(self, key: str) -> bool:
        return self.family is not None and self.family.of(key).may_write()

    @property
    def is_running(self) -> bool:
        return bool(self._tasks)


class World:
    """A schedule being played."""

    def __init__(self, stage: Stage, seed: int, hpas: int) -> None:
        self.stage = stage
        self.random = Random(seed)
        self.log: list[str] = []
        self.ahead: list[float] = []
        """When an epoch began whose clock was ahead of one before it."""
        self._lowest = inf
        self.away_until = 0.0
        """When the last outage ends, in which all copies are away."""
        self.has_shards = seed >= WITH_SHARDS and seed % 2 == 0
        self.is_calm = False
        self.has_rises = seed >= WITH_RISES
        self.workloads = [self._workload(number) for number in range(hpas)]
        ahead = [self.random.choice([0.0, 0.0, 0.0, -100.0, -30.0, 30.0, 100.0]) for _ in range(3)]
        self.copies = [
            Copy(self, f"copy{number}", ahead[number]) for number in range(self.random.choice([2, 3]))
        ]
        if self.has_shards:
            for copy in self.copies:
                copy.shards = self.random.choice([1, 2, 2, 3])
        self.two_deciders: list[str] = []

    def _workload(self, number: int) -> Workload:
        random = self.random
        return Workload(
            f"web{number}",
            lowest=random.choice([0, 0, 1]),
            window=random.choice([60, 120, 300]),
            rate=random.choice([(2, 120), (5, 60), (40, 15)]),
            rise=(0, 60, 180)[number % 3] if self.has_rises else 0,
        )

    def note(self, text: str) -> None:
        self.log.append(f"{self.stage.clock.monotonic():7.1f} {text}")

    def leads(self, copy: Copy, shard: int) -> None:
        """Note who leads from now on, and whether its clock is ahead of that of a leader before it."""
        is_ahead = copy.clock.ahead > self._lowest + 1
        self._lowest = min(self._lowest, copy.clock.ahead)
        if is_ahead:
            self.ahead.append(self.stage.clock.monotonic())
        self.note(f"{copy.name} leads shard {shard} of {copy.shards}{' (ahead)' if is_ahead else ''}")

    def check_deciders(self) -> None:
        """Note HPAs that two copies may write for now."""
        for workload in self.workloads:
            key = f"{self.stage.namespace}/{workload.name}"
            owners = [copy.name for copy in self.copies if copy.is_running and copy.may_write(key)]
            if len(owners) > 1:
                self.two_deciders.append(f"{workload.name}: {owners} at {self.stage.clock.monotonic():.1f}")

    async def watch_writes(self, request: Request, send: Send) -> Response:
        """See each size that the server accepts."""
        if request.method != "PATCH" or not request.path.endswith("/scale"):
            return await send(request)
        name = request.path.split("/")[-2]
        before = await self.stage.replicas(name)
        answer = await send(request)
        if answer.status == 200:
            after = int(json.loads(request.body or b"{}")["spec"]["replicas"])
            workload = next(one for one in self.workloads if one.name == name.removesuffix("-b"))
            self.check_deciders()
            if name != (workload.target or workload.name):
                return answer
            workload.sizes.append((self.stage.clock.monotonic(), before, after))
            self.note(f"{name} {before} -> {after}")
            await self.stage.set_status(name, after)
        return answer

    async def play(self) -> list[str]:
        stage = self.stage
        stage.metrics.now = lambda: None  # type: ignore[assignment,return-value]  # undated: copies' clocks differ
        for workload in self.workloads:
            await stage.bare_deployment(workload.name, 3)
            if self.has_shards:
                await stage.bare_deployment(f"{workload.name}-b", 3)
            self._change_load(workload)
            await stage.hpa(
                workload.name,
                minReplicas=workload.lowest,
                maxReplicas=40,
                metrics=[queue(workload.name)],
                behavior=workload.behavior(),
            )
        stage.transport.around = self.watch_writes
        for copy in self.copies:
            copy.start()
            await stage.clock.sleep(self.random.uniform(0, 5))
        try:
            await self._troubled()
            for copy in self.copies if self.has_shards else ():
                await self._roll_out(copy, 2)
            await self._calm()
            return await self._judged()
        finally:
            stage.transport.around = _as_it_is
            for copy in self.copies:
                if copy.is_running:
                    await copy.stop()

    def _change_load(self, workload: Workload) -> None:
        workload.load = self.random.choice([0, 0, 100, 300, 500, 900, 1500])
        load(self.stage, workload.load, workload.name)

    async def _troubled(self) -> None:
        clock, random = self.stage.clock, self.random
        until = clock.monotonic() + TROUBLED
        running = [asyncio.ensure_future(self._trouble(copy, until)) for copy in self.copies]
        while clock.monotonic() < until:
            await clock.sleep(random.expovariate(1 / 10))
            self._change_load(random.choice(self.workloads))
        await asyncio.gather(*running)

    async def _trouble(self, copy: Copy, until: float) -> None:
        """Play troubles for one copy, one after the other, with quiet times between."""
        clock, random = self.stage.clock, self.random
        while clock.monotonic() < until:
            await clock.sleep(random.expovariate(1 / 60))
            trouble = random.choice((*TROUBLES, *(OF_SHARDS if self.has_shards else ())))
            self.note(f"{copy.name}: {trouble.__name__}")
            await trouble(self, copy)
            await clock.sleep(max(self.away_until - clock.monotonic(), 0.0))
            if not copy.is_running:
                copy.start()
            mend(copy.line)
            self.note(f"{copy.name}: well")

    async def _calm(self) -> None:
        for workload in self.workloads:
            workload.load = self.random.choice([100, 300, 500])
            load(self.stage, workload.load, workload.name)
        self.note("calm")
        await self.stage.clock.sleep(CALM)

    async def _judged(self) -> list[str]:
        found = [text for workload in self.workloads for text in workload.violations(self.ahead)]
        found += self.two_deciders[:1]
        for workload in self.workloads:
            replicas = await self.stage.replicas(workload.target or workload.name)
            if replicas != workload.needed:
                conditions = await self.stage.conditions(workload.name)
                found.append(
                    f"{workload.name}: {replicas} after the calm, not {workload.needed}; {conditions}"
                )
        return found

    async def _roll_out(self, copy: Copy, shards: int) -> None:
        if copy.is_running:
            await copy.stop()
        copy.shards = shards
        mend(copy.line)
        copy.start()

    def pause(self) -> float:
        return self.random.choice([2.0, 10.0, 20.0, 45.0, 120.0])


async def _as_it_is(request: Request, send: Send) -> Response:
    return await send(request)


def mend(line: Line) -> None:
    line.answer = lambda _: None
    line.is_hanging = lambda _: False
    line.is_silent = lambda _: False
    line.break_write = lambda _number, _request: None
    line.loses_answer = lambda _: False
    line.answers_after = lambda _: 0.0


Trouble = Callable[[World, Copy], Any]


async def killed(world: World, copy: Copy) -> None:
    await copy.kill()
    await world.stage.clock.sleep(world.pause())


async def stopped(world: World, copy: Copy) -> None:
    await copy.stop()
    await world.stage.clock.sleep(world.pause())


async def cut_off_from_the_lease(world: World, copy: Copy) -> None:
    copy.line.answer = lambda one: TransportError("no route") if is_about_leases(one) else None
    if world.random.random() < 0.5:
        copy.line.is_hanging = lambda one: "external.metrics" in one.path
    await world.stage.clock.sleep(world.pause())


async def lagging_watches(world: World, copy: Copy) -> None:
    kind = world.random.choice(["/deployments", "/horizontalpodautoscalers"])
    if world.random.random() < 0.5:
        copy.line.is_silent = lambda one: one.path.endswith(kind)
    else:
        copy.line.answer = lambda one: TransportError("refused") if one.path.endswith(kind) else None
        copy.line.drop_all()
    await world.stage.clock.sleep(min(world.pause(), 45.0))


async def hanging_metrics(world: World, copy: Copy) -> None:
    copy.line.is_hanging = lambda one: "external.metrics" in one.path
    await world.stage.clock.sleep(min(world.pause(), 45.0))


async def lost_answers(world: World, copy: Copy) -> None:
    random = world.random
    chance = random.choice([0.3, 1.0])
    copy.line.break_write = lambda _number, _request: Break.LOSE_ANSWER if random.random() < chance else None
    if random.random() < 0.5:
        copy.line.answer = lambda one: (
            status(503) if one.method == "GET" and one.path.endswith("/scale") else None
        )
    await world.stage.clock.sleep(min(world.pause(), 45.0))


async def lost_answers_of_the_lease(world: World, copy: Copy) -> None:
    random = world.random
    copy.line.loses_answer = lambda one: (
        is_about_leases(one) and one.method == "PUT" and random.random() < 0.5
    )
    await world.stage.clock.sleep(world.pause())


async def slow_answers(world: World, copy: Copy) -> None:
    copy.line.answers_after = lambda one: 6.0 if one.path.endswith(("/scale", "/status")) else 0.0
    if world.random.random() < 0.5:
        copy.line.answer = lambda one: TransportError("no route") if is_about_leases(one) else None
    await world.stage.clock.sleep(min(world.pause(), 45.0))


async def refused_writes(world: World, copy: Copy) -> None:
    random = world.random
    how = random.choice([Break.CONFLICT, Break.UNAVAILABLE])
    copy.line.break_write = lambda _number, _request: how if random.random() < 0.5 else None
    await world.stage.clock.sleep(min(world.pause(), 45.0))


async def crash_between_writes(world: World, copy: Copy) -> None:
    random = world.random
    how = random.choice([Break.CRASH_AFTER, Break.CRASH_BEFORE])
    copy.line.break_write = lambda _number, _request: how if random.random() < 0.3 else None
    await world.stage.clock.sleep(world.pause())
    await copy.kill()


async def clock_is_set(world: World, copy: Copy) -> None:
    copy.clock.ahead += world.random.choice([-100.0, -30.0, 30.0, 100.0])
    await world.stage.clock.sleep(5)


async def rolled_out(world: World, copy: Copy) -> None:
    """A rollout of another number of shards, which may stay half-way for long."""
    await copy.stop()
    copy.shards = world.random.choice([1, 2, 3, 4])
    await world.stage.clock.sleep(max(world.away_until - world.stage.clock.monotonic(), 0.0))
    copy.start()
    await world.stage.clock.sleep(world.pause())


async def outage(world: World, copy: Copy) -> None:
    seconds = world.random.choice([60.0, 200.0, 400.0])
    world.away_until = world.stage.clock.monotonic() + seconds
    for other in world.copies:
        await other.kill()
    await world.stage.clock.sleep(seconds)
    for other in world.copies:
        if not other.is_running:
            other.start()


async def target_is_edited(world: World, copy: Copy) -> None:
    workload = world.random.choice(world.workloads)
    target = "" if workload.target else f"{workload.name}-b"
    world.note(f"{workload.name} targets {target or workload.name}")
    workload.target = target
    workload.sizes.clear()  # windows and rates of another target do not bind
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target or workload.name}
    await world.stage.edit_hpa(workload.name, scaleTargetRef=reference)
    await world.stage.clock.sleep(world.pause())


OF_SHARDS: tuple[Trouble, ...] = (rolled_out, rolled_out, outage, target_is_edited)
TROUBLES: tuple[Trouble, ...] = (
    killed,
    stopped,
    cut_off_from_the_lease,
    lagging_watches,
    hanging_metrics,
    lost_answers,
    lost_answers_of_the_lease,
    slow_answers,
    refused_writes,
    crash_between_writes,
    clock_is_set,
)


def play(seed: int, hpas: int = HPAS) -> tuple[list[str], list[str]]:
    """Play one schedule; return what it broke, and the log of what happened."""
    result: tuple[list[str], list[str]] = ([], [])

    async def scenario(stage: Stage) -> None:
        nonlocal result
        world = World(stage, seed, hpas)
        result = await world.play(), world.log

    play_on_lab(scenario)
    # Each operator told the collector to spare what was there: the world that is gone is not to be spared.
    gc.unfreeze()
    gc.collect()
    return result


def main() -> None:
    """Play schedules and print those that broke a promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--hpas", type=int, default=HPAS, help="how many HPAs live through each schedule")
    parser.add_argument("--log", action="store_true", help="print what happened")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    broken = 0
    for seed in range(chosen.first, chosen.first + chosen.schedules):
        found, happened = play(seed, chosen.hpas)
        broken += bool(found)
        if chosen.log:
            sys.stdout.write("\n".join(happened) + "\n")
        for text in found:
            sys.stdout.write(f"seed {seed}: {text}\n")
        if (seed - chosen.first + 1) % 50 == 0:
            sys.stderr.write(f"{seed - chosen.first + 1} of {chosen.schedules} schedules, {broken} broken\n")
    sequences = chosen.schedules * chosen.hpas
    sys.stdout.write(f"{sequences} sequences in {chosen.schedules} schedules: {broken} schedules broken\n")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
