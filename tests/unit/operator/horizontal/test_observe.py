"""A snapshot is read again until it fits the HPA, and is taken only by the replica that owns the HPA."""

from typing import Any

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    NOW,
    average,
    cpu,
    external,
    marked,
    object_metric,
    pods,
    series,
    unreadable,
    value,
)
from tests.unit.operator.horizontal.fakes import CONFIG, edit_spec, hpa_state, no_rivals, queries_of, target
from trimtab.clock import VirtualClock
from trimtab.cluster.leases.fence import Epoch
from trimtab.decide.horizontal import Memory, Record, decide
from trimtab.decide.horizontal.memory import dumps
from trimtab.metrics.queries import ExternalMetric, PodUsage
from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.json import wire
from trimtab.model.metrics_api import PodMetrics
from trimtab.operator.horizontal.hpa_state import StatusWrite
from trimtab.operator.horizontal.observe import InputCaches, NotRead, Snapshot, SnapshotBuilder
from trimtab.operator.horizontal.pods import MatchedPods
from trimtab.operator.horizontal.usage import NamespaceUsage

QUEUE = external(average("10"))
NO_PODS, FOUR = MatchedPods((), ()), MatchedPods(pods(4), ())
EPOCH = Epoch(VirtualClock(NOW))


class World:
    """One HPA on an external metric, its target, and everything that a snapshot reads."""

    def __init__(self, *, cached=None, epoch: Epoch | None = EPOCH) -> None:
        self.state = hpa_state("web", "shop", QUEUE)
        self.cached_target, self.epoch = cached, epoch
        self.reads, self.doubted, self.registered = 0, 0, 0
        self.sent: list[str] = []
        self.on_fetch = lambda: None
        self.matched = NO_PODS
        self.clock = VirtualClock(NOW)
        everything: Any = self
        self.snapshots = SnapshotBuilder(
            self.clock,
            CONFIG,
            everything,
            InputCaches(everything, everything, everything, everything, everything, no_rivals()),
            everything,
        )

    def stale_inputs(self, _resource, _hpa, *, is_target_read):
        return ()

    def epoch_for(self, _key):
        return self.epoch

    def cached(self, _reference: CrossVersionObjectReference, _namespace):
        return self.cached_target

    async def read(self, _reference, _namespace):
        self.reads += 1
        return target(4, is_read=True)

    def doubt(self, _target):
        self.doubted += 1
        self.cached_target = None

    def register_target(self, state, _target):
        self.registered += 1
        state.keep_queries(None)

    def matching_pods(self, _state):
        return self.matched

    def owner_targets(self, _state, _matched):
        return []

    def has_extra_pods(self, _state, _matched):
        return False

    async def find(self, _pods, _targets, _namespace):
        return {}

    async def fetch(self, queries):
        self.sent += [query.metric for query in queries]
        self.on_fetch()
        return {query: series(400) for query in queries}

    def snapshot(self):
        """Return what a reconcile decides on, after as many reads as it takes."""
        request, samples = self.state.start_reconcile(0.0), None
        while True:
            try:
                return self.snapshots.snapshot(request, samples)
            except NotRead:
                samples = self.clock.run(self.snapshots.read(request, samples))


@pytest.mark.parametrize(
    ("cached", "reads"),
    [
        pytest.param(target(4), 0, id="a watched target needs no GET"),
        pytest.param(None, 1, id="a target that is not cached is read"),
    ],
)
def test_the_target_is_read_only_where_it_is_not_cached(cached, reads):
    world = World(cached=cached)
    snapshot = world.snapshot()
    assert isinstance(snapshot, Snapshot)
    assert snapshot.observation.scale is not None
    assert snapshot.observation.scale.spec.replicas == 4
    assert (world.reads, world.sent) == (reads, ["queue"])


def test_samples_for_an_old_spec_are_fetched_again():
    world = World(cached=target(4))

    def edit() -> None:
        if world.sent == ["queue"]:
            edit_spec(world.state, metrics=(external(average("10"), name="other"),))

    world.on_fetch = edit
    snapshot = world.snapshot()
    assert isinstance(snapshot, Snapshot)
    assert snapshot.observation.hpa is world.state.hpa
    assert world.sent == ["queue", "other"]


@pytest.mark.parametrize("why", ["deleted", "of another replica"])
def test_no_snapshot_of_an_hpa_that_is_not_ours(why):
    world = World(cached=target(4), epoch=None if why == "of another replica" else EPOCH)
    if why == "deleted":
        world.on_fetch = world.state.mark_deleted
    assert world.snapshot() is None


