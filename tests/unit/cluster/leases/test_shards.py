"""Who gets what: the same for everybody, fairly, and with little moved when the number of shards changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.leases.fake_leases import FakeLeases
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import MOST_SHARDS, Family, quota, shard_of

SPACES = [f"team-{number}" for number in range(8000)]
CLIENT = Client(VirtualClock(), AsgiTransport(FakeLeases()))


def test_a_shard_is_a_matter_of_the_namespace_alone():
    """Copies of different versions have to agree, so these never change."""
    assert [shard_of(name, 6) for name in ("shop", "a", "")] == [2, 5, 1]
    assert {shard_of(space, 1) for space in SPACES} == {0}
    family = Family(CLIENT, "trimtab", "trimtab", "me", 6)
    assert [family.shard_of(key) for key in ("shop/web", "shop/api", "shop", "a/b")] == [2, 2, 2, 5]


@pytest.mark.parametrize("shards", [2, 3, 6, 16])
def test_shards_are_about_equal(shards):
    sizes = [sum(shard_of(space, shards) == number for space in SPACES) for number in range(shards)]
    assert min(sizes) > 0.8 * len(SPACES) / shards
    assert max(sizes) < 1.2 * len(SPACES) / shards


def test_one_shard_more_takes_its_share_of_each_and_moves_nothing_else():
    before, after = ([shard_of(space, shards) for space in SPACES] for shards in (5, 6))
    moved = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert {new for _, new in moved} == {5}
    assert 0.8 * len(SPACES) / 6 < len(moved) < 1.2 * len(SPACES) / 6


@given(shards=st.integers(1, MOST_SHARDS), members=st.integers(1, MOST_SHARDS))
def test_quotas_cover_all_shards_and_differ_by_one_at_most(shards, members):
    quotas = [quota(shards, members, position) for position in range(members)]
    assert sum(quotas) == shards
    assert max(quotas) == -(-shards // members)
    assert max(quotas) - min(quotas) <= 1


@pytest.mark.parametrize("count", [0, 17])
def test_a_number_of_shards_that_makes_no_sense_is_refused(count):
    with pytest.raises(ValueError, match=f"--shards: {count} is not possible; use 1 to 16"):
        Family(CLIENT, "trimtab", "trimtab", "me", count)
