"""Which client writes for an object, and that a hand-over waits for the writes under way."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.leases.fake_leases import FakeLeases
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family, shard_of
from trimtab.cluster.leases.fence import ClosedFence, NoFence
from trimtab.operator import ownership
from trimtab.operator.ownership import Ownership

COUNT = 4


class Shards(Family):
    """Four shards, of which a test says which are ours."""

    def __init__(self, *held: int) -> None:
        super().__init__(Client(VirtualClock(), AsgiTransport(FakeLeases())), "trimtab", "hpa", "me", COUNT)
        for shard in self._all:
            shard.lock.transitions = shard.number
            shard.lock.holder = "other" if shard.number else ""
            shard.lock._until = 10.0 if shard.number in held else None
            shard.open(VirtualClock())


class FencedClient:
    """Names the client that a fence made."""

    def fenced(self, fence: Any) -> str:
        return f"shard {fence.number}" if hasattr(fence, "number") else f"last of {fence.name}"


def owner(*held: int) -> tuple[Ownership, Shards]:
    client: Any = FencedClient()
    shards = Shards(*held)
    return Ownership(client, shards), shards


def key_in(shard: int) -> str:
    return next(f"{name}/web" for number in range(99) if shard_of(name := f"shop-{number}", COUNT) == shard)


def test_a_shard_is_busy_as_long_as_one_of_its_writes_is_under_way():
    owned, _ = owner(1, 2)
    assert not owned.is_busy(1)
    with owned.writing(1) as client:
        assert str(client) == "shard 1"
        assert (owned.is_busy(1), owned.is_busy(2)) == (True, False)
        with owned.writing(1, is_last=True) as last:
            assert str(last) == "last of hpa-1"
        assert owned.is_busy(1)
    assert not owned.is_busy(1)
    with pytest.raises(ValueError, match="failed"), owned.writing(2):
        raise ValueError("failed")
    assert not owned.is_busy(2)


def test_an_object_is_written_by_the_client_of_its_shard():
    owned, _ = owner(1)
    for shard in range(COUNT):
        key = key_in(shard)
        assert owned.share(key) == owned.share(key) == shard
        assert str(owned.client_for(key)) == f"shard {shard}"
        assert owned.owns(key) is (shard == 1)
        assert (owned.epoch_for(key) is None) is (shard != 1)
        with owned.writing_for(key) as client:
            assert str(client) == f"shard {shard}"
            assert owned.is_busy(shard)


def test_the_owner_of_an_object_of_another_replica_is_named():
    owned, _ = owner(1)
    assert owned.describe_owner(key_in(1)) == ""
    assert "in shard 2 of 4, held by other" in owned.describe_owner(key_in(2))
    assert "held by nobody at the moment" in owned.describe_owner(key_in(0))


def test_objects_that_come_and_go_are_forgotten(monkeypatch):
    """VPAs that were deleted stayed in the table for good."""
    monkeypatch.setattr(ownership, "MOST_KNOWN", 10)
    owned, _ = owner(1)
    for number in range(100):
        owned.share(f"shop-{number}/app")
    assert owned._shard_of.cache_info().currsize == 10


def test_a_replica_that_waits_for_another_number_of_shards_names_whom():
    owned, shards = owner()
    shards.waits_for = "other/2"
    assert "waits for a replica with another --shards, other/2, to stop" in owned.describe_owner(key_in(1))


@pytest.mark.parametrize(("fence", "may_write"), [(NoFence(), True), (ClosedFence(), False)])
def test_a_single_owner_owns_everything_while_its_fence_is_open(fence, may_write):
    client: Any = SimpleNamespace(fenced=lambda _fence: "fenced", clock=VirtualClock())
    owned = Ownership(client, fence)
    assert owned.may_write() is may_write
    assert (owned.epoch_for("shop/web") is None) is not may_write
    assert owned.epoch_for("shop/web") is owned.epoch_for("shop/api")
    assert (owned.held(), owned.share("shop/web"), owned.owns("shop/web")) == ((0,), 0, True)
    assert (owned.is_busy(0), owned.describe_owner("shop/web")) == (False, "")
    with owned.writing_for("shop/web") as lent:
        assert str(lent) == "fenced"
