"""The HTTP transport against real sockets on loopback: deadlines, sizes, TLS, credentials."""

import asyncio

import pytest
import trustme

from tests.unit.cluster.raw_server import Server, reply, server_tls, transport_to
from trimtab.clock import SystemClock
from trimtab.cluster.config import Connection, Credential, StaticCredentials, TlsSettings
from trimtab.cluster.errors import TransportError
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.http.dialer import Address, Dialer
from trimtab.cluster.transport import Deadlines, LineTooLongError, Request, lines

SHORT = Deadlines(connect=0.1, first_byte=0.1, total=0.1)


async def test_a_request_arrives_as_it_was_meant():
    async with Server(reply(b'{"a":1}', headers="X-Odd: Yes\r\n")) as server:
        credentials = StaticCredentials(Credential("Bearer t"))
        async with transport_to(
            server, credentials=credentials, headers={"Impersonate-User": "jane"}
        ) as transport:
            request = Request(
                "PATCH", "/a%2Fb", [("q", "x=y,z in (1)")], {"Content-Type": "application/json"}, b"[1]"
            )
            answer = await transport.request(request)
    line, headers, body = server.requests[0]
    assert line == "PATCH /a%2Fb?q=x%3Dy%2Cz+in+%281%29 HTTP/1.1"
    assert headers["Authorization"] == "Bearer t"
    assert headers["Accept-Encoding"] == "identity"
    assert headers["Impersonate-User"] == "jane"
    assert headers["Content-Type"] == "application/json"
    assert body == b"[1]"
    assert (answer.status, answer.body, answer.headers["x-odd"]) == (200, b'{"a":1}', "Yes")


async def test_a_good_answer_may_be_taken_in_while_it_arrives():
    pieces: list[bytes] = []
    async with Server(reply(b'{"a":1}')) as server, transport_to(server) as transport:
        answer = await transport.request(Request("GET", "/a", into=pieces.append))
        again = await transport.request(Request("GET", "/b"))
    assert (b"".join(pieces), answer.body) == (b'{"a":1}', b"")
    assert again.body == b'{"a":1}'


async def test_each_lane_keeps_connections_of_its_own():
    lanes = ["leases", "metrics", ""]
    async with Server(reply()) as server, transport_to(server) as transport:
        for _ in range(3):
            for lane in lanes:
                await transport.request(Request("GET", "/", lane=lane))
            async with transport.stream(Request("GET", "/")) as stream:
                assert [chunk async for chunk in stream.chunks()] == [b"{}"]
    assert len(server.requests) == 12
    assert server.connections == len(lanes)


async def stay_silent(*_):
    await asyncio.sleep(60)


async def drip(_, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("answer", [stay_silent, drip], ids=["headers never come", "a byte at a time"])
async def test_f05_a_deadline_ends_what_the_server_does_not(answer):
    async with Server(answer) as server, transport_to(server) as transport:
        with pytest.raises(TransportError, match=r"GET /slow: .*(in time|within 0.1 s)"):
            await transport.request(Request("GET", "/slow", deadlines=SHORT))


async def test_f05_a_hanging_request_does_not_hold_up_others():
    all_hang = asyncio.Event()

    async def some_hang(server, writer):
        if "/hang" not in server.requests[-1][0]:
            await reply()(server, writer)
            return
        if len(server.requests) == 5:
            all_hang.set()
        await stay_silent()

    async with Server(some_hang) as server, transport_to(server) as transport:
        hanging = [asyncio.create_task(transport.request(Request("GET", "/hang"))) for _ in range(5)]
        await all_hang.wait()
        answer = await transport.request(Request("GET", "/quick"))
        assert answer.status == 200
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)


async def test_redirects_are_not_followed_so_that_the_token_stays_here():
    async with Server(reply()) as elsewhere:
        away = reply(b"", "302 Found", f"Location: {elsewhere.url}/steal\r\n")
        async with Server(away) as server:
            credentials = StaticCredentials(Credential("Bearer secret"))
            async with transport_to(server, credentials=credentials) as transport:
                answer = await transport.request(Request("GET", "/"))
        assert answer.status == 302
        assert elsewhere.requests == []


async def test_an_answer_beyond_the_limit_is_not_read():
    async with Server(reply(b"x" * 100_000)) as server, transport_to(server) as transport:
        with pytest.raises(TransportError, match="more than 1000 bytes"):
            await transport.request(Request("GET", "/big", max_body=1000))


