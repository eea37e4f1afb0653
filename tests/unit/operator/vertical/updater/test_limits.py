"""What the flags of the updater mean for the update loop."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trimtab.decide.vertical.update.eviction_limits import EvictionLimitSettings
from trimtab.operator.settings.vertical import UpdaterLoopSettings
from trimtab.operator.vertical.updater.controller import brakes_of, cautious

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_default_limits():
    assert brakes_of(UpdaterLoopSettings()) == EvictionLimitSettings(
        max_evictions_per_minute=10,
        max_share_per_minute=0.1,
        max_missing_per_controller=1,
        max_ineffective=3,
        ineffective_pause_seconds=3600,
        backoff_seconds=60,
        max_backoff_seconds=600,
    )


@pytest.mark.parametrize(
    ("flag", "limit"),
    [
        ("max_evictions_per_minute", "max_evictions_per_minute"),
        ("max_evicted_share_per_minute", "max_share_per_minute"),
        ("max_missing_pods", "max_missing_per_controller"),
        ("fruitless_evictions", "max_ineffective"),
    ],
)
def test_zero_switches_a_limit_off(flag, limit):
    off: dict[str, Any] = {flag: 0}
    limits = brakes_of(replace(UpdaterLoopSettings(), **off))
    assert getattr(limits, limit) is None
    others = brakes_of(UpdaterLoopSettings())
    changed = [
        name for name in type(limits).__struct_fields__ if getattr(limits, name) != getattr(others, name)
    ]
    assert changed == [limit]


def test_times_are_whole_seconds():
    limits = brakes_of(
        UpdaterLoopSettings(
            fruitless_eviction_pause=timedelta(seconds=90.4),
            refused_eviction_backoff=timedelta(0),
            refused_eviction_backoff_limit=timedelta(minutes=3),
        )
    )
    assert (limits.ineffective_pause_seconds, limits.backoff_seconds) == (90, 0)
    assert limits.max_backoff_seconds == 180


@pytest.mark.parametrize(("most", "used"), [(10, 10), (1, 1), (0, 0)])
def test_a_fresh_process_counts_this_minutes_evictions_as_used_up(most, used):
    limits = cautious(NOW, brakes_of(UpdaterLoopSettings(max_evictions_per_minute=most)))
    assert limits.evictions == (NOW,) * used
