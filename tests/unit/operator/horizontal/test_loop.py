"""When the loop starts reconciles: at once for new HPAs, then once per period, and never without the right to write."""

import asyncio
from collections import defaultdict
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.operator.horizontal.fakes import hpa_state
from trimtab.clock import VirtualClock
from trimtab.operator.horizontal.look import SyncPeriods
from trimtab.operator.horizontal.loop import Loop, slot_of


class Hpas(dict[str, Any]):
    """The cached HPAs by uid."""

    def __iter__(self):
        return iter(list(self.values()))


class Started:
    """Batches that only note which HPAs they got, and when."""

    def __init__(self, clock):
        self.clock = clock
        self.uids = []
        self.times = defaultdict(list)

    def reconcile_all(self, states, also_queried=(), *, is_sync=False):
        for state in states:
            self.uids.append(state.uid)
            self.times[state.hpa.metadata.name].append(round(self.clock.monotonic(), 3))


def no_usage_checks() -> Any:
    return SimpleNamespace(
        next_at=inf,
        on_finished=None,
        reschedule=lambda: None,
        is_nearly_due=lambda: False,
    )


def test_a_standby_forgets_deleted_hpas_and_starts_the_others_when_it_leads():
    clock = VirtualClock()
    states = [hpa_state(f"web-{number}") for number in range(100)]
    hpas: Any = Hpas({state.uid: state for state in states})
    started: Any = Started(clock)
    leads = False
    usage = no_usage_checks()

    async def nothing():
        """Do nothing before waiting."""

    async def play():
        nonlocal leads
        loop = Loop(clock, hpas, lambda _key: True, started, usage, SyncPeriods(15.0, 0.0))
        running = asyncio.ensure_future(loop.run(lambda: leads, nothing))
        for state in states:
            loop.enqueue_now(state.uid)
            if state is not states[0]:
                del hpas[state.uid]
        await clock.sleep(60)
        kept = len(loop._queue)
        leads = True
        await clock.sleep(60)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return kept

    assert clock.run(play()) == 1
    assert set(started.uids) == {states[0].uid}


@pytest.mark.parametrize("has_timers", [False, True], ids=["slots", "timers"])
def test_a_new_hpa_is_reconciled_at_once_and_then_on_its_phase(has_timers):
    """With timers, as upstream's, the phase is that of the creation. With slots, the name of the namespace sets it."""
    clock = VirtualClock()
    first = hpa_state("first", "shop")
    hpas: Any = Hpas({first.uid: first})
    started: Any = Started(clock)
    periods = SyncPeriods(15.0, 2.0, has_timers=has_timers)
    created = {3.0: hpa_state("early", "shop"), 7.5: hpa_state("late", "mail")}

    async def nothing():
        """Do nothing before waiting."""

    async def play():
        loop = Loop(clock, hpas, lambda _key: True, started, no_usage_checks(), periods)
        running = asyncio.ensure_future(loop.run(lambda: True, nothing))
        for at, state in created.items():
            await clock.sleep(at - clock.monotonic())
            hpas[state.uid] = state
            loop.enqueue_now(state.uid)
        await clock.sleep(60.0 - clock.monotonic())
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    clock.run(play())
    phases = {"first": 0.0, "early": 3.0, "late": 7.5}
    if not has_timers:
        of = {state.hpa.metadata.name: slot_of(state, periods.slots) for state in hpas}
        phases = {name: slot * periods.slot for name, slot in of.items()}
        assert of["first"] == of["early"] != of["late"]
    for name, born in (("first", 0.0), ("early", 3.0), ("late", 7.5)):
        at_once, *later = started.times[name]
        assert at_once == pytest.approx(born, abs=1e-3)
        assert len(later) in {3, 4}
        assert [at % 15.0 for at in later] == pytest.approx([phases[name]] * len(later), abs=0.11)


@pytest.mark.parametrize(
    ("next_sync_at", "is_started"),
    [
        pytest.param(-inf, True, id="not scaled between syncs"),
        pytest.param(100.0, True, id="just due again"),
        pytest.param(100.1, False, id="not due yet"),
    ],
)
def test_a_sync_skips_what_was_just_scaled(next_sync_at, is_started):
    clock = VirtualClock()
    clock.advance(100.0 - clock.monotonic())
    first, second = hpa_state("first"), hpa_state("second")
    first.schedule_next(next_sync_at)
    started: Any = Started(clock)
    unused: Any = None

    async def main() -> None:
        loop = Loop(clock, unused, unused, started, no_usage_checks(), SyncPeriods(15.0, 2.0))
        loop.start_sync([first, second])

    clock.run(main())
    assert started.uids == ([first.uid] if is_started else []) + [second.uid]


@pytest.mark.parametrize("has_timers", [False, True], ids=["ours", "as upstream"])
def test_after_a_scale_the_next_sync_is_a_period_after_its_answer(has_timers):
    """W1: on the grid it came a little before the period of a policy ended, so that a step took two syncs."""
    clock = VirtualClock()
    state = hpa_state()
    hpas: Any = Hpas({state.uid: state})
    started: Any = Started(clock)

    async def nothing():
        """Do nothing before waiting."""

    async def play():
        periods = SyncPeriods(15.0, 2.0, has_timers=has_timers)
        loop = Loop(clock, hpas, lambda _key: True, started, no_usage_checks(), periods)
        running = asyncio.ensure_future(loop.run(lambda: True, nothing))
        await clock.sleep(16.2)
        loop.note_scaled(state)
        await clock.sleep(20)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    clock.run(play())
    (times,) = started.times.values()
    if has_timers:
        assert times == pytest.approx([0.0, 15.0, 30.0], abs=0.25)
    else:
        assert 31.2 in times
        assert not [at for at in times if 16.2 < at < 31.2]


@pytest.mark.parametrize(
    ("sync", "wait"),
    [pytest.param(15.0, 1.0, id="a second"), pytest.param(0.5, 0.5, id="the period, if that is shorter")],
)
def test_a_standby_syncs_soon_after_it_leads(sync, wait):
    clock = VirtualClock()
    state = hpa_state()
    hpas: Any = Hpas({state.uid: state})
    started: Any = Started(clock)
    leads = False

    async def nothing():
        """Do nothing before waiting."""

    async def play():
        nonlocal leads
        loop = Loop(clock, hpas, lambda _key: True, started, no_usage_checks(), SyncPeriods(sync, 0.0))
        running = asyncio.ensure_future(loop.run(lambda: leads, nothing))
        await clock.sleep(100.0)
        leads = True
        await clock.sleep(10.0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    clock.run(play())
    assert started.times["web"][0] - 100.0 <= wait


def test_a_usage_check_that_is_due_before_the_sync_starts_on_time():
    clock = VirtualClock()
    checked: list[float] = []
    hpas: Any = Hpas()
    started: Any = Started(clock)
    usage = no_usage_checks()
    usage.next_at = 4.0

    def start(_hpas: Any) -> None:
        checked.append(round(clock.monotonic(), 3))
        usage.next_at = clock.monotonic() + 5.0

    usage.start = start

    async def nothing():
        """Do nothing before waiting."""

    async def play():
        loop = Loop(clock, hpas, lambda _key: True, started, usage, SyncPeriods(15.0, 0.0))
        running = asyncio.ensure_future(loop.run(lambda: True, nothing))
        await clock.sleep(13.0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    clock.run(play())
    assert checked == [4.0, 9.0]
