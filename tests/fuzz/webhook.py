"""The webhook of a running cluster with VPAs and scopes, for any number of reviews on one event loop."""

import base64
import json
import logging
from functools import cache
from typing import Any

from tests.support.asgi import AsgiTransport
from trimtab.clock import VirtualClock, VirtualLoop
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.transport import Request
from trimtab.model.crds import all_crds
from trimtab.model.vpa import webhooks
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission import reviews as production
from trimtab.operator.vertical.wiring import VerticalRuntime, make_admission
from trimtab_lab.apiserver.server import Server
from trimtab_lab.patches import json_patch

PATHS = (
    webhooks.MUTATE_PODS,
    webhooks.VALIDATE_VPAS,
    webhooks.DEFAULT_VPAS,
    webhooks.VALIDATE_SCOPES,
    webhooks.PODS_AND_VPAS,
    webhooks.PROBE,
)
_RECOMMENDATION = {
    "containerRecommendations": [{"containerName": "app", "target": {"cpu": "250m", "memory": "200Mi"}}]
}
OBJECTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/api/v1/namespaces", {"metadata": {"name": "shop"}}),
    (
        "/apis/apps/v1/namespaces/shop/deployments",
        {
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "app", "image": "x"}]},
                },
            },
        },
    ),
    (
        "/apis/autoscaling.trimtab.dev/v1/namespaces/shop/verticalpodautoscalers",
        {
            "apiVersion": "autoscaling.trimtab.dev/v1",
            "kind": "VerticalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
            "status": {"recommendation": _RECOMMENDATION},
        },
    ),
)


class _Internal(logging.Handler):
    """Remembers errors that were caught as bugs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the exception."""
        if record.exc_info and record.exc_info[1] is not None:
            self.errors.append(record.exc_info[1])


class Reviews:
    """Sends bodies to the webhook and checks the answers."""

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._loop = VirtualLoop(self._clock)
        self._internal = _Internal()
        production.log.addHandler(self._internal)
        self._app = self._loop.run_until_complete(self._start())

    async def _start(self) -> AsgiTransport:
        server = Server(self._clock, seed=1)
        await server.__aenter__()
        headers = {"authorization": f"Bearer {server.tokens.admin}"}
        client = Client(self._clock, InProcessTransport(server, headers=headers), seed=1)
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        written = {**headers, "content-type": "application/json"}
        for path, body in (*((definitions, crd) for crd in all_crds()), *OBJECTS):
            answer = await server.request("POST", path, "", written, json.dumps(body).encode())
            assert answer.status == 201, answer.body
        settings = Settings.of(feature_gates="VPASelectorRefinement=true")
        site = VerticalRuntime(Runtime(self._clock, client, settings))
        await site.view.wait_synced()
        return AsgiTransport(make_admission(site).app)

    def check(self, data: bytes) -> None:
        """Send a body to the path that its first byte names."""
        path, body = PATHS[data[0] % len(PATHS)] if data else PATHS[0], data[1:]
        self._internal.errors.clear()
        answer = self._loop.run_until_complete(self._app.request(Request("POST", path, body=body)))
        if self._internal.errors:
            raise self._internal.errors[0]
        assert answer.status == 200, f"{path}: status {answer.status}"
        review = json.loads(answer.body)
        assert review["kind"] == "AdmissionReview"
        response = review["response"]
        if path == webhooks.MUTATE_PODS:
            assert response["allowed"], "a pod is refused"
        if "patch" in response:
            _check_patch(json.loads(base64.b64decode(response["patch"])), body)
        assert len(answer.body) < 64 * 1024 + 4 * len(body), "the answer is much longer than the question"


def _check_patch(operations: list[Any], body: bytes) -> None:
    obj = json.loads(body.decode("utf-8", "replace"))["request"]["object"]
    # The API server sends no object without metadata, and the probe's patch relies on it.
    if isinstance(obj.get("metadata"), dict):
        json_patch.apply(obj, operations)


@cache
def reviews() -> Reviews:
    """Return the one running webhook of this process."""
    return Reviews()
