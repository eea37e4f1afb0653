"""Every bad input is refused clearly and every good one taken: offline, by the lab, and by the real API server.

`make scorecard` counts what these tests record; how long an answer takes is printed there and asserted nowhere.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.inputs.catalogue import ALL, BAD, GOOD
from tests.inputs.count import Count, Outcome, judge
from tests.inputs.doors import ServerDoor, lab_door, real_door, validate
from tests.inputs.input import Door, Input
from tools.peers.cluster import RealCluster

Record = Callable[[str, object], None]


def test_there_are_as_many_as_upstream_was_tried_with():
    assert len(BAD) >= 93
    assert len(GOOD) >= 25
    names = [one.name for one in ALL]
    assert len(set(names)) == len(names)


def test_every_refusal_has_to_name_a_field_or_to_give_a_reason_of_its_own():
    assert [one.name for one in BAD if not (one.refusal and (one.refusal.path or one.refusal.why))] == []


def for_door(door: Door) -> tuple[Input, ...]:
    return tuple(one for one in ALL if door in one.doors)


def problems(door: Door, outcomes: list[Outcome], record: Record) -> list[str]:
    """Tell the scorecard what was answered, and return what of it was wrong."""
    record("inputs", {door.value: [asdict(one) for one in outcomes]})
    count = Count()
    count.add(door, outcomes)
    return list(count.problems())


async def through(opening: AbstractAsyncContextManager[ServerDoor], door: Door) -> list[Outcome]:
    async with opening as server:
        return [judge(one, await server.send(one.sent)) for one in for_door(door)]


def test_trimtab_validate(tmp_path: Path, record_property: Record):
    outcomes = [judge(one, validate(one.sent, tmp_path)) for one in for_door(Door.VALIDATE)]
    assert problems(Door.VALIDATE, outcomes, record_property) == []


def test_the_lab(tmp_path: Path, record_property: Record):
    outcomes = asyncio.run(through(lab_door(tmp_path), Door.LAB))
    assert problems(Door.LAB, outcomes, record_property) == []


@pytest.mark.real
def test_the_real_server(real_cluster: RealCluster, tmp_path: Path, record_property: Record):
    real_cluster.stop("kube-controller-manager")
    outcomes = asyncio.run(through(real_door(tmp_path, real_cluster), Door.REAL))
    assert problems(Door.REAL, outcomes, record_property) == []
