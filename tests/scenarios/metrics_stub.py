"""Metrics as a test sets them, answered in front of whatever API server is behind."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from trimtab.cluster.transport import Request, Response, ResponseStream, Transport
from trimtab.model.labels.selector import Selector

Labels = dict[str, str]
Send = Callable[[Request], Awaitable[Response]]


@dataclass
class MetricsStub:
    """Values by pod, object and series; `fail` and `hang` make a group or a path misbehave."""

    now: Callable[[], str]
    usage: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    objects: list[tuple[str, str, str, str, Labels, str]] = field(default_factory=list)
    external: list[tuple[str, str, Labels, str]] = field(default_factory=list)
    fail: dict[str, int] = field(default_factory=dict)
    hang: set[str] = field(default_factory=set)
    raw: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    delay: dict[str, float] = field(default_factory=dict)
    """Seconds that answers take, by the last part of the path."""
    versions: tuple[str, ...] = ("v1beta2", "v1beta1")
    """Versions of the custom metrics API that are served; the first is preferred."""
    usage_versions: tuple[str, ...] = ("v1", "v1beta1")
    """Versions of metrics.k8s.io that are served, and listed."""
    shares: dict[str, dict[str, str]] = field(default_factory=dict)
    """What each pod uses whose name is this or begins with it and a dash; the longest name counts."""
    pods: Callable[[], Awaitable[list[tuple[str, str]]]] | None = None
    """Returns the namespaces and names of the pods that there are; only those of `shares` are asked for."""
    _shared: set[tuple[str, str]] = field(default_factory=set)

    def use(self, namespace: str, pod: str, *, container: str = "app", **amounts: str) -> None:
        """Set what a pod uses; what is not named stays as it was."""
        known = self.usage.get((namespace, pod), {"usage": {"cpu": "0", "memory": "0"}})
        self.usage[namespace, pod] = {"name": container, "usage": known["usage"] | amounts}

    def set_external(self, namespace: str, metric: str, value: str, **labels: str) -> None:
        self.external = [one for one in self.external if one[:3] != (namespace, metric, labels)]
        self.external.append((namespace, metric, labels, value))

    def set_object(
        self, namespace: str, resource: str, name: str, metric: str, value: str, **labels: str
    ) -> None:
        key = (namespace, resource, name, metric, labels)
        self.objects = [one for one in self.objects if one[:5] != key]
        self.objects.append((*key, value))

    async def answer(self, request: Request) -> Response | None:
        parts = unquote(request.path).strip("/").split("/")
        if parts[:1] != ["apis"] or len(parts) < 2 or not parts[1].endswith("metrics.k8s.io"):
            return None
        group = parts[1]
        self.asked.append(request.path)
        if group in self.hang or any(name in request.path for name in self.hang if "/" in name):
            await asyncio.Event().wait()
        await asyncio.sleep(self.delay.get(parts[-1], 0.0))
        # The aggregator lists the versions of usage itself, whatever their server does.
        is_usage_list = request.path == "/apis/metrics.k8s.io"
        code = self.fail.get(request.path) or (None if is_usage_list else self.fail.get(group))
        if code is not None:
            return _json(
                {"kind": "Status", "status": "Failure", "message": "metrics are down", "code": code}, code
            )
        if request.path in self.raw:
            return _json(self.raw[request.path])
        query = dict(request.query)
        if len(parts) == 2:
            served = self.usage_versions if is_usage_list else self.versions
            if not served:
                return _missing()
            versions = [{"version": version} for version in served]
            return _json({"versions": versions, "preferredVersion": versions[0]})
        if group == "metrics.k8s.io":
            if parts[2] not in self.usage_versions:
                return _missing()
            await self._share()
            return _json(self._pods(parts[4] if len(parts) > 4 else None))
        if group == "external.metrics.k8s.io":
            return _json(self._external(parts[4], parts[5], query.get("labelSelector", "")))
        if parts[2] not in self.versions:
            return _missing()
        answer = self._custom(parts[4], parts[5:], query.get("metricLabelSelector", ""))
        return _json(_as_v1beta1(answer) if parts[2] == "v1beta1" else answer)

    async def _share(self) -> None:
        """Give every pod that there is its share, unless a test set its usage by its name."""
        for key in self._shared:
            del self.usage[key]
        self._shared.clear()
        for namespace, pod in await self.pods() if self.pods and self.shares else []:
            names = [name for name in self.shares if f"{pod}-".startswith(f"{name}-")]
            if names and (namespace, pod) not in self.usage:
                self.use(namespace, pod, **self.shares[max(names, key=len)])
                self._shared.add((namespace, pod))

    def _pods(self, namespace: str | None) -> Any:
        return {
            "kind": "PodMetricsList",
            "items": [
                {
                    "metadata": {"name": pod, "namespace": where},
                    "timestamp": self.now(),
                    "window": "30s",
                    "containers": [container],
                }
                for (where, pod), container in sorted(self.usage.items())
                if namespace in {None, where}
            ],
        }

    def _external(self, namespace: str, metric: str, selector: str) -> Any:
        wanted = Selector.parse(selector)
        return {
            "items": [
                {"metricName": name, "metricLabels": labels, "timestamp": self.now(), "value": value}
                for where, name, labels, value in self.external
                if (where, name) == (namespace, metric) and wanted.matches(labels)
            ]
        }

    def _custom(self, namespace: str, rest: list[str], selector: str) -> Any:
        wanted = Selector.parse(selector)
        resource, name, metric = rest if len(rest) == 3 else ("namespaces", "*", rest[-1])
        return {
            "items": [
                {
                    "describedObject": {"kind": "", "namespace": where, "name": called},
                    "metric": {"name": what, "selector": None},
                    "timestamp": self.now(),
                    "value": value,
                }
                for where, kind, called, what, labels, value in self.objects
                if (where, kind, what) == (namespace, resource, metric)
                and name in {"*", called}
                and wanted.matches(labels)
            ]
        }


class WithMetrics:
    """A transport that answers the metrics groups itself."""

    def __init__(self, inner: Transport, stub: MetricsStub) -> None:
        self._inner = inner
        self._stub = stub
        self.around: Callable[[Request, Send], Awaitable[Response]] | None = None
        """Called instead of sending; it sends, or not, by its second argument."""

    async def request(self, request: Request) -> Response:
        return await (self.around(request, self._send) if self.around else self._send(request))

    async def _send(self, request: Request) -> Response:
        return await self._stub.answer(request) or await self._inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def _as_v1beta1(answer: Any) -> Any:
    for item in answer["items"]:
        item["metricName"] = item.pop("metric")["name"]
    return answer


def _missing() -> Response:
    message = "the server could not find the requested resource"
    return _json({"kind": "Status", "status": "Failure", "message": message, "code": 404}, 404)


def _json(body: Any, status: int = 200) -> Response:
    return Response(status, {"content-type": "application/json"}, json.dumps(body).encode())
