"""Random short worlds, the failures that are known, and those that are mended."""

import os
import subprocess
import sys

import pytest

from tests.worlds.__main__ import SHORT, result_of
from tests.worlds.known import KEPT, KNOWN, Failure, load
from tests.worlds.shrink import play
from tests.worlds.world import FAMILIES, Rules, as_data, family_of, from_data

PART = 10
"""Worlds that one test plays, so that two workers share them."""


def named(failures: list[Failure]):
    return [pytest.param(failure, id=failure.name) for failure in failures]


@pytest.mark.parametrize("failure", named(load(KNOWN).stories))
def test_a_known_failure_still_fails(failure: Failure):
    played = play(family_of(failure.world.family), failure.world)
    assert played.has(failure.verdict), "mended: move it to kept.yaml by `make worlds ARGS=--renew`"


@pytest.mark.parametrize("failure", named(load(KEPT).stories))
def test_a_mended_failure_does_not_come_back(failure: Failure):
    played = play(family_of(failure.world.family), failure.world)
    assert not played.has(failure.verdict), f"{failure.item} is back:\n{failure.story}"


@pytest.mark.parametrize(
    ("family", "first"), [(family, first) for family in FAMILIES for first in range(0, SHORT[family], PART)]
)
def test_short_worlds_fail_as_listed(family: str, first: int):
    known = load(KNOWN).short
    for seed in range(first, first + PART):
        result = result_of(family, seed, is_short=True)
        assert sorted(result.verdicts) == known.get(result.name, []), (
            f"see `make worlds WORLD={result.name}`; `make worlds ARGS=--renew` lists it anew"
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_world_gives_the_same_life(family: str):
    world = family_of(family).make(3, is_short=True)
    lives = [family_of(family).play(again, Rules.OURS) for again in (world, from_data(as_data(world)))]
    assert lives[0] == lives[1]


LIFE_OF_35 = """
from tests.worlds.__main__ import find
from tests.worlds.world import Rules, family_of
print(family_of("hpas").play(find("hpas-35"), Rules.OURS))
"""
"""Two metrics of an HPA are asked for at once there."""


def test_the_same_world_gives_the_same_life_in_another_process():
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", LIFE_OF_35],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for seed in ("1", "2")
    ]
    first, second = (process.communicate()[0] for process in processes)
    assert first
    assert first == second


@pytest.mark.parametrize("family", FAMILIES)
def test_every_happening_is_told(family: str):
    for seed in range(50):
        world = family_of(family).make(seed)
        assert all(family_of(family).tell_happening(happening) for happening in world.happenings)
        assert family_of(family).tell(world)
