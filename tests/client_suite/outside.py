"""A small HTTPS server that the API server calls: a webhook, or an aggregated API."""

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import Callable
from typing import Any

import trustme
from aiohttp import web

Json = dict[str, Any]


class Outside:
    """Serves `answer(path, body)` over TLS on loopback; None is a 404."""

    def __init__(self, answer: Callable[[str, Json], Json | None]) -> None:
        self._answer = answer
        self._authority = trustme.CA()
        self.calls: list[tuple[str, Json]] = []

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self._authority.cert_pem.bytes()).decode()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "Outside":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.port: int = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        body = json.loads(text) if text else {}
        self.calls.append((request.path, body))
        answer = self._answer(request.path, body)
        if answer is None:
            return web.json_response({"kind": "Status", "status": "Failure", "code": 404}, status=404)
        return web.json_response(answer)


def review(body: Json, **response: Any) -> Json:
    """Return the answer to an AdmissionReview."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": body["request"]["uid"], "allowed": True, **response},
    }


def json_patch(*steps: Json) -> Json:
    """Return the part of a response that changes the object."""
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(steps).encode()).decode()}
