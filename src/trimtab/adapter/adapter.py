"""The adapter as a component: sources, trust, server and admin ports, started and stopped together."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from trimtab.adapter.api.app import AdapterApp, Gates
from trimtab.adapter.auth.authentication import Authenticator
from trimtab.adapter.auth.authorization import SubjectAccessAuthorizer
from trimtab.adapter.auth.front_proxy import FrontProxyTrust
from trimtab.adapter.auth.tls import ReloadingTls
from trimtab.adapter.config import AdapterConfiguration, SourceSettings, connection_to, load_configuration
from trimtab.adapter.errors import ConfigurationError
from trimtab.adapter.files import below, seconds
from trimtab.adapter.metrics import AdapterMetrics
from trimtab.adapter.sources.forward import ForwardSource
from trimtab.adapter.sources.objects import ClusterObjects, Objects
from trimtab.adapter.sources.prometheus.source import PrometheusSource
from trimtab.adapter.sources.router import Router
from trimtab.adapter.sources.source import Source
from trimtab.adapter.sources.testing.admin import AdminApp, load_token
from trimtab.adapter.sources.testing.source import TestingSource
from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.http import HttpTransport
from trimtab.metrics.prometheus import PrometheusClient
from trimtab.serving.server import ClientLimits, HttpServer

log = logging.getLogger(__name__)

_LIMITS = ClientLimits(per_address=200)
"""kube-apiserver holds a few connections; whoever wants hundreds is somebody else."""


class Adapter:
    """A running adapter; made by `serve`."""

    def __init__(self, router: Router, server: HttpServer, tls: ReloadingTls, trust: FrontProxyTrust) -> None:
        self.router = router
        self.tls = tls
        self.trust = trust
        self.admin_ports: dict[str, int] = {}
        self._server = server

    @property
    def port(self) -> int:
        """Return the port of the API."""
        return self._server.port


@asynccontextmanager
async def serve(
    clock: Clock,
    client: Client,
    configuration: AdapterConfiguration,
    root: Path,
    namespaces: Sequence[str] = (),
) -> AsyncIterator[Adapter]:
    """Serve the metrics APIs while the context lasts; `root` is the directory of the configuration's files.

    Pods are followed in `namespaces`; none means all.
    """
    cache_seconds = seconds(configuration.review_cache, "reviewCache")
    async with AsyncExitStack() as stack:
        objects = ClusterObjects(client, namespaces)
        stack.push_async_callback(objects.close)
        sources = [_source(clock, objects, settings, root) for settings in configuration.sources]
        router = Router(sources, seconds(configuration.source_deadline, "sourceDeadline"))
        stack.push_async_callback(router.close)
        tls = ReloadingTls(clock, configuration.tls, root)
        trust = FrontProxyTrust(client, tls.trust_changed)
        gates = Gates(
            Authenticator(clock, client, trust, cache_seconds),
            SubjectAccessAuthorizer(clock, client, cache_seconds),
            lambda: trust.problem,
        )
        app = AdapterApp(clock, gates, router, objects, AdapterMetrics(sources, objects))
        server = HttpServer(app, tls.base, limits=_LIMITS)
        adapter = Adapter(router, server, tls, trust)
        await _run_beside(stack, [trust.run(), tls.run(), *(source.run() for source in sources)])
        for settings, source in zip(configuration.sources, sources, strict=True):
            if isinstance(source, TestingSource):
                await _open_admin(stack, adapter, settings, source, root)
        await server.start(configuration.listen.address, configuration.listen.port)
        stack.push_async_callback(server.stop)
        yield adapter


async def _run_beside(stack: AsyncExitStack, loops: list[Coroutine[Any, Any, None]]) -> None:
    tasks = [asyncio.ensure_future(loop) for loop in loops]

    async def stop() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    stack.push_async_callback(stop)


async def _open_admin(
    stack: AsyncExitStack, adapter: Adapter, settings: SourceSettings, source: TestingSource, root: Path
) -> None:
    if settings.testing is None or settings.testing.admin is None:
        return
    token = load_token(below(root, settings.testing.admin.token_file))
    server = HttpServer(AdminApp(source, token))
    await server.start("127.0.0.1", settings.testing.admin.port)
    stack.push_async_callback(server.stop)
    adapter.admin_ports[source.name] = server.port
    log.info("values of source %s are set on http://127.0.0.1:%d", source.name, server.port)


def _source(clock: Clock, objects: Objects, settings: SourceSettings, root: Path) -> Source:
    if settings.testing is not None:
        file = below(root, settings.testing.file) if settings.testing.file else None
        return TestingSource(clock, settings.name, objects, file)
    if settings.prometheus is not None:
        connection = connection_to(clock, settings.prometheus.server, root)
        client = PrometheusClient(clock, HttpTransport(clock, connection))
        rules = below(root, settings.prometheus.rules_file)
        interval = seconds(settings.prometheus.discovery_interval, "discoveryInterval")
        return PrometheusSource(clock, settings.name, client, objects, rules, interval)
    assert settings.forward is not None, "the configuration holds exactly one kind"
    connection = connection_to(clock, settings.forward.server, root)
    return ForwardSource(
        clock, settings.name, Client(clock, HttpTransport(clock, connection)), settings.forward
    )


class AdapterComponent:
    """Serves custom and external metrics while it runs; every copy serves, whoever leads."""

    name = "adapter"

    def __init__(self, clock: Clock, client: Client, file: str, *, namespaces: Sequence[str] = ()) -> None:
        """Read the configuration, so that a mistake in it ends the program before anything is started."""
        if not file:
            raise ConfigurationError("the component adapter needs --adapter-config, its configuration file")
        path = Path(file)
        if not path.is_file():
            raise ConfigurationError(f"--adapter-config: there is no file {file}")
        self._clock = clock
        self._client = client
        self._namespaces = namespaces
        self._configuration = load_configuration(path)
        self._root = path.absolute().parent
        self._running: Adapter | None = None

    @property
    def running(self) -> Adapter | None:
        """Return the running adapter; None while it does not serve."""
        return self._running

    async def run(self) -> None:
        """Serve until cancelled."""
        async with AsyncExitStack() as stack:
            self._running = running = await self._serve(stack)
            stack.callback(self._stopped)
            log.info("serving metrics", extra={"facts": {"port": running.port}})
            await asyncio.Event().wait()

    async def _serve(self, stack: AsyncExitStack) -> Adapter:
        try:
            return await stack.enter_async_context(
                serve(self._clock, self._client, self._configuration, self._root, self._namespaces)
            )
        except OSError as error:
            where = f"{self._configuration.listen.address}:{self._configuration.listen.port}"
            raise ConfigurationError(
                f"the adapter cannot listen on {where}: {error.strerror or error}; choose another listen.port, or 0 for any"
            ) from error

    def _stopped(self) -> None:
        self._running = None

    def health(self) -> dict[str, str]:
        """Return what keeps it from serving; a source or rule that fails is told on its own port and takes nothing down."""
        if self._running is None:
            return {"start": "not serving yet"}
        problem = self._running.trust.problem
        return {"trust": problem} if problem else {}
