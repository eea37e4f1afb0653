"""Properties of rollouts: the limits hold and the rollout ends, whenever pods become available."""

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab_lab.controllers.deployments import (
    ReplicaSetSize,
    RolloutLimits,
    scale_down_old,
    scale_proportionally,
    scale_up_new,
)

sizes = st.integers(0, 12)


def resized(replica_set: ReplicaSetSize, desired: int) -> ReplicaSetSize:
    return ReplicaSetSize(replica_set.name, desired, min(replica_set.available, desired))


@settings(max_examples=150)
@given(
    replicas=st.integers(1, 12),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    readiness=st.lists(st.integers(0, 12), max_size=40),
)
def test_a_rollout_stays_within_its_limits_and_ends(replicas, surge, unavailable, readiness):
    limits = RolloutLimits(surge, min(unavailable, replicas) or int(surge == 0))
    new, old = ReplicaSetSize("new", 0, 0), [ReplicaSetSize("old", replicas, replicas)]
    # Whatever order pods become available in at first, in the end all of them do.
    for ready in [*readiness, *([replicas] * 60)]:
        new = resized(new, scale_up_new(new, old, replicas, limits))
        after = scale_down_old(new, old, replicas, limits)
        old = [resized(size, after[size.name]) for size in old]
        total = new.desired + sum(size.desired for size in old)
        available = new.available + sum(size.available for size in old)
        assert total <= replicas + limits.max_surge
        assert available >= replicas - limits.max_unavailable
        new = ReplicaSetSize("new", new.desired, max(new.available, min(ready, new.desired)))
    assert (new.desired, [size.desired for size in old]) == (replicas, [0])


@settings(max_examples=150)
@given(st.lists(sizes, min_size=1, max_size=5), st.integers(0, 60))
def test_sharing_out_gives_away_exactly_what_there_is(desired, total):
    replica_sets = [ReplicaSetSize(f"set-{index}", size, size) for index, size in enumerate(desired)]
    shared = scale_proportionally(replica_sets, total, sum(desired))
    assert all(size >= 0 for size in shared.values())
    assert sum(shared.values()) == (total if sum(desired) else 0)
