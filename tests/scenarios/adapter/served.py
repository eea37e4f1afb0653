"""A stage whose metrics come from our running adapter, by way of the API server's own aggregator."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.adapter.conftest import source_of, until, write_configuration
from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.horizontal.workloads import Controllers
from trimtab.adapter.adapter import Adapter, AdapterComponent
from trimtab.adapter.sources.testing import CustomValue, ExternalValue
from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.transport import Transport

SERVICES = Resource("", "v1", "services", "Service", Json)
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", Json, namespaced=False)
CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
VERSIONS = ((CUSTOM, "v1beta2", 200), (CUSTOM, "v1beta1", 100), (EXTERNAL, "v1beta1", 100))
SERVICE, NAMESPACE = "trimtab-adapter-served", "kube-system"


class ServedStage(Stage):
    """A stage without a stub: whoever asks for a metric asks the API server."""

    def __init__(
        self, clock: Clock, transport: Transport, adapter: Adapter, *, prunes: bool, controlled: Controllers
    ) -> None:
        super().__init__(clock, transport, prunes=prunes, controlled=controlled)
        self.transport = transport  # type: ignore[assignment]  # the stub's place is taken by the server itself
        self.client = Client(clock, transport, seed=1)
        self.adapter = adapter

    def set_object(self, metric: str, value: str, resource: str, name: str, **labels: str) -> None:
        """Give a series of an object's metric a value."""
        made = CustomValue(
            metric=metric, value=value, resource=resource, namespace=self.namespace, name=name, labels=labels
        )
        source_of(self.adapter).table.set(made)

    def set_external(self, metric: str, value: str, **labels: str) -> None:
        """Give a series of an external metric a value."""
        made = ExternalValue(metric=metric, value=value, namespace=self.namespace, labels=labels)
        source_of(self.adapter).table.set(made)

    async def register(self, *versions: tuple[str, str, int]) -> None:
        """Have the API server pass the metrics groups on to the adapter, and wait until it does."""
        await self._put(SERVICES, _service(self.adapter.port), NAMESPACE)
        for one in versions:
            await self._put(API_SERVICES, _api_service(self.adapter, *one))
        await self.wait_for(lambda: self._serves({(group, version) for group, version, _ in versions}), 90)

    async def unregister(self, *versions: tuple[str, str, int]) -> None:
        """Take groups away again, and wait until the server no longer offers them."""
        for group, version, _ in versions:
            with suppress(errors.NotFound):
                await self.client.delete(API_SERVICES, f"{version}.{group}")

        async def gone() -> bool:
            return not {(group, version) for group, version, _ in versions} & await self._offered()

        await self.wait_for(gone, 90)

    async def _put(self, resource: Resource[Json], body: Json, namespace: str = "") -> None:
        try:
            await self.client.create(resource, body, namespace)
        except errors.AlreadyExists:
            name = body["metadata"]["name"]
            await self.client.patch(resource, name, namespace, {"spec": body["spec"]})

    async def _offered(self) -> set[tuple[str, str]]:
        """Return the metrics groups and versions that discovery names."""
        found: set[tuple[str, str]] = set()
        for group in (CUSTOM, EXTERNAL):
            with suppress(errors.NotFound):
                offered = await self.client.read("looking up a group", f"/apis/{group}", Json)
                found |= {(group, each["version"]) for each in offered["versions"]}
        return found

    async def _serves(self, wanted: set[tuple[str, str]]) -> bool:
        """Return whether discovery names these versions and their metrics can be listed."""
        try:
            for group, version in wanted:
                await self.client.read("listing metrics", f"/apis/{group}/{version}", Json)
        except errors.ApiError:
            return False
        return wanted <= await self._offered()


def _service(port: int) -> Json:
    spec: Any = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    return {"metadata": {"name": SERVICE}, "spec": spec}


def _api_service(adapter: Adapter, group: str, version: str, priority: int) -> Json:
    spec = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": 100,
        "versionPriority": priority,
        "caBundle": base64.b64encode(adapter.tls.pair.authority_pem).decode(),
        "service": {"name": SERVICE, "namespace": NAMESPACE, "port": adapter.port},
    }
    return {"metadata": {"name": f"{version}.{group}"}, "spec": spec}


@asynccontextmanager
async def _serving(component: AdapterComponent) -> AsyncIterator[Adapter]:
    """Run the adapter as `trimtab run` does, beside its other loops."""
    assert component.health() == {"start": "not serving yet"}
    task = asyncio.ensure_future(component.run())
    try:
        await until(lambda: not component.health())
        assert component.running is not None
        yield component.running
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert component.running is None


@asynccontextmanager
async def served_stage(
    clock: Clock, transport: Transport, directory: Path, *, prunes: bool, controlled: Controllers
) -> AsyncIterator[ServedStage]:
    """Run an adapter, register it, and open a stage in front of it."""
    names = {"names": [f"{SERVICE}.{NAMESPACE}.svc", "localhost"]}
    source = {"name": "by-hand", "testing": {}}
    file = write_configuration(directory, source, tls=names)
    client = Client(clock, transport, seed=4)
    async with _serving(AdapterComponent(clock, client, str(file))) as adapter:
        stage = ServedStage(clock, transport, adapter, prunes=prunes, controlled=controlled)
        await stage.open()
        await stage.register(*VERSIONS)
        try:
            yield stage
        finally:
            await stage.unregister(*VERSIONS)
            await stage.client.delete(SERVICES, SERVICE, NAMESPACE)
            await stage.close()
