"""Assembles one operator process from its settings."""

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family
from trimtab.cluster.leases.fence import ClosedFence, Fence, NoFence
from trimtab.cluster.leases.lease import unique_identity
from trimtab.operator.descriptors import Descriptors
from trimtab.operator.health import HealthApp, Page
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.records import record_pages
from trimtab.operator.process import (
    Component,
    HasPages,
    Work,
    acting_client,
    make_family,
    run_until_stopped,
)
from trimtab.operator.prometheus import RequestMetrics
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.published import ANNOTATION, EXPLAINED, SettingsPublisher, settings_annotation
from trimtab.operator.settings.settings import LOOPS, Settings
from trimtab.operator.share_keeper import SHARDED
from trimtab.serving.server import served

if TYPE_CHECKING:
    from trimtab.operator.vertical.wiring import VerticalRuntime

log = logging.getLogger(__name__)

HORIZONTAL, VERTICAL = LOOPS[0], LOOPS[1:]
"""The loops that change replicas or pods; each can run by itself."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of this process, for components of higher layers."""

    runtime: Runtime
    horizontal: HpaController | None
    site: "VerticalRuntime | None"
    loops: Mapping[str, Component]
    """The vertical loops, by name."""

    @property
    def clock(self) -> Clock:
        """Return the clock of the process."""
        return self.runtime.clock

    @property
    def client(self) -> Client:
        """Return the client of the process."""
        return self.runtime.client

    @property
    def settings(self) -> Settings:
        """Return the settings of the process."""
        return self.runtime.settings

    @property
    def fence(self) -> Fence:
        """Return the fence of the process."""
        return self.runtime.fence


Beside = Callable[[Parts], Component]
"""Makes a component of a higher layer, such as the dashboard."""


class Operator:
    """One process of `trimtab run`."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        settings: Settings,
        *,
        token: str = "",
        beside: Mapping[str, Beside] | None = None,
    ) -> None:
        self._beside = beside or {}
        known = (HORIZONTAL, *VERTICAL, *self._beside)
        unknown = [name for name in settings.components if name not in known]
        if unknown or not settings.components:
            named = repr(unknown[0]) if unknown else "an empty list"
            raise ValueError(f"--components: {named} is not known; known are {', '.join(known)}")
        self._clock = clock
        self._client = acting_client(client, settings)
        self._settings = settings
        self._token = token
        self._config = decision_config(settings)
        self._identity = unique_identity(socket.gethostname())
        self._registry = CollectorRegistry()
        RequestMetrics(client, self._registry)
        self._publisher: SettingsPublisher | None = None
        self._family = self._make_family()
        self._horizontal: HpaController | None = None

    async def run(self) -> None:
        """Run the components until a signal arrives."""
        async with AsyncExitStack() as stack:
            runtime = Runtime(
                self._clock,
                self._client,
                self._settings,
                registry=self._registry,
                fence=await self._fence(),
                instance=self._identity,
            )
            stack.push_async_callback(runtime.close)
            components = self._components(runtime)
            pages: dict[str, Page] = {
                "/settings": lambda _name: settings_annotation(self._settings)[ANNOTATION].encode()
            }
            if self._horizontal is not None:
                pages |= record_pages(self._horizontal.hpas, self._horizontal.ownership)
            for component in components:
                if isinstance(component, HasPages):
                    pages |= component.pages()
            observed: list[Component] = [*components, *([self._family] if self._family is not None else [])]
            app = HealthApp(observed, self._registry, token=self._token, pages=pages)
            port = await stack.enter_async_context(
                served(app, self._settings.bind_address, self._settings.port)
            )
            names = ",".join(self._settings.components)
            log.info("started", extra={"facts": {"port": port, "components": names}})
            holders = (self._family, self._publisher)
            leases: list[Work] = [holder.run for holder in holders if holder is not None]
            await run_until_stopped([component.run for component in components], [runtime.run], leases)

    def _make_family(self) -> Family | None:
        is_sharded = self._settings.leases.shards > 1
        if is_sharded and not any(name in SHARDED for name in self._settings.components):
            raise ValueError(
                f"--shards: nothing of {', '.join(self._settings.components)} is shared out, only {', '.join(SHARDED)}: "
                "the updater works in one copy at a time, and the others in every copy"
            )
        writes = any(name not in self._beside for name in self._settings.components)
        if not is_sharded and not (writes and self._settings.leases.leader_elect):
            return None
        return make_family(self._client, self._settings, self._identity)

    async def _fence(self) -> Fence:
        if all(name in self._beside for name in self._settings.components):
            return ClosedFence()  # no component writes
        if self._family is not None:
            return self._family
        if any(name in EXPLAINED for name in self._settings.components):
            self._publisher = SettingsPublisher(self._client, self._settings, self._identity)
        return NoFence()

    def _components(self, runtime: Runtime) -> list[Component]:
        components: list[Component] = []
        if HORIZONTAL in self._settings.components:
            self._horizontal = HpaController(runtime, config=self._config)
            components.append(self._horizontal)
        vertical = [name for name in VERTICAL if name in self._settings.components]
        site, loops = _make_vertical(runtime, vertical) if vertical else (None, {})
        parts = Parts(runtime, self._horizontal, site, loops)
        shown = [make(parts) for name, make in self._beside.items() if name in self._settings.components]
        return [*components, *loops.values(), *shown, Descriptors()]


def _make_vertical(runtime: Runtime, names: Sequence[str]) -> "tuple[VerticalRuntime, dict[str, Component]]":
    # Imported when needed: numpy and cryptography take 24 MB.
    from trimtab.operator.vertical.wiring import LOOPS, VerticalRuntime  # noqa: PLC0415

    site = VerticalRuntime(runtime)
    return site, {name: LOOPS[name](site) for name in names}
