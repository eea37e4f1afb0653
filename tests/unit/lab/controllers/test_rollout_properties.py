"""Whatever becomes available when: a rollout keeps its promises and comes to its end."""

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.lab.controllers.rollout import (
    SetSize,
    SurgeLimits,
    grow_new,
    share_out,
    shrink_old,
)

sizes = st.integers(0, 12)


def resized(one: SetSize, wanted: int) -> SetSize:
    return SetSize(one.name, wanted, wanted, min(one.available, wanted))


@settings(max_examples=150)
@given(
    replicas=st.integers(1, 12),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    readiness=st.lists(st.integers(0, 12), max_size=40),
)
def test_a_rollout_stays_within_its_limits_and_ends(replicas, surge, unavailable, readiness):
    limits = SurgeLimits(surge, min(unavailable, replicas) or int(surge == 0))
    new, old = SetSize("new", 0, 0, 0), [SetSize("old", replicas, replicas, replicas)]
    # Whatever order pods become available in at first, in the end all of them do.
    for ready in [*readiness, *([replicas] * 60)]:
        new = resized(new, grow_new(new, old, replicas, limits))
        after = shrink_old(new, old, replicas, limits)
        old = [resized(one, after[one.name]) for one in old]
        total = new.wanted + sum(one.wanted for one in old)
        available = new.available + sum(one.available for one in old)
        assert total <= replicas + limits.surge
        assert available >= replicas - limits.unavailable
        new = SetSize("new", new.wanted, new.wanted, max(new.available, min(ready, new.wanted)))
    assert (new.wanted, [one.wanted for one in old]) == (replicas, [0])


@settings(max_examples=150)
@given(st.lists(sizes, min_size=1, max_size=5), st.integers(0, 60))
def test_sharing_out_gives_away_exactly_what_there_is(wanted, total):
    sets = [SetSize(f"set-{place}", size, size, size) for place, size in enumerate(wanted)]
    shared = share_out(sets, total, sum(wanted))
    assert all(size >= 0 for size in shared.values())
    assert sum(shared.values()) == (total if sum(wanted) else 0)
