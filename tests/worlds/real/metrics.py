"""Serves the resource, custom and external metrics of all workloads behind the aggregator of the API server."""

import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.worlds.real.hpas import Json
from tests.worlds.real.server import Api
from tests.worlds.real.usage import Value
from tests.worlds.real.workload import Workload, timestamp
from tools.peers.cluster import HOST

_VERSIONS = {
    "metrics.k8s.io": "v1beta1",
    "custom.metrics.k8s.io": "v1beta2",
    "external.metrics.k8s.io": "v1beta1",
}
_RESOURCES = {
    "metrics.k8s.io": [("pods", "PodMetrics"), ("nodes", "NodeMetrics")],
    "custom.metrics.k8s.io": [("pods/load", "MetricValueList")],
    "external.metrics.k8s.io": [("load", "ExternalMetricValueList")],
}
_CODES = {"missing": 404, "error": 500}


class Server:
    """The metrics APIs. While the context lasts, the aggregator asks this process."""

    def __init__(self, api: Api, certificates: Path) -> None:
        self._api, self._certificates = api, certificates
        self.workloads: dict[str, Workload] = {}
        """By namespace."""
        self.played_pods: dict[str, Callable[[], list[Json]]] = {}
        """The usage of pods that VPAs size, by namespace."""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._certificates / "apiserver.crt", self._certificates / "apiserver.key")
        await web.TCPSite(self._runner, HOST, 0, ssl_context=context).start()
        await register(self._api, _VERSIONS, self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        _, group, *rest = [*request.path.strip("/").split("/"), "", ""][:8]
        rest = [part for part in rest if part]
        if group not in _VERSIONS:
            return _failure("NotFound", 404)
        version = f"{group}/{_VERSIONS[group]}"
        if len(rest) < 2:
            return web.json_response(_discovery(group, version, names_resources=bool(rest)))
        if group == "metrics.k8s.io":
            return self._usage(version, rest[2] if rest[1] == "namespaces" else None)
        workload = self.workloads.get(rest[2])
        metrics = workload.world.metrics if workload else []
        number = next((number for number, metric in enumerate(metrics) if metric.name == rest[-1]), None)
        if workload is None or number is None:
            return _failure("NotFound", 404)
        how, measured, value = workload.usage.serve(number, workload.now)
        workload.note_served(number, how, measured, value)
        if how in _CODES:
            return _failure("the metric cannot be had", _CODES[how])
        when = timestamp(workload.zero + measured)
        if group == "external.metrics.k8s.io":
            kind, items = "ExternalMetricValueList", _external(rest[-1], when, value)
        else:
            kind, items = "MetricValueList", _custom(workload, rest[-1], when, value)
        return web.json_response({"kind": kind, "apiVersion": version, "metadata": {}, "items": list(items)})

    def _usage(self, version: str, namespace: str | None) -> web.Response:
        items = [
            item for each, usage in self.played_pods.items() if namespace in (None, each) for item in usage()
        ]
        for workload in list(self.workloads.values()):
            # Ours lists all namespaces at once.
            if workload.namespace == namespace or (namespace is None and workload.side == "ours"):
                how, found = _pod_metrics(workload)
                if how == "error":
                    return _failure("the metrics are broken", 500)
                items += found
        return web.json_response(
            {"kind": "PodMetricsList", "apiVersion": version, "metadata": {}, "items": items}
        )


async def register(api: Api, versions: dict[str, str], port: int) -> None:
    """Let the aggregator ask a port of this machine for these groups, and wait until it does."""
    service = {
        "metadata": {"name": "worlds-metrics"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    await api.call("POST", "/api/v1/namespaces/kube-system/services", service, ok=(409,))
    for group, version in versions.items():
        spec = {
            "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": "worlds-metrics", "namespace": "kube-system", "port": port},
        }  # fmt: skip
        body = {"metadata": {"name": f"{version}.{group}"}, "spec": spec}
        await api.call("POST", "/apis/apiregistration.k8s.io/v1/apiservices", body)
    for group, version in versions.items():
        await api.call("GET", f"/apis/{group}/{version}")


def _discovery(group: str, version: str, *, names_resources: bool) -> Json:
    if not names_resources:
        served = {"groupVersion": version, "version": version.partition("/")[2]}
        return {
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": group,
            "versions": [served],
            "preferredVersion": served,
        }
    resources = [
        {
            "name": name,
            "singularName": "",
            "namespaced": name != "nodes",
            "kind": kind,
            "verbs": ["get", "list"],
        }
        for name, kind in _RESOURCES[group]
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _failure(message: str, code: int) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    return web.json_response({**status, "metadata": {}}, status=code)


def _thousandths(amount: float) -> str:
    return f"{max(0, round(amount))}m"


def _external(name: str, when: str, value: Value) -> Iterable[Json]:
    if isinstance(value, float):
        yield {"metricName": name, "metricLabels": {}, "timestamp": when, "value": _thousandths(value)}


def _custom(workload: Workload, name: str, when: str, value: Value) -> Iterable[Json]:
    described = {"Service": {"front": value}} if isinstance(value, float) else {"Pod": value or {}}
    for kind, amounts in described.items():
        for each, amount in amounts.items():
            if kind == "Service" or each in workload.pods:
                about = {"kind": kind, "namespace": workload.namespace, "name": each, "apiVersion": "v1"}
                metric = {"name": name, "selector": None}
                yield {
                    "describedObject": about, "metric": metric, "timestamp": when, "value": _thousandths(amount)
                }  # fmt: skip


def _pod_metrics(workload: Workload) -> tuple[str, list[Json]]:
    metrics = workload.world.metrics
    first = next((number for number, metric in enumerate(metrics) if metric.resource), None)
    if first is None:
        return "ok", []
    how, measured, value = workload.usage.serve(first, workload.now)
    for number in workload.usage.sharing(first):
        if number in workload.used:
            workload.note_served(number, how, measured, value)
    if not isinstance(value, dict):
        return how, []
    when = timestamp(workload.zero + measured)
    has_side = any(metric.kind == "ContainerResource" for metric in metrics)
    idle: list[Json] = [{"name": "side", "usage": {"cpu": "0", "memory": "0"}}] if has_side else []
    items = []
    for name, amount in value.items():
        if name in workload.pods:
            usage = {"cpu": "1m", "memory": "1Mi"}
            is_cpu = metrics[first].resource == "cpu"
            usage["cpu" if is_cpu else "memory"] = f"{round(amount * 1e6)}n" if is_cpu else str(round(amount))
            items.append(
                pod_metrics(workload.namespace, name, when, [{"name": "main", "usage": usage}, *idle])
            )
    return how, items


def pod_metrics(namespace: str, name: str, when: str, containers: list[Any]) -> Json:
    """Return the usage of a pod as the API has it."""
    metadata = {"name": name, "namespace": namespace, "labels": {"app": "web"}, "creationTimestamp": when}
    return {"metadata": metadata, "timestamp": when, "window": "1s", "containers": containers}
