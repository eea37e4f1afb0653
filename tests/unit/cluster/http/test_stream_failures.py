"""Streams that cannot be opened, on real sockets."""

import pytest

from trimtab.clock import SystemClock
from trimtab.cluster.config import Connection
from trimtab.cluster.errors import TransportError, Unreachable
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.transport import Request


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        pytest.param("/x", Unreachable, "GET /x: cannot connect to 127.0.0.1:1: ", id="nobody is there"),
        pytest.param("/x y", TransportError, "can be asked for", id="a path that cannot be sent"),
    ],
)
async def test_a_watch_that_cannot_be_opened_is_a_transport_error(path, kind, words):
    transport = HttpTransport(SystemClock(), Connection("http://127.0.0.1:1"))
    with pytest.raises(kind, match=words):
        async with transport.stream(Request("GET", path)):
            pass
    await transport.close()
