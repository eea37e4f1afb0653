"""Renewals that hang or are released, and what the next holder learns of them, in virtual time."""

import asyncio

import pytest

from tests.unit.cluster.fake_api import Answer, Incoming
from tests.unit.cluster.leases.test_election import PATH, run, stop
from trimtab.cluster.leases.lease import LeaseTimes


def hang_once(world, method):
    hung: list[Incoming] = []

    def fault(request):
        if request.method == method and not hung:
            hung.append(request)
            return Answer(200, complete=False, then=asyncio.sleep(1000))
        return None

    world.api.fault = fault


def test_the_times_are_client_gos():
    times = LeaseTimes()
    assert (times.duration, times.renew_deadline, times.retry) == (15.0, 10.0, 2.0)


@pytest.mark.parametrize(
    ("duration", "renew_deadline", "retry"),
    [(10.0, 10.0, 2.0), (15.0, 2.4, 2.0), (15.0, 10.0, 0.0), (15.0, 10.0, -1.0)],
)
def test_each_time_leaves_room_for_the_next(duration, renew_deadline, retry):
    with pytest.raises(ValueError, match="need duration > renew_deadline"):
        LeaseTimes(duration, renew_deadline, retry)
    LeaseTimes(10.1, 10.0, 8.3)


def test_a_renewal_that_hangs_is_sent_again_before_the_lease_is_lost():
    async def scenario(world):
        one = world.elector("one")
        world.start(one)
        await world.clock.sleep(3)
        hang_once(world, "PUT")
        for _ in range(40):
            await world.clock.sleep(0.5)
            assert one.may_write()
        assert len(world.changes) == 1

    run(scenario)


def test_a_release_that_hangs_ends_after_two_seconds():
    async def scenario(world):
        one = world.elector("one")
        task = world.start(one)
        await world.clock.sleep(3)
        hang_once(world, "PUT")
        began = world.clock.monotonic()
        await stop(task)
        assert world.clock.monotonic() - began == pytest.approx(2.0)
        assert not one.held()
        assert world.spec["holderIdentity"] == "one/1"

    run(scenario)


def test_a_release_by_one_that_does_not_lead_changes_nothing():
    async def scenario(world):
        one, two = world.elector("one"), world.elector("two", seed=2)
        world.start(one)
        await world.clock.sleep(1)
        task = world.start(two)
        await world.clock.sleep(5)
        await stop(task)
        assert world.spec["holderIdentity"] == "one/1"
        assert one.may_write()

    run(scenario)


def test_a_released_lease_is_taken_at_once():
    async def scenario(world):
        one, two = world.elector("one"), world.elector("two", seed=2)
        task = world.start(one)
        await world.clock.sleep(5)
        await stop(task)
        lease = world.api.by_path[PATH]
        assert lease["spec"]["holderIdentity"] == ""
        assert lease["spec"]["leaseDurationSeconds"] == 1
        world.start(two)
        await world.clock.sleep(1)
        assert two.may_write()
        assert world.spec["leaseTransitions"] == 1

    run(scenario)
