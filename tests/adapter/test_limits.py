"""S8, S23 and S24: certificates change without a drop; slow and greedy clients cost little."""

import asyncio
import ssl
from contextlib import suppress
from datetime import UTC, datetime

import pytest
import trustme

from tests.adapter.conftest import CUSTOM, HPA, Caller, Front, running, write_configuration
from trimtab.adapter.files import ConfigurationError
from trimtab.serving.certificates import CertificateError
from trimtab.serving.server import ClientLimits

QUEUE = f"{CUSTOM}/namespaces/default/statefulsets.apps/foo/queue_length"


async def connect(adapter):
    tls = ssl.create_default_context(cadata=adapter.tls.pair.authority_pem.decode())
    return await asyncio.open_connection("localhost", adapter.port, ssl=tls)


async def until_closed(reader):
    with suppress(ConnectionError):
        return await asyncio.wait_for(reader.read(), 20)
    return b""


async def test_a_head_beyond_32_kib_is_refused(adapter):
    reader, writer = await connect(adapter)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    with suppress(ConnectionError):
        for _ in range(40):
            writer.write(b"X-Filler: " + b"x" * 1000 + b"\r\n")
            await writer.drain()
    assert (await until_closed(reader)).startswith(b"HTTP/1.1 431")
    writer.close()


async def test_a_whole_head_beyond_32_kib_is_refused_too(adapter):
    reader, writer = await connect(adapter)
    writer.write(b"GET /healthz?" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await until_closed(reader)).startswith(b"HTTP/1.1 431")
    writer.close()


async def test_a_client_that_never_finishes_its_head_is_dropped(adapter, monkeypatch):
    monkeypatch.setattr(adapter.server.connections, "limits", ClientLimits(head_seconds=0.01))
    reader, writer = await connect(adapter)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow")
    assert await until_closed(reader) == b""
    writer.close()


async def test_a_client_that_sends_nothing_at_all_is_dropped(adapter, monkeypatch):
    monkeypatch.setattr(adapter.server.connections, "limits", ClientLimits(head_seconds=0.01))
    reader, writer = await connect(adapter)
    assert await until_closed(reader) == b""
    writer.close()


async def test_an_address_with_too_many_connections_loses_the_stalest_of_its_own(adapter, monkeypatch):
    monkeypatch.setattr(adapter.server.connections, "limits", ClientLimits(per_address=2))
    stalled = [await connect(adapter) for _ in range(2)]
    reader, writer = await connect(adapter)
    assert await until_closed(stalled[0][0]) == b""
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert (await until_closed(reader)).startswith(b"HTTP/1.1 200")
    for _, other in [*stalled, (reader, writer)]:
        other.close()


async def test_a_body_is_not_read_and_takes_the_connection_with_it(adapter):
    reader, writer = await connect(adapter)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000000\r\n\r\n")
    answer = await until_closed(reader)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer.lower()
    writer.close()


async def test_what_is_not_http_gets_a_400(adapter):
    reader, writer = await connect(adapter)
    writer.write(b"\x00\x01\x02 nonsense\r\n\r\n")
    assert (await until_closed(reader)).startswith(b"HTTP/1.1 400")
    writer.close()


def save(pair, directory):
    pair.cert_chain_pems[0].write_to_path(directory / "tls.crt")
    pair.private_key_pem.write_to_path(directory / "tls.key")


async def test_a_replaced_certificate_is_shown_from_the_next_handshake_on(cluster, front: Front, tmp_path):
    authority = trustme.CA()
    save(authority.issue_cert("localhost"), tmp_path)
    config = write_configuration(tmp_path, tls={"certificateFile": "tls.crt", "keyFile": "tls.key"})
    async with running(cluster, config) as adapter:
        tls = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
        serials = []
        for _ in range(2):
            _, writer = await asyncio.open_connection("localhost", adapter.port, ssl=tls)
            serials.append(writer.get_extra_info("peercert")["serialNumber"])
            writer.close()
            save(authority.issue_cert("localhost"), tmp_path)
            adapter.tls.refresh()
        assert serials[0] != serials[1]
        # A pair that does not fit together is not taken over; the last good one stays.
        trustme.CA().issue_cert("localhost").private_key_pem.write_to_path(tmp_path / "tls.key")
        with pytest.raises(CertificateError, match="key does not belong to its certificate"):
            adapter.tls.refresh()
        _, writer = await asyncio.open_connection("localhost", adapter.port, ssl=tls)
        writer.close()


async def test_an_expired_certificate_refuses_to_start_and_says_when_it_ended(cluster, tmp_path):
    expired = trustme.CA().issue_cert("localhost", not_after=datetime(2020, 5, 4, tzinfo=UTC))
    save(expired, tmp_path)
    config = write_configuration(tmp_path, tls={"certificateFile": "tls.crt", "keyFile": "tls.key"})
    with pytest.raises(ConfigurationError, match=r"tls.crt\) expired on 2020-05-04"):
        async with running(cluster, config):
            pass


async def test_requests_under_way_are_answered_before_the_server_stops(cluster, front, tmp_path):
    asked = asyncio.Event()

    def slow(spec):
        asked.set()
        return True

    cluster.may = slow
    async with running(cluster, write_configuration(tmp_path)) as adapter:
        caller = Caller(adapter, front.proxy)
        answer = asyncio.create_task(caller.get(QUEUE, HPA))
        await asked.wait()
    assert (await answer)[0] == 200
    await caller.close()
