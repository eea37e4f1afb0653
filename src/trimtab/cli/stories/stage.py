"""The cluster of `trimtab up`: examples at work, and Trimtab installed beside them.

Trimtab is installed on a cluster that is at work already: pods run and are measured before the operator starts. Its first
decisions are therefore about real samples, and its start leaves no failure behind.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final, Protocol

from prometheus_client import CollectorRegistry

from trimtab.cli.progress import reporting
from trimtab.cli.stories import Story
from trimtab.cli.top.rows import NO_RECOMMENDATION, NONE_DECIDED, VPA_KINDS, decided_by, rows_of
from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.dashboard import (
    DashboardApp,
    LabLoads,
    OperatorVertical,
    RemoteState,
    StoryView,
    dashboard_for,
)
from trimtab.model.crds import all_crds
from trimtab.model.readable import counted
from trimtab.operator.health import HealthApp
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.records import overview_rows, record_pages
from trimtab.operator.process import Component
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.published import SettingsPublisher, own_settings
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.wiring import VerticalRuntime, make_recommender, make_updater
from trimtab_lab.controllers.kinds import DEPLOYMENTS, STATEFUL_SETS
from trimtab_lab.data_plane import DataPlane, NotSettledError
from trimtab_lab.load.plan import LoadPlan

GATES: Final = "AllAlpha=true"
PAST_SECONDS: Final = 45.0
"""How long the stories have run when they are shown: pods start in 6 s, and CPU counts after two samples."""
PAST_SECONDS_PER_WORKLOAD: Final = 0.04
"""How much longer many workloads take to start."""
_SAMPLES: Final = 2
"""A sample counts if its whole window lies after the pod became ready."""
_SETTLE_SECONDS: Final = 120.0
_PART: Final = 200
"""How many objects are applied before the controllers are waited for."""
_FIRST_DECISIONS_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 1.0


class Example(Protocol):
    """Objects to apply, and the load of their workloads."""

    @property
    def title(self) -> str:
        """Return what the example is called."""
        ...

    def objects(self) -> list[dict[str, Any]]:
        """Return the objects to apply."""
        ...

    def load(self) -> LoadPlan:
        """Return the load of the workloads."""
        ...


class Cluster(Protocol):
    """A cluster whose nodes and load are the lab's: an `EmbeddedCluster`, or a real API server."""

    @property
    def client(self) -> Client:
        """Return the client of the operator."""
        ...

    @property
    def side(self) -> DataPlane:
        """Return the nodes with their load."""
        ...

    async def apply(self, *manifests: Mapping[str, Any]) -> object:
        """Apply objects. Missing namespaces are created."""
        ...


@dataclass(frozen=True)
class Programs:
    """Trimtab at work: its controllers, the page of its port, and the dashboard."""

    horizontal: HpaController
    health: HealthApp
    dashboard: DashboardApp


