"""Sending inputs: to `trimtab validate`, and to an API server with our definitions, webhooks and adapter."""

import io
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from tests.inputs.clarity import Answer
from tests.inputs.hpas import SPEC, hpa
from tests.inputs.input import HPAS, SCOPES, VPAS, Sent
from tests.inputs.vpas import VPA
from tests.scenarios.adapter.served import served_stage
from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.horizontal.workloads import Controllers
from tests.scenarios.vertical.stage import Stage
from tests.support.asgi import AsgiTransport
from tests.support.cluster import as_admin
from tests.support.objects import deployment
from tests.unit.model.crds.objects import SCOPE
from tools.peers.cluster import RealCluster
from trimtab import cli
from trimtab.clock import Clock
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.transport import Deadlines, Request, Transport
from trimtab.model.vpa.webhooks import MUTATE_PODS, VALIDATE_SCOPES, VALIDATE_VPAS
from trimtab.operator.vertical.admission.webhook import AdmissionWebhook
from trimtab_lab.apiserver.outbound import Outbound
from trimtab_lab.apiserver.server import Server
from trimtab_lab.serve import ServedLab

TAKEN, UNREADABLE, INVALID, DEFECT = 200, 400, 422, 500
CODES = {0: TAKEN, 1: INVALID, 2: UNREADABLE}
"""What a server would answer where `trimtab validate` ends with such an exit code."""
WEBHOOKS = {MUTATE_PODS, VALIDATE_VPAS, VALIDATE_SCOPES, "/validate-everything"}


def validate(sent: Sent, directory: Path) -> Answer:
    """Give a body to `trimtab validate`, as a file."""
    file = directory / "input"
    file.write_bytes(sent.body)
    out, err = io.StringIO(), io.StringIO()
    began = time.perf_counter()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.answer(["validate", "-o", "json", str(file)])
    took = time.perf_counter() - began
    found = json.loads(out.getvalue() or '{"findings": []}')["findings"]
    causes = tuple((one["field"], one["message"]) for one in found if one["severity"] == "error")
    said = [err.getvalue().strip(), *(f"{field}: {text}" for field, text in causes)]
    return Answer(
        CODES.get(code, DEFECT), "; ".join(filter(None, said)).replace(str(file), "FILE"), causes, took
    )


class ServerDoor:
    """An API server in front of our definitions, webhooks and adapter, with a namespace to send inputs to."""

    def __init__(self, transport: Transport, admission: AdmissionWebhook, namespace: str) -> None:
        self._transport = transport
        self._webhooks = AsgiTransport(admission.app)
        self.namespace = namespace

    async def send(self, sent: Sent) -> Answer:
        """Send an input and return what came back."""
        headers = {"content-type": sent.media, "accept": "application/json"}
        path = sent.path.replace("{ns}", self.namespace)
        # A version from the future is waited for a while before it is refused.
        request = Request(
            sent.method, path, sent.query, headers, sent.body or None, Deadlines(total=20, first_byte=20)
        )
        transport = self._webhooks if path in WEBHOOKS else self._transport
        began = time.perf_counter()
        response = await transport.request(request)
        return _answer(response.status, response.body, time.perf_counter() - began)

    async def prepare(self) -> None:
        """Make what patches and references need."""
        deployments = "/apis/apps/v1/namespaces/{ns}/deployments"
        kept = {"metadata": {"name": "kept"}}
        for path, body in (
            (SCOPES, SCOPE),
            (HPAS, hpa(SPEC) | kept),
            (VPAS, VPA | kept),
            (deployments, deployment("web")),
        ):
            answer = await self.send(Sent("POST", path, json.dumps(body).encode()))
            assert answer.code == 201, answer.message


def _answer(code: int, body: bytes, seconds: float) -> Answer:
    try:
        read = json.loads(body or b"{}")
    except ValueError:
        return Answer(code, body.decode(errors="replace"), (), seconds)
    if code < 400 and isinstance(read, dict) and "response" in read:
        return _reviewed(read["response"], seconds)
    return Answer(code, *_told(read), seconds)


def _reviewed(response: Mapping[str, Any], seconds: float) -> Answer:
    """Return the answer of a webhook; the API server gives its code and message to the client."""
    if response["allowed"]:
        return Answer(TAKEN, "allowed", (), seconds)
    return Answer(response["status"]["code"], *_told(response["status"]), seconds)


def _told(status: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    causes = (status.get("details") or {}).get("causes") or ()
    return str(status.get("message", "")), tuple(
        (one.get("field", ""), one.get("message", "")) for one in causes
    )


@asynccontextmanager
async def server_door(
    clock: Clock, transport: Transport, directory: Path, outbound: Outbound | None = None
) -> AsyncIterator[ServerDoor]:
    """Run our webhooks and our adapter on a server; `outbound` is a lab's way to them."""
    prunes = outbound is None
    async with served_stage(clock, transport, directory, prunes=prunes, controlled=Controllers.PLAYED):
        stage = Stage(clock, transport, outbound)
        await stage.open()
        try:
            async with stage.running() as actor, stage.admitting(actor) as admission:
                door = ServerDoor(transport, admission, stage.namespace)
                await door.prepare()
                yield door
        finally:
            await stage.close()


@asynccontextmanager
async def lab_door(directory: Path) -> AsyncIterator[ServerDoor]:
    """Run it all on a lab, whose aggregator reaches the adapter on a socket."""
    clock = ShiftedClock()
    server = Server(clock)
    async with ServedLab(server):
        transport = as_admin(server)
        async with server_door(clock, transport, directory, server.outbound) as door:
            yield door


@asynccontextmanager
async def real_door(directory: Path, cluster: RealCluster) -> AsyncIterator[ServerDoor]:
    """Run it all on the real kube-apiserver."""
    clock = ShiftedClock()
    transport = HttpTransport(clock, load_kubeconfig(clock, str(cluster.kubeconfig), environ={}))
    async with server_door(clock, transport, directory) as door:
        yield door
