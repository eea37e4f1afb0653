"""A metrics server behind the real aggregator that serves one trace, point by point, to whoever asks.

The n-th question from a namespace gets the n-th point. So two autoscalers see the same sequence sync by sync, however
their timing differs; when each question came, and how many replicas there were, is kept.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from trimtab.cluster.client import Client
from trimtab.cluster.resource import Json, Resource

GROUPS = ("external.metrics.k8s.io", "metrics.k8s.io")
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", Json, namespaced=False)
SERVICES = Resource("", "v1", "services", "Service", Json)
NAME, NAMESPACE = "trace", "kube-system"
HELD_UP_EVERY = 11
"""Of the questions of a namespace, each of these is answered to an asker that is held up."""


@dataclass
class Course:
    """What one namespace asked and was told."""

    points: list[Json]
    replicas: Callable[[], Awaitable[tuple[int, int]]]
    """Returns the replicas that are asked for, and those that there are."""
    fails: bool = False
    pods: int = 0
    follow: Callable[[], Awaitable[None]] | None = None
    """Lets the workload follow its scale while the asker waits for the answer.

    So what the asker sees does not depend on how busy the machine is: its next sync reads the replicas that this one left.
    """
    asked_at: list[float] = field(default_factory=list)
    series: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    hold_up: Callable[[], None] = lambda: None
    """Called before every `HELD_UP_EVERY`-th answer is sent."""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the question that follows the last point, whose replicas show the last decision."""

    async def next(self) -> Json:
        """Return the point for this question; after the last one it stays."""
        number = len(self.series)
        asked_for, running = await self.replicas()
        self.series.append(asked_for)
        self.running.append(running)
        if self.follow is not None:
            await self.follow()
        # As late as possible: the asker takes its own time when it has the answer.
        self.asked_at.append(time.time())
        if number % HELD_UP_EVERY == HELD_UP_EVERY - 1:
            self.hold_up()
        if number >= len(self.points):
            self.done.set()
        return self.points[min(number, len(self.points) - 1)]


class TraceServer:
    """The server, and its registration with the aggregator."""

    def __init__(self, client: Client, certificates: Path) -> None:
        self.courses: dict[str, Course] = {}
        self._client = client
        self._certificates = certificates

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/apis/{group}/v1beta1", self._resources)
        app.router.add_get("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods", self._pods)
        app.router.add_get(
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}", self._external
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._certificates / "apiserver.crt", self._certificates / "apiserver.key")
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        await self._register(self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        for group in GROUPS:
            await self._client.delete(API_SERVICES, f"v1beta1.{group}")
        await self._client.delete(SERVICES, NAME, NAMESPACE)
        await self._runner.cleanup()

    async def is_available(self) -> bool:
        """Return whether the aggregator reaches us for every group."""
        for group in GROUPS:
            found = await self._client.get(API_SERVICES, f"v1beta1.{group}")
            conditions = found.get("status", {}).get("conditions", [])
            if not any(one["type"] == "Available" and one["status"] == "True" for one in conditions):
                return False
        return True

    async def _register(self, port: int) -> None:
        service = {
            "metadata": {"name": NAME},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
        }
        await self._client.create(SERVICES, service, NAMESPACE)
        for group in GROUPS:
            spec = {
                "group": group,
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {"name": NAME, "namespace": NAMESPACE, "port": port},
            }
            await self._client.create(API_SERVICES, {"metadata": {"name": f"v1beta1.{group}"}, "spec": spec})

    async def _resources(self, request: web.Request) -> web.Response:
        version = f"{request.match_info['group']}/v1beta1"
        return _json(
            {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": []}
        )

    def _course(self, request: web.Request) -> Course:
        """Return the course of a namespace. HPAs that other tests left ask, too."""
        course = self.courses.get(request.match_info["namespace"])
        if course is None:
            raise web.HTTPNotFound
        return course

    async def _external(self, request: web.Request) -> web.Response:
        course = self._course(request)
        metric = request.match_info["metric"]
        if metric == "steady":
            return _json(_series(metric, "300"))
        point = await course.next()
        if course.fails and point["is_down"]:
            return _json(
                {"kind": "Status", "status": "Failure", "message": "the source is down", "code": 503}, 503
            )
        return _json(_series(metric, str(point["load"])))

    async def _pods(self, request: web.Request) -> web.Response:
        """Share the load, as millicores, between the pods that there are."""
        namespace = request.match_info["namespace"]
        course = self._course(request)
        point = await course.next()
        count = course.pods
        items = [
            {
                "metadata": {"name": f"web-rs-{index}", "namespace": namespace, "labels": {"app": "web"}},
                "timestamp": _now(),
                "window": "30s",
                "containers": [
                    {"name": "app", "usage": {"cpu": f"{point['load'] // 2 // count}m", "memory": "1Mi"}}
                ],
            }
            for index in range(count)
        ]
        kind = {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}}
        return _json({**kind, "items": items})


def _series(metric: str, value: str) -> Any:
    item = {"metricName": metric, "metricLabels": {}, "timestamp": _now(), "value": value}
    kind = {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
    }
    return {**kind, "items": [item]}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _json(body: Any, status: int = 200) -> web.Response:
    return web.json_response(body, status=status)
