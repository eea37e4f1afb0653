"""Which addresses of a name are tried for how long, and what is said if none answers, in virtual time."""

import asyncio
import errno
import socket

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.http import dialer
from trimtab.cluster.http.dialer import Address, Dialer
from trimtab.cluster.http.messages import CannotConnectError, DeadlineError

HOST = Address("http", "api.example", 6443)
HANGS = object()


class Network:
    """Addresses of a name, each with what happens to those who connect to it."""

    def __init__(self, outcomes, look_up=0.0):
        self.tried: list[tuple[int, float]] = []
        self._outcomes = outcomes
        self._look_up = look_up

    async def getaddrinfo(self, *args, **options):
        await asyncio.sleep(self._look_up)
        if isinstance(self._outcomes, OSError):
            raise self._outcomes
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", number) for number in range(len(self._outcomes))]

    async def connect(self, connection, place):
        number = place[4]
        self.tried.append((number, asyncio.get_running_loop().time()))
        outcome = self._outcomes[number]
        if outcome is HANGS:
            await asyncio.Event().wait()
        if isinstance(outcome, OSError):
            raise outcome
        return outcome


def dial(monkeypatch, network, seconds=6.0):
    """Dial, and return the error and how long it took."""
    monkeypatch.setattr(dialer, "_connect_to", network.connect)

    async def main():
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", network.getaddrinfo)
        try:
            return await Dialer(HOST).dial(None, seconds), loop.time()
        except (CannotConnectError, DeadlineError) as error:
            return error, loop.time()

    return VirtualClock().run(main())


def refused():
    return ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 6443)")


@pytest.mark.parametrize(
    ("outcomes", "kind", "words"),
    [
        pytest.param([], CannotConnectError, "the name has no address", id="no address"),
        pytest.param([refused()], CannotConnectError, "Connection refused", id="refused"),
        pytest.param(
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            CannotConnectError,
            "Name or service not known",
            id="no such name",
        ),
        pytest.param(
            [TimeoutError(errno.ETIMEDOUT, "timed out")],
            CannotConnectError,
            "Connection timed out",
            id="the system gave up",
        ),
        pytest.param([OSError()], CannotConnectError, "OSError", id="without a word"),
        pytest.param([HANGS], DeadlineError, "in time", id="nobody answers"),
        pytest.param([refused(), HANGS], DeadlineError, "in time", id="the last address counts"),
        pytest.param([HANGS, refused()], CannotConnectError, "Connection refused", id="the last one refuses"),
    ],
)
def test_why_there_is_no_connection(outcomes, kind, words, monkeypatch):
    error, _ = dial(monkeypatch, Network(outcomes))
    assert type(error) is kind
    assert str(error).startswith(
        ("cannot connect to api.example:6443: ", "no connection to api.example:6443 ")
    )
    assert words in str(error)


def test_each_address_has_a_share_of_the_time_that_is_left(monkeypatch):
    network = Network([HANGS, HANGS, HANGS])
    _, ended = dial(monkeypatch, network)
    assert network.tried == [(0, 0.0), (1, 2.0), (2, 4.0)]
    assert ended == 6.0


def test_time_that_an_address_did_not_need_is_left_for_the_others(monkeypatch):
    network = Network([refused(), HANGS, HANGS])
    dial(monkeypatch, network)
    assert network.tried == [(0, 0.0), (1, 0.0), (2, 3.0)]


def test_a_look_up_that_hangs_ends_with_the_deadline(monkeypatch):
    error, ended = dial(monkeypatch, Network([refused()], look_up=100.0))
    assert type(error) is DeadlineError
    assert ended == 6.0


@pytest.mark.parametrize("place", [0, 1])
def test_the_first_address_that_answers_is_used(place, monkeypatch):
    class Transport:
        def abort(self):
            raise AssertionError("it works")

    outcomes: list[object] = [refused(), refused()]
    outcomes[place] = Transport()
    network = Network(outcomes)
    connection, _ = dial(monkeypatch, network)
    assert connection._wire is outcomes[place]
    assert [number for number, _ in network.tried] == list(range(place + 1))
