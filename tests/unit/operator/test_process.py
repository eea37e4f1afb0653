"""How the parts of a process start and end, and with which client they write."""

import asyncio
import os
import signal
from datetime import timedelta
from typing import Any

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.operator.operator import Operator
from trimtab.operator.process import acting_client, make_family, run_until_stopped
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab_lab.apiserver.server import Server


class Works:
    """Notes when each work begins and ends."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def named(self, name: str) -> Any:
        async def work() -> None:
            self.done.append(f"begin {name}")
            try:
                await asyncio.Event().wait()
            finally:
                self.done.append(f"end {name}")

        return work


def test_leases_start_first_and_end_last():
    works = Works()

    async def main() -> None:
        stages = [[works.named("a"), works.named("b")], [works.named("runtime")], [works.named("lease")]]
        running = asyncio.ensure_future(run_until_stopped(*stages))
        await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        await running

    asyncio.run(main())
    begun = ["begin lease", "begin runtime", "begin a", "begin b"]
    assert works.done == [*begun, "end a", "end b", "end runtime", "end lease"]


def test_a_work_that_fails_ends_all_with_its_error():
    works = Works()

    async def fail() -> None:
        raise OSError("no port")

    with pytest.raises(OSError, match="no port"):
        asyncio.run(run_until_stopped([fail], [works.named("lease")]))
    assert works.done == ["begin lease", "end lease"]


def test_a_client_of_a_dry_run_is_wrapped_once():
    clock = VirtualClock()
    nothing: Any = None
    client = Client(clock, nothing, seed=1)
    assert acting_client(client, Settings()) is client
    dry = acting_client(client, Settings.of(dry_run=True))
    assert (client.is_dry_run, dry.is_dry_run) == (False, True)
    assert acting_client(dry, Settings.of(dry_run=True)) is dry


TIMES: dict[str, Any] = {
    "leader_elect_lease_duration": timedelta(seconds=30),
    "leader_elect_renew_deadline": timedelta(seconds=20),
    "leader_elect_retry_period": timedelta(seconds=5),
}


def test_leases_follow_the_settings():
    settings = Settings.of(shards=3, leader_elect_resource_namespace="home", **TIMES)

    async def main() -> None:
        nothing: Any = None
        client = Client(VirtualClock(), nothing, seed=1)
        family = make_family(client, settings, "me")
        assert family.count == 3
        for lease in (family, family[2].lock):
            assert (lease._namespace, lease._times.duration) == ("home", 30.0)
            assert (lease._times.renew_deadline, lease._times.retry) == (20.0, 5.0)

    asyncio.run(main())


class Parts:
    """A runtime on the lab that notes what `close` ends."""

    def __init__(self, clock: VirtualClock, client: Client, monkeypatch: Any) -> None:
        self.runtime = Runtime(clock, client, Settings())
        self.closed: list[str] = []
        self.flush_seconds = 0.0
        monkeypatch.setattr(self.runtime.informers, "close", self.named("informers"))
        monkeypatch.setattr(self.runtime.events, "flush", self._flush)
        self._monkeypatch = monkeypatch

    def named(self, name: str) -> Any:
        async def close() -> None:
            self.closed.append(name)

        return close

    async def _flush(self) -> None:
        await asyncio.sleep(self.flush_seconds)
        self.closed.append("events")

    def use_metrics(self) -> None:
        self._monkeypatch.setattr(self.runtime.metrics, "close", self.named("metrics"))


@pytest.mark.parametrize(
    ("uses_metrics", "flush_seconds", "closed", "seconds"),
    [
        pytest.param(True, 1.0, ["metrics", "informers", "events"], 1.0, id="everything"),
        pytest.param(False, 1.0, ["informers", "events"], 1.0, id="metrics were never read"),
        pytest.param(True, 5.0, ["metrics", "informers"], 2.0, id="events take too long"),
    ],
)
def test_the_end_of_a_runtime(uses_metrics, flush_seconds, closed, seconds, monkeypatch):
    clock = VirtualClock()

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            parts = Parts(clock, Client(clock, InProcessTransport(server), seed=1), monkeypatch)
            parts.flush_seconds = flush_seconds
            if uses_metrics:
                parts.use_metrics()
            parts.runtime.start()
            writing = parts.runtime._writing_events
            parts.runtime.start()
            assert parts.runtime._writing_events is writing, "started once"
            began = clock.monotonic()
            await parts.runtime.close()
            assert parts.closed == closed
            assert clock.monotonic() - began == seconds
            assert writing is not None
            assert writing.done()

    clock.run(main())


def test_a_process_that_ends_closes_its_runtime(monkeypatch):
    """Also if it never got as far as running it: the port may be taken."""
    clock = VirtualClock()
    closed: list[Runtime] = []

    async def close(self: Runtime) -> None:
        closed.append(self)

    def taken(*_arguments: Any) -> Any:
        raise OSError("the port is taken")

    monkeypatch.setattr(Runtime, "close", close)
    monkeypatch.setattr("trimtab.operator.operator.served", taken)

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            operator = Operator(clock, Client(clock, InProcessTransport(server), seed=1), Settings())
            with pytest.raises(OSError, match="the port is taken"):
                await operator.run()

    clock.run(main())
    assert len(closed) == 1
