"""The holder of a Lease: confirmed, unconfirmed, expired, and the edges of its duration."""

from datetime import UTC, datetime, timedelta

import pytest

from trimtab.decide.vertical.control.lease_holder import HolderState, ObservedLease, observe_lease
from trimtab.model.core.objects import Lease, LeaseSpec

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)


def lease(holder="db-0", ago=0.0, duration=10, *, renewed=True) -> Lease:
    moment = NOW - timedelta(seconds=ago) if renewed else None
    return Lease(spec=LeaseSpec(holder_identity=holder, lease_duration_seconds=duration, renew_time=moment))


def observed(*leases: Lease, at=100.0, step=1.0) -> ObservedLease:
    """Observe one state of a Lease after the other, a second apart."""
    found = None
    for number, state in enumerate(leases):
        found = observe_lease(found, state, NOW, at + number * step)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        pytest.param(lease(ago=3), HolderState.HELD, id="renewed within its duration"),
        pytest.param(lease(ago=10), HolderState.HELD, id="renewed exactly its duration ago"),
        pytest.param(lease(ago=10.5), HolderState.UNCONFIRMED, id="renewed longer ago"),
        pytest.param(lease(renewed=False), HolderState.UNCONFIRMED, id="never renewed"),
        pytest.param(lease(holder=""), HolderState.FREE, id="no holder"),
        pytest.param(lease(ago=15, duration=0), HolderState.HELD, id="15 s without a duration"),
        pytest.param(lease(ago=16, duration=0), HolderState.UNCONFIRMED, id="longer without a duration"),
    ],
)
def test_a_lease_that_is_seen_for_the_first_time(seen, state):
    assert observed(seen).holder_state(100.0) is state


@pytest.mark.parametrize(
    ("later", "state"),
    [(0.0, HolderState.HELD), (10.0, HolderState.HELD), (10.5, HolderState.EXPIRED)],
)
def test_a_holder_expires_after_its_duration_without_a_renewal(later, state):
    assert observed(lease()).holder_state(100.0 + later) is state


def test_a_holder_with_a_slow_clock_is_confirmed_by_its_renewal():
    slow = observed(lease(ago=500), lease(ago=498))
    assert slow.holder_state(101.0) is HolderState.HELD
    assert (slow.changed_at, slow.held_since) == (101.0, 100.0)


def test_a_lease_that_did_not_change_is_as_it_was():
    first = observed(lease())
    assert observe_lease(first, lease(), NOW, 105.0) is first


def test_another_holder_holds_since_it_was_seen():
    found = observed(lease("db-0", ago=5), lease("db-1", ago=5))
    assert (found.holder, found.held_since, found.changed_at) == ("db-1", 101.0, 101.0)
    assert found.holder_state(101.0) is HolderState.HELD
    assert observed(lease("db-0"), lease("")).holder_state(101.0) is HolderState.FREE
