"""Random schedules of up to four replicas of one family, and who may write at each moment.

Requests and answers are delayed and lost, replicas pause, are cut off, killed, stopped, and start again with another
number of shards. `make leases` plays thousands of them: `python -m tests.unit.cluster.leases.schedules --schedules 5000`.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import copy
import itertools
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.leases import family as family_module
from trimtab.cluster.leases import lease as lease_module
from trimtab.cluster.leases.family import Family
from trimtab.cluster.resource import LEASES, Json
from trimtab.model.status import Status

RANDOM_SECONDS, CALM_SECONDS = 90.0, 75.0
TICK = 0.25


class Server:
    """The Leases, each with its version."""

    def __init__(self) -> None:
        self.leases: dict[str, Json] = {}
        self._version = 0

    def list(self) -> list[Json]:
        return copy.deepcopy(list(self.leases.values()))

    def write(self, body: Json, *, is_new: bool) -> Json:
        name = body["metadata"]["name"]
        known = self.leases.get(name)
        if is_new and known is not None:
            raise refusal(errors.AlreadyExists, 409)
        if not is_new and known is None:
            raise refusal(errors.NotFound, 404)
        if known is not None and (
            known["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]
        ):
            raise refusal(errors.Conflict, 409)
        self._version += 1
        stored = copy.deepcopy(body)
        stored["metadata"]["resourceVersion"] = str(self._version)
        self.leases[name] = stored
        return copy.deepcopy(stored)


def refusal(kind: type[errors.ApiError], code: int) -> errors.ApiError:
    return kind("writing", Status(code=code))


@dataclass
class Trouble:
    """What the line of a replica does to its requests."""

    slowest: float = 0.05
    lost: float = 0.0
    """The share of requests, and that of answers, which are lost."""


class Client:
    """The line of one replica: late, lost, cut off, or stopped together with the replica."""

    def __init__(
        self, server: Server, clock: VirtualClock, random: Random, changed: Callable[[], Any]
    ) -> None:
        self.clock = SimpleNamespace(now=self._now, monotonic=clock.monotonic, sleep=self._sleep)
        self.sender = SimpleNamespace(random=random)
        self.trouble = Trouble()
        self.running = asyncio.Event()
        self.running.set()
        self.is_cut = False
        self.is_dead = False
        self._server = server
        self._clock = clock
        self._random = random
        self._changed = changed

    def in_lane(self, _lane: Any) -> "Client":
        return self

    def _now(self) -> datetime:
        return self._clock.now()

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.running.wait()

    async def list(self, _resource: Any, _options: Any) -> Any:
        return SimpleNamespace(items=await self._send(self._server.list))

    async def get(self, _resource: Any, name: str, _namespace: str) -> Json:
        def read() -> Json:
            if name not in self._server.leases:
                raise refusal(errors.NotFound, 404)
            return copy.deepcopy(self._server.leases[name])

        found: Json = await self._send(read)
        return found

    async def create(self, resource: Any, body: Json, _namespace: str | None = None) -> Json:
        if resource.plural != LEASES.plural:
            raise refusal(errors.Forbidden, 403)
        created: Json = await self._send(lambda: self._server.write(body, is_new=True))
        return created

    async def update(self, _resource: Any, _name: str, _namespace: str, body: Json) -> Json:
        updated: Json = await self._send(lambda: self._server.write(body, is_new=False))
        return updated

    async def _send(self, serve: Callable[[], Any]) -> Any:
        random, trouble = self._random, self.trouble
        await self.running.wait()
        if self.is_dead:
            await asyncio.Event().wait()
        is_lost = self.is_cut or random.random() < trouble.lost
        # The request goes its way, also if the replica gives it up or is stopped.
        answer = asyncio.ensure_future(self._serve(serve, random.random() * trouble.slowest, is_lost=is_lost))
        try:
            answered = await asyncio.shield(answer)
            await self.running.wait()
            if self.is_cut or self.is_dead or random.random() < trouble.lost:
                await asyncio.sleep(random.random() * 8)
                raise errors.TransportError("the answer was lost")
            if isinstance(answered, Exception):
                raise answered
            return answered
        finally:
            asyncio.get_running_loop().call_soon(self._changed)

    @staticmethod
    async def _serve(serve: Callable[[], Any], delay: float, *, is_lost: bool) -> Any:
        await asyncio.sleep(delay)
        if is_lost:
            return errors.TransportError("the request was lost")
        try:
            answer = serve()
        except errors.ClusterError as error:
            answer = error
        await asyncio.sleep(delay / 2)
        return answer


@dataclass
class Replica:
    """A process with its number of shards."""

    name: str
    family: Family
    client: Client
    task: asyncio.Task[None]


@dataclass
class Play:
    """One schedule, and what went wrong in it."""

    seed: int
    make: Callable[..., Family] = Family
    deletes: bool = False
    """Whether somebody deletes Leases."""
    problems: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    together: float = 0.0
    """Seconds in which two replicas could write for one object, to a tick."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.clock = VirtualClock()
        self.server = Server()
        self.replicas: list[Replica] = []
        self._number = 0

    def run(self) -> "Play":
        """Play it."""
        # An answer may come later than any patience: a process that was stopped finds it when it wakes.
        is_patient = self.random.random() < 0.5
        logging.disable()
        try:
            with _patience(lease_module, is_patient), _patience(family_module, is_patient):
                self.clock.run(self._main())
        finally:
            logging.disable(logging.NOTSET)
        return self

    async def _main(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            self._start()
        ticking = asyncio.ensure_future(self._tick())
        end = self.clock.monotonic() + RANDOM_SECONDS
        while self.clock.monotonic() < end:
            await asyncio.sleep(self.random.choice([0.1, 1, 3, 8, 20]) * self.random.random())
            await self._happen()
        for replica in self.replicas:
            replica.client.trouble = Trouble()
            replica.client.is_cut = False
            replica.client.running.set()
        await asyncio.sleep(CALM_SECONDS)
        ticking.cancel()
        self._check_progress()
        for replica in [*self.replicas]:
            await self._end(replica)

    def _start(self) -> None:
        self._number += 1
        name, count = f"r{self._number}", self.random.choice([1, 1, 2, 3, 4])
        client = Client(self.server, self.clock, Random(self.random.random()), self.check)
        client.trouble = Trouble(self.random.choice([0.05, 0.5, 3, 9]), self.random.choice([0, 0, 0.1, 0.3]))
        family = self.make(client, "trimtab", "hpa", name, count)
        self.replicas.append(Replica(name, family, client, asyncio.ensure_future(family.run())))
        self._note(f"start {name}/{count}")

    async def _happen(self) -> None:
        """Let one thing happen to one replica."""
        acts: list[Callable[[], Awaitable[None]]] = [
            self._pause,
            self._cut,
            self._kill,
            self._stop,
            self._worsen,
        ]
        if self.deletes:
            acts.append(self._delete)
        if not self.replicas or (len(self.replicas) < 4 and self.random.random() < 0.4):
            self._start()
        else:
            await self.random.choice(acts)()

    async def _pause(self) -> None:
        replica, seconds = self.random.choice(self.replicas), self.random.choice([1, 5, 12, 30])
        self._note(f"pause {replica.name} {seconds}")
        replica.client.running.clear()
        asyncio.get_running_loop().call_later(seconds * self.random.random() + 1, replica.client.running.set)

    async def _cut(self) -> None:
        replica, seconds = self.random.choice(self.replicas), self.random.choice([3, 12, 30])
        self._note(f"cut {replica.name} {seconds}")
        replica.client.is_cut = True
        asyncio.get_running_loop().call_later(seconds, setattr, replica.client, "is_cut", False)

    async def _worsen(self) -> None:
        replica = self.random.choice(self.replicas)
        replica.client.trouble = Trouble(
            self.random.choice([0.05, 1, 4, 12]), self.random.choice([0, 0.2, 0.5])
        )
        self._note(f"trouble {replica.name} {replica.client.trouble}")

    async def _kill(self) -> None:
        replica = self.random.choice(self.replicas)
        self._note(f"kill {replica.name}")
        replica.client.is_dead = True
        await self._end(replica)

    async def _stop(self) -> None:
        replica = self.random.choice(self.replicas)
        self._note(f"stop {replica.name}")
        replica.client.running.set()
        await self._end(replica)

    async def _delete(self) -> None:
        if self.server.leases:
            name = self.random.choice(sorted(self.server.leases))
            self._note(f"delete {name}")
            del self.server.leases[name]
            if self.random.random() < 0.7:
                self._start()

    async def _end(self, replica: Replica) -> None:
        self.replicas.remove(replica)
        for _ in range(2):  # a release that is never answered is given up
            replica.task.cancel()
            await asyncio.wait([replica.task], timeout=30)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            if self.check():
                self.together += TICK

    def check(self) -> bool:
        """Return whether two replicas may write for one object now, and note it."""
        found = False
        for one, other in itertools.combinations(self.replicas, 2):
            mine, theirs = one.family.held(), other.family.held()
            if one.family.count == other.family.count:
                mine = theirs = tuple(set(mine) & set(theirs))
            if mine and theirs:
                found = True
                self._note(f"TWO {one.family.identity} {mine} and {other.family.identity} {theirs}")
                self.problems.append(self.log[-1])
        return found

    def _check_progress(self) -> None:
        """After a calm time one number of shards is in use, with all its shards."""
        held = [(replica.family.count, shard) for replica in self.replicas for shard in replica.family.held()]
        counts = {count for count, _ in held}
        if self.replicas and (len(counts) != 1 or {shard for _, shard in held} != set(range(max(counts)))):
            self._note(
                f"STUCK {[(replica.family.identity, replica.family.held()) for replica in self.replicas]}"
            )
            self.problems.append(self.log[-1])

    def _note(self, text: str) -> None:
        self.log.append(f"{self.clock.monotonic():7.2f} {text}")


@asynccontextmanager
async def _forever(_seconds: float) -> AsyncIterator[None]:
    yield


def _patience(module: Any, is_patient: bool) -> AbstractContextManager[Any]:
    return mock.patch.object(module, "timeout", _forever if is_patient else asyncio.timeout)


def main() -> int:
    """Play schedules and print those that are broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--schedules", type=int, default=5000)
    parser.add_argument("--log", action="store_true", help="print the log of each broken schedule")
    options = parser.parse_args()
    broken = 0
    for seed in range(options.first, options.first + options.schedules):
        play = Play(seed).run()
        if play.problems:
            broken += 1
            print(f"seed {seed}: {play.problems[0]}")
    print(f"{options.schedules} schedules, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
