"""One leader at a time, and none that writes a moment too long (faults F25, F26, F28, F29)."""

import asyncio
import json

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, status
from tests.unit.cluster.leases.fake_leases import FakeLeases, User
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family
from trimtab.cluster.leases.lease import LeaseTimes, unique_identity
from trimtab.model.times import parse_time

PATH = "/apis/coordination.k8s.io/v1/namespaces/trimtab/leases/trimtab-0"


class Pausing:
    """A clock that one process can be stopped on, while the others go on."""

    def __init__(self, clock):
        self._clock = clock
        self.now = clock.now
        self.monotonic = clock.monotonic
        self.running = asyncio.Event()
        self.running.set()

    async def sleep(self, seconds):
        await self._clock.sleep(seconds)
        await self.running.wait()


class World:
    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.api = FakeLeases()
        self.tasks: list[asyncio.Task[None]] = []
        self.changes: list[tuple[str, bool, float]] = []

    def elector(self, name, clock=None, seed=1):
        client = Client(clock or self.clock, AsgiTransport(self.api), seed=seed)
        family = Family(client, "trimtab", "trimtab", name)
        family.serve(User(lambda _shard, leads: self.changes.append((name, leads, self.clock.monotonic()))))
        return family

    def start(self, elector):
        task = asyncio.create_task(elector.run())
        self.tasks.append(task)
        return task

    @property
    def spec(self):
        return self.api.by_path[PATH]["spec"]


def run(scenario):
    clock = VirtualClock()

    async def main() -> None:
        world = World(clock)
        try:
            await scenario(world)
        finally:
            for task in world.tasks:
                task.cancel()
            await asyncio.gather(*world.tasks, return_exceptions=True)

    clock.run(main())


async def stop(task):
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_the_first_candidate_creates_the_lease_and_renews_it():
    async def scenario(world):
        one = world.elector("one")
        world.start(one)
        await world.clock.sleep(0.1)
        assert one.may_write()
        first = dict(world.spec)
        assert first["holderIdentity"] == "one/1"
        assert first["leaseDurationSeconds"] == 15
        assert first["leaseTransitions"] == 0
        assert first["renewTime"] == "2026-01-01T00:00:00.000000Z"
        await world.clock.sleep(20)
        assert world.spec["acquireTime"] == first["acquireTime"]
        assert parse_time(world.spec["renewTime"]) > parse_time(first["renewTime"])
        # A list before the Lease is taken and one after, then one write per renewal.
        assert world.api.count()["LIST"] == 2
        assert world.api.count()["PUT"] == 10

    run(scenario)


def test_of_many_candidates_one_leads():
    async def scenario(world):
        electors = [world.elector(f"e{number}", seed=number) for number in range(5)]
        for elector in electors:
            world.start(elector)
        for _ in range(60):
            await world.clock.sleep(1)
            assert sum(elector.may_write() for elector in electors) == 1
        assert len(world.changes) == 1

    run(scenario)


def test_f29_a_leader_that_ends_lets_the_next_take_over_at_once():
    async def scenario(world):
        one, two = world.elector("one"), world.elector("two")
        first = world.start(one)
        await world.clock.sleep(1)
        world.start(two)
        await world.clock.sleep(5)
        await stop(first)
        assert not one.may_write()
        assert world.spec["holderIdentity"] == ""
        await world.clock.sleep(3)
        assert two.may_write()
        assert world.spec["leaseTransitions"] == 1
        assert two[0].lock.transitions == 1

    run(scenario)


def test_f25_a_stopped_leader_may_not_write_when_it_wakes():
    async def scenario(world):
        pausing = Pausing(world.clock)
        one, two = world.elector("one", pausing), world.elector("two")
        world.start(one)
        await world.clock.sleep(1)
        world.start(two)
        await world.clock.sleep(3)
        pausing.running.clear()
        overlap = 0
        for _ in range(400):
            await world.clock.sleep(0.1)
            overlap += one.may_write() and two.may_write()
        assert overlap == 0
        assert two.may_write()
        assert not one.may_write()
        pausing.running.set()
        await world.clock.sleep(5)
        assert not one.held()
        assert world.spec["holderIdentity"] == "two/1"

    run(scenario)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda: Answer(429, status(429, "TooManyRequests")), id="429"),
        pytest.param(lambda: Answer(503), id="503"),
        pytest.param(lambda: Answer(200, complete=False, then=asyncio.sleep(1000)), id="no answer"),
        pytest.param(lambda: Answer(403, status(403, "Forbidden")), id="403"),
    ],
)
def test_f26_a_leader_that_cannot_renew_steps_down_before_another_may_lead(answer):
    async def scenario(world):
        one, two = world.elector("one"), world.elector("two", seed=2)
        world.start(one)
        await world.clock.sleep(0.5)
        world.start(two)
        await world.clock.sleep(4)
        world.api.fault = lambda request: (
            answer()
            if request.method != "GET" and json.loads(request.body)["spec"]["holderIdentity"] == "one/1"
            else None
        )
        overlap = 0
        for _ in range(400):
            await world.clock.sleep(0.1)
            overlap += one.may_write() and two.may_write()
        assert overlap == 0
        assert two.may_write()
        lost = next(when for name, leads, when in world.changes if name == "one" and not leads)
        assert lost <= 4.5 + 10 + 0.1

    run(scenario)


