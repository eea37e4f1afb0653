"""The parts of a process around its components: dry run, Leases, start and end."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family
from trimtab.cluster.leases.lease import LeaseTimes
from trimtab.cluster.sender import DryRun
from trimtab.operator.settings.process import LeaseSettings
from trimtab.operator.settings.published import settings_annotation
from trimtab.operator.settings.settings import Settings

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]
"""A coroutine function that runs until it is cancelled."""


class Component(Protocol):
    """A part of the process that `--components` names."""

    @property
    def name(self) -> str:
        """Return the name for logs and health checks."""
        ...

    async def run(self) -> None:
        """Work until cancelled."""
        ...

    def health(self) -> dict[str, str]:
        """Return the problems that make it unready, by name.

        It is empty if the component is ready.
        """
        ...


@runtime_checkable
class Warns(Protocol):
    """A component with problems that leave it ready."""

    def warnings(self) -> dict[str, str]:
        """Return these problems, by name."""
        ...


@runtime_checkable
class HasPages(Protocol):
    """A component that shows pages on the operator's port."""

    def pages(self) -> Mapping[str, Callable[[str], bytes | None]]:
        """Return the pages by path. Each gets the name of an object."""
        ...


def acting_client(client: Client, settings: Settings) -> Client:
    """Return the client of all components. With `--dry-run` it writes only events and its Lease."""
    if not settings.dry_run or client.is_dry_run:
        return client
    return client.in_dry_run(DryRun(settings.leases.leader_elect_resource_namespace, settings.lease_name))


def make_family(client: Client, settings: Settings, identity: str) -> Family:
    """Return the Leases of the settings. Raise ValueError if these contradict each other."""
    if settings.leases.shards > 1 and not settings.leases.leader_elect:
        raise ValueError("--shards needs Leases: leave --no-leader-elect away")
    return Family(
        client,
        settings.leases.leader_elect_resource_namespace,
        settings.lease_name,
        identity,
        settings.leases.shards,
        times=_lease_times(settings.leases),
        annotations=settings_annotation(settings),
    )


def _lease_times(settings: LeaseSettings) -> LeaseTimes:
    return LeaseTimes(
        duration=settings.leader_elect_lease_duration.total_seconds(),
        renew_deadline=settings.leader_elect_renew_deadline.total_seconds(),
        retry=settings.leader_elect_retry_period.total_seconds(),
    )


async def run_until_stopped(*stages: Sequence[Work]) -> None:
    """Run all stages until a signal arrives or a task fails, then end them one after the other.

    Components come first and Leases last, because some components write once more when they end.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    # The last stage starts first, so that the Leases come before the decisions.
    running = [[asyncio.ensure_future(work()) for work in stage] for stage in reversed(stages)]
    stopped = asyncio.ensure_future(stop.wait())
    try:
        done, _ = await asyncio.wait(
            [stopped, *(task for stage in running for task in stage)],
            return_when=asyncio.FIRST_COMPLETED,
        )
        for task in done - {stopped}:
            task.result()  # raises what ended it
        log.info("stopping")
    finally:
        await _end([stopped])
        for tasks in reversed(running):
            await _end(tasks)


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
