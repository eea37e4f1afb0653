"""When the usage of all namespaces is listed at once, and how long not after it failed."""

from typing import Any

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.cache.parts import Share
from trimtab.operator.horizontal.usage import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    MOST_PODS_AT_ONCE,
    PODS_PER_REQUEST,
    ListAllPolicy,
)


class Pods:
    """The cached pods: so many in each namespace."""

    def __init__(self, share: Share, counts: dict[str, int]) -> None:
        self.share = share
        self.counts = counts

    def running(self, _group: str, _kind: str) -> "Pods | None":
        return self if self.counts else None

    def count_in(self, namespace: str) -> int:
        return self.counts[namespace]

    def __len__(self) -> int:
        return sum(self.counts.values())


def policy(clock: VirtualClock, *, is_allowed: bool = True, **counts: int) -> ListAllPolicy:
    caches: Any = Pods(Share(() if is_allowed else ["a"]), counts)
    return ListAllPolicy(clock, caches)


@pytest.mark.parametrize(
    ("counts", "asked", "is_cheaper"),
    [
        pytest.param({"a": 5, "b": 5}, ["a", "b"], True, id="two of two namespaces"),
        pytest.param({"a": 5, "b": 5}, ["a"], False, id="one namespace is one list anyway"),
        pytest.param({"a": 5, "b": 5}, [], False, id="no namespace"),
        pytest.param({}, ["a", "b"], False, id="pods are not cached yet"),
        pytest.param(
            {"a": 1, "b": 1, "c": PODS_PER_REQUEST},
            ["a", "b"],
            True,
            id="as many unneeded as a request costs",
        ),
        pytest.param({"a": 1, "b": 1, "c": PODS_PER_REQUEST + 1}, ["a", "b"], False, id="one more unneeded"),
        pytest.param(
            {"a": 1, "b": 1, "c": 1, "d": 2 * PODS_PER_REQUEST},
            ["a", "b", "c"],
            True,
            id="two requests saved",
        ),
        pytest.param({"a": MOST_PODS_AT_ONCE - 1, "b": 1}, ["a", "b"], True, id="the most pods at once"),
        pytest.param({"a": MOST_PODS_AT_ONCE, "b": 1}, ["a", "b"], False, id="too many pods"),
    ],
)
def test_one_list_for_all_is_used_where_it_is_cheaper(counts, asked, is_cheaper):
    assert policy(VirtualClock(), **counts).is_cheaper(asked) is is_cheaper
    assert not policy(VirtualClock(), is_allowed=False, **counts).is_cheaper(asked)


def test_a_failed_list_is_not_tried_until_its_pause_ends_and_pauses_double():
    clock = VirtualClock()
    listing = policy(clock, a=1, b=1)
    pause = FIRST_PAUSE
    for _ in range(8):
        listing.note_failure("too large")
        clock.advance(pause - 1)
        assert not listing.is_cheaper(["a", "b"])
        clock.advance(1)
        assert listing.is_cheaper(["a", "b"])
        pause = min(2 * pause, LONGEST_PAUSE)
    assert pause == LONGEST_PAUSE
    listing.note_success()
    listing.note_failure("too large")
    clock.advance(FIRST_PAUSE)
    assert listing.is_cheaper(["a", "b"])


def test_a_failed_list_is_one_failure_however_many_batches_waited_for_it():
    """W4: each batch doubled the pause, so that one failure of one list cost an hour of lists by namespace."""
    clock = VirtualClock()
    listing = policy(clock, a=1, b=1)
    for _ in range(24):
        listing.note_failure("too large")
    clock.advance(FIRST_PAUSE)
    assert listing.is_cheaper(["a", "b"])