async def test_a_compressed_answer_is_refused():
    async with (
        Server(reply(b"zzz", headers="Content-Encoding: gzip\r\n")) as server,
        transport_to(server) as transport,
    ):
        with pytest.raises(TransportError, match="compressed"):
            await transport.request(Request("GET", "/"))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", id="half a body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}", id="half a chunk"),
        pytest.param(b"", id="nothing at all"),
        pytest.param(b"not http\r\n\r\n", id="not HTTP"),
    ],
)
async def test_a_cut_answer_is_a_transport_error(answer):
    async def cut(_, writer):
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with Server(cut) as server, transport_to(server) as transport:
        with pytest.raises(TransportError, match="POST /x"):
            await transport.request(Request("POST", "/x", body=b"{}"))


async def test_nobody_there_is_a_transport_error():
    async with Server(reply()) as server:
        url = server.url
    transport = HttpTransport(SystemClock(), Connection(url))
    with pytest.raises(TransportError, match=r"cannot connect to 127\.0\.0\.1:[0-9]+: Connection refused"):
        await transport.request(Request("GET", "/"))
    await transport.close()


async def test_f16_a_refused_token_is_read_afresh_and_tried_once_more():
    class Rotating:
        def __init__(self):
            self.tokens = ["old", "new"]

        async def current(self):
            return Credential(f"Bearer {self.tokens[0]}")

        def reject(self, credential):
            self.tokens = self.tokens[1:] or self.tokens

    async def only_new(server, writer):
        good = server.requests[-1][1]["Authorization"] == "Bearer new"
        await reply(b"{}", "200 OK" if good else "401 Unauthorized")(server, writer)

    async with Server(only_new) as server, transport_to(server, credentials=Rotating()) as transport:
        assert (await transport.request(Request("GET", "/"))).status == 200
        assert len(server.requests) == 2
    rejected = Rotating()
    rejected.tokens = ["wrong"]
    async with Server(only_new) as server, transport_to(server, credentials=rejected) as transport:
        assert (await transport.request(Request("GET", "/"))).status == 401
        async with transport.stream(Request("GET", "/")) as stream:
            assert stream.status == 401
        assert len(server.requests) == 2, "without another credential there is nothing to try again"


