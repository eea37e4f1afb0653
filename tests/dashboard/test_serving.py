"""The dashboard on a real socket: loopback only, over HTTPS too, and gone when the program stops."""

import socket
import ssl

import aiohttp
import pytest
import trustme

from tests.dashboard import stage
from tests.dashboard.asking import app_of
from trimtab.dashboard import serving, write_address


async def test_it_listens_on_loopback_and_refuses_other_names():
    app = app_of(stage.steady())
    async with serving(app) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
        async with client.get("/", headers={"Host": "evil.example"}) as answer:
            assert answer.status == 421
        async with client.get("/api/overview") as answer:
            assert answer.status == 401
        async with client.get("/", headers={"Host": f"localhost:{port}"}) as answer:
            assert answer.status == 200
            assert "server" not in answer.headers
        with pytest.raises(OSError, match="in use"):
            async with serving(app_of(), port=port):
                pass


async def test_over_tls_the_cookie_is_bound_to_the_host_and_the_stream_flows():
    authority = trustme.CA()
    server, client_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(client_side)
    app = app_of(stage.steady())
    connector = aiohttp.TCPConnector(ssl=client_side)
    async with serving(app, tls=server) as port:
        base = f"https://localhost:{port}"
        async with aiohttp.ClientSession(base, connector=connector) as client:
            headers = {"Origin": base, "Content-Type": "application/json"}
            async with client.post("/api/login", json={"token": app.token}, headers=headers) as answer:
                assert answer.status == 204
                assert answer.headers["set-cookie"].startswith(f"__Host-trimtab-session-{port}=")
                assert answer.headers["strict-transport-security"]
            async with client.get("/events") as stream:
                assert stream.content_type == "text/event-stream"
                assert await stream.content.readline() == b"retry: 2000\n"


async def test_stopping_ends_open_streams_and_frees_the_port():
    app = app_of(stage.steady())
    async with aiohttp.ClientSession() as client:
        async with serving(app) as port:
            base = f"http://127.0.0.1:{port}"
            headers = {"Origin": base, "Content-Type": "application/json"}
            async with client.post(f"{base}/api/login", json={"token": app.token}, headers=headers) as answer:
                cookie = answer.headers["set-cookie"].partition(";")[0]
            stream = await client.get(f"{base}/events", headers={"Cookie": cookie})
            assert await stream.content.readline() == b"retry: 2000\n"
        assert b"event" not in await stream.content.read()
        stream.release()
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_the_address_is_kept_for_its_owner_only(tmp_path):
    path = tmp_path / "new" / "dashboard.url"
    for address in ("http://127.0.0.1:1/#token=old", "http://127.0.0.1:1/#token=new"):
        write_address(path, address)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("http://127.0.0.1:1/#token=new\n", 0o600)
