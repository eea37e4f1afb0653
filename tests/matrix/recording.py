"""Which settings a program reads while it starts and works: run it on the lab with settings that take note."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar

from tests.support.cluster import as_admin
from tests.support.objects import CRDS, NAMESPACES
from trimtab.adapter.adapter import AdapterComponent
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.dashboard.dashboard import Dashboard
from trimtab.model.crds import all_crds
from trimtab.operator.operator import Operator, Parts
from trimtab.operator.settings.settings import Settings, declared
from trimtab_lab.apiserver.server import Server

NAMES = frozenset(field.name for field, _ in declared())
SECONDS = 90.0
"""Long enough for a loop of every program."""

ADAPTER = """\
apiVersion: adapter.trimtab.dev/v1alpha1
kind: AdapterConfiguration
listen: {port: 0}
sources: [{name: by-hand, testing: {}}]
"""


class _Recording:
    """Takes note of the settings that are read of an object."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in NAMES and not Recorded.is_paused:
            Recorded.seen.add(name)
        return super().__getattribute__(name)


class Recorded(_Recording, Settings):
    """Settings that take note of what is read of them and of their groups."""

    __slots__ = ()
    seen: ClassVar[set[str]] = set()
    is_paused: ClassVar[bool] = False

    @property
    def lease_name(self) -> str:
        """Return the name; it follows from the loops, which is no reading of their settings."""
        Recorded.seen.add("leader_elect_resource_name")
        with paused():
            return Settings.lease_name.fget(self)  # type: ignore[attr-defined, no-any-return] # a property


def recorded(settings: Settings) -> Recorded:
    """Return the settings as ones that take note of what is read of them."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return Recorded(
        **{name: _recording(value) if is_dataclass(value) else value for name, value in values.items()}
    )


def _recording(group: Any) -> Any:
    kind = type(group).__name__
    recording = type(kind, (_Recording, type(group)), {"__slots__": ()})
    return recording(**{field.name: getattr(group, field.name) for field in fields(group)})


@contextmanager
def paused() -> Iterator[None]:
    """Take note of nothing: what looks at all settings at once honours none of them."""
    before, Recorded.is_paused = Recorded.is_paused, True
    try:
        yield
    finally:
        Recorded.is_paused = before


def unnoticed(function: Any) -> Any:
    """Return the function, whose readings are not noted."""

    def call(*arguments: Any, **named: Any) -> Any:
        with paused():
            return function(*arguments, **named)

    return call


def reads(program: str, directory: Path, **settings: Any) -> frozenset[str]:
    """Return the names of the settings that a program reads."""
    clock = VirtualClock()
    (directory / "adapter.yaml").write_text(ADAPTER)

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            client = Client(clock, as_admin(server), seed=1)
            for crd in all_crds():
                await client.create(CRDS, crd)
            await client.create(NAMESPACES, {"metadata": {"name": "trimtab"}})
            chosen = recorded(
                Settings.of(
                    components=(program,),
                    port=0,
                    dashboard_port=0,
                    webhook_port=0,
                    adapter_config=str(directory / "adapter.yaml"),
                    **settings,
                )
            )
            Recorded.seen.clear()
            operator = Operator(
                clock,
                client,
                chosen,
                beside={"dashboard": lambda p: Dashboard(p, ignore), "adapter": make_adapter},
            )
            running = asyncio.ensure_future(operator.run())
            await clock.sleep(SECONDS)
            assert not running.done(), running.exception()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    clock.run(main())
    return frozenset(Recorded.seen)


def ignore(_address: str) -> None:
    """Take the address of a page that nobody opens."""


def make_adapter(parts: Parts) -> AdapterComponent:
    settings = parts.settings
    return AdapterComponent(
        parts.clock, parts.client, settings.metrics.adapter_config, namespaces=settings.watch_namespaces
    )
