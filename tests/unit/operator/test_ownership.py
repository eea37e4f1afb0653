"""Which client writes for an object, and that a hand-over waits for the writes under way."""

from types import SimpleNamespace
from typing import Any

import pytest

from trimtab.cluster.leases.epoch import UNSHARED
from trimtab.cluster.leases.fence import ClosedFence, NoFence
from trimtab.cluster.leases.layout import ShardLayout
from trimtab.operator import ownership
from trimtab.operator.ownership import ShardedOwner, SingleOwner

COUNT = 4
LAYOUT = ShardLayout(COUNT, ["shop"])


class Shards:
    """Four shards, of which a test says which are ours."""

    count = COUNT
    layout = LAYOUT

    def __init__(self, *held: int) -> None:
        self._held = held
        self.silent = 0.0

    def __getitem__(self, number: int) -> Any:
        elector = SimpleNamespace(holder="other" if number else "", transitions=number)
        return SimpleNamespace(
            number=number, elector=elector, may_write=lambda: number in self._held, epoch=f"epoch {number}"
        )

    def held(self) -> tuple[int, ...]:
        return self._held

    def may_write(self) -> bool:
        return bool(self._held)

    def silence(self) -> float:
        return self.silent


class Client:
    """Names the client that a fence made."""

    def fenced(self, fence: Any) -> str:
        return f"shard {fence.number}" if hasattr(fence, "number") else f"last of {fence.transitions}"


def owner(*held: int) -> tuple[ShardedOwner, Any]:
    client: Any = Client()
    shards: Any = Shards(*held)
    return ShardedOwner(client, shards), shards


def key_in(shard: int) -> str:
    return next(key for number in range(1000) if LAYOUT.shard_of(key := f"shop/web-{number}") == shard)


def test_a_shard_is_busy_as_long_as_one_of_its_writes_is_under_way():
    owned, _ = owner(1, 2)
    assert not owned.is_busy(1)
    with owned.writing(1) as client:
        assert str(client) == "shard 1"
        assert (owned.is_busy(1), owned.is_busy(2)) == (True, False)
        with owned.writing(1, is_last=True) as last:
            assert str(last) == "last of 1"
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
        assert str(owned.epoch_for(key)) == f"epoch {shard}"
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
        owned.share(f"shop/app-{number}")
    assert owned._shard_of.cache_info().currsize == 10


def test_leases_that_cannot_be_read_for_long_are_a_problem():
    owned, shards = owner(1)
    assert (owned.problem(), owned.may_write(), owned.held()) == ("", True, (1,))
    shards.silent = 1000.0
    assert owned.problem() == "the Leases could not be read for 1000 s"
    shards.silent = 30.0
    assert owned.problem() == "", "for half a minute a replica could still take over"
    shards.silent = 30.6
    assert owned.problem() == "the Leases could not be read for 31 s"
    assert not owner()[0].may_write()


@pytest.mark.parametrize(("fence", "may_write"), [(NoFence(), True), (ClosedFence(), False)])
def test_a_single_owner_owns_everything_while_its_fence_is_open(fence, may_write):
    client: Any = SimpleNamespace(fenced=lambda _fence: "fenced")
    owned = SingleOwner(client, fence)
    assert owned.may_write() is may_write
    assert owned.epoch_for("shop/web") is (UNSHARED if may_write else None)
    assert (owned.held(), owned.share("shop/web"), owned.owns("shop/web")) == ((0,), 0, True)
    assert (owned.problem(), owned.is_busy(0), owned.describe_owner("shop/web")) == ("", False, "")
    with owned.writing_for("shop/web") as lent:
        assert str(lent) == "fenced"