class Stage:
    """Examples on a cluster, with Trimtab. `show` gets the name of each step."""

    def __init__(
        self,
        clock: Clock,
        cluster: Cluster,
        show: Callable[[str], None] = lambda _step: None,
        plugins: tuple[str, ...] = (),
        *,
        speed: float = 1.0,
    ) -> None:
        self._clock = clock
        self._cluster = cluster
        self._show = show
        self._speed = speed
        self._stories: list[StoryView] = []
        self._horizontal: HpaController | None = None
        self._decided = 0
        self.settings = Settings.of(
            components=("horizontal", "recommender", "updater"),
            feature_gates=GATES,
            leader_elect=False,
            plugins=plugins,
            native_hpas=True,  # no kube-controller-manager acts on them here
            # The default of 12 h would let a pod that led once keep the leader's size for the rest of the session.
            in_bounds_lifetime=timedelta(minutes=1),
            round_memory_bytes=1024**2,
        )

    async def open(self, examples: Iterable[Example], stack: AsyncExitStack) -> Programs:
        """Put the examples up, let them work, start Trimtab and wait for its first decisions."""
        examples = tuple(examples)
        self._stories = [_view(example, self._speed) for example in examples if isinstance(example, Story)]
        await self._put_up(examples)
        await self._wait_measured()
        plugins = ", ".join(self.settings.plugins)  # importing them may take a while
        self._show(f"starting Trimtab with plug-ins {plugins}" if plugins else "starting Trimtab")
        programs = await self._start(stack)
        with reporting(partial(self._show_decided, programs.horizontal)):
            await self._wait_decided()
        return programs

    async def _put_up(self, examples: Iterable[Example]) -> None:
        await self._cluster.apply(*all_crds())
        for example in examples:
            self._show(f"putting up: {example.title}")
            plan = example.load()
            for load in plan.workloads:
                self._cluster.side.load.set(load)
            for series in plan.series:
                self._cluster.side.load.set(series)
            await self._apply(example.objects())

    async def _apply(self, objects: list[dict[str, Any]]) -> None:
        """Apply objects in parts, and let the controllers finish each: their work grows with what is unfinished."""
        for first in range(0, len(objects), _PART):
            if first:
                self._show(f"  {first} of {len(objects)} objects")
                await self._settle()
            await self._cluster.apply(*objects[first : first + _PART])

    async def _wait_measured(self) -> None:
        """Wait until all pods run and each has a sample that counts."""
        side = self._cluster.side
        self._show("waiting for pods and their first samples")
        deadline = self._clock.monotonic() + _SETTLE_SECONDS
        while not await self._is_ready() and self._clock.monotonic() < deadline:
            await self._clock.sleep(_POLL_SECONDS)
        await self._settle()
        await self._clock.sleep(_SAMPLES * side.kubelet.sample_seconds)

    async def _settle(self) -> None:
        with suppress(NotSettledError):  # a pod that never becomes ready is an example, too
            await self._cluster.side.settle(_SETTLE_SECONDS)

    async def _is_ready(self) -> bool:
        """Return whether all Deployments and StatefulSets have the pods that they ask for."""
        for resource in (DEPLOYMENTS, STATEFUL_SETS):
            for workload in (await self._cluster.client.list(resource)).items:
                if workload.status.ready_replicas != workload.spec.replicas:
                    return False
        return True

    async def _start(self, stack: AsyncExitStack) -> Programs:
        client, settings, registry = self._cluster.client, self.settings, CollectorRegistry()
        runtime = Runtime(self._clock, client, settings, registry=registry)
        stack.push_async_callback(runtime.close)
        self._horizontal = horizontal = HpaController(runtime, config=decision_config(settings))
        vertical = VerticalRuntime(runtime)
        recommender, updater = make_recommender(vertical), make_updater(vertical)
        components: list[Component] = [horizontal, recommender, updater]
        namespace = {"metadata": {"name": settings.leases.leader_elect_resource_namespace}}
        await self._cluster.apply({"apiVersion": "v1", "kind": "Namespace", **namespace})
        publisher = SettingsPublisher(client, settings, "trimtab-up")
        for run in (*(component.run for component in components), publisher.run):
            stack.push_async_callback(_stop, asyncio.ensure_future(run()))
        state = RemoteState(self._clock, client, vertical.view, lambda: own_settings(settings))
        page = dashboard_for(
            self._clock,
            horizontal.hpas,
            vertical=OperatorVertical(vertical.view, recommender, updater, state),
            controls=LabLoads(self._cluster.side.load),
            owners=horizontal.find_owners,
        )
        page.stories = self._stories
        pages = {**record_pages(horizontal.hpas), **recommender.pages()}
        health = HealthApp(components, registry, pages=pages)
        return Programs(horizontal, health, page)

    async def _wait_decided(self) -> None:
        """Wait until every autoscaler has a decision. Some may never have one: an HPA without a target."""
        deadline = self._clock.monotonic() + _FIRST_DECISIONS_SECONDS
        while self._clock.monotonic() < deadline:
            await self._clock.sleep(_POLL_SECONDS)
            if all(map(_is_decided, await self.rows())):
                return

    def _show_decided(self, horizontal: HpaController) -> None:
        decided = sum(bool(hpa_state.records) for hpa_state in horizontal.hpas)
        if decided > self._decided:
            self._decided = decided
            self._show(f"  {decided} of {counted(len(horizontal.hpas), 'HPA')} decided")

    async def rows(self) -> list[dict[str, Any]]:
        """Return the autoscalers as `trimtab top` shows them, with the operator's own reasons."""
        decided = decided_by(overview_rows(self._horizontal.hpas)) if self._horizontal else NONE_DECIDED
        return await rows_of(self._cluster.client, "", self.settings, decided=decided)


def _view(story: Story, speed: float) -> StoryView:
    see = story.see(speed)
    return StoryView(
        namespace=story.name,
        title=story.title,
        see=f"{see[0].upper()}{see[1:]}",
        command=story.try_this,
    )


def _is_decided(row: Mapping[str, Any]) -> bool:
    """Return whether the status says what was decided."""
    if row["kind"] in VPA_KINDS:
        return bool(row["reason"] != NO_RECOMMENDATION)
    return bool(row["active"] != "Unknown")


async def _stop(running: "asyncio.Task[None]") -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
