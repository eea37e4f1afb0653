"""One process of each program on a cluster. Whoever rebuilds the programs changes this module, and no golden."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from tests.dashboard.asking import ask, entered
from tests.goldens.cluster import HOME, Cluster
from tests.goldens.decision import Group
from tests.scenarios.vertical.webhooks import backend
from trimtab.cli.explain.command import _explain_decision
from trimtab.cli.explain.hpas import explain_replicas, no_such_hpa
from trimtab.cli.explain.sizes import explain_size
from trimtab.cli.operator_settings import Choice, settings_for
from trimtab.cli.top.command import lines_of, notes_of
from trimtab.cli.top.rows import rows_of
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family
from trimtab.cluster.resource import Json
from trimtab.dashboard.dashboard import Dashboard
from trimtab.model.json import wire
from trimtab.operator.health import HealthApp
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.records import record_pages
from trimtab.operator.log_format import TextFormatter
from trimtab.operator.operator import Parts
from trimtab.operator.process import make_family
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.published import FoundSettings, SettingsPublisher
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.wiring import LOOPS, VerticalRuntime
from trimtab.plugins.registry import Plugins
from trimtab_lab.apiserver.server import Server

NAME = "operator-0"
CHOICE = Choice(HOME)


class Log(logging.Handler):
    """The log lines of the programs, without their times, which are the machine's."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []
        self._format = TextFormatter()
        self._logger = logging.getLogger("trimtab")

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line as `trimtab run` prints it, without a traceback, whose paths are the machine's."""
        self.lines.append(self._format.format(record).partition(" ")[2].partition("\n")[0])

    def __enter__(self) -> "Log":
        """Listen."""
        self._level = self._logger.level
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no longer."""
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)


@dataclass(frozen=True)
class Top:
    """What `trimtab top` found at one moment."""

    rows: list[Json]
    found: FoundSettings

    def lines(self, namespace: str, shown_as: str) -> list[str]:
        """Return its notes and its table for a namespace, under another name."""
        rows = [{**row, "namespace": shown_as} for row in self.rows if row["namespace"] == namespace]
        return [*notes_of(self.found, namespace), *lines_of(rows, is_wide=True)] if rows else []


class Programs:
    """The operator's components of a group, their port, and the dashboard beside them."""

    def __init__(self, clock: VirtualClock, group: Group, cluster: Cluster) -> None:
        self._clock, self._group = clock, group
        self._client = Client(clock, cluster.line, seed=2)
        self._viewer = Client(clock, cluster.viewers, seed=3)
        usual = {"namespace": HOME, "leader_elect": False, "dashboard_login": "token"}
        self.settings = Settings.of(components=group.components, **{**usual, **group.settings})
        self._leases: list[asyncio.Task[None]] = []
        self._loops: Mapping[str, Any] = {}

    async def start(self, server: Server) -> None:
        """Start them as `trimtab run` does, except that their loops are stepped."""
        settings, plugins = self.settings, Plugins(self._group.plugins)
        fence = make_family(self._client, settings, NAME) if settings.leases.shards > 1 else None
        runtime = Runtime(self._clock, self._client, settings, fence=fence, instance=NAME, plugins=plugins)
        self._runtime = runtime
        # A recommender with these settings may run in another process.
        beside = () if self._group.is_horizontal else ("recommender",)
        published = settings.replace(components=tuple(dict.fromkeys((*beside, *settings.components))))
        self._publisher = SettingsPublisher(self._client, published, NAME)
        await self._publisher.step()
        self._horizontal, site = HpaController(runtime, config=decision_config(settings)), None
        if self._group.is_horizontal:
            runtime.start()
            await self._horizontal.start()
        else:
            site = VerticalRuntime(runtime)
            self._loops = {name: LOOPS[name](site) for name in settings.components}
            await site.view.wait_synced()
        if fence is not None:
            await self._share_with_another(fence)
        if "admission" in self._loops:
            server.outbound.register(HOME, "trimtab-webhook", backend(self._loops["admission"].app))
            await self._loops["admission"].refresh()
        pages = record_pages(self._horizontal.hpas, self._horizontal.ownership)
        self._port = HealthApp([self._horizontal], runtime.registry, pages=pages)
        self._dashboard = Dashboard(Parts(runtime, self._horizontal, site, self._loops))._build_app()
        self.browser = await entered(self._dashboard)

    async def _share_with_another(self, shards: Family) -> None:
        """Share the namespaces out with another replica, which decides nothing here."""
        other = make_family(self._client, self.settings, "operator-1")
        self._leases = [asyncio.ensure_future(replica.run()) for replica in (shards, other)]
        while len(shards.held()) != 1 or len(other.held()) != 1:
            await self._clock.sleep(1)

    async def step(self) -> None:
        """Let every program do its work once."""
        await self._publisher.step()
        if self._group.is_horizontal:
            await self._horizontal.step()
            await self._horizontal._before_waiting()  # reports HPAs that cannot be read
        for name in ("recommender", "updater", "roles"):
            if name in self._loops:
                await self._loops[name].step()
        await self._runtime.events.flush()
        self._dashboard.refresh()

    async def top(self) -> Top:
        """Return what a user's `trimtab top` finds."""
        found = await settings_for(self._viewer, "horizontal", CHOICE)
        return Top(await rows_of(self._viewer, "", found.settings), found)

    async def explain_replicas(self, namespace: str, name: str) -> tuple[Json, Json]:
        """Return what `trimtab explain` says of an HPA by the operator's port, and by the user's own rights."""
        answer = await ask(self._port, "GET", "/explain", query=f"name={namespace}/{name}")
        operators = answer.json() if answer.status == HTTPStatus.OK else {"text": answer.body.decode()}
        looked = await explain_replicas(self._viewer, namespace, name, CHOICE)
        users = (
            {"text": str(no_such_hpa(name, namespace))}
            if looked is None
            else _explain_decision(looked, is_users=True)
        )
        return operators, users

    async def explain_size(self, kind: str, namespace: str, name: str) -> tuple[list[str], Json]:
        """Return the lines and the JSON of a user's `trimtab explain` of a VPA or a pod."""
        explained, notes = await explain_size(self._viewer, kind, namespace, name, CHOICE)
        return [*explained.lines, *notes], wire.to_builtins(explained.data)

    async def close(self) -> None:
        """End them."""
        for lease in self._leases:
            lease.cancel()
        await asyncio.gather(*self._leases, return_exceptions=True)
        await self._horizontal.close()
        await self._runtime.close()
