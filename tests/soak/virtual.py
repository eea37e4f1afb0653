"""A soak on the lab: virtual days, two replicas of Trimtab with every component, all in this process.

The intervals are longer than the defaults, so that 30 days fit into minutes: what leaks, leaks per object, per reconcile, per
connection or per hand-over, and these are counted in thousands. Certificates live for a day, so that pairs and authorities change
all the time. The lab keeps a short history of events, and caches with a bound get a small one, or they would fill for days.
"""

import asyncio
import signal
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from prometheus_client import CollectorRegistry

from tests.dashboard.asking import Browser, stream
from tests.scenarios.vertical.webhooks import backend
from tests.soak.churn import Churn
from tests.soak.gauges import Gauges, take
from tests.soak.small_caches import small_caches
from tests.support.asgi import AsgiTransport
from trimtab.adapter.adapter import AdapterComponent
from trimtab.clock import VirtualClock
from trimtab.cluster.cache import informer
from trimtab.cluster.client import Client
from trimtab.cluster.errors import TransportError
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.transport import Request, Response, ResponseStream, Transport
from trimtab.dashboard import dashboard
from trimtab.dashboard.dashboard import Dashboard
from trimtab.dashboard.web import app as dashboard_app
from trimtab.dashboard.web.app import DashboardApp
from trimtab.model.crds import all_crds
from trimtab.model.json import wire
from trimtab.operator import control_loop
from trimtab.operator.operator import Operator, Parts
from trimtab.operator.process import Component
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission import certificates, webhook
from trimtab.operator.vertical.admission.webhook import AdmissionWebhook
from trimtab_lab.apiserver.outbound import OutboundError
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.embedded import PACE, EmbeddedCluster
from trimtab_lab.load.load import Load
from trimtab_lab.storage.store import WatchCache

OWN = "trimtab-system"
COMPONENTS = ("horizontal", "recommender", "updater", "admission", "roles", "adapter", "dashboard")
HISTORY = 8
"""Events that the lab keeps per resource."""


@dataclass(frozen=True)
class Pace:
    """How often the loops run, and how many rounds of churn a day has."""

    day_seconds: float = 86400.0
    quiet_seconds: float = 7200.0
    """The end of each day, in which nothing is created: what lives for an hour is gone when the day is measured."""
    rounds_per_day: int = 12
    sync: timedelta = timedelta(minutes=5)
    look: timedelta = timedelta(minutes=5)
    recommend: timedelta = timedelta(minutes=10)
    update: timedelta = timedelta(minutes=10)
    sample_seconds: float = 120.0
    refresh_seconds: float = 600.0
    renew_seconds: float = 60.0

    def slower(self, factor: float) -> "Pace":
        """Return a pace whose loops run less often, for a soak in less time."""
        return replace(
            self,
            sync=self.sync * factor,
            look=self.look * factor,
            recommend=self.recommend * factor,
            update=self.update * factor,
            sample_seconds=self.sample_seconds * factor,
            refresh_seconds=self.refresh_seconds * factor,
            renew_seconds=self.renew_seconds * factor,
        )

    @property
    def round_seconds(self) -> float:
        """Return the length of a round."""
        return (self.day_seconds - self.quiet_seconds) / self.rounds_per_day


