"""Which HPAs a usage check scales, and when the next check follows."""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.unit.decide.horizontal.builders import (
    behavior,
    external,
    unreadable,
    value,
)
from tests.unit.operator.horizontal.fakes import edit_spec, hpa_state, queries_of
from trimtab.clock import CpuMeter, VirtualClock
from trimtab.metrics.queries import PodUsage
from trimtab.operator.horizontal.look import CheckCost, Looks, SyncPeriods, shortest_pause
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.horizontal.usage import NamespaceUsage

PERIODS = SyncPeriods(15.0, 5.0)
USAGE = {PodUsage("shop"): NamespaceUsage({})}


class World:
    """A monitor of one HPA, and all that it asks, in one."""

    def __init__(
        self,
        samples: Any = USAGE,
        *,
        seconds: float = 0.0,
        cpu: float = 0.0,
        decoding: float = 0.0,
        periods: SyncPeriods = PERIODS,
    ) -> None:
        self.clock = VirtualClock()
        self.clock.advance(100.0)
        self.state = hpa_state()
        self.samples, self.seconds = samples, seconds
        self.slow_list: Any = None
        self.is_owned = True
        self.scaled: list[str] = []
        self.scaled_at: list[tuple[str, float]] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.cpu, self.decoding_cpu, self.cpu_clock = cpu, decoding, 0.0
        self.decoding = CpuMeter(lambda: self.cpu_clock)
        self.registry = CollectorRegistry()
        collaborator: Any = self
        self.monitor = Looks(
            self.clock,
            collaborator,
            collaborator,
            collaborator,
            lambda _: self.is_owned,
            periods,
            HpaControllerMetrics(self.registry),
        )
        self.monitor.cpu = CpuMeter(lambda: self.cpu_clock)

    def check(self, *others: Any) -> "World":
        async def main() -> None:
            self.monitor.start([self.state, *others])
            await self.running

        self.clock.run(main())
        return self

    def start(self, check: Any) -> None:
        self.running = check

    def attempt(self, _state: Any, step: Any, *args: Any) -> Any:
        return step(*args)

    def queries_for(self, state: Any) -> Any:
        return queries_of(state)

    def usage_lists(self, queries: Any) -> Any:
        return tuple({PodUsage("shop"), *self.samples, *(query.usage for query in queries)})

    async def fetch(self, lists: Any) -> Any:
        if lists == [self.slow_list]:
            await self.clock.sleep(10.0)
        self.cpu_clock += self.cpu
        others = asyncio.ensure_future(self._others())
        await self.clock.sleep(self.seconds)
        await others
        self.meanwhile()
        return self.samples

    async def _others(self) -> None:
        """Spend CPU time that is not the check's, then decode."""
        self.cpu_clock += 60.0
        with self.decoding.measure():
            self.cpu_clock += self.decoding_cpu

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0

    def is_worth_a_look(self, *_: Any) -> bool:
        return True

    def reconcile(self, request: Any, _samples: Any) -> None:
        assert request.is_look
        assert request.queries is not None
        self.scaled.append(request.hpa_state.key)
        self.scaled_at.append((request.hpa_state.key, self.clock.monotonic()))

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


def test_hpas_are_checked_when_the_list_of_their_namespace_arrives():
    """All lists were waited for, and in memory together."""
    world = World(USAGE | {PodUsage("mail"): USAGE[PodUsage("shop")]})
    world.slow_list = PodUsage("mail")
    began = world.clock.monotonic()
    world.check(hpa_state("web", "mail"))
    assert [(key, when - began) for key, when in world.scaled_at] == [("shop/web", 0.0), ("mail/web", 10.0)]


def test_an_hpa_with_another_metric_is_not_checked():
    world = World()
    edit_spec(world.state, metrics=(*world.state.hpa.spec.metrics, external(value("5"))))
    assert world.check().scaled == []


