"""One process: its components, the lease that allows it to write, its port, and its orderly end."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from trimtab.cluster.client import Client
from trimtab.cluster.leases.election import LeaderElector, LeaseTimes
from trimtab.cluster.leases.shards import Shards
from trimtab.cluster.transport.dry_run import DryRun
from trimtab.operator.settings.published import note_of
from trimtab.operator.settings.settings import Settings

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]
"""Something that runs until it is cancelled."""


class Component(Protocol):
    """A loop that runs in this process."""

    @property
    def name(self) -> str:
        """Return what logs and health checks call it."""
        ...

    async def run(self) -> None:
        """Work until cancelled."""
        ...

    def health(self) -> dict[str, str]:
        """Return what is wrong, by name; empty when all is well."""
        ...


def acting_client(client: Client, settings: Settings) -> Client:
    """Return the client of all loops: with `--dry-run`, one that sends nothing that others act on."""
    if not settings.dry_run or client.is_dry_run:
        return client
    return client.in_dry_run(DryRun(settings.leases.leader_elect_resource_namespace, settings.lease_name))


def elector_of(
    client: Client, settings: Settings, identity: str, on_change: Callable[[bool], None]
) -> LeaderElector:
    """Return the election that the settings describe."""
    return LeaderElector(
        client,
        settings.leases.leader_elect_resource_namespace,
        settings.lease_name,
        identity,
        times=lease_times(settings),
        annotations=note_of(settings),
        on_change=on_change,
    )


def shards_of(client: Client, settings: Settings, identity: str) -> Shards:
    """Return the shards that the settings describe; raise ValueError if they do not make sense."""
    if not settings.leases.leader_elect:
        raise ValueError("--shards needs Leases: leave --no-leader-elect away")
    return Shards(
        client,
        settings.leases.leader_elect_resource_namespace,
        settings.lease_name,
        identity,
        settings.leases.shards,
        times=lease_times(settings),
        annotations=note_of(settings),
    )


def lease_times(settings: Settings) -> LeaseTimes:
    """Return the times of the settings."""
    return LeaseTimes(
        duration=settings.leases.leader_elect_lease_duration.total_seconds(),
        renew_deadline=settings.leases.leader_elect_renew_deadline.total_seconds(),
        retry=settings.leases.leader_elect_retry_period.total_seconds(),
    )


async def run_until_stopped(*stages: Sequence[Work]) -> None:
    """Run all stages until a signal arrives or a task fails, then end them one after the other.

    Components come first and Leases last: some components write once more when they end, which needs the Lease.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    # The last stage starts first: nothing is decided before the Leases are asked for.
    running = [[asyncio.ensure_future(work()) for work in stage] for stage in reversed(stages)]
    waiting = asyncio.ensure_future(stop.wait())
    try:
        done, _ = await asyncio.wait(
            [waiting, *(task for stage in running for task in stage)],
            return_when=asyncio.FIRST_COMPLETED,
        )
        for task in done - {waiting}:
            task.result()  # raises what ended it
        log.info("stopping")
    finally:
        await _end([waiting])
        for tasks in reversed(running):
            await _end(tasks)


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
