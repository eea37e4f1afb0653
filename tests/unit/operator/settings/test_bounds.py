"""Values that cannot be meant are refused at start, with the flag's name."""

from datetime import timedelta

import pytest

from trimtab.operator.settings.bounds import reject_out_of_range
from trimtab.operator.settings.settings import Settings


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        (Settings.of(eviction_tolerance=1.5), "--eviction-tolerance"),
        (Settings.of(eviction_tolerance=-0.1), "--eviction-tolerance"),
        (Settings.of(eviction_tolerance=float("nan")), "--eviction-tolerance"),
        (Settings.of(min_replicas=-1), "--min-replicas"),
        (Settings.of(recommendation_margin_fraction=-0.5), "--recommendation-margin-fraction"),
        (Settings.of(recommender_interval=timedelta()), "--recommender-interval"),
        (Settings.of(updater_interval=timedelta(seconds=-1)), "--updater-interval"),
    ],
)
def test_a_value_out_of_bounds_is_refused(settings, flag):
    with pytest.raises(ValueError, match=flag):
        reject_out_of_range(settings)


@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings.of(eviction_tolerance=0.0, min_replicas=0, recommendation_margin_fraction=0.0)],
)
def test_bounds_themselves_are_allowed(settings):
    reject_out_of_range(settings)
