"""Starts and stops the adapter: sources, front-proxy trust, API server and admin ports.

`AdapterComponent` runs it as a component of `trimtab run`. `serve` is the context that it holds open.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from trimtab.adapter.api.app import AdapterApp, Auth
from trimtab.adapter.auth.access import Authenticator, SubjectAccessAuthorizer
from trimtab.adapter.auth.front_proxy import FrontProxyTrust
from trimtab.adapter.auth.tls import client_context, served_tls
from trimtab.adapter.config import AdapterConfiguration, SourceSettings, connection_to, load_configuration
from trimtab.adapter.files import ConfigurationError, below, seconds
from trimtab.adapter.metrics import AdapterMetrics
from trimtab.adapter.sources.forward import ForwardSource
from trimtab.adapter.sources.objects import ClusterObjects
from trimtab.adapter.sources.plugin import SourcePlugins
from trimtab.adapter.sources.prometheus.source import PrometheusSource
from trimtab.adapter.sources.router import Router
from trimtab.adapter.sources.source import Source
from trimtab.adapter.sources.testing import AdminApp, TestingSource, load_token
from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.http import HttpTransport
from trimtab.metrics.prometheus import PrometheusClient
from trimtab.plugins.registry import NO_PLUGINS, Plugins
from trimtab.serving.certificates import ServedTls
from trimtab.serving.server import ClientLimits, HttpServer, ListenError

log = logging.getLogger(__name__)

_LIMITS = ClientLimits(body_bytes=1024 * 1024, per_address=200)
"""kube-apiserver opens a few connections; hundreds from one address are a fault. No request has a body."""


@dataclass(frozen=True)
class Adapter:
    """A running adapter, created by `serve`."""

    router: Router
    server: HttpServer
    tls: ServedTls
    trust: FrontProxyTrust
    admin_ports: dict[str, int] = field(default_factory=dict)
    """The port that sets values, by source."""

    @property
    def port(self) -> int:
        """Return the port of the API."""
        return self.server.port


@asynccontextmanager
async def serve(
    clock: Clock,
    client: Client,
    configuration: AdapterConfiguration,
    root: Path,
    namespaces: Sequence[str] = (),
    plugins: Plugins = NO_PLUGINS,
) -> AsyncIterator[Adapter]:
    """Serve the metrics APIs while the context lasts.

    File names in the configuration are relative to `root`. Pods are watched in `namespaces`; none means all.
    """
    cache_seconds = seconds(configuration.review_cache, "reviewCache")
    async with AsyncExitStack() as stack:
        objects = ClusterObjects(client, namespaces)
        stack.push_async_callback(objects.close)
        source_plugins = SourcePlugins(plugins)
        sources = [
            _build_source(clock, objects, settings, root, source_plugins)
            for settings in configuration.sources
        ]
        router = Router(sources, seconds(configuration.source_deadline, "sourceDeadline"))
        stack.push_async_callback(router.close)
        tls = served_tls(clock, configuration.tls, root)
        trust = FrontProxyTrust(client, lambda new: tls.use(partial(client_context, new.authorities_pem())))
        auth = Auth(
            Authenticator(clock, client, trust, cache_seconds),
            SubjectAccessAuthorizer(clock, client, cache_seconds),
        )
        app = AdapterApp(
            clock, auth, router, objects, AdapterMetrics(sources, objects, source_plugins.guards)
        )
        server = HttpServer(app, tls.base, limits=_LIMITS)
        adapter = Adapter(router, server, tls, trust)
        _run_in_background(stack, [trust.run(), tls.run(clock), *(source.run() for source in sources)])
        for settings, source in zip(configuration.sources, sources, strict=True):
            if isinstance(source, TestingSource):
                await _open_admin(stack, adapter, settings, source, root)
        await server.start(configuration.listen.address, configuration.listen.port)
        stack.push_async_callback(server.stop)
        where = {"address": configuration.listen.address, "port": server.port}
        log.info("serving metrics", extra={"facts": where})
        yield adapter


def _run_in_background(stack: AsyncExitStack, loops: list[Coroutine[Any, Any, None]]) -> None:
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
    log.info("admin port started", extra={"facts": {"source": source.name, "port": server.port}})


def _build_source(
    clock: Clock, objects: ClusterObjects, settings: SourceSettings, root: Path, plugins: SourcePlugins
) -> Source:
    if settings.plugin is not None:
        return plugins.source(clock, settings.name, settings.plugin)
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
    """Serves custom and external metrics on every replica of Trimtab."""

    name = "adapter"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        file: str,
        *,
        namespaces: Sequence[str] = (),
        plugins: Plugins = NO_PLUGINS,
    ) -> None:
        """Load the configuration. Raise ConfigurationError if it is invalid."""
        if not file:
            raise ConfigurationError("the component adapter needs --adapter-config, its configuration file")
        path = Path(file)
        if not path.is_file():
            raise ConfigurationError(f"--adapter-config: there is no file {file}")
        self._clock = clock
        self._client = client
        self._namespaces = namespaces
        self._plugins = plugins
        self._configuration = load_configuration(path)
        self._root = path.absolute().parent
        self.running: Adapter | None = None

    async def run(self) -> None:
        """Serve until cancelled."""
        async with AsyncExitStack() as stack:
            self.running = await self._start(stack)
            try:
                await asyncio.Event().wait()
            finally:
                self.running = None

    async def _start(self, stack: AsyncExitStack) -> Adapter:
        try:
            return await stack.enter_async_context(
                serve(
                    self._clock,
                    self._client,
                    self._configuration,
                    self._root,
                    self._namespaces,
                    self._plugins,
                )
            )
        except ListenError as error:
            where = f"{self._configuration.listen.address}:{self._configuration.listen.port}"
            raise ConfigurationError(
                f"the adapter cannot listen on {where}: {error.strerror or error}; choose another listen.port, or 0 for any"
            ) from error

    def health(self) -> dict[str, str]:
        """Return what keeps the adapter from serving.

        A failing source or rule is reported on the adapter's own port and leaves the other metrics available.
        """
        if self.running is None:
            return {"start": "not serving yet"}
        problem = self.running.trust.problem
        return {"trust": problem} if problem else {}
