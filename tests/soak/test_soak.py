"""Some short days of the soak: nothing grows but the leaks that this test plants."""

import asyncio
from pathlib import Path

import pytest

from tests.soak import report, virtual
from tests.soak.gauges import Gauges
from trimtab.clock import VirtualClock
from trimtab.operator.vertical.admission.webhook import AdmissionWebhook
from trimtab_lab.load.load import Load

DAYS = 6
FLAT = (
    "sockets", "watches", "labels", "trimtab.cluster.", "trimtab.metrics.", "trimtab.serving.", "trimtab.adapter.",
    "trimtab.dashboard.", "trimtab.operator.horizontal.", "trimtab.operator.pods.", "trimtab.operator.vertical.updater.",
    "trimtab.operator.vertical.admission.",
)  # fmt: skip
"""What may not grow in days of three hours. The recommender keeps the usage of deleted pods for eight whole days."""
PACE = virtual.Pace(day_seconds=3 * 3600.0, quiet_seconds=1.5 * 3600.0, rounds_per_day=1).slower(4)


def test_nothing_grows_but_the_planted_leaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A forgotten entry per round and a task that never ends are found and named; all else stays as it is."""
    refresh = AdmissionWebhook.refresh
    planted: list[asyncio.Future[object]] = []

    async def leave_a_task(admission: AdmissionWebhook):
        planted.append(asyncio.ensure_future(asyncio.Event().wait()))
        return await refresh(admission)

    monkeypatch.setattr(Load, "remove", lambda _load, _name: None)
    monkeypatch.setattr(AdmissionWebhook, "refresh", leave_a_task)
    clock = VirtualClock()
    counted = clock.run(virtual.soak(clock, tmp_path, DAYS, pace=PACE))
    grown = {growth.name for growth in report.growths(counted)}
    assert grown >= {"tasks", "trimtab_lab.load.load.Load._models"}
    assert {name for name in grown if name.startswith(FLAT)} == set()


def gauges(**changes: object) -> Gauges:
    usual: dict[str, object] = {
        "rss_bytes": 100 * report.MIB, "tasks": 5, "sockets": 3, "watches": 7, "labels": 100, "objects": {}, "lengths": {},
    }  # fmt: skip
    return Gauges(**{**usual, **changes})  # type: ignore[arg-type]  # the keys are the fields


@pytest.mark.parametrize(
    ("values", "is_growth"),
    [
        pytest.param([5, 9, 5, 9, 5, 9, 5, 9, 5, 9], False, id="up and down"),
        pytest.param([1, 50, 50, 50, 50, 50, 50, 50, 50, 50], False, id="a start"),
        pytest.param([10, 11, 12, 13, 14, 15, 16, 17, 18, 19], True, id="one a day"),
        pytest.param([9, 9, 9, 9, 9, 9, 9, 9, 90, 9], False, id="a peak near the end"),
        pytest.param([9, 9, 9, 9, 9, 9, 9, 9, 90, 90], True, id="a jump that stays"),
    ],
)
def test_growth_is_what_is_never_again_as_small_as_it_was(values, is_growth):
    counted = [gauges(lengths={"A.b": value}) for value in values]
    assert bool(report.growths(counted)) == is_growth


@pytest.mark.parametrize(("last", "is_good"), [(104, True), (106, False), (90, True)])
def test_memory_is_compared_with_the_third_day(last, is_good):
    sizes = [50, 70, 100, 101, 99, last]
    found, text = report.verdict([gauges(rss_bytes=size * report.MIB) for size in sizes])
    assert found == is_good, text