class BreakableLine:
    """A transport that fails on demand, and keeps nothing."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.fail: Callable[[Request], Awaitable[Response | None]] | None = None
        """Called for every request while set. It returns an answer, raises, or returns None to pass the request on."""

    async def request(self, request: Request) -> Response:
        """Fail, or pass the request on."""
        answer = await self.fail(request) if self.fail is not None else None
        return answer if answer is not None else await self._inner.request(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        """Pass the request on."""
        async with self._inner.stream(request) as found:
            yield found

    async def close(self) -> None:
        """Do nothing: there is no connection."""


class ShownDashboard(Dashboard):
    """A dashboard whose application can be asked without a socket."""

    app: DashboardApp | None = None

    def _build_app(self) -> DashboardApp:
        self.app = super()._build_app()
        return self.app


@dataclass
class Replica:
    """One operator, its line to the lab, and the parts that it made."""

    line: BreakableLine
    operator: Operator
    parts: Parts | None = None
    beside: dict[str, Any] = field(default_factory=dict)

    @property
    def admission(self) -> AdmissionWebhook:
        """Return its webhook."""
        assert self.parts is not None
        found = self.parts.loops["admission"]
        assert isinstance(found, AdmissionWebhook)
        return found

    @property
    def registry(self) -> CollectorRegistry:
        """Return its metrics."""
        assert self.parts is not None
        return self.parts.runtime.registry


class VirtualWorld:
    """The lab with two replicas."""

    def __init__(self, clock: VirtualClock, cluster: EmbeddedCluster, folder: Path, pace: Pace) -> None:
        self.clock = clock
        self.cluster = cluster
        self.client = cluster.client
        self.load: Load = cluster.load
        self._folder = folder
        self._pace = pace
        self.replicas = [self._make_replica(name) for name in ("a", "b")]
        self._turn = 0

    def _make_replica(self, name: str) -> Replica:
        headers = {"authorization": f"Bearer {self.cluster.server.tokens.admin}", "user-agent": "trimtab"}
        line = BreakableLine(InProcessTransport(self.cluster.server, headers=headers))
        client = Client(self.clock, line, seed=len(name))
        beside: dict[str, Any] = {}
        made: list[Replica] = []

        def adapter(parts: Parts) -> Component:
            made[0].parts = parts
            config = parts.settings.metrics.adapter_config
            beside["adapter"] = AdapterComponent(parts.clock, parts.client, config)
            return beside["adapter"]  # type: ignore[no-any-return]  # the line above says what it is

        def page(parts: Parts) -> Component:
            beside["dashboard"] = ShownDashboard(parts)
            return beside["dashboard"]  # type: ignore[no-any-return]  # the line above says what it is

        operator = Operator(
            self.clock, client, self._settings(name), beside={"adapter": adapter, "dashboard": page}
        )
        made.append(Replica(line, operator, beside=beside))
        return made[0]

    def _settings(self, name: str) -> Settings:
        pace, renew = self._pace, self._pace.renew_seconds
        config = self._folder / "adapter.yaml"
        config.write_text(_ADAPTER, encoding="utf-8")
        return Settings.of(
            components=COMPONENTS,
            feature_gates="AllAlpha=true",
            native_hpas=True,
            namespace=OWN,
            port=0,
            webhook_port=0,
            webhook_address="127.0.0.1",
            dashboard_port=0,
            dashboard_login="token",
            dashboard_address_file=str(self._folder / f"address-{name}"),
            adapter_config=str(config),
            leader_elect_resource_namespace=OWN,
            leader_elect_lease_duration=timedelta(seconds=6 * renew),
            leader_elect_renew_deadline=timedelta(seconds=4 * renew),
            leader_elect_retry_period=timedelta(seconds=renew),
            sync_period=pace.sync,
            look_period=pace.look,
            recommender_interval=pace.recommend,
            updater_interval=pace.update,
            status_lease_update_interval=timedelta(seconds=pace.refresh_seconds),
            stale_after=timedelta(seconds=10 * pace.sample_seconds),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run both replicas while the context lasts."""
        await self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWN}})
        tasks = [asyncio.ensure_future(replica.operator.run()) for replica in self.replicas]
        await self.clock.sleep(60)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
        for task in tasks:
            if task.done():
                task.result()
        self.cluster.server.outbound.register(OWN, "trimtab-webhook", self._review)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _review(self, *arguments: Any) -> Any:
        """Let the replicas serve reviews in turn, as a Service does."""
        self._turn += 1
        replica = self.replicas[self._turn % len(self.replicas)]
        return await backend(replica.admission.app)(*arguments)

    @property
    def disturbances(self) -> Mapping[str, Callable[[float], Awaitable[None]]]:
        """Return what can be broken, by name."""
        return {
            "leader": self._move_leader,
            "metrics-garbled": lambda seconds: self._break_metrics(seconds, _garbled),
            "metrics-refused": lambda seconds: self._break_metrics(seconds, _refused),
            "metrics-silent": lambda seconds: self._break_metrics(seconds, _silent),
            "watches": self._end_watches,
            "webhook": self._break_webhook,
        }

    async def _move_leader(self, seconds: float) -> None:
        """Cut each replica off from its Lease in turn, so that the other leads."""
        for replica in self.replicas:
            replica.line.fail = _no_leases
            await self.clock.sleep(seconds / 2)
            replica.line.fail = None

    async def _break_metrics(self, seconds: float, how: Callable[[Request], Awaitable[Response]]) -> None:
        async def fail(request: Request) -> Response | None:
            return await how(request) if "metrics.k8s.io" in request.path else None

        for replica in self.replicas:
            replica.line.fail = fail
        await self.clock.sleep(seconds)
        for replica in self.replicas:
            replica.line.fail = None

    async def _end_watches(self, seconds: float) -> None:
        for objects in self.cluster.server.store.resources():
            objects.watch_cache.expire_all()
        await self.clock.sleep(seconds)

    async def _break_webhook(self, seconds: float) -> None:
        async def dead(*_: Any) -> Any:
            raise OutboundError("nobody listens")

        self.cluster.server.outbound.register(OWN, "trimtab-webhook", dead)
        await self.clock.sleep(seconds)
        self.cluster.server.outbound.register(OWN, "trimtab-webhook", self._review)

    async def visit(self, number: int) -> None:
        """Open the page, its stream and some of its data, and ask the adapter, at each replica."""
        for replica in self.replicas:
            app = replica.beside["dashboard"].app
            assert app is not None
            browser = Browser(app)
            await browser.login(app.token)
            async with stream(app, browser):
                for path in ("/", "/api/overview", f"/api/hpa/soak-{number}/web-{number}"):
                    await browser.get(path)
                await self.clock.sleep(30)
            adapter = replica.beside["adapter"].running
            headers = {"authorization": f"Bearer {self.cluster.server.tokens.admin}"}
            transport = AsgiTransport(adapter.server._config.app, headers=headers)
            for path in (f"namespaces/soak-{number}/queue-{number}", "namespaces/default/sqs_messages"):
                await transport.request(Request("GET", f"/apis/external.metrics.k8s.io/v1beta1/{path}"))

    def measure(self) -> Gauges:
        """Count everything now."""
        caches = (objects.watch_cache for objects in self.cluster.server.store.resources())
        samples = (len(metric.samples) for replica in self.replicas for metric in replica.registry.collect())
        return take(watches=sum(cache.stream_count for cache in caches), labels=sum(samples))


