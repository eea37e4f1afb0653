"""Cluster states follow the shards: created when acquired, dropped when lost."""

from typing import Any

import pytest

from trimtab.cluster.leases.family import shard_of
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.model.core.meta import NamespacedName
from trimtab.operator.ownership import Ownership
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates

SHARDS = 4
VPAS = [NamespacedName(f"shop-{number}", "web") for number in range(20)]


class FakeOwner(Ownership):
    """Holds the shards that a test says."""

    def __init__(self, *held: int) -> None:
        self.shards = held
        self.count = SHARDS

    def held(self) -> tuple[int, ...]:
        return self.shards

    def share(self, key: str) -> int:
        return shard_of(key.partition("/")[0], SHARDS)


def synced(*held: int) -> tuple[FakeOwner, ShardedClusterStates]:
    owner = FakeOwner(*held)
    states = ShardedClusterStates(ClusterState, owner)
    states.sync_shards()
    return owner, states


def held_by(states: ShardedClusterStates) -> set[int]:
    return {shard_of(vpa.namespace, SHARDS) for vpa in VPAS if states.holds(vpa)}


@pytest.mark.parametrize("held", [(), (1, 3), (0, 2)])
def test_a_state_per_shard(held):
    _, states = synced(*held)
    assert len(list(states)) == len(held)
    assert held_by(states) == set(held)
    assert not states.is_whole


def test_a_shard_has_no_state_before_it_is_listed():
    """A VPA that is not cached yet would have been dropped, and a kill of its pods lost."""
    listed = {3}
    states = ShardedClusterStates(ClusterState, FakeOwner(1, 3), listed.__contains__)
    states.sync_shards()
    assert held_by(states) == {3}
    (before,) = states
    listed.add(1)
    assert held_by(states) == {3}, "a step has the same states from its beginning to its end"
    states.sync_shards()
    assert held_by(states) == {1, 3}
    assert list(states)[1] is before


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        pytest.param(lambda owner, states: None, {1, 3}, id="nothing changed"),
        pytest.param(lambda owner, states: states.drop_shard(1), {3}, id="lost and acquired again"),
        pytest.param(lambda owner, states: states.drop_all(), set(), id="all lost and acquired again"),
        pytest.param(lambda owner, states: setattr(owner, "shards", (3,)), {3}, id="no longer held"),
        pytest.param(lambda owner, states: setattr(owner, "shards", (0, 1, 3)), {1, 3}, id="one more"),
    ],
)
def test_only_states_that_were_held_all_the_time_are_kept(change, kept):
    owner, states = synced(1, 3)
    before = dict(zip((1, 3), states, strict=True))
    change(owner, states)
    states.sync_shards()
    after = dict(zip(owner.held(), states, strict=True))
    assert {shard for shard, state in after.items() if before.get(shard) is state} == kept


def test_a_dropped_state_is_readable_until_the_next_sync():
    _, states = synced(1, 3)
    lost = next(vpa for vpa in VPAS if shard_of(vpa.namespace, SHARDS) == 1)
    before = states.get(lost)
    states.drop_shard(1)
    assert not states.holds(lost)
    assert states.get(lost) is before


def test_a_pod_is_in_the_states_of_the_vpas_that_match_it():
    _, states = synced(1, 3)
    by_shard: dict[int, Any] = {shard_of(vpa.namespace, SHARDS): vpa for vpa in VPAS}
    matching = states.matching([str(by_shard[shard]) for shard in (3, 2)])
    assert matching == (states.get(by_shard[3]),)