async def test_a_stream_gives_lines_as_they_come_and_drops_the_half_one():
    async def stream_lines(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in (b'{"a"', b':1}\n{"b":2}\n', b"\n", b'{"c"'):
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with (
        Server(stream_lines) as server,
        transport_to(server) as transport,
        transport.stream(Request("GET", "/w")) as stream,
    ):
        assert [line async for line in lines(stream, 100)] == [b'{"a":1}', b'{"b":2}']


async def test_a_line_of_300_kb_passes_and_one_beyond_the_limit_does_not():
    body = b"x" * 300_000 + b"\n" + b"y" * 300_000
    async with Server(reply(body)) as server, transport_to(server) as transport:
        async with transport.stream(Request("GET", "/w")) as stream:
            assert [len(line) async for line in lines(stream, 400_000)] == [300_000]
        async with transport.stream(Request("GET", "/w")) as stream:
            with pytest.raises(LineTooLongError):
                [line async for line in lines(stream, 200_000)]


async def test_tls_is_verified_by_default():
    authority, stranger = trustme.CA(), trustme.CA()
    async with Server(reply(), tls=server_tls(authority, "127.0.0.1")) as server:
        good = TlsSettings(ca_data=authority.cert_pem.bytes())
        async with transport_to(server, tls=good) as transport:
            assert (await transport.request(Request("GET", "/"))).status == 200
        for settings in (TlsSettings(ca_data=stranger.cert_pem.bytes()), TlsSettings()):
            async with transport_to(server, tls=settings) as transport:
                with pytest.raises(TransportError, match=r"(?i)certificate"):
                    await transport.request(Request("GET", "/"))
        async with transport_to(server, tls=TlsSettings(insecure=True)) as transport:
            assert (await transport.request(Request("GET", "/"))).status == 200


async def test_the_server_name_of_the_kubeconfig_is_the_one_checked():
    authority = trustme.CA()
    async with Server(reply(), tls=server_tls(authority, "api.example")) as server:
        pem = authority.cert_pem.bytes()
        async with transport_to(server, tls=TlsSettings(ca_data=pem, server_name="api.example")) as transport:
            assert (await transport.request(Request("GET", "/"))).status == 200
        async with transport_to(server, tls=TlsSettings(ca_data=pem)) as transport:
            with pytest.raises(TransportError, match=r"(?i)certificate"):
                await transport.request(Request("GET", "/"))


async def test_a_client_certificate_is_shown():
    authority, users = trustme.CA(), trustme.CA()
    pair = users.issue_cert("jane.example")
    tls = server_tls(authority, "127.0.0.1", client_authority=users)
    async with Server(reply(), tls=tls) as server:
        settings = TlsSettings(
            ca_data=authority.cert_pem.bytes(),
            certificate_data=pair.cert_chain_pems[0].bytes(),
            key_data=pair.private_key_pem.bytes(),
        )
        async with transport_to(server, tls=settings) as transport:
            assert (await transport.request(Request("GET", "/"))).status == 200
        async with transport_to(server, tls=TlsSettings(ca_data=authority.cert_pem.bytes())) as transport:
            with pytest.raises(TransportError):
                await transport.request(Request("GET", "/"))


async def test_f20_a_rotated_authority_is_picked_up_without_a_restart(tmp_path):
    old, new = trustme.CA(), trustme.CA()
    file = tmp_path / "ca.crt"
    file.write_bytes(old.cert_pem.bytes())
    tls = TlsSettings(ca_file=file)
    async with (
        Server(reply(), tls=server_tls(new, "127.0.0.1")) as server,
        transport_to(server, tls=tls) as transport,
    ):
        with pytest.raises(TransportError, match=r"(?i)certificate"):
            await transport.request(Request("GET", "/"))
        file.write_bytes(new.cert_pem.bytes())
        assert (await transport.request(Request("GET", "/"))).status == 200


@pytest.mark.parametrize("path", ["", "/", "/k8s/clusters/c-1", "/k8s/clusters/c-1/"])
async def test_an_address_with_a_path_goes_before_every_path(path):
    """As Rancher and other gateways write it."""
    async with Server(reply()) as server:
        transport = HttpTransport(SystemClock(), Connection(server.url + path))
        try:
            await transport.request(Request("GET", "/api/v1/pods", [("limit", "1")]))
            async with transport.stream(Request("GET", "/apis")) as stream:
                assert [chunk async for chunk in stream.chunks()] == [b"{}"]
        finally:
            await transport.close()
    prefix = path.rstrip("/")
    assert [line for line, _, _ in server.requests] == [
        f"GET {prefix}/api/v1/pods?limit=1 HTTP/1.1",
        f"GET {prefix}/apis HTTP/1.1",
    ]


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("https://api.example", ("api.example", 443, "", "api.example", "api.example:443")),
        ("http://api.example", ("api.example", 80, "", "api.example", "api.example:80")),
        ("https://api.example:6443/a/", ("api.example", 6443, "/a", "api.example:6443", "api.example:6443")),
        ("http://api.example:443", ("api.example", 443, "", "api.example:443", "api.example:443")),
        ("https://[fd00::1]:80", ("fd00::1", 80, "", "[fd00::1]:80", "[fd00::1]:80")),
        ("https://[fd00::1]", ("fd00::1", 443, "", "[fd00::1]", "[fd00::1]:443")),
    ],
)
def test_addresses(url, want):
    address = Address.of(url)
    assert (address.host, address.port, address.path, address.host_header, address.authority) == want
    assert address.is_secure is url.startswith("https")
    assert address.authorization is None


def test_a_user_of_an_address_becomes_an_authorization():
    assert Address.of("http://jane:s%40fe@proxy:3128").authorization == "Basic amFuZTpzQGZl"
    assert Address.of("http://jane@proxy").authorization == "Basic amFuZTo="


@pytest.mark.parametrize(
    ("server", "proxy", "prefix", "has_header"),
    [
        ("http://api:1/x", "http://u:p@proxy:2", "http://api:1/x", True),
        ("http://api:1/x", "http://proxy:2", "http://api:1/x", False),
        ("https://api:1/x", "http://u:p@proxy:2", "/x", False),
        ("http://api:1/x", None, "/x", False),
    ],
    ids=["plain", "plain without a user", "through a tunnel", "no proxy"],
)
def test_a_proxy_for_plain_http_gets_the_whole_address(server, proxy, prefix, has_header):
    dialer = Dialer(Address.of(server), proxy=Address.of(proxy) if proxy else None)
    assert dialer.target_prefix == prefix
    assert [name for name, _ in dialer.proxy_headers] == (["Proxy-Authorization"] if has_header else [])
