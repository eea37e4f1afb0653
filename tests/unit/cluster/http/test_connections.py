"""Connections on bad days, on real sockets: what is kept, what is dropped, what is sent again and what never is."""

import asyncio
import contextlib

import pytest
import trustme

from tests.unit.cluster.raw_server import Listener, Server, reply, server_tls, transport_to
from trimtab.clock import SystemClock
from trimtab.cluster.config import ClientCertificate, Connection, Credential, TlsSettings
from trimtab.cluster.errors import Fenced, TransportError
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.transport import Deadlines, Request

GET, PATCH = Request("GET", "/x"), Request("PATCH", "/x", body=b"{}")


def in_turn(*answers):
    """Answer the first request with the first answer and so on."""
    left = list(answers)

    async def answer(server, writer):
        await left.pop(0)(server, writer)

    return answer


async def hang_up(_, writer):
    writer.close()
    raise ConnectionResetError


async def then_hang_up(server, writer):
    await reply()(server, writer)
    await hang_up(server, writer)


def raw(data):
    async def answer(_, writer):
        writer.write(data)
        await writer.drain()

    return answer


async def test_f18_a_write_whose_connection_dies_is_not_sent_again():
    async with Server(in_turn(reply(), hang_up, reply())) as server, transport_to(server) as transport:
        await transport.request(GET)
        with pytest.raises(TransportError, match="PATCH /x: cut: "):
            await transport.request(PATCH)
        assert [line.split()[0] for line, _, _ in server.requests] == ["GET", "PATCH"]
        assert (await transport.request(GET)).status == 200


async def test_a_read_on_a_connection_that_the_server_was_tired_of_is_sent_again_on_a_new_one():
    async with (
        Server(in_turn(reply(), hang_up, reply(b"again"))) as server,
        transport_to(server) as transport,
    ):
        await transport.request(GET)
        assert (await transport.request(GET)).body == b"again"
        assert server.connections == 2


async def test_a_read_on_a_new_connection_that_ends_is_not_repeated_here():
    async with Server(hang_up) as server, transport_to(server) as transport:
        with pytest.raises(TransportError, match="cut"):
            await transport.request(GET)
        assert len(server.requests) == 1


async def test_a_read_that_got_half_an_answer_is_not_repeated_here():
    async def half(server, writer):
        await raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")(server, writer)
        await hang_up(server, writer)

    async with Server(in_turn(reply(), half)) as server, transport_to(server) as transport:
        await transport.request(GET)
        with pytest.raises(TransportError, match="cut"):
            await transport.request(GET)
        assert len(server.requests) == 2


async def test_a_write_after_the_server_closed_an_idle_connection_goes_over_a_new_one():
    closed = asyncio.Event()

    async def close_later(server, writer):
        with contextlib.suppress(ConnectionResetError):
            await then_hang_up(server, writer)
        await writer.wait_closed()
        closed.set()
        raise ConnectionResetError

    async with Server(in_turn(close_later, reply())) as server, transport_to(server) as transport:
        await transport.request(GET)
        await closed.wait()
        for _ in range(5):  # the news of the end is in our socket; the loop has to look at it
            await asyncio.sleep(0)
        assert (await transport.request(PATCH)).status == 200
        assert server.connections == 2


async def test_connection_close_is_obeyed():
    once = reply(headers="Connection: close\r\n")
    async with Server(once) as server, transport_to(server) as transport:
        for _ in range(3):
            assert (await transport.request(PATCH)).status == 200
        assert server.connections == 3


async def test_a_cancelled_request_leaves_nothing_behind_that_others_could_get():
    arrived, may_answer = asyncio.Event(), asyncio.Event()

    async def answer(server, writer):
        if "/slow" in server.requests[-1][0]:
            arrived.set()
            await may_answer.wait()
            await reply(b"late")(server, writer)
        else:
            await reply(b"mine")(server, writer)

    async with Server(answer) as server, transport_to(server) as transport:
        assert (await transport.request(GET)).body == b"mine"
        slow = asyncio.create_task(transport.request(Request("GET", "/slow")))
        await arrived.wait()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        may_answer.set()
        assert [(await transport.request(GET)).body for _ in range(3)] == [b"mine"] * 3
        assert server.connections == 2


