"""Fairness: 5,000 noisy HPAs of one namespace do not delay the ten of another."""

import asyncio

from tests.unit.cluster.test_events import run as run_events
from tests.unit.operator.horizontal.fakes import hpa_state
from tests.unit.operator.horizontal.test_batches import sync
from trimtab.clock import VirtualClock
from trimtab.model.core.objects import ObjectReference
from trimtab.operator.horizontal.batches import RECONCILES_AT_ONCE
from trimtab.operator.horizontal.write_slots import WriteSlots

NOISY = [hpa_state(f"web-{number}", "noisy") for number in range(5000)]
SMALL = [hpa_state(f"web-{number}", "small") for number in range(10)]


def test_they_are_decided_before_the_event_loop_is_left_for_the_first_time():
    """They came last in a batch that one list of usage serves: after 5,000 decisions."""
    reconciler, _ = sync([*NOISY, *SMALL], is_cheaper=True)
    places = [reconciler.in_batch.index(hpa.key) for hpa in SMALL]
    assert max(places) < RECONCILES_AT_ONCE
    assert len(reconciler.in_batch) == len(NOISY) + len(SMALL)


def test_their_scales_and_statuses_are_written_while_those_of_the_others_wait():
    """Each write takes a second, as with an admission webhook that is slow in one namespace or in all."""
    clock, slots = VirtualClock(), WriteSlots(16)
    done: dict[str, float] = {}

    async def write(key: str, namespace: str, *, is_scale: bool) -> None:
        slot = slots.for_scale(namespace) if is_scale else slots.for_status(namespace)
        async with slot:
            await clock.sleep(1)
        done[key] = clock.monotonic()

    async def main() -> None:
        noisy = [asyncio.create_task(write(hpa.key, "noisy", is_scale=True)) for hpa in NOISY]
        await clock.sleep(2.5)
        small = [
            asyncio.create_task(write(hpa.key, "small", is_scale=number % 2 == 0))
            for number, hpa in enumerate(SMALL)
        ]
        await asyncio.gather(*noisy, *small)

    clock.run(main())
    # Four slots are their namespace's share: ten writes take three turns.
    assert max(done[hpa.key] for hpa in SMALL) <= 2.5 + 3
    assert max(done[hpa.key] for hpa in NOISY) >= 5000 / 4


def test_their_events_are_written_although_the_queue_is_full_of_others():
    """Events of a namespace were dropped while another namespace had filled the queue."""

    async def scenario(api, recorder, clock):
        def record(namespace: str, number: int) -> None:
            about = ObjectReference(kind="HPA", namespace=namespace, name=f"web-{number}", uid=f"u{number}")
            recorder.event(about, "Warning", "FailedGetScale", "not found")

        for number in range(5000):
            record("noisy", number)
        for number in range(10):
            record("small", number)
        assert recorder.broadcaster.dropped == 4010
        await clock.sleep(1)
        places = [number for number, request in enumerate(api.writes) if "/small/" in request.path]
        assert len(places) == 10
        assert max(places) < 20
        assert len(api.writes) == 1000

    run_events(scenario)
