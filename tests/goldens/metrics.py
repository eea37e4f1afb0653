"""Answers metrics queries, with values by namespace."""

import json
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import unquote

from trimtab.clock import Clock
from trimtab.cluster.resource import Json
from trimtab.cluster.transport import Request, Response, ResponseStream, Transport
from trimtab.model.labels.selector import Selector
from trimtab.model.times import format_time

Metric = str | list[tuple[Json, str]] | int | Json
"""A value, values with labels (the label `pod` names the pod of a Pods metric), the code of a failure, or a whole answer."""


class Metrics:
    """A transport that answers metrics groups itself, and passes all else on."""

    def __init__(self, clock: Clock, inner: Transport, ahead: float) -> None:
        self._clock, self._inner, self._ahead = clock, inner, timedelta(seconds=ahead)
        self.usage: dict[tuple[str, str], Json] = {}
        """What the containers of a pod use, by namespace and pod."""
        self.values: dict[tuple[str, str], Metric] = {}
        """Object, external and pods metrics, by namespace and name."""
        self.ages: dict[str, float] = {}
        """How many seconds old the samples of a namespace are, or how far ahead."""

    async def request(self, request: Request) -> Response:
        """Answer a metrics query, or send a request on."""
        parts = unquote(request.path).strip("/").split("/")
        if parts[0] != "apis" or len(parts) < 2 or not parts[1].endswith("metrics.k8s.io"):
            answer = await self._inner.request(request)
            date = format_datetime(self._clock.now() + self._ahead, usegmt=True)
            return Response(answer.status, {**answer.headers, "date": date}, answer.body)
        group, query = parts[1], dict(request.query)
        if len(parts) == 2:
            versions = [{"version": "v1beta1" if group != "custom.metrics.k8s.io" else "v1beta2"}]
            return _answer({"versions": versions, "preferredVersion": versions[0]})
        if group == "metrics.k8s.io":
            return _answer(self._usage(parts[4] if len(parts) > 4 else None))
        selector = Selector.parse(
            query.get("labelSelector" if group[0] == "e" else "metricLabelSelector", "")
        )
        return self._series(group, parts[4], parts[5:], selector)

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        """Open a watch."""
        return self._inner.stream(request)

    async def close(self) -> None:
        """Close the connections behind."""
        await self._inner.close()

    def _time(self, namespace: str) -> str:
        return format_time(self._clock.now() + self._ahead - timedelta(seconds=self.ages.get(namespace, 0)))

    def _usage(self, namespace: str | None) -> Json:
        items = [
            {
                "metadata": {"name": pod, "namespace": place},
                "timestamp": self._time(place),
                "window": "30s",
                "containers": [{"name": name, "usage": used} for name, used in containers.items()],
            }
            for (place, pod), containers in sorted(self.usage.items())
            if namespace in (None, place)
        ]
        return {"kind": "PodMetricsList", "items": items}

    def _series(self, group: str, namespace: str, path: list[str], selector: Selector) -> Response:
        metric, time = path[-1], self._time(namespace)
        found = self.values.get((namespace, metric), [])
        if isinstance(found, int):
            return failure(found, "the adapter is down")
        if isinstance(found, dict):
            return _answer(found)
        series: list[tuple[Json, str]] = [({}, found)] if isinstance(found, str) else found
        matching = [(labels, value) for labels, value in series if selector.matches(labels)]
        if group == "external.metrics.k8s.io":
            return _answer(
                {
                    "items": [
                        {"metricName": metric, "metricLabels": labels, "timestamp": time, "value": value}
                        for labels, value in matching
                    ]
                }
            )
        items = [
            {
                "describedObject": {"kind": "", "namespace": namespace, "name": labels.get("pod", path[-2])},
                "metric": {"name": metric, "selector": None},
                "timestamp": time,
                "value": value,
            }
            for labels, value in matching
        ]
        return _answer({"items": items})


def failure(code: int, message: str) -> Response:
    """Return the answer of a server that refuses a request."""
    reason = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 503: "ServiceUnavailable"}.get(
        code, "Invalid"
    )
    status = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}
    return _answer(status, code)


def _answer(body: Any, status: int = 200) -> Response:
    return Response(status, {"content-type": "application/json"}, json.dumps(body).encode())
