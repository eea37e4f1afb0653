"""Listening: `::` answers by IPv6 and by IPv4."""

import asyncio
import socket
from typing import Any

import pytest

from trimtab.clock import VirtualClock
from trimtab.serving.server import EVERYWHERE, served


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"here"})


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this host has no IPv6")
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_every_address_is_of_both_families(address):
    """asyncio listens on `::` by IPv6 alone, and on `0.0.0.0` by IPv4 alone."""

    async def ask() -> bytes:
        async with served(app, EVERYWHERE, 0) as port:
            reader, writer = await asyncio.open_connection(address, port)
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            answer = await reader.read()
            writer.close()
            return answer

    assert asyncio.run(ask()).endswith(b"here\r\n0\r\n\r\n")


def test_a_port_that_is_taken_is_told():
    async def twice() -> None:
        async with served(app, EVERYWHERE, 0) as port, served(app, EVERYWHERE, port):
            pass

    with pytest.raises(OSError, match="in use"):
        asyncio.run(twice())


@pytest.mark.parametrize("address", ["127.0.0.1", "::"])
def test_under_a_virtual_clock_no_time_passes_until_the_server_listens(address):
    """An address was resolved in a thread, and the clock went on meanwhile."""
    clock = VirtualClock()

    async def main() -> None:
        later = asyncio.ensure_future(clock.sleep(90))
        async with served(app, address, 0):
            assert clock.monotonic() == 0
        later.cancel()

    clock.run(main())
