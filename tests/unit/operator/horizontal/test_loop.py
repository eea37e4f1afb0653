"""The loop of a replica that stands by keeps nothing of HPAs that are gone, and starts those that are left."""

import asyncio
from math import inf
from types import SimpleNamespace
from typing import Any

from tests.unit.operator.horizontal.fakes import hpa_state
from trimtab.clock import VirtualClock
from trimtab.operator.horizontal.loop import Loop
from trimtab.operator.horizontal.schedule import SyncPeriods


class Hpas(dict[str, Any]):
    """The cached HPAs by uid."""

    def __iter__(self):
        return iter(list(self.values()))


class Started:
    """Batches that only note which HPAs they got."""

    def __init__(self):
        self.uids = []

    def reconcile_all(self, states, also_queried=()):
        self.uids += [state.uid for state in states]


def test_a_standby_forgets_deleted_hpas_and_starts_the_others_when_it_leads():
    clock = VirtualClock()
    states = [hpa_state(f"web-{number}") for number in range(100)]
    hpas: Any = Hpas({state.uid: state for state in states})
    started: Any = Started()
    leads = False
    usage: Any = SimpleNamespace(
        next_at=inf, on_finished=None, reschedule=lambda: None, is_nearly_due=lambda: False
    )
    everything: Any = SimpleNamespace(owns=lambda key: True)

    async def nothing():
        """Do nothing before waiting."""

    async def play():
        nonlocal leads
        loop = Loop(clock, hpas, everything, started, usage, SyncPeriods(15.0, 0.0))
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