def _no_leases_error(request: Request) -> TransportError:
    return TransportError(f"{request}: no route to host")


async def _no_leases(request: Request) -> Response | None:
    if "/leases" in request.path:
        raise _no_leases_error(request)
    return None


async def _refused(_request: Request) -> Response:
    return Response(503, {"content-type": "text/plain"}, b"no endpoints available for service")


async def _garbled(_request: Request) -> Response:
    return Response(200, {"content-type": "application/json"}, b'{"items": [' + b"{" * 4096)


async def _silent(request: Request) -> Response:
    await asyncio.sleep(request.deadlines.total)
    raise TransportError(f"{request}: not answered within {request.deadlines.total:g} s")


_ADAPTER = """\
apiVersion: adapter.trimtab.dev/v1alpha1
kind: AdapterConfiguration
listen: {address: 127.0.0.1, port: 0}
tls: {names: [localhost]}
sources:
- {name: testing, testing: {}}
"""


@contextmanager
def slow_polling(pace: Pace) -> Iterator[None]:
    """Let pairs live for a day and authorities for three, and let everything that polls poll less often."""
    with (
        mock.patch.object(informer, "WatchPace", return_value=PACE),
        mock.patch.object(dashboard_app, "REFRESH_SECONDS", pace.refresh_seconds / 5),
        mock.patch.object(control_loop, "STAND_BY_SECONDS", pace.renew_seconds),
        mock.patch.object(dashboard, "REFRESH_SECONDS", pace.refresh_seconds),
        mock.patch.object(certificates, "LEAF_LIFETIME", timedelta(days=1)),
        mock.patch.object(certificates, "AUTHORITY_LIFETIME", timedelta(days=3)),
        mock.patch.object(webhook, "REFRESH_SECONDS", pace.refresh_seconds),
    ):
        yield


async def soak(
    clock: VirtualClock, folder: Path, days: int, *, seed: int = 1, pace: Pace = Pace(), each_day: Callable[[int, Gauges, Churn], None] = lambda *_: None  # noqa: B008 - a frozen value
) -> list[Gauges]:  # fmt: skip
    """Run for so many virtual days and return what was counted at the end of each."""
    config = replace(DataPlaneConfig(pace=PACE), sample_seconds=pace.sample_seconds)
    cluster = EmbeddedCluster(clock, seed=seed, setting=config, tracks_fields=False)
    _shorten_history(cluster)
    counted: list[bytes] = []
    async with AsyncExitStack() as stack:
        stack.enter_context(slow_polling(pace))
        stack.enter_context(small_caches())
        await stack.enter_async_context(cluster)
        await cluster.apply(*all_crds())
        world = VirtualWorld(clock, cluster, folder, pace)
        await stack.enter_async_context(world.running())
        churn = Churn(world, pace.round_seconds, seed)
        await churn.open()
        for day in range(1, days + 1):
            begun = clock.monotonic()
            for _ in range(pace.rounds_per_day):
                await churn.round()
            await clock.sleep(max(begun + pace.day_seconds - clock.monotonic(), pace.quiet_seconds))
            gauges = world.measure()
            # Half a megabyte of names a day would be the growth that is measured.
            counted.append(zlib.compress(wire.encode(gauges)))
            each_day(day, gauges, churn)
    return [wire.decode(zlib.decompress(packed), Gauges) for packed in counted]


def _shorten_history(cluster: EmbeddedCluster) -> None:
    store = cluster.server.store
    store._keep = HISTORY
    for objects in store.resources():
        objects.watch_cache = WatchCache(HISTORY)
