"""One reconcile: how often it starts over on an HPA that changes, and what an error leaves behind."""

from math import inf
from typing import Any

import pytest

from tests.unit.decide.horizontal.builders import NOW, average, external, observe, series
from tests.unit.operator.horizontal.fakes import controller_metrics, hpa_state, no_rivals, target
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.leases.fence import Epoch
from trimtab.operator.horizontal.observe import NotRead, Snapshot, StaleObservation
from trimtab.operator.horizontal.reconciler import Reconciler
from trimtab.operator.horizontal.writer import PendingWrite, ScaleUnknown

LOST = errors.TransportError("the response was lost")


class World:
    """A reconciler of one HPA that needs 8 replicas, whose writes end as they are told, in turn."""

    def __init__(self, *ends, read_again=None, deleted_after=None):
        self.clock = VirtualClock()
        self.rivals = no_rivals()
        self.state = hpa_state("web", "shop", external(average("10")))
        self.metrics = controller_metrics()
        self.applied = self.events = 0
        self._ends = list(ends)
        self._read_again = read_again
        self._deleted_after = deleted_after

    def run(self):
        collaborator: Any = self
        reconciler = Reconciler(self.clock, collaborator, collaborator, self.metrics, collaborator)

        async def main():
            request = self.state.start_reconcile(self.clock.monotonic())
            reconciler.reconcile(request)
            await reconciler.wait_idle()

        self.clock.run(main())
        return self

    @property
    def counts(self):
        """Return the decisions that were dropped because of a change, and those that failed."""
        return [counter._value.get() for counter in (self.metrics.decided_again, self.metrics.failures)]

    async def read(self, _request, _samples):
        return {}

    def snapshot(self, _request, samples):
        if samples is None:
            raise NotRead
        observation = observe(self.state.hpa, 4, series(80))
        return Snapshot(target(4), observation, NOW, Epoch(self.clock))

    def prepare(self, _state, snapshot, decision):
        return PendingWrite(snapshot.target, snapshot.observation, decision, snapshot.epoch)

    def has_nothing_to_write(self, _write):
        return False

    def shown_until(self, _state):
        return -inf

    async def apply(self, _state, _write):
        self.applied += 1
        if self._deleted_after == self.applied:
            self.state.mark_deleted()
        end = self._ends.pop(0) if self._ends else None
        if end is not None:
            raise end

    async def read_again(self, _state):
        if self._read_again is not None:
            raise self._read_again

    def record_events(self, _state, _decision):
        self.events += 1


def changed():
    return StaleObservation("it changed")


@pytest.mark.parametrize(
    ("conflicts", "applied", "decisions"),
    [(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 3, 0), (9, 3, 0)],
)
def test_a_reconcile_starts_over_twice_at_most(conflicts, applied, decisions):
    world = World(*(changed() for _ in range(conflicts))).run()
    assert world.applied == applied
    assert len(world.state.records) == decisions
    assert world.counts == [min(conflicts, 3), 0]
    assert not world.state.is_busy


def test_a_deleted_hpa_is_not_decided_again():
    world = World(changed(), deleted_after=1).run()
    assert (world.applied, world.counts) == (1, [1, 0])
    assert not world.state.is_busy


def test_an_hpa_that_cannot_be_read_again_waits_for_the_next_sync():
    world = World(changed(), read_again=LOST).run()
    assert (world.applied, world.counts) == (1, [1, 0])
    assert len(world.state.records) == 0
    assert not world.state.is_busy


def test_a_scale_that_may_have_been_written_is_told_and_not_recorded():
    world = World(ScaleUnknown("lost")).run()
    assert (world.events, world.counts) == (1, [0, 1])
    assert len(world.state.records) == 0
    assert not world.state.is_busy


def test_a_write_that_the_fence_stopped_is_no_failure():
    world = World(errors.Fenced("not sent")).run()
    assert (world.events, world.counts) == (0, [0, 0])
    assert len(world.state.records) == 0
    assert not world.state.is_busy


def test_an_unexpected_error_is_counted_and_ends_this_reconcile_only(caplog):
    world = World(RuntimeError("a defect")).run()
    assert world.counts == [0, 1]
    assert "not decided in this sync: hpa shop/web: a defect" in caplog.text
    assert not world.state.is_busy