def test_a_cached_target_that_contradicts_the_last_leader_is_read():
    world = World(cached=target(4))
    world.state.memory.set_stored(dumps(Memory(replicas=7)).decode())
    snapshot = world.snapshot()
    assert isinstance(snapshot, Snapshot)
    assert snapshot.target.is_read
    assert (world.doubted, world.reads) == (1, 1)


def test_queries_are_kept_until_the_hpa_or_its_target_changes():
    world = World(cached=target(4))
    first = world.snapshots.queries_for(world.state)
    assert first is not None
    assert first.queries == {ExternalMetric("shop", "queue", "")}
    assert world.snapshots.queries_for(world.state) is first
    world.cached_target = target(5)
    second = world.snapshots.queries_for(world.state)
    assert second is not first
    edit_spec(world.state, max_replicas=99)
    assert world.snapshots.queries_for(world.state) is not second
    assert world.registered == 3


def test_a_target_above_zero_that_is_marked_as_scaled_to_zero_is_read():
    world = World(cached=target(4))
    status = msgspec.structs.replace(world.state.hpa.status, conditions=marked().conditions)
    world.state.replace_hpa(msgspec.structs.replace(world.state.hpa, status=status), "")
    assert world.snapshots.queries_for(world.state) is None
    world.snapshot()
    assert world.reads == 1


def test_the_last_decision_holds_until_a_sample_changes():
    world = World(cached=target(4))
    fetched = {ExternalMetric("shop", "queue", ""): series(40)}
    for _ in range(2):  # the first decision changes the status
        snapshot = take(world, fetched)
        assert isinstance(snapshot, Snapshot)
        decision = decide(snapshot.observation, snapshot.now)
        record = Record(observation=snapshot.observation, decision=decision)
        status = StatusWrite.OWED if decision.status_changed else StatusWrite.NOT_DUE
        world.state.record_decision(record, 0.0, status=status)
        if decision.status_changed:
            world.state.replace_hpa(msgspec.structs.replace(world.state.hpa, status=decision.status), "")
    assert take(world, fetched) is world.state.standing
    assert isinstance(take(world, {ExternalMetric("shop", "queue", ""): series(41)}), Snapshot)


def take(world, fetched):
    request = world.state.start_reconcile(0.0)
    request.queries = queries_of(world.state, world.cached_target)
    return world.snapshots.snapshot(request, fetched)


@pytest.mark.parametrize("more", [(), (QUEUE,)], ids=["alone", "of several"])
def test_a_kind_that_has_to_be_looked_up_is_not_known_without_waiting(more):
    world = World(cached=target(4))
    edit_spec(world.state, metrics=(*more, object_metric(value("10"))))
    assert world.snapshots.queries_for(world.state) is None


def usage(milli, date="2026-01-15T08:00:00Z"):
    items = {
        pod.name: wire.convert(
            {"timestamp": date, "containers": [{"name": "c", "usage": {"cpu": f"{milli}m"}}]}, PodMetrics
        )
        for pod in FOUR.pods
    }
    return {PodUsage("shop"): NamespaceUsage(items)}


@pytest.mark.parametrize(
    ("fetched", "is_decided"),
    [
        pytest.param(usage(90, "2026-01-15T08:00:15Z"), True, id="a sample moved"),
        pytest.param(usage(90), False, id="no sample moved"),
        pytest.param({PodUsage("shop"): unreadable()}, False, id="usage failed"),
        pytest.param({}, False, id="usage was not fetched"),
        pytest.param({PodUsage("other"): usage(95)[PodUsage("shop")]}, False, id="of another namespace"),
    ],
)
def test_a_look_where_nothing_stands_decides_only_on_newer_samples(fetched, is_decided):
    world = World(cached=target(4))
    world.state = hpa_state("web", "shop", cpu(50))
    world.matched = FOUR
    first = take(world, usage(90))
    assert isinstance(first, Snapshot)
    decision = decide(first.observation, first.now)
    world.state.record_decision(Record(observation=first.observation, decision=decision), 0.0)
    assert world.state.standing is None
    assert is_worth_a_look(world, fetched) is is_decided


def test_no_look_is_the_first_decision_of_an_epoch():
    """What the last leader left is read in a sync."""
    world = World(cached=target(4))
    world.state = hpa_state("web", "shop", cpu(50))
    world.matched = FOUR
    assert not is_worth_a_look(world, usage(90))


def is_worth_a_look(world, fetched):
    return world.snapshots.is_worth_a_look(world.state, queries_of(world.state, world.cached_target), fetched)
