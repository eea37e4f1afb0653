"""The API server's way to pods: an HTTP CONNECT proxy on a unix socket, between the API server and the proxy of a guest.

kube-apiserver dials addresses of Services; no kube-proxy turns them into addresses of pods, so this does. Started as
`python egress.py SOCKET KUBECONFIG GUEST_PORT`, in any folder.
"""

import asyncio
import base64
import contextlib
import json
import random
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
_LOCAL = ("localhost", HOST)
_LONGEST = 15.0


class Egress:
    """Finds the pod behind an address and joins the API server with it."""

    def __init__(self, kubeconfig: Path, guest_port: int) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._url = cluster["server"]
        self._token = config["users"][0]["user"]["token"]
        self._guest_port = guest_port
        self._trust = ssl.create_default_context(cadata=authority)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the API server."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _LONGEST)
            host, _, port = head.split(b" ", 2)[1].decode().rpartition(":")
            async with asyncio.timeout(_LONGEST):
                far_reader, far_writer = await self._connect(host, int(port))
        except (OSError, TimeoutError, ValueError, LookupError, asyncio.IncompleteReadError) as error:
            writer.write(f"HTTP/1.1 502 Bad Gateway\r\n\r\n{error}".encode())
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if host in _LOCAL:
            return await asyncio.open_connection(host, port)
        address = await asyncio.to_thread(self._resolve, host, port)
        reader, writer = await asyncio.open_connection(HOST, self._guest_port)
        writer.write(f"CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in answer.split(b"\r\n", 1)[0]:
            writer.close()
            raise LookupError(f"{address}: {answer.decode()}")
        return reader, writer

    def _resolve(self, host: str, port: int) -> str:
        """Return the address of a ready pod behind the address of a Service, or the address itself."""
        for service in self._list("/api/v1/services"):
            if service["spec"].get("clusterIP") != host:
                continue
            meta = service["metadata"]
            (wanted,) = [each for each in service["spec"]["ports"] if each["port"] == port]
            query = f"?labelSelector=kubernetes.io/service-name={meta['name']}"
            path = f"/apis/discovery.k8s.io/v1/namespaces/{meta['namespace']}/endpointslices{query}"
            found = [
                f"{endpoint['addresses'][0]}:{target['port']}"
                for piece in self._list(path)
                for target in piece["ports"]
                if target.get("name", "") == wanted.get("name", "")
                for endpoint in piece["endpoints"]
                if endpoint["conditions"].get("ready")
            ]
            if not found:
                raise LookupError(f"service {meta['namespace']}/{meta['name']} has no ready endpoint")
            return random.choice(found)
        return f"{host}:{port}"

    def _list(self, path: str) -> list[dict[str, Any]]:
        request = urllib.request.Request(self._url + path, headers={"Authorization": f"Bearer {self._token}"})
        with urllib.request.urlopen(request, timeout=10, context=self._trust) as answer:
            items: list[dict[str, Any]] = json.load(answer)["items"]
        return items


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def main() -> None:
    """Serve until the process ends."""
    socket, kubeconfig, guest_port = sys.argv[1:]
    egress = Egress(Path(kubeconfig), int(guest_port))
    server = await asyncio.start_unix_server(egress.serve, socket)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
