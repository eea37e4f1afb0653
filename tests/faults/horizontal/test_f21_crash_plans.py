"""F21 and I3: whatever happens to whichever write, the end is the same, and it is reached without a step too many."""

from collections.abc import Hashable
from functools import cache

import pytest

from tests.faults.horizontal.plans import Story, Teller, Told, check_writes
from tests.faults.horizontal.stories import STORIES
from tests.scenarios.horizontal.conftest import play_on_lab, play_on_real
from tests.scenarios.horizontal.stage import Stage
from tests.support.transport import Break

SAMPLED = ("to zero and back", "up by two pods per minute")
PLAYED = [
    (story, native) for native in (False, True) for story in STORIES if not native or story.name in SAMPLED
]


def told_on_lab(story: Story, broken: tuple[int, Break] | None, *, native: bool) -> Told:
    teller: list[Teller] = []

    async def scenario(stage: Stage) -> None:
        teller.append(Teller(stage, story, broken))
        await teller[0].tell()

    play_on_lab(scenario, native=native)
    return teller[0].told


@cache
def clean_on_lab(story: Story, native: bool) -> Told:
    """Tell a story without a fault, once for all kinds of break."""
    clean = told_on_lab(story, None, native=native)
    assert clean.late == 0
    check_writes(clean, 0, 10)
    return clean


@cache
def breaks() -> list[tuple[Story, bool, int]]:
    """Return the first write of each moment, by story and number: an equal one breaks in the same way."""
    first: dict[Hashable, tuple[Story, bool, int]] = {}
    for story, native in PLAYED:
        for number, moment in enumerate(clean_on_lab(story, native).moments()):
            first.setdefault((native, moment), (story, native, number))
    return list(first.values())


def check_against(story: Story, clean: Told, told: Told, plan: str) -> None:
    assert told.is_broken, plan
    assert told.end == clean.end, plan
    assert told.late == 0, plan
    extra = 1 if story.may_take_smaller_steps else 0
    assert told.accepted("/scale") - clean.accepted("/scale") in {0, extra}, plan
    assert told.accepted("/status") <= clean.accepted("/status") + 2 + extra, plan
    if not extra:
        assert told.way == clean.way, plan
    check_writes(told, 0, 10)


@pytest.mark.parametrize("how", list(Break), ids=lambda how: f"F21 {how.value}")
@pytest.mark.parametrize(
    ("story", "native"),
    [pytest.param(*played, id=f"{played[0].name}-{'native' if played[1] else 'own'}") for played in PLAYED],
)
def test_f21_every_write(story, how, native, record_property):
    clean = clean_on_lab(story, native)
    numbers = [number for *played, number in breaks() if played == [story, native]]
    for number in numbers:
        told = told_on_lab(story, (number, how), native=native)
        check_against(story, clean, told, f"{story.name}: {how.value} at write {number}")
    record_property("plans", len(numbers))


@pytest.mark.real
@pytest.mark.parametrize("how", list(Break), ids=lambda how: f"F21 {how.value}")
@pytest.mark.parametrize("name", SAMPLED)
def test_f21_some_writes_on_the_real_server(name, how, real_cluster, record_property):
    story = next(one for one in STORIES if one.name == name)
    told: list[Told] = []

    async def scenario(stage: Stage) -> None:
        told.append(await Teller(stage, story, None).tell())
        return

    play_on_real(real_cluster, scenario)
    for number in (0, 1, 2):

        async def broken(stage: Stage, number: int = number) -> None:
            told.append(await Teller(stage, story, (number, how)).tell())

        play_on_real(real_cluster, broken)
        check_against(story, told[0], told[-1], f"{name}: {how.value} at write {number}")
    record_property("plans", 3)