def test_f26_a_short_outage_does_not_change_the_leader():
    async def scenario(world):
        one, two = world.elector("one"), world.elector("two", seed=2)
        world.start(one)
        await world.clock.sleep(0.5)
        world.start(two)
        await world.clock.sleep(4)
        world.api.fault = lambda request: Answer(503)
        await world.clock.sleep(5)
        world.api.fault = None
        await world.clock.sleep(30)
        assert one.may_write()
        assert [name for name, leads, _ in world.changes if leads] == ["one"]

    run(scenario)


def test_f26_a_deleted_lease_is_made_again_without_two_leaders():
    async def scenario(world):
        one, two = world.elector("one"), world.elector("two", seed=2)
        world.start(one)
        await world.clock.sleep(0.5)
        world.start(two)
        await world.clock.sleep(4)
        del world.api.by_path[PATH]
        for _ in range(300):
            await world.clock.sleep(0.1)
            assert one.may_write() + two.may_write() <= 1
        assert one.may_write()
        assert world.spec["holderIdentity"] == "one/1"

    run(scenario)


def test_f26_an_edited_holder_is_respected_at_the_next_renewal():
    async def scenario(world):
        one = world.elector("one")
        world.start(one)
        await world.clock.sleep(5)
        lease = world.api.by_path[PATH]
        lease["spec"]["holderIdentity"] = "admin"
        lease["metadata"]["resourceVersion"] = "99999"
        await world.clock.sleep(2.5)
        assert not one.may_write()
        await world.clock.sleep(20)
        assert one.may_write()

    run(scenario)


def test_f26_two_processes_of_one_name_notice_each_other():
    async def scenario(world):
        one, two = world.elector("same"), world.elector("same", seed=2)
        world.start(one)
        await world.clock.sleep(1)
        world.start(two)
        together = 0
        for _ in range(100):
            await world.clock.sleep(0.1)
            together += one.may_write() and two.may_write()
        # The second takes the lease for its own; the first finds out at its next renewal, two seconds on.
        assert together <= 25

    run(scenario)


def test_a_lease_taken_over_is_waited_for_in_full_whatever_its_times_say():
    async def scenario(world):
        spec = {
            "holderIdentity": "ghost",
            "leaseDurationSeconds": 15,
            "renewTime": "2020-01-01T00:00:00.000000Z",
            "leaseTransitions": 7,
            "strategy": "kept",
        }
        world.api.by_path[PATH] = {
            "metadata": {"name": "trimtab-0", "uid": "u", "resourceVersion": "1"},
            "spec": spec,
        }
        one = world.elector("one")
        world.start(one)
        await world.clock.sleep(14)
        assert not one.may_write()
        await world.clock.sleep(5)
        assert one.may_write()
        assert world.spec["leaseTransitions"] == 8
        assert world.spec["strategy"] == "kept"

    run(scenario)


def test_the_margin_between_deadline_and_duration_is_required():
    with pytest.raises(ValueError, match="need duration > renew_deadline"):
        LeaseTimes(duration=10, renew_deadline=10)


def test_identities_differ_on_one_host():
    assert unique_identity("h") != unique_identity("h")


def test_a_missing_namespace_is_told_with_what_to_do(caplog):
    """A first `trimtab run` waited for ever on a cluster without our namespace, and the log did not say why."""

    async def scenario(world):
        missing = Answer(404, status(404, "NotFound", 'namespaces "trimtab" not found'))
        world.api.fault = lambda request: missing if request.method == "POST" else None
        await world.elector("one").step()
        assert "nobody leads until there is one: kubectl create namespace trimtab" in caplog.text

    run(scenario)


CAUSES = {
    "no namespace": Answer(404, status(404, "NotFound", 'namespaces "trimtab" not found')),
    "wrong credentials": Answer(401, status(401, "Unauthorized", "Unauthorized")),
    "no rights": Answer(403, status(403, "Forbidden", "leases is forbidden")),
}


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_is_logged_once_and_then_every_five_minutes(cause, caplog):
    """`run` without its namespace logged the same line every 2 s."""

    async def scenario(world):
        is_missing = cause == "no namespace"  # then the Lease cannot be found either
        world.api.fault = lambda request: None if is_missing and request.method != "POST" else CAUSES[cause]
        world.start(world.elector("one"))
        await world.clock.sleep(290)
        assert len(warnings(caplog)) == 1
        await world.clock.sleep(20)
        assert len(warnings(caplog)) == 2
        await world.clock.sleep(300)
        assert len(warnings(caplog)) == 3
        assert len(set(warnings(caplog))) == 1

    run(scenario)


def test_causes_that_alternate_are_logged_once_each_until_one_is_over(caplog):
    async def scenario(world):
        elector = world.elector("one")

        async def fail(cause):
            world.api.fault = lambda _: CAUSES[cause]
            await elector.step()

        for _ in range(3):
            await fail("wrong credentials")
            await fail("no rights")
        assert len(warnings(caplog)) == 2
        world.api.fault = lambda _: None
        await elector.step()
        await fail("no rights")
        # It holds the Lease now, so both the renewal and the list are told.
        assert len(warnings(caplog)) == 4

    run(scenario)
