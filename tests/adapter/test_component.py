"""The adapter as a loop of `trimtab run`: what is wrong with its configuration is said before anything runs."""

import asyncio
import socket

import pytest

from tests.adapter.conftest import until, write_configuration
from trimtab.adapter.adapter import AdapterComponent, serve
from trimtab.adapter.config import load_configuration
from trimtab.adapter.files import ConfigurationError
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.operator.log_format import TextFormatter


@pytest.fixture
def client(cluster):
    return Client(SystemClock(), InProcessTransport(cluster))


def component(client, file):
    return AdapterComponent(client.clock, client, str(file))


async def test_it_is_healthy_once_it_serves_and_knows_whom_to_trust(client, tmp_path):
    made = component(client, write_configuration(tmp_path))
    assert made.health() == {"start": "not serving yet"}
    task = asyncio.ensure_future(made.run())
    await until(lambda: not made.health())
    assert made.running is not None
    assert made.running.port > 0
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert made.running is None


async def test_its_address_is_a_log_line_like_those_of_other_programs(client, tmp_path, caplog, capsys):
    """`trimtab adapter` printed a bare line on standard output."""
    caplog.set_level("INFO")
    configuration = load_configuration(write_configuration(tmp_path))
    async with serve(client.clock, client, configuration, tmp_path) as running:
        lines = [TextFormatter().format(record).partition(" ")[2] for record in caplog.records]
        where = f"address={configuration.listen.address} port={running.port}"
    assert f"INFO serving metrics {where}" in lines
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("file", "complaint"),
    [("", "needs --adapter-config"), ("nowhere.yaml", "there is no file nowhere.yaml")],
)
def test_without_a_file_it_does_not_start(client, file, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        component(client, file)


def test_a_wrong_file_is_named_at_once(client, tmp_path):
    file = write_configuration(tmp_path, {"name": "none"})
    with pytest.raises(ConfigurationError, match="needs exactly one"):
        component(client, file)


async def test_a_port_that_is_taken_is_named_with_what_to_do(client, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = {"port": taken.getsockname()[1]}
        made = component(client, write_configuration(tmp_path, listen=listen))
        with pytest.raises(
            ConfigurationError, match=r"cannot listen on 127.0.0.1:\d+: .*choose another listen.port"
        ):
            await made.run()
