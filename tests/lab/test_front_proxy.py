"""The lab proves to aggregated servers who it is, and tells them who asks."""

import asyncio
import json
import ssl
from datetime import UTC, datetime

from trimtab.clock import SystemClock
from trimtab_lab.apiserver.server import Server
from trimtab_lab.serve import ServedLab, make_server_pair, server_tls

CONFIG = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


async def call(server, method, path, body=None):
    headers = {"authorization": f"Bearer {server.tokens.admin}", "content-type": "application/json"}
    answer = await server.request(method, path, "", headers, json.dumps(body).encode() if body else b"")
    return answer.status, json.loads(answer.body)


async def register(server, port):
    service = {"metadata": {"name": "other"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    await call(server, "POST", "/api/v1/namespaces/default/services", service)
    spec = {"group": "other.example.com", "version": "v1", "insecureSkipTLSVerify": True}
    spec["service"] = {"namespace": "default", "name": "other", "port": port}
    api_service = {"metadata": {"name": "v1.other.example.com"}, "spec": spec}
    await call(server, "POST", "/apis/apiregistration.k8s.io/v1/apiservices", api_service)


async def test_an_aggregated_server_can_demand_the_front_proxys_certificate():
    server = Server(SystemClock())
    async with ServedLab(server):
        _, published = await call(server, "GET", CONFIG)
        context = server_tls(make_server_pair(["localhost"], datetime.now(UTC)))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=published["data"]["requestheader-client-ca-file"])
        seen = {}

        async def answer(reader, writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            seen["groups"] = [
                line.split(": ")[1] for line in head if line.lower().startswith("x-remote-group")
            ]
            subject = writer.get_extra_info("peercert")["subject"]
            seen["name"] = dict(pair for part in subject for pair in part)["commonName"]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
            writer.close()

        other = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        async with other:
            await register(server, other.sockets[0].getsockname()[1])
            status, _ = await call(server, "GET", "/apis/other.example.com/v1/things")
        assert status == 200
        assert seen["name"] in json.loads(published["data"]["requestheader-allowed-names"])
        assert seen["groups"] == ["system:masters", "system:authenticated"]
