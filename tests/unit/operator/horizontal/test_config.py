"""Settings of decisions that cannot be meant are refused, and a busy shard is not handed over."""

from datetime import timedelta
from math import inf, nan
from types import SimpleNamespace
from typing import Any

import pytest

from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.settings.settings import Settings, declared


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("stale_after", timedelta(), timedelta(seconds=-1)),
        ("stale_windows", 0.0, -0.1),
        ("stale_windows", 1e9, inf),
        ("stale_windows", 1.0, nan),
    ],
)
def test_ages_of_metrics_are_numbers_from_0_on(name, inside, outside):
    decision_config(Settings.of(**{name: inside}))
    flags = {each.name: each.flag for each in declared()}
    with pytest.raises(ValueError, match=f"{flags[name]}=.*: use 0s? or more"):
        decision_config(Settings.of(**{name: outside}))


def test_settings_reach_the_decisions():
    made = decision_config(
        Settings.of(
            tolerance=0.3,
            cpu_initialization_period=timedelta(seconds=11),
            initial_readiness_delay=timedelta(seconds=12),
            downscale_stabilization=timedelta(seconds=13),
            stale_after=timedelta(seconds=14),
            stale_windows=15.0,
        )
    ).settings
    assert (made.tolerance, made.cpu_initialization_period, made.initial_readiness_delay) == (0.3, 11, 12)
    assert (made.downscale_stabilization, made.stale_after, made.stale_windows) == (13, 14, 15)


@pytest.mark.parametrize(
    ("states", "is_busy"),
    [([], False), ([False, False], False), ([True, False], True), ([False, True], True)],
)
def test_a_shard_is_busy_while_any_of_its_hpas_is(states, is_busy):
    controller: Any = SimpleNamespace(
        _of_shard=lambda _shard: [SimpleNamespace(is_busy=busy) for busy in states]
    )
    assert HpaController.is_shard_busy(controller, 1) is is_busy
