"""Pods of a real node find Services by name, and reach only Services by the way that is meant for them."""

import asyncio
import base64
import json
import ssl
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tools.node.egress import HOST, Egress, answer
from tools.peers import pki

ADDRESS, IPV6_ADDRESS = 1, 28
SERVICE = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"clusterIP": "10.96.3.4", "ports": [{"name": "http", "port": 80}]},
}
HEADLESS = {"metadata": {"name": "db", "namespace": "shop"}, "spec": {"clusterIP": "None"}}
EMPTY = {"ports": None, "endpoints": None}
"""What a Service has as long as it has no pods."""
ENDPOINTS = {
    "ports": [{"name": "http", "port": 8080}],
    "endpoints": [
        {"addresses": ["10.88.0.7"], "conditions": {"ready": True}},
        {"addresses": ["10.88.0.8"], "conditions": {"ready": False}},
    ],
}


def question(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", 77, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", kind, 1)


@pytest.mark.parametrize(
    ("name", "kind", "code", "address"),
    [
        pytest.param("web.shop.svc.cluster.local", ADDRESS, 0, "10.96.3.4", id="a Service has its address"),
        pytest.param("Web.Shop.svc.cluster.local", ADDRESS, 0, "10.96.3.4", id="letters have no case"),
        pytest.param(
            "web.shop.svc.cluster.local", IPV6_ADDRESS, 0, None, id="a Service has no other address"
        ),
        pytest.param("none.shop.svc.cluster.local", ADDRESS, 3, None, id="an unknown Service has no name"),
        pytest.param(
            "web.shop.svc.cluster.local.shop.svc.cluster.local",
            ADDRESS,
            3,
            None,
            id="a searched name has none",
        ),
        pytest.param("example.com", ADDRESS, 3, None, id="nothing outside the cluster has a name"),
    ],
)
def test_names_of_services_have_addresses(name, kind, code, address):
    said = answer(question(name, kind), lambda *wanted: {("web", "shop"): "10.96.3.4"}.get(wanted))
    number, flags, questions, answers, *_ = struct.unpack_from("!6H", said)
    assert (number, flags & 0xF, questions, answers) == (77, code, 1, 1 if address else 0)
    assert question(name, kind)[12:] == said[12 : len(question(name, kind))]
    found = said[len(question(name, kind)) :]
    assert (".".join(map(str, found[-4:])) if found else None) == address


class Api(BaseHTTPRequestHandler):
    """Lists what a way asks for."""

    def do_GET(self) -> None:
        body = json.dumps(
            {"items": [EMPTY, ENDPOINTS] if "endpointslices" in self.path else [SERVICE, HEADLESS]}
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory) -> Iterator[Path]:
    """Leads to an API server with two Services."""
    folder = tmp_path_factory.mktemp("egress")
    pki.make(folder)
    server = ThreadingHTTPServer((HOST, 0), Api)
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
    server.socket = trust.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    authority = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
    cluster = {"server": f"https://{HOST}:{server.server_port}", "certificate-authority-data": authority}
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps({"clusters": [{"cluster": cluster}], "users": [{"user": {"token": "secret"}}]})
    )
    yield path
    server.shutdown()
    server.server_close()


def test_only_services_with_an_address_have_one(kubeconfig):
    egress = Egress(kubeconfig, 0)
    assert egress.address_of("web", "shop") == "10.96.3.4"
    assert egress.address_of("db", "shop") is None
    assert egress.address_of("other", "shop") is None


@pytest.mark.parametrize(
    ("who", "target", "reached"),
    [
        pytest.param("serve", "10.96.3.4:80", "10.88.0.7:8080", id="the API server reaches the ready pod"),
        pytest.param("serve", "10.88.0.9:9", "10.88.0.9:9", id="the API server reaches any pod"),
        pytest.param("serve_pods", "10.96.3.4:80", "10.88.0.7:8080", id="a pod reaches the ready pod"),
        pytest.param("serve_pods", "10.96.9.9:80", None, id="a pod reaches no address without a Service"),
        pytest.param("serve_pods", "10.88.0.1:80", None, id="a pod does not come back to its guest"),
        pytest.param("serve_pods", f"{HOST}:1", None, id="a pod does not reach this machine"),
    ],
)
def test_who_reaches_which_pod(kubeconfig, who, target, reached):
    seen = []

    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head.split(b" ")[1].decode())
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello")
        writer.close()

    async def call() -> bytes:
        async with await asyncio.start_server(guest, HOST, 0) as proxy:
            egress = Egress(kubeconfig, proxy.sockets[0].getsockname()[1])
            async with await asyncio.start_server(getattr(egress, who), HOST, 0) as way:
                reader, writer = await asyncio.open_connection(*way.sockets[0].getsockname())
                writer.write(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
                said = await reader.read()
                writer.close()
                return said

    said = asyncio.run(call())
    assert seen == ([reached] if reached else [])
    assert said.endswith(b"hello") if reached else said.startswith(b"HTTP/1.1 502")
