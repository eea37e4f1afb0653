"""Every default of a horizontal decision, beside those of kube-controller-manager."""

import pytest

from trimtab.decide.horizontal import memory
from trimtab.decide.horizontal.rules import DEFAULT_SETTINGS, HpaSettings, Rules

UPSTREAM = {
    "tolerance": 0.1,  # --horizontal-pod-autoscaler-tolerance
    "cpu_initialization_period": 300,  # --horizontal-pod-autoscaler-cpu-initialization-period
    "initial_readiness_delay": 30,  # --horizontal-pod-autoscaler-initial-readiness-delay
    "downscale_stabilization": 300,  # --horizontal-pod-autoscaler-downscale-stabilization
    "scale_up_limit_factor": 2,  # scaleUpLimitFactor of the controller
    "scale_up_limit_minimum": 4,  # scaleUpLimitMinimum of the controller
}
OURS = {"stale_windows": 3, "stale_after": 120, "event_interval": 300}


@pytest.mark.parametrize(("name", "value"), (UPSTREAM | OURS).items())
def test_a_setting_has_its_default(name, value):
    assert getattr(DEFAULT_SETTINGS, name) == value


def test_no_setting_is_missing_here():
    assert set(HpaSettings.__struct_fields__) == set(UPSTREAM | OURS)


def test_rules_have_the_names_of_the_flag():
    assert [(str(rules), rules.ours, rules.minor) for rules in Rules] == [
        ("trimtab", True, 38),
        ("kubernetes-1.36", False, 36),
        ("kubernetes-1.37", False, 37),
    ]


def test_memory_reaches_as_far_as_the_api_allows():
    assert (memory.LONGEST_WINDOW, memory.LONGEST_PERIOD, memory.MOST_SCALE_EVENTS) == (3600, 1800, 128)