@pytest.mark.parametrize(
    ("requests", "cost", "pause", "skipped"),
    [
        pytest.param(1, {}, 5.0, {}, id="a quick check"),
        pytest.param(1, {"seconds": 2.5}, 5.0, {}, id="wall time does not count"),
        pytest.param(1, {"seconds": 7.0}, 9.5, {"slow": 1}, id="half a period after the end of a slow check"),
        pytest.param(1, {"cpu": 0.5}, 5.0, {}, id="a tenth of a core"),
        pytest.param(1, {"cpu": 0.6}, 6.0, {"cpu": 1}, id="more than a tenth of a core"),
        pytest.param(1, {"cpu": 0.4, "decoding": 1.1}, 15.0, {"cpu": 2}, id="decoding counts"),
        pytest.param(30, {}, 15.0, {"requests": 2}, id="4 requests per second, 2 of them of the syncs"),
        pytest.param(90, {}, 90.0, {"requests": 17}, id="1 request per second is always left"),
    ],
)
def test_the_pause_grows_with_the_cpu_time_and_the_requests_of_a_check(requests, cost, pause, skipped):
    samples = {PodUsage(f"shop-{number}" if number else "shop"): unreadable() for number in range(requests)}
    world = World(samples, **cost)
    started_at, ended = world.clock.monotonic(), []
    world.monitor.on_finished = lambda: ended.append(world.monitor.next_at - started_at)
    world.check()
    assert ended == [pytest.approx(pause)]
    limits = ("cpu", "requests", "slow")
    found = {limit: world.count("trimtab_usage_checks_skipped_total", limit=limit) for limit in limits}
    assert {limit: count for limit, count in found.items() if count} == skipped
    assert world.count("trimtab_usage_checks_total") == 1
    spent = cost.get("cpu", 0.0) + cost.get("decoding", 0.0)
    assert world.count("trimtab_usage_check_cpu_seconds_total") == pytest.approx(spent)


@pytest.mark.parametrize(
    ("seconds", "cpu", "checks"),
    [
        pytest.param(0.01, 0.01, 1800, id="idle machine"),
        pytest.param(0.9, 0.01, 1800, id="busy machine: checks that took 0.75 s or more never came again"),
        pytest.param(3.0, 0.01, 900, id="very busy machine"),
        pytest.param(1.0, 0.5, 720, id="large cluster"),
        pytest.param(1.0, 4.0, 90, id="a check that costs more than a sync period allows"),
    ],
)
def test_checks_go_on_for_an_hour_within_a_tenth_of_a_core(seconds, cpu, checks):
    """A check of 0.75 s waited until the next sync, and every sync moved it again."""
    world = World(seconds=seconds, cpu=cpu, periods=SyncPeriods(15.0, 2.0))
    began = world.clock.monotonic()

    async def hour() -> None:
        world.monitor.reschedule()
        next_slot = began
        while world.clock.monotonic() < began + 3600:
            await world.clock.sleep(min(next_slot, world.monitor.next_at) - world.clock.monotonic())
            next_slot += PERIODS.sync / 8 if world.clock.monotonic() >= next_slot else 0.0
            if world.monitor.is_nearly_due():
                world.monitor.start([world.state])
                await world.running

    world.clock.run(hour())
    assert world.count("trimtab_usage_checks_total") == pytest.approx(checks, rel=0.1)
    assert world.count("trimtab_usage_check_cpu_seconds_total") <= 0.1 * 3600 + cpu


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
    assert not off.monitor.is_nearly_due()


@pytest.mark.parametrize(("passed", "is_near"), [(2.4, False), (2.5, True), (5.0, True)])
def test_a_check_joins_a_sync_in_the_second_half_of_its_pause(passed, is_near):
    world = World()
    assert world.monitor.is_nearly_due(), "the first"
    world.monitor.reschedule()
    world.clock.advance(passed)
    assert world.monitor.is_nearly_due() is is_near


@pytest.mark.parametrize(
    ("cost", "want"),
    [
        pytest.param(
            CheckCost(0.0, 0.0, 0), (2.5, "slow"), id="half a period after a check that took nothing"
        ),
        pytest.param(CheckCost(1.0, 0.0, 0), (3.5, "slow"), id="half a period after the end"),
        pytest.param(CheckCost(0.0, 1.0, 0), (10.0, "cpu"), id="a tenth of a core"),
        pytest.param(
            CheckCost(0.0, 0.0, 15), (5.0, "requests"), id="what the syncs leave of four per second"
        ),
        pytest.param(CheckCost(0.0, 0.0, 45), (45.0, "requests"), id="one per second is always left"),
        pytest.param(CheckCost(0.0, 0.0, 60), (60.0, "requests"), id="also where the syncs need all of them"),
        pytest.param(CheckCost(0.0, 5.0, 60), (60.0, "requests"), id="the longest of two"),
        pytest.param(CheckCost(0.0, 7.0, 60), (70.0, "cpu"), id="the longest of the other two"),
    ],
)
def test_the_longest_of_three_pauses_counts(cost, want):
    assert shortest_pause(cost, PERIODS) == want


def test_a_check_that_leaves_none_out_counts_none():
    HpaControllerMetrics(registry := CollectorRegistry()).usage_checks.count(0.5, "cpu", skipped=0)
    assert registry.get_sample_value("trimtab_usage_checks_skipped_total", {"limit": "cpu"}) is None