@pytest.mark.parametrize("surplus", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", b"rubbish"])
async def test_bytes_after_an_answer_are_never_the_next_answer(surplus):
    first = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" + surplus
    async with Server(in_turn(raw(first), reply(b"good"))) as server, transport_to(server) as transport:
        assert (await transport.request(GET)).body == b"{}"
        assert (await transport.request(GET)).body == b"good"
        assert server.connections == 2


async def test_a_server_that_speaks_unasked_loses_the_connection():
    spoken = asyncio.Event()

    async def speak_later(server, writer):
        await reply()(server, writer)
        await asyncio.sleep(0)
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                await raw(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")(server, writer)
                await asyncio.sleep(0)
        spoken.set()
        raise ConnectionResetError

    async with Server(in_turn(speak_later, reply(b"good"))) as server, transport_to(server) as transport:
        await transport.request(GET)
        await asyncio.wait_for(spoken.wait(), 10)
        assert (await transport.request(PATCH)).body == b"good"


async def test_without_a_length_the_end_ends_the_answer_but_not_if_tls_says_no_farewell():
    async def to_the_end(server, writer):
        await raw(b"HTTP/1.1 200 OK\r\n\r\nall of it")(server, writer)
        await hang_up(server, writer)

    async with Server(to_the_end) as server, transport_to(server) as transport:
        assert (await transport.request(GET)).body == b"all of it"

    async def cut_off(server, writer):
        await raw(b"HTTP/1.1 200 OK\r\n\r\nhalf of it")(server, writer)
        writer.transport.abort()
        raise ConnectionResetError

    authority = trustme.CA()
    trust = TlsSettings(ca_data=authority.cert_pem.bytes())
    tls = server_tls(authority, "127.0.0.1")
    async with Server(cut_off, tls=tls) as server, transport_to(server, tls=trust) as transport:
        with pytest.raises(TransportError, match="cut"):
            await transport.request(GET)


async def test_a_header_that_would_start_another_line_is_not_sent():
    async with Server(reply()) as server, transport_to(server) as transport:
        for request in (
            Request("GET", "/x", headers={"X-Name": "a\r\nAuthorization: Bearer evil"}),
            Request("GET", "/x", headers={"X Name": "a"}),
            Request("GET", "/x y"),
            Request("GET", "/x\r\nHost: evil"),
        ):
            with pytest.raises(TransportError, match=r"cannot be|can be asked"):
                await transport.request(request)
        assert server.requests == []


async def test_a_requests_own_header_goes_before_the_usual_one_whatever_its_spelling():
    async with Server(reply()) as server, transport_to(server) as transport:
        await transport.request(Request("GET", "/x", headers={"ACCEPT": "text/plain"}))
    _, headers, _ = server.requests[0]
    assert headers["ACCEPT"] == "text/plain"
    assert "Accept" not in headers


class SlowCredentials:
    """Credentials that take some turns of the event loop, as a plugin does."""

    async def current(self):
        for _ in range(5):
            await asyncio.sleep(0)
        return Credential("Bearer t")

    def reject(self, credential):
        return


@pytest.mark.parametrize("waits_for", ["a credential", "a new connection", "a look at an idle connection"])
async def test_f25_a_write_whose_fence_closes_while_it_waits_is_not_sent(waits_for):
    """The fence was checked before these waits only: a write arrived 2 s after the lease may have been lost."""
    is_open = [True]
    fenced = Request("PATCH", "/x", body=b"{}", may_send=lambda: is_open[0])
    options = {"credentials": SlowCredentials()} if waits_for == "a credential" else {}
    async with Server(reply()) as server, transport_to(server, **options) as transport:
        if waits_for != "a new connection":
            await transport.request(fenced)
        if waits_for == "a look at an idle connection":
            for connection in transport._pools[""]._idle:
                connection.idle_since -= 2
        before = len(server.requests)
        waiting = asyncio.create_task(transport.request(fenced))
        await asyncio.sleep(0)
        is_open[0] = False
        with pytest.raises(Fenced, match="PATCH /x: not sent"):
            await waiting
        assert (await transport.request(GET)).status == 200
        assert [line for line, _, _ in server.requests[before:]] == ["GET /x HTTP/1.1"]


async def test_f25_a_write_without_time_left_is_not_sent_on_a_connection_that_is_there():
    late = Request("PATCH", "/x", body=b"{}", deadlines=Deadlines().within(0.0))
    async with Server(reply()) as server, transport_to(server) as transport:
        await transport.request(GET)
        with pytest.raises(TransportError, match="PATCH /x"):
            await transport.request(late)
        assert [line for line, _, _ in server.requests] == ["GET /x HTTP/1.1"]


class Unlike(Listener):
    """Says something to whatever it hears first, or nothing at all."""

    def __init__(self, says):
        super().__init__()
        self._says = says

    async def serve(self, reader, writer):
        await reader.read(1)
        writer.write(self._says)
        if not self._says:
            await reader.read()


async def test_a_server_that_never_says_hello_in_tls_is_given_up():
    async with Unlike(b"") as server:
        transport = HttpTransport(SystemClock(), Connection(f"https://127.0.0.1:{server.port}"))
        with pytest.raises(TransportError, match="no answer in time; is it reachable"):
            await transport.request(Request("GET", "/x", deadlines=Deadlines(connect=0.05)))
        await transport.close()


async def test_not_tls_is_said_to_be_not_tls():
    async with Unlike(
        b"HTTP/1.1 400 Bad Request\r\n\r\nClient sent a TLS handshake to an HTTP server."
    ) as server:
        transport = HttpTransport(SystemClock(), Connection(f"https://127.0.0.1:{server.port}"))
        with pytest.raises(TransportError, match=r"TLS with https://127\.0\.0\.1:[0-9]+ failed: .*SSL"):
            await transport.request(GET)
        await transport.close()


async def test_a_new_client_certificate_means_new_connections():
    authority, users = trustme.CA(), trustme.CA()
    pairs = [users.issue_cert("old.example"), users.issue_cert("new.example")]
    seen = []

    async def who(server, writer):
        seen.append(dict(writer.get_extra_info("peercert")["subjectAltName"])["DNS"])
        await reply()(server, writer)

    tls = server_tls(authority, "127.0.0.1", client_authority=users)
    async with Server(who, tls=tls) as server:

        class Rotating:
            number = 0
            made = [
                Credential(None, ClientCertificate(p.cert_chain_pems[0].bytes(), p.private_key_pem.bytes()))
                for p in pairs
            ]

            async def current(self):
                return self.made[self.number]

            def reject(self, credential):
                return

        credentials = Rotating()
        trust = TlsSettings(ca_data=authority.cert_pem.bytes())
        async with transport_to(server, tls=trust, credentials=credentials) as transport:
            for number in (0, 0, 1, 1):
                credentials.number = number
                await transport.request(GET)
    assert seen == ["old.example", "old.example", "new.example", "new.example"]
    assert server.connections == 2


async def test_a_finished_watch_gives_its_connection_back_and_an_abandoned_one_does_not():
    endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"
    answers = in_turn(raw(endless + b"0\r\n\r\n"), reply(), raw(endless), reply())
    async with Server(answers) as server, transport_to(server) as transport:
        async with transport.stream(GET) as stream:
            assert [chunk async for chunk in stream.chunks()] == [b"{}\n"]
        await transport.request(GET)
        assert server.connections == 1
        async with transport.stream(GET) as stream:
            async for chunk in stream.chunks():
                assert chunk == b"{}\n"
                break
        await transport.request(GET)
        assert server.connections == 2


async def test_a_cut_watch_is_an_error_and_not_an_end():
    async def cut(server, writer):
        await raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n")(server, writer)
        await hang_up(server, writer)

    async with Server(cut) as server, transport_to(server) as transport, transport.stream(GET) as stream:
        chunks = aiter(stream.chunks())
        assert await anext(chunks) == b"{}\n"
        with pytest.raises(TransportError, match="GET /x: cut: the server ended the connection"):
            await anext(chunks)


async def test_a_stream_that_nobody_reads_makes_the_server_wait():
    sent = 0
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    is_full = asyncio.Event()

    async def flood(_, writer):
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(1024):
            writer.write(chunk)
            sent += 65_536
            draining = asyncio.ensure_future(writer.drain())
            done, _ = await asyncio.wait([draining], timeout=0.2)
            if not done:
                is_full.set()
                await draining
        writer.write(b"0\r\n\r\n")

    async with Server(flood) as server, transport_to(server) as transport, transport.stream(GET) as stream:
        await asyncio.wait_for(is_full.wait(), 30)
        assert sent < 32 * 1024 * 1024  # what the system's own buffers hold, and ours; not all of it
        total = 0
        async for part in stream.chunks():
            total += len(part)
        assert total == 64 * 1024 * 1024


async def test_closing_ends_what_is_under_way():
    arrived = asyncio.Event()

    async def never(_, writer):
        arrived.set()
        await asyncio.sleep(60)

    async with Server(never) as server, transport_to(server) as transport:
        waiting = asyncio.create_task(transport.request(PATCH))
        await arrived.wait()
        await transport.close()
        with pytest.raises(TransportError, match="closed"):
            await waiting


async def test_the_next_address_of_a_name_is_tried():
    """`localhost` is ::1 and 127.0.0.1 on most machines; the server listens on the second only."""
    async with Server(reply()) as server:
        port = server.url.rpartition(":")[2]
        transport = HttpTransport(SystemClock(), Connection(f"http://localhost:{port}"))
        assert (await transport.request(GET)).status == 200
        await transport.close()
    assert server.requests[0][1]["Host"] == f"localhost:{port}"


async def test_a_name_that_does_not_exist_is_said_so():
    transport = HttpTransport(SystemClock(), Connection("http://no-such-host.invalid"))
    with pytest.raises(TransportError, match=r"GET /x: cannot connect to no-such-host\.invalid:80: "):
        await transport.request(GET)
    await transport.close()


class Proxy(Listener):
    """A proxy: CONNECT is tunnelled to where it says, anything else is answered by itself."""

    def __init__(self, *, tls=None, refuses=""):
        super().__init__(tls=tls)
        self.heads = []
        self._refuses = refuses

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        if self._refuses:
            writer.write(f"HTTP/1.1 {self._refuses}\r\nContent-Length: 5\r\n\r\nsorry".encode())
        elif head.startswith("CONNECT"):
            host, _, port = head.split()[1].rpartition(":")
            beyond = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            try:
                await asyncio.gather(_pump(reader, beyond[1]), _pump(beyond[0], writer))
            finally:
                beyond[1].close()
        else:
            await reply(b"from the proxy")(self, writer)
        await writer.drain()


async def _pump(source, sink):
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()


async def test_plain_http_goes_through_a_proxy_with_its_whole_address():
    async with Proxy() as proxy:
        where = f"http://user:p%40ss@127.0.0.1:{proxy.port}"
        transport = HttpTransport(SystemClock(), Connection("http://api.example:8080/base", proxy=where))
        answer = await transport.request(Request("GET", "/x", [("a", "b")]))
        await transport.close()
    assert answer.body == b"from the proxy"
    assert proxy.heads[0].startswith(
        "GET http://api.example:8080/base/x?a=b HTTP/1.1\r\nHost: api.example:8080\r\n"
    )
    assert "Proxy-Authorization: Basic dXNlcjpwQHNz\r\n" in proxy.heads[0]


@pytest.mark.parametrize("secure_proxy", [False, True], ids=["http proxy", "https proxy, TLS inside TLS"])
async def test_https_goes_through_a_tunnel(secure_proxy):
    authority = trustme.CA()
    tls = server_tls(authority, "127.0.0.1")
    async with Server(reply(b"inside"), tls=tls) as server, Proxy(tls=tls if secure_proxy else None) as proxy:
        scheme = "https" if secure_proxy else "http"
        trust = TlsSettings(ca_data=authority.cert_pem.bytes())
        where = f"{scheme}://user:secret@127.0.0.1:{proxy.port}"
        async with transport_to(server, tls=trust, proxy=where) as transport:
            assert [(await transport.request(GET)).body for _ in range(2)] == [b"inside"] * 2
    assert len(proxy.heads) == 1
    assert proxy.heads[0].startswith(f"CONNECT {server.url.removeprefix('https://')} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=" in proxy.heads[0]
    assert "Proxy-Authorization" not in server.requests[0][1]


async def test_a_proxy_that_refuses_is_named():
    async with Proxy(refuses="407 Proxy Authentication Required") as proxy:
        where = f"http://127.0.0.1:{proxy.port}"
        transport = HttpTransport(SystemClock(), Connection("https://api.example", proxy=where))
        words = rf"the proxy 127\.0\.0\.1:{proxy.port} refused to connect to api\.example:443: 407"
        with pytest.raises(TransportError, match=words):
            await transport.request(PATCH)
        await transport.close()
