"""Which HPAs a usage check scales, and when the next check follows."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from tests.unit.decide.horizontal.builders import behavior, external, observe, unreadable, value
from tests.unit.operator.horizontal.fakes import edit_spec, hpa_state, queries_of
from trimtab.clock import VirtualClock
from trimtab.decide.horizontal.decide import decide
from trimtab.decide.horizontal.records.record import Record
from trimtab.metrics.queries import PodUsage
from trimtab.operator.horizontal.early_scaling import UsageMonitor
from trimtab.operator.horizontal.inputs.pod_usage import NamespaceUsage
from trimtab.operator.horizontal.schedule import SyncPeriods

PERIODS = SyncPeriods(15.0, 5.0)
USAGE = {PodUsage("shop"): NamespaceUsage({}, (0.0, 0.0))}


class World:
    """A monitor of one HPA, and all that it asks, in one."""

    def __init__(self, samples: Any = USAGE, *, seconds: float = 0.0, periods: SyncPeriods = PERIODS) -> None:
        self.clock = VirtualClock()
        self.clock.advance(100.0)
        self.state = hpa_state()
        self.samples, self.seconds = samples, seconds
        self.is_owned = True
        self.scaled: list[str] = []
        self.meanwhile: Callable[[], object] = lambda: None
        collaborator: Any = self
        self.monitor = UsageMonitor(
            self.clock, collaborator, collaborator, collaborator, lambda _: self.is_owned, periods
        )

    def check(self) -> "World":
        async def main() -> None:
            self.monitor.start([self.state])
            await self.running

        self.clock.run(main())
        return self

    def start(self, check: Any) -> None:
        self.running = check

    def attempt(self, _state: Any, step: Any, *args: Any) -> Any:
        return step(*args)

    def queries_for(self, state: Any) -> Any:
        return queries_of(state)

    async def fetch_usage(self, queries: Any) -> Any:
        await self.clock.sleep(self.seconds)
        self.meanwhile()
        return self.samples if list(queries) else {}

    def scale_between_syncs(self, state: Any, _queries: Any, _samples: Any) -> None:
        self.scaled.append(state.key)
        state.start_reconcile(self.clock.monotonic())

    def until_next(self) -> float:
        return self.monitor.next_at - self.clock.monotonic()


@pytest.mark.parametrize(
    ("ago", "scales"),
    [pytest.param(14.9, False), pytest.param(15.0, True, id="exactly a sync period ago"), (15.1, True)],
)
def test_an_hpa_without_behavior_is_scaled_again_after_a_sync_period(ago, scales):
    world = World()
    world.state.scaled_at = world.clock.monotonic() - ago
    assert bool(world.check().scaled) is scales


def test_policies_limit_an_hpa_with_behavior_and_it_is_not_deferred():
    world = World()
    edit_spec(world.state, behavior=behavior())
    world.state.scaled_at = world.clock.monotonic() - 1.0
    assert world.check().scaled == ["shop/web"]
    assert world.state.next_sync_at == -inf


def test_an_hpa_without_behavior_waits_a_sync_period_after_an_early_scale():
    world = World(seconds=2.0).check()
    assert world.state.next_sync_at == world.clock.monotonic() + 15.0
    assert world.monitor.due_again([world.state]) == []
    world.clock.advance(15.0)
    assert world.monitor.due_again([world.state]) == [world.state]
    world.is_owned = False
    assert world.monitor.due_again([world.state]) == []


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param({PodUsage("shop"): unreadable()}, id="failed"),
        pytest.param({}, id="not fetched"),
        pytest.param({PodUsage("other"): USAGE[PodUsage("shop")]}, id="of another namespace"),
    ],
)
def test_without_readable_usage_nothing_is_scaled_before_the_sync(samples):
    assert World(samples).check().scaled == []


def test_a_pod_without_usage_is_decided_about_again():
    world = World()
    observation = observe(world.state.hpa, 4)
    record = Record(observation=observation, decision=decide(observation, world.clock.now()))
    world.state.record_decision(record, -inf)
    world.state.scaled_at = -inf
    assert world.check().scaled == ["shop/web"]


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(lambda world: world.state.mark_deleted(), id="deleted"),
        pytest.param(lambda world: world.state.start_reconcile(0.0), id="busy"),
        pytest.param(lambda world: setattr(world, "is_owned", False), id="of another replica"),
        pytest.param(lambda world: edit_spec(world.state, max_replicas=7), id="edited"),
    ],
)
def test_an_hpa_that_changes_while_usage_is_fetched_is_left_to_the_sync(prepare):
    world = World()
    world.meanwhile = lambda: prepare(world)
    assert world.check().scaled == []


def test_an_hpa_with_another_metric_is_not_checked():
    world = World()
    edit_spec(world.state, metrics=(*world.state.hpa.spec.metrics, external(value("5"))))
    assert world.check().scaled == []


@pytest.mark.parametrize(
    ("requests", "seconds", "pause"),
    [
        pytest.param(1, 0.1, 5.0, id="a quick check"),
        pytest.param(1, 0.5, 10.0, id="a check takes a twentieth of the time"),
        pytest.param(40, 0.1, 10.0, id="a quarter of a second per request"),
    ],
)
def test_the_pause_grows_with_the_cost_of_a_check(requests, seconds, pause):
    samples = {PodUsage(f"shop-{number}"): unreadable() for number in range(requests)}
    world = World(samples, seconds=seconds)
    ended: list[float] = []
    world.monitor.on_finished = lambda: ended.append(world.until_next())
    world.check()
    assert ended == [pytest.approx(pause)]


def test_no_check_is_scheduled_while_one_runs_or_if_checks_are_off():
    world = World()
    during: list[float] = []

    def sync() -> None:
        world.monitor.reschedule()
        during.append(world.monitor.next_at)
        assert not world.monitor.is_nearly_due()

    world.meanwhile = sync
    world.check()
    assert during == [inf]
    off = World(periods=SyncPeriods(15.0, 0.0))
    off.monitor.reschedule()
    assert off.monitor.next_at == inf


@pytest.mark.parametrize(("passed", "is_near"), [(2.4, False), (2.5, True), (5.0, True)])
def test_a_check_joins_a_sync_in_the_second_half_of_its_pause(passed, is_near):
    world = World()
    assert world.monitor.is_nearly_due(), "the first"
    world.monitor.reschedule()
    world.clock.advance(passed)
    assert world.monitor.is_nearly_due() is is_near


@pytest.mark.parametrize(("ago", "is_deferred"), [(9.0, True), (10.0, False), (11.0, False)])
def test_a_sync_defers_an_hpa_that_was_scaled_since_the_last_but_one_check(ago, is_deferred):
    world = World()
    world.state.scaled_at = scaled_at = world.clock.monotonic() - ago
    assert (world.monitor.defer_just_scaled([world.state]) == []) is is_deferred
    assert world.state.next_sync_at == (scaled_at + 15.0 if is_deferred else -inf)
    edit_spec(world.state, behavior=behavior())
    assert world.monitor.defer_just_scaled([world.state]) == [world.state], "its policies limit it"
