"""What clients share: places and bytes. A client that takes too much loses its own, and nobody else's."""

from functools import partial

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trimtab.serving.connections import ClientConnection, ClientLimits, Connections

PLACES, BYTES = 8, 100
NAMES = ("api-server", "attacker", "tenant")
ADDRESSES = st.sampled_from(NAMES)


class Server(RuleBasedStateMachine):
    """Clients that connect, send, stall and leave in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = Connections(ClientLimits(connections=PLACES, body_bytes=BYTES))
        self.open: list[ClientConnection] = []
        self.now = 0.0

    def waiting(self) -> list[ClientConnection]:
        return [connection for connection in self.open if connection.waiting_since is not None]

    @rule(address=ADDRESSES)
    def connect(self, address: str) -> None:
        self.now += 1
        before, ended = list(self.open), self.connections.ended
        has_room = len(before) < PLACES
        connection = self.connections.open(address, self.now)
        lost = [other for other in before if other not in self.open]
        assert len(lost) <= 1
        assert has_room == (self.connections.ended == ended)
        if connection is None:
            assert not self.waiting()  # all are at work
            return
        for victim in lost:
            assert victim.waiting_since is not None
            assert all(
                victim.waiting_since <= other.waiting_since
                for other in self.waiting()
                if other.waiting_since is not None
            )
        connection.end = lambda: self.open.remove(connection)
        self.open.append(connection)

    @rule(data=st.data(), size=st.integers(1, 60))
    def send(self, data: st.DataObject, size: int) -> None:
        if not self.waiting():
            return
        connection = data.draw(st.sampled_from(self.waiting()))
        before = list(self.open)
        held = {other: other.body_bytes + size * (other is connection) for other in before}
        most = max(held[other] for other in self.waiting())
        self.connections.hold(connection, size)
        lost = [other for other in before if other not in self.open]
        assert bool(lost) == (sum(held.values()) > BYTES)
        assert all(other.waiting_since is not None for other in lost)
        assert not lost or most in [held[other] for other in lost]

    @rule(data=st.data())
    def work(self, data: st.DataObject) -> None:
        if self.open:
            data.draw(st.sampled_from(self.open)).waiting_since = None

    @rule(data=st.data())
    def respond(self, data: st.DataObject) -> None:
        if self.open:
            self.now += 1
            connection = data.draw(st.sampled_from(self.open))
            self.connections.release(connection)
            connection.waiting_since = self.now

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if self.open:
            connection = data.draw(st.sampled_from(self.open))
            self.open.remove(connection)
            self.connections.close(connection)
            self.connections.close(connection)

    @invariant()
    def nothing_exceeds_its_limit_and_nothing_is_counted_twice(self) -> None:
        assert len(self.connections) == len(self.open) <= PLACES
        assert sum(connection.body_bytes for connection in self.open) <= BYTES
        assert self.connections._body_bytes == sum(connection.body_bytes for connection in self.open)
        assert set(self.connections._per_address) == {connection.address for connection in self.open}


TestServer = Server.TestCase
TestServer.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


def test_stalled_clients_of_one_address_leave_room_for_every_review():
    """515 connections without a body turned the webhook off: each review was answered 503."""
    connections = Connections(ClientLimits(connections=512))
    for second in range(2000):
        connections.open("attacker", second)
    for second in range(400):
        review = connections.open("api-server", 3000 + second)
        assert review is not None
        review.waiting_since = None


def test_reviews_get_in_also_if_the_attacker_has_the_same_address():
    connections = Connections(ClientLimits(connections=512))
    for second in range(512):
        assert connections.open("node", second) is not None
    for second in range(400):
        review = connections.open("node", 3000 + second)
        assert review is not None
        review.waiting_since = None


def test_a_small_body_gets_in_among_many_large_ones_that_stall():
    """24 unfinished bodies of 15 MiB took 250 MiB."""
    connections = Connections(ClientLimits(body_bytes=1000))
    ended: list[ClientConnection] = []
    for number in range(24):
        stalled = connections.open("attacker", number)
        assert stalled is not None
        stalled.end = partial(ended.append, stalled)
        connections.hold(stalled, 150)
    review = connections.open("api-server", 100)
    assert review is not None
    connections.hold(review, 90)
    assert review.body_bytes == 90
    assert len(ended) == 18
