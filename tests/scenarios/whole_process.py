"""All components of a process on a lab, and objects of every kind for them to work on."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from tests.scenarios.containers import container_sizes
from tests.scenarios.metrics_stub import MetricsStub, WithMetrics
from tests.support.cluster import as_admin
from tests.support.objects import (
    CRDS,
    NAMESPACES,
    cpu_metric,
    deployment,
    external_metric,
    hpa,
    owner_of,
    pod,
    pods_metric,
    target_of,
    vpa,
    workload,
)
from tests.support.transport import Line
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client, DeleteOptions, ListOptions
from trimtab.cluster.resource import DEPLOYMENTS, LEASES, PODS, REPLICA_SETS, Json, Resource
from trimtab.model.crds import all_crds
from trimtab.model.times import format_time
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.kinds import SCOPES, VPAS
from trimtab.operator.vertical.wiring import (
    VerticalRuntime,
    make_admission,
    make_recommender,
    make_roles,
    make_updater,
)
from trimtab_lab.apiserver.server import Server

DATABASES = Resource("example.com", "v1", "databases", "Database", Json)
DATABASE_CRD = {
    "metadata": {"name": "databases.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {
            "plural": "databases",
            "singular": "database",
            "kind": "Database",
            "listKind": "DatabaseList",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
                "subresources": {
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    }
                },
            }
        ],
    },
}


class Process:
    """All components of a process on a lab, stepped by hand."""

    def __init__(self, clock: VirtualClock, server: Server) -> None:
        self.clock = clock
        transport = as_admin(server)
        self.metrics = MetricsStub(now=lambda: format_time(clock.now()))
        self.user = Client(clock, transport, seed=1)
        settings = Settings.of(
            components=("horizontal", "recommender", "updater", "admission", "roles"),
            feature_gates="VPASelectorRefinement=true,InPlace=true,HPASelectionStrategy=true",
            leader_elect=False,
            native_hpas=True,
            namespace="default",
            admission_check="none",
            replacement_check="none",
            node_fit="none",
            eviction_tolerance=1.0,
            sync_period=timedelta(seconds=60),
            look_period=timedelta(0),
            memory_aggregation_interval=timedelta(minutes=10),
            memory_aggregation_interval_count=2,
        )
        self.line = Line(WithMetrics(transport, self.metrics))
        client = Client(clock, self.line, seed=2)
        self.runtime = Runtime(clock, client, settings)
        self.vertical = VerticalRuntime(self.runtime)
        self.recommender = make_recommender(self.vertical)
        self.updater = make_updater(self.vertical)
        self.admission = make_admission(self.vertical)
        self.roles = make_roles(self.vertical)
        self.horizontal = HpaController(self.runtime, config=decision_config(settings))

    def sizes(self) -> Counter[str]:
        """Return the sizes of all containers of the process."""
        self.runtime.registry.collect()
        return container_sizes(
            {
                name: vars(self)[name]
                for name in (
                    "runtime",
                    "vertical",
                    "recommender",
                    "updater",
                    "admission",
                    "roles",
                    "horizontal",
                )
            }
        )

    async def start(self) -> None:
        await self.vertical.view.wait_synced()
        self._running = asyncio.ensure_future(self.horizontal.run())

    async def close(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self.runtime.close()

    async def step(self, seconds: float = 60) -> None:
        await self.clock.sleep(seconds)
        await self.recommender.step()
        await self.updater.step()
        await self.roles.step()

    async def review(self, pod: Json) -> None:
        """Send the review of a new pod to the webhook."""
        request = {
            "uid": "1",
            "kind": {"kind": "Pod"},
            "namespace": pod["metadata"]["namespace"],
            "operation": "CREATE",
            "object": pod,
        }
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        await self.admission.app._reviewer.review("/mutate-pods", json.dumps(body).encode())


class Objects:
    """Applications with all objects of theirs, each in a namespace of its own."""

    def __init__(self, process: Process, apps: list[str]) -> None:
        self._process = process
        self._user = process.user
        self.apps = apps

    async def create(self) -> None:
        for app in self.apps:
            await self.create_namespace(app)
            await self._workload(app)
            await self.foreign_workload(app)
            await self._autoscalers(app)

    async def create_namespace(self, name: str) -> None:
        await self._user.create(NAMESPACES, {"metadata": {"name": name}})

    async def _make(self, resource: Resource[Any], namespace: str, body: Json) -> Json:
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return await self._user.create(resource.untyped(), full, namespace)

    async def _workload(self, app: str) -> None:
        made = await self._make(DEPLOYMENTS, app, deployment(app, 2))
        owners = [owner_of("apps/v1", "Deployment", made)]
        body = workload("ReplicaSet", f"{app}-rs", 2, selector={"app": app}, owners=owners)
        owners = [owner_of("apps/v1", "ReplicaSet", await self._make(REPLICA_SETS, app, body))]
        for index in range(2):
            await self.pod(app, f"{app}-{index}", owners, app)

    async def foreign_database(self, app: str) -> Json:
        """A workload of a custom kind that has a scale."""
        return await self._make(
            DATABASES,
            app,
            {
                "metadata": {"name": f"db-{app}"},
                "spec": {"replicas": 1},
                "status": {"replicas": 1, "selector": f"app=db-{app}"},
            },
        )

    async def foreign_workload(self, app: str) -> None:
        """A workload of a custom kind, whose pod has a role."""
        database = await self.foreign_database(app)
        roles = {"roles.trimtab.dev/lease": "leader", "roles.trimtab.dev/label": "role=leader"}
        owners = [owner_of(DATABASES.api_version, "Database", database)]
        await self.pod(app, f"db-{app}-0", owners, f"db-{app}", roles)
        lease = {"holderIdentity": f"db-{app}-0", "leaseDurationSeconds": 3600}
        now = format_time(self._process.clock.now()).replace("Z", ".000000Z")
        await self._make(
            LEASES,
            app,
            {"metadata": {"name": "leader"}, "spec": lease | {"renewTime": now, "acquireTime": now}},
        )

    async def pod(
        self, namespace: str, name: str, owners: list[Json], app: str, annotations: Json | None = None
    ) -> None:
        body = pod(name, owners=owners, labels={"app": app}, annotations=annotations or {})
        made = await self._make(PODS, namespace, body)
        await self._process.review(made)
        now = format_time(self._process.clock.now())
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
        container = {"name": "app", "ready": True, "restartCount": 0, "image": "x", "imageID": ""}
        status = {
            "phase": "Running",
            "startTime": now,
            "conditions": [ready],
            "containerStatuses": [container],
        }
        await self._user.patch(PODS.untyped(), name, namespace, {"status": status}, subresource="status")
        self._process.metrics.use(namespace, name, cpu="900m", memory="500Mi")

    async def _autoscalers(self, app: str) -> None:
        metrics = [
            cpu_metric(50),
            pods_metric(f"hits-{app}", "5"),
            external_metric(f"queue-{app}", value="5"),
        ]
        spec: Json = {"maxReplicas": 4, "metrics": metrics}
        own = spec | {"selectionStrategy": "OwnerReference"}
        database = {"apiVersion": "example.com/v1", "kind": "Database", "name": f"db-{app}"}
        for resource, on, fields in (
            (OWN_HPAS, target_of("Deployment", app), own),
            (NATIVE_HPAS, database, spec),
        ):
            body = hpa(on["name"], on=on, api_version=resource.api_version, **fields)
            await self._make(resource, app, body)
            policy = {"minReplicas": 1}
            await self._make(VPAS, app, vpa(on["name"], on=on, mode="Recreate", policy=policy))

    async def delete(self) -> None:
        at_once = DeleteOptions(grace_seconds=0)
        for app in self.apps:
            for resource in (
                VPAS,
                OWN_HPAS,
                NATIVE_HPAS,
                SCOPES,
                DEPLOYMENTS,
                REPLICA_SETS,
                DATABASES,
                PODS,
                LEASES,
            ):
                for item in (await self._user.list(resource.untyped(), ListOptions(app))).items:
                    await self._user.delete(
                        resource.untyped(), item["metadata"]["name"], app, options=at_once
                    )
            await self._user.delete(NAMESPACES, app)
        for namespace, name in [key for key in self._process.metrics.usage if key[0] in self.apps]:
            del self._process.metrics.usage[namespace, name]


def play(scenario: Callable[[Process], Awaitable[None]]) -> None:
    """Play a scenario with a process on a lab that serves all kinds, in virtual time."""
    clock = VirtualClock()

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            process = Process(clock, server)
            for crd in (*all_crds(), DATABASE_CRD):
                await process.user.create(CRDS, crd)
            await clock.sleep(1)
            await process.start()
            await scenario(process)
            await process.close()

    clock.run(main())
