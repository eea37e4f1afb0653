"""The ways to pods: for the API server, and for pods that call a Service.

kube-apiserver dials addresses of Services, and so do pods; no kube-proxy turns them into addresses of pods, so this does. It is
an HTTP CONNECT proxy between those who call and the proxy of a guest: on a unix socket for the API server, on a port of
loopback for the guest. On the same port it answers questions for the names of Services, as DNS does. Started as
`python egress.py SOCKET KUBECONFIG GUEST_PORT PORT`, in any folder.
"""

import asyncio
import base64
import contextlib
import json
import random
import ssl
import struct
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
_LOCAL = ("localhost", HOST)
_LONGEST = 15.0

_HEADER = struct.Struct("!6H")
"""A message of DNS starts with its number, flags, and how many questions and answers of three kinds follow."""
_ADDRESS, _INTERNET = 1, 1
_ANSWERED, _NO_SUCH_NAME = 0x8580, 0x8583
_SECONDS_TO_KEEP = 5


class Egress:
    """Finds the pod behind an address and joins those who call with it."""

    def __init__(self, kubeconfig: Path, guest_port: int) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._url = cluster["server"]
        self._token = config["users"][0]["user"]["token"]
        self._guest_port = guest_port
        self._trust = ssl.create_default_context(cadata=authority)

    async def serve_pods(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of a pod to a Service; all other addresses lead back to the guest."""
        await self.serve(reader, writer, to_services_only=True)

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_services_only: bool = False
    ) -> None:
        """Serve one connection, of the API server unless told."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _LONGEST)
            host, _, port = head.split(b" ", 2)[1].decode().rpartition(":")
            async with asyncio.timeout(_LONGEST):
                far_reader, far_writer = await self._connect(host, int(port), to_services_only)
        except (OSError, TimeoutError, ValueError, LookupError, asyncio.IncompleteReadError) as error:
            writer.write(f"HTTP/1.1 502 Bad Gateway\r\n\r\n{error}".encode())
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    def address_of(self, name: str, namespace: str) -> str | None:
        """Return the address of a Service, or None if there is no such Service or it has no address."""
        for service in self._list(f"/api/v1/namespaces/{namespace}/services"):
            if service["metadata"]["name"] == name:
                address: str = service["spec"].get("clusterIP", "")
                return address if address[:1].isdigit() else None
        return None

    async def _connect(
        self, host: str, port: int, to_services_only: bool
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if host in _LOCAL and not to_services_only:
            return await asyncio.open_connection(host, port)
        address = await asyncio.to_thread(self._pod_behind, host, port)
        if address is None:
            if to_services_only:
                raise LookupError(f"no Service has the address {host}")
            address = f"{host}:{port}"
        reader, writer = await asyncio.open_connection(HOST, self._guest_port)
        writer.write(f"CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in answer.split(b"\r\n", 1)[0]:
            writer.close()
            raise LookupError(f"{address}: {answer.decode()}")
        return reader, writer

    def _pod_behind(self, host: str, port: int) -> str | None:
        """Return the address of a ready pod behind the address of a Service, or None for another address."""
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
                for target in piece["ports"] or ()
                if target.get("name", "") == wanted.get("name", "")
                for endpoint in piece["endpoints"] or ()
                if endpoint["conditions"].get("ready")
            ]
            if not found:
                raise LookupError(f"service {meta['namespace']}/{meta['name']} has no ready endpoint")
            return random.choice(found)
        return None

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


class Names(asyncio.DatagramProtocol):
    """Answers the questions of pods for names."""

    def __init__(self, address_of: Callable[[str, str], str | None]) -> None:
        self._address_of = address_of
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]  # it is UDP
        """Remember the way back."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer one question, beside others."""
        task = asyncio.create_task(self._answer(data, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, data: bytes, addr: tuple[str, int]) -> None:
        # Who gets no answer asks again.
        with contextlib.suppress(OSError, ValueError, LookupError, struct.error):
            self._transport.sendto(await asyncio.to_thread(answer, data, self._address_of), addr)


def answer(message: bytes, address_of: Callable[[str, str], str | None]) -> bytes:
    """Return the answer to a question of DNS. Only `NAME.NAMESPACE.svc.cluster.local` has an address."""
    number = _HEADER.unpack_from(message)[0]
    labels, end = _labels(message)
    kind, _ = struct.unpack_from("!2H", message, end)
    question = message[_HEADER.size : end + 4]
    is_service = len(labels) == 5 and labels[2:] == ["svc", "cluster", "local"]
    address = address_of(labels[0], labels[1]) if is_service else None
    if address is None:
        return _HEADER.pack(number, _NO_SUCH_NAME, 1, 0, 0, 0) + question
    if kind != _ADDRESS:
        return _HEADER.pack(number, _ANSWERED, 1, 0, 0, 0) + question
    # The name is the one of the question, by its place.
    found = struct.pack("!3HIH", 0xC000 | _HEADER.size, _ADDRESS, _INTERNET, _SECONDS_TO_KEEP, 4)
    return (
        _HEADER.pack(number, _ANSWERED, 1, 1, 0, 0) + question + found + bytes(map(int, address.split(".")))
    )


def _labels(message: bytes) -> tuple[list[str], int]:
    """Return the labels of the name that a message asks for, and where the name ends."""
    labels, place = [], _HEADER.size
    while length := message[place]:
        labels.append(message[place + 1 : place + 1 + length].decode().lower())
        place += 1 + length
    return labels, place + 1


async def main() -> None:
    """Serve until the process ends."""
    socket, kubeconfig, guest_port, port = sys.argv[1:]
    egress = Egress(Path(kubeconfig), int(guest_port))
    here = (HOST, int(port))
    await asyncio.get_running_loop().create_datagram_endpoint(lambda: Names(egress.address_of), here)
    for_pods = await asyncio.start_server(egress.serve_pods, *here)
    for_api_server = await asyncio.start_unix_server(egress.serve, socket)
    await asyncio.gather(for_pods.serve_forever(), for_api_server.serve_forever())


if __name__ == "__main__":
    asyncio.run(main())
