"""Exec plugins that print what is no credential, that are rejected, or that never end."""

import asyncio
import json
import signal
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.config import credentials as of_plugins
from trimtab.cluster.config.credentials import ExecCredentials
from trimtab.cluster.config.schema import Cluster, ExecConfig
from trimtab.cluster.errors import ConfigError

VERSION = "client.authentication.k8s.io/v1"


def credentials(code, clock=None, **options):
    config = ExecConfig(command=sys.executable, api_version=VERSION, args=["-c", code], **options)
    return ExecCredentials(clock or VirtualClock(), config, Path(), Cluster(), "user ann")


def printing(**status):
    return f"print({json.dumps({'kind': 'ExecCredential', 'apiVersion': VERSION, 'status': status})!r})"


class Scripted(ExecCredentials):
    """Credentials whose program prints what the test says, and counts its runs."""

    def __init__(self, clock):
        config = ExecConfig(command="plugin", api_version=VERSION)
        super().__init__(clock, config, Path(), Cluster(), "user ann")
        self.runs = 0
        self.works = True

    async def _run(self):
        self.runs += 1
        status = {"token": f"run-{self.runs}"} if self.works else {}
        return json.dumps({"kind": "ExecCredential", "apiVersion": VERSION, "status": status}).encode()


async def test_a_time_without_a_zone_is_an_error_each_time():
    """The second request compared it with a time that has a zone, and failed with a TypeError."""
    clock = VirtualClock()
    plugin = credentials(printing(token="t", expirationTimestamp="2026-01-01T00:00:00"), clock)
    for _ in range(2):
        with pytest.raises(ConfigError, match="printed an expirationTimestamp without a time zone"):
            await plugin.current()
        clock.advance(5)


@pytest.mark.parametrize(
    "status",
    [
        {"clientCertificateData": "c"},
        {"clientKeyData": "k"},
        {"token": ""},
    ],
    ids=["a certificate without its key", "a key without its certificate", "an empty token"],
)
async def test_half_a_credential_is_none(status):
    with pytest.raises(ConfigError, match="neither a token nor a client certificate with its key"):
        await credentials(printing(**status)).current()


@pytest.mark.parametrize("ending", ["in time", "cancelled"])
async def test_a_program_that_does_not_end_is_killed(ending, monkeypatch):
    started = []
    has_started = asyncio.Event()
    start = asyncio.create_subprocess_exec

    async def remember(*args, **options):
        started.append(await start(*args, **options))
        has_started.set()
        return started[0]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", remember)
    if ending == "in time":
        monkeypatch.setattr(of_plugins, "_TIMEOUT_SECONDS", 0.0)
        with pytest.raises(ConfigError, match="did not end within 0 s"):
            await credentials("import time; time.sleep(600)").current()
    else:
        task = asyncio.ensure_future(credentials("import time; time.sleep(600)").current())
        await has_started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert started[0].returncode == -signal.SIGKILL


def test_a_program_has_a_minute_and_a_megabyte():
    assert (of_plugins._TIMEOUT_SECONDS, of_plugins._MAX_OUTPUT) == (60.0, 1024 * 1024)


async def test_a_program_that_prints_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(of_plugins, "_MAX_OUTPUT", 10)
    with pytest.raises(ConfigError, match="printed more than a credential"):
        await credentials(printing(token="t")).current()


def test_rejected_credentials_are_renewed_at_growing_distances():
    clock = VirtualClock()
    times = []

    async def main():
        plugin = Scripted(clock)
        for _ in range(600):
            before = plugin.runs
            credential = await plugin.current()
            if plugin.runs > before:
                times.append(clock.monotonic())
            plugin.reject(credential)
            await clock.sleep(0.1)

    clock.run(main())
    pauses = [round(later - earlier) for earlier, later in pairwise(times)]
    assert pauses == [0, 1, 2, 4, 8, 10, 10, 10, 10]


def test_a_credential_that_worked_for_a_minute_is_renewed_at_once():
    clock = VirtualClock()

    async def main():
        plugin = Scripted(clock)
        for _ in range(3):
            credential = await plugin.current()
            plugin.reject(credential)
            await clock.sleep(60)
        return plugin.runs

    assert clock.run(main()) == 3


def test_a_credential_that_was_replaced_meanwhile_is_not_rejected_again():
    clock = VirtualClock()

    async def main():
        plugin = Scripted(clock)
        old = await plugin.current()
        plugin.reject(old)
        await clock.sleep(60)
        new = await plugin.current()
        plugin.reject(old)
        await clock.sleep(60)
        assert await plugin.current() is new
        return plugin.runs

    assert clock.run(main()) == 2


def test_a_program_that_fails_is_run_again_after_a_second_and_works_again():
    clock = VirtualClock()

    async def main():
        plugin = Scripted(clock)
        plugin.works = False
        for _ in range(2):
            with pytest.raises(ConfigError, match="neither a token"):
                await plugin.current()
        assert plugin.runs == 1
        plugin.works = True
        await clock.sleep(1)
        assert (await plugin.current()).authorization == "Bearer run-2"
        await clock.sleep(1000)
        await plugin.current()
        return plugin.runs

    assert clock.run(main()) == 2
