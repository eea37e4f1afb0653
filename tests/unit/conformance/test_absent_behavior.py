"""An HPA without `behavior`: absent and null are the same, and neither is an empty behavior."""

import msgspec
import pytest

from tests.conformance.hpa_behavior import asked, seen_with, sequence, store_scale_event
from tests.conformance.hpa_validation import check_default, check_default_behavior
from trimtab.decide.horizontal import limits
from trimtab.decide.horizontal.memory import Memory, Recommendation
from trimtab.decide.horizontal.rules import Rules
from trimtab.model.hpa.types import HorizontalPodAutoscalerBehavior

NONE = [pytest.param({}, id="absent"), pytest.param({"behavior": None}, id="null")]
MOMENT = "2026-01-15T12:00:00Z"
BARE = {"scaleTargetRef": {"kind": "", "name": ""}, "maxReplicas": 0}


def hpa(**spec):
    return {"metadata": {}, "spec": BARE | spec, "status": {"desiredReplicas": 0}}


@pytest.mark.parametrize("behavior", NONE)
def test_the_defaults_of_a_behavior_are_not_made_up_for_an_hpa_without_one(behavior):
    """The input and output of "Nil behavior" in upstream's TestSetBehaviorDefaults."""
    case = {"input": hpa(**behavior), "expect": {"output": hpa()}}
    assert check_default_behavior(case) is None
    whole = {"version": "autoscaling/v2", "input": hpa(minReplicas=1, **behavior)}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    whole["expect"] = {"output": hpa(minReplicas=1, metrics=[metric])}
    assert check_default(whole) is None


@pytest.mark.parametrize("behavior", NONE)
def test_a_sequence_without_behavior_goes_by_the_controllers_own_settings(behavior):
    able = {
        "status": "True",
        "reason": "ReadyForNewScale",
        "message": "recommended size matches current size",
    }
    limited = {
        "status": "True",
        "reason": "ScaleUpLimit",
        "message": "the desired replica count is increasing faster than the maximum scale rate",
    }
    seen = [{"replicas": 3, "timestamp": MOMENT}, {"replicas": 50, "timestamp": MOMENT}]
    case = {
        "spec": {"minReplicas": 1, "maxReplicas": 100, **behavior},
        "settings": {
            "downscaleStabilisationWindowSeconds": 300,
            "scaleUpLimitFactor": 2,
            "scaleUpLimitMinimum": 4,
        },
        "state": {},
        "steps": [{"now": MOMENT, "currentReplicas": 3, "desiredReplicas": 50}],
        "expect": {
            "steps": [{"replicas": 6, "ableToScale": able, "scalingLimited": limited}],
            "state": {"recommendations": seen},
        },
    }
    assert sequence(case) is None


@pytest.mark.parametrize("behavior", NONE)
def test_no_scale_event_is_kept_without_behavior(behavior):
    case = {"args": {"prevReplicas": 3, "newReplicas": 6, **behavior}, "state": {}, "now": MOMENT}
    assert store_scale_event(case | {"expect": {"state": {}}}) is None


@pytest.mark.parametrize("compat", [Rules.TRIMTAB, Rules.KUBERNETES_1_36], ids=["ours", "upstream's"])
@pytest.mark.parametrize(
    ("behavior", "up", "down"),
    [
        pytest.param(None, 20, 9, id="none: twice the replicas per sync, the highest of the window"),
        pytest.param(HorizontalPodAutoscalerBehavior(), 20, 9, id="empty: its defaults"),
    ],
)
def test_both_ways_of_having_no_rules_bound_a_step(compat, behavior, up, down):
    def replicas(desired, memory):
        seen = msgspec.structs.replace(seen_with(behavior, 10), rules=compat)
        steady = limits.within_windows(asked(desired), seen, memory, 1000.0)
        return limits.within_bounds_and_rates(steady, seen, limits.Bounds(1, 100), memory, 1000.0).replicas

    assert replicas(90, Memory(recommendations=())) == up
    assert replicas(2, Memory(recommendations=(Recommendation(9, 900.0),))) == down
