"""Plans of faults: a workload's story is told once without a fault, then once per write and kind of break.

After each the end must be the same, the replicas must have gone the same way, and nothing may be written any more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.scenarios.horizontal.stage import Actor, Stage
from tests.support.transport import Break, Written
from trimtab.cluster.resource import DEPLOYMENTS, Json

Act = Callable[[Stage], Awaitable[None]]

QUIET_ROUNDS = 6
MOST_ROUNDS = 60


@dataclass(frozen=True, eq=False)
class Story:
    """A workload, what happens to it, and what its operator is told."""

    name: str
    begin: Act
    acts: tuple[Act, ...]
    deployments: tuple[str, ...] = ("web",)
    hpas: tuple[str, ...] = ("web",)
    settings: dict[str, Any] = field(default_factory=dict)
    may_take_smaller_steps: bool = False
    """A change by hand that no life of the operator saw counts as its own, so a rate may allow less at first."""


@dataclass
class Told:
    """How a story went."""

    way: list[tuple[int, ...]] = field(default_factory=list)
    end: Json = field(default_factory=dict)
    writes: list[Written] = field(default_factory=list)
    late: int = 0
    """Writes after the end was reached; none are due."""
    is_broken: bool = False
    """Whether the fault really happened."""

    def moments(self) -> list[tuple[Hashable, Hashable]]:
        """Return, for each write, what it and the write before it say; equal moments break in the same way."""
        said = list(_what_is_said(self.writes))
        return list(zip([None, *said], said, strict=False))

    def accepted(self, kind: str) -> int:
        return sum(one.request.path.endswith(kind) and one.status == 200 for one in self.writes)


def _what_is_said(writes: list[Written]) -> Iterator[Hashable]:
    """Yield the direction of each new scale, and the reasons of each new status."""
    size: int | None = None
    for written in writes:
        if written.is_scale:
            before, size = size, written.body["spec"]["replicas"]
            yield before is None, before == 0, size == 0, size > (before or 0)
        else:
            conditions = written.body.get("status", {}).get("conditions", [])
            yield tuple(sorted((one["type"], one["status"], one["reason"]) for one in conditions))


class Teller:
    """Tells a story on a stage; the first operator meets the fault, later ones do not."""

    def __init__(self, stage: Stage, story: Story, broken: tuple[int, Break] | None) -> None:
        self._stage = stage
        self._story = story
        self._broken = broken
        self.told = Told()

    async def tell(self) -> Told:
        await self._story.begin(self._stage)
        await self._look()
        actor = await self._start(self._broken)
        for act in self._story.acts:
            await act(self._stage)
            actor = await self._settle(actor)
        before = len(actor.line.writes)
        for _ in range(10):
            await self._stage.step(actor)
        self.told.late = len(actor.line.writes) - before
        await self._stop(actor)
        self.told.end = await self._end()
        return self.told

    async def _start(self, broken: tuple[int, Break] | None) -> Actor:
        actor = Actor(self._stage, self._stage.settings(**self._story.settings))
        if broken is not None:
            number, how = broken

            def choose(index: int, _request: object) -> Break | None:
                self.told.is_broken |= index == number
                return how if index == number else None

            actor.line.break_write = choose
        await actor.operator.start()
        return actor

    async def _stop(self, actor: Actor) -> None:
        self.told.writes += actor.line.writes
        await actor.close()

    async def _settle(self, actor: Actor) -> Actor:
        """Go rounds until nothing is written any more; a process that died is followed by another."""
        quiet = 0
        for _ in range(MOST_ROUNDS):
            before = len(actor.line.writes)
            if await self._step(actor):
                await self._stop(actor)
                actor, before, quiet = await self._start(None), 0, 0
            await self._look()
            quiet = quiet + 1 if len(actor.line.writes) == before else 0
            if quiet >= QUIET_ROUNDS:
                return actor
        raise AssertionError("it never came to rest")

    async def _step(self, actor: Actor) -> bool:
        """Go one round and return whether the process died in it."""
        step = asyncio.ensure_future(self._stage.step(actor))
        died = asyncio.ensure_future(actor.line.crashed.wait())
        await asyncio.wait([step, died], return_when=asyncio.FIRST_COMPLETED)
        is_dead = actor.line.crashed.is_set()
        for task in (step, died) if is_dead else (died,):
            task.cancel()
        await asyncio.gather(step, died, return_exceptions=is_dead or True)
        if not is_dead:
            step.result()
        return is_dead

    async def _look(self) -> None:
        """Note the replicas, and let pods follow them."""
        now = tuple([await self._stage.replicas(name) for name in self._story.deployments])
        if not self.told.way or self.told.way[-1] != now:
            self.told.way.append(now)
            for name in self._story.deployments:
                await self._stage.follow(name)

    async def _end(self) -> Json:
        """Return what is left, without what depends on the moment."""
        end: Json = {}
        for name in self._story.deployments:
            found = await self._stage.client.get(DEPLOYMENTS.untyped(), name, self._stage.namespace)
            # The generation counts the changes of the spec: no step is taken twice.
            changes = 0 if self._story.may_take_smaller_steps else found["metadata"]["generation"]
            end[f"deployment {name}"] = (found["spec"]["replicas"], changes)
        for name in self._story.hpas:
            status = (await self._stage.read_hpa(name)).get("status", {})
            conditions = await self._stage.conditions(name)
            if conditions.get("ScaledToZero", ("", ""))[0] == "False":
                del conditions["ScaledToZero"]  # absent and False mean the same
            end[f"hpa {name}"] = {
                "conditions": conditions,
                **{key: status.get(key) for key in ("desiredReplicas", "currentReplicas", "currentMetrics")},
            }
        return end


def check_writes(told: Told, lowest: int, highest: int) -> None:
    """I1 and I7: replicas within bounds, and a precondition on every write."""
    for written in told.writes:
        meta = written.body.get("metadata", {})
        assert meta.get("resourceVersion") or meta.get("uid"), written.request
        if written.is_scale:
            assert lowest <= written.body["spec"]["replicas"] <= highest
