"""Who gets what: the same for everybody, fairly, and with little moved when the number of shards changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cluster.fake_objects import FakeObjects
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.layout import MOST_SEED, MOST_SHARDS, ShardLayout
from trimtab.cluster.leases.shards import Shards, quota
from trimtab.cluster.transport.asgi import AsgiTransport

SPACES = [f"team-{number}" for number in range(8000)]
KEYS = [f"{space}/web" for space in SPACES]


def test_a_shard_is_a_matter_of_the_namespace_alone():
    """Copies of different versions have to agree, so these never change."""
    layout = ShardLayout(6)
    assert [layout.shard_of(key) for key in ("shop/web", "shop/api", "a/b", "")] == [2, 2, 5, 1]
    assert [layout.shard_of_namespace(name) for name in ("shop", "a", "")] == [2, 5, 1]
    assert {ShardLayout(1).shard_of(key) for key in KEYS} == {0}


def test_a_split_namespace_is_divided_by_name_and_others_are_not():
    layout = ShardLayout(6, ["shop"])
    assert [layout.shard_of(key) for key in ("shop/web", "shop/api", "a/b")] == [4, 1, 5]
    assert layout.shard_of_namespace("shop") is None
    assert layout.shard_of_namespace("a") == 5


def test_layouts_have_marks_of_their_own():
    """While a holder's mark differs, no shard changes hands; marks up to 16 are of releases that went by name."""
    splits: list[list[str]] = [[], ["a"], ["a", "b"], ["team-02"]]
    seeds = range(MOST_SEED + 1)
    layouts = [ShardLayout(count, split, seed) for count in (4, 6) for split in splits for seed in seeds]
    marks = {layout.mark for layout in layouts}
    assert len(marks) == len(layouts)
    assert min(marks) > MOST_SHARDS
    assert ShardLayout(6, ["b", "a"]).mark == ShardLayout(6, ["a", "b"]).mark
    assert ShardLayout(6).mark == 106, "releases before the seed have this mark"


def test_another_seed_is_another_assignment():
    plain, other = ([ShardLayout(4, seed=seed).shard_of(key) for key in KEYS] for seed in (0, 7))
    assert plain == [ShardLayout(4).shard_of(key) for key in KEYS]
    moved = sum(before != after for before, after in zip(plain, other, strict=True))
    assert 0.7 * len(KEYS) < moved < 0.8 * len(KEYS)


@pytest.mark.parametrize("shards", [2, 3, 6, 16])
@pytest.mark.parametrize("split", [(), SPACES], ids=["namespaces", "names"])
@pytest.mark.parametrize("seed", [0, 7])
def test_shards_are_about_equal(shards, split, seed):
    layout = ShardLayout(shards, split, seed)
    sizes = [sum(layout.shard_of(key) == number for key in KEYS) for number in range(shards)]
    assert min(sizes) > 0.8 * len(KEYS) / shards
    assert max(sizes) < 1.2 * len(KEYS) / shards


def test_one_shard_more_takes_its_share_of_each_and_moves_nothing_else():
    before, after = ([ShardLayout(shards).shard_of(key) for key in KEYS] for shards in (5, 6))
    moved = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert {new for _, new in moved} == {5}
    assert 0.8 * len(KEYS) / 6 < len(moved) < 1.2 * len(KEYS) / 6


@given(shards=st.integers(1, MOST_SHARDS), members=st.integers(1, MOST_SHARDS))
def test_quotas_cover_all_shards_and_differ_by_one_at_most(shards, members):
    quotas = [quota(shards, members, position) for position in range(members)]
    assert sum(quotas) == shards
    assert max(quotas) == -(-shards // members)
    assert max(quotas) - min(quotas) <= 1


@pytest.mark.parametrize("count", [0, 1, 17])
def test_a_number_of_shards_that_makes_no_sense_is_refused(count):
    client = Client(VirtualClock(), AsgiTransport(FakeObjects()))
    with pytest.raises(ValueError, match=f"--shards: {count} is not possible; use up to 16"):
        Shards(client, "trimtab", "trimtab", "me", ShardLayout(count))
