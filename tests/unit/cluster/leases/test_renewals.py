"""Renewals that hang or are released, and what the next holder learns of them, in virtual time."""

import asyncio

import pytest

from tests.unit.cluster.fake_api import Answer, Incoming
from tests.unit.cluster.leases.test_election import PATH, run, stop
from trimtab.cluster.leases.epoch import ClockReading, clock_name
from trimtab.cluster.leases.lease import CLOCK_SET, RELEASED_BY, LeaseTimes


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


def test_a_released_lease_names_the_clock_of_its_last_holder():
    async def scenario(world):
        one, two = world.elector("one"), world.elector("two", seed=2)
        task = world.start(one)
        await world.clock.sleep(5)
        await stop(task)
        lease = world.api.by_path[PATH]
        assert lease["spec"]["holderIdentity"] == ""
        assert lease["spec"]["leaseDurationSeconds"] == 1
        assert lease["metadata"]["annotations"][RELEASED_BY] == "one/1"
        released_at = world.clock.now().timestamp()
        world.start(two)
        await world.clock.sleep(1)
        assert two.may_write()
        assert two[0].lock.epoch.holder == clock_name("one/1")
        assert two[0].lock.epoch.renewed == pytest.approx(released_at)
        assert set(two[0].lock.epoch.clocks) == {clock_name("one/1")}
        assert world.spec["leaseTransitions"] == 1

    run(scenario)


def test_the_first_holder_follows_nobody():
    async def scenario(world):
        one = world.elector("one")
        world.start(one)
        await world.clock.sleep(1)
        assert (one[0].lock.epoch.holder, one[0].lock.epoch.renewed, one[0].lock.epoch.clocks) == (
            "",
            None,
            {},
        )
        assert CLOCK_SET not in world.api.by_path[PATH]["metadata"].get("annotations", {})

    run(scenario)


@pytest.mark.parametrize("text", ["soon", "inf", "nan"])
def test_an_annotation_that_is_no_number_counts_as_none(text):
    async def scenario(world):
        one = world.elector("one")
        task = world.start(one)
        await world.clock.sleep(1)
        await stop(task)
        world.api.by_path[PATH]["metadata"]["annotations"][CLOCK_SET] = text
        two = world.elector("two")
        world.start(two)
        await world.clock.sleep(1)
        assert two.may_write()
        assert two[0].lock.epoch.holder == clock_name("one/1")

    run(scenario)


def test_two_renewals_say_more_than_each():
    wide = ClockReading(0.0, 10.0)
    assert wide.and_then(ClockReading(4.0, 20.0)) == ClockReading(4.0, 10.0)
    assert wide.and_then(ClockReading(-4.0, 6.0)) == ClockReading(0.0, 6.0)
    assert wide.and_then(ClockReading(10.0, 20.0)) == ClockReading(10.0, 10.0)
    assert wide.and_then(ClockReading(11.0, 20.0)) == ClockReading(11.0, 20.0)


@pytest.mark.parametrize(
    ("ours", "skew"),
    [(4.0, 0.0), (3.9, -1.1), (5.0, 0.0), (9.0, 0.0), (9.1, 4.1)],
)
def test_clocks_differ_from_a_second_below_and_from_the_highest_reading_on(ours, skew):
    assert ClockReading(5.0, 9.0).skew(100.0 + ours, 100.0) == pytest.approx(skew)
    assert ClockReading(5.0, 9.0).skew(107.0 + ours, 100.0, 7.0) == pytest.approx(skew)
