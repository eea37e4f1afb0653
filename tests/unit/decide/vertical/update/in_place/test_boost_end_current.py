"""The CPU after a boost: the recommendation's only if that is for this pod and applied."""

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import (
    Recorder,
    observed,
    recommended,
    run,
    vpa,
    why,
    with_computed_for,
    world,
)
from tests.unit.decide.vertical.update.in_place.test_boost_end import GATES, POLICIES, boosted
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import Resize
from trimtab.decide.vertical.update.loop_state import UPSTREAM_SETTINGS


def cpu_after(owner, rules):
    """Return the CPU request that the end of a boost asks for."""
    seen = observed([owner], [boosted("db-0"), boosted("db-1")])
    api = Recorder()
    run(seen, gates=GATES, rules=rules, settings=UPSTREAM_SETTINGS, api=api)
    values = []
    for action in api.actions:
        assert isinstance(action, Resize)
        values += [
            operation["value"]
            for operation in action.operations
            if operation["path"].endswith("/requests/cpu")
        ]
    return values


@pytest.mark.parametrize(
    ("is_present", "mode", "rules", "want"),
    [
        pytest.param(True, "Recreate", Rules.TRIMTAB, "200m", id="a recommendation for this target"),
        pytest.param(False, "Recreate", Rules.TRIMTAB, "100m", id="a recommendation for another target"),
        pytest.param(False, "Recreate", Rules.VPA_1_8, "200m", id="upstream applies any"),
        pytest.param(True, "Off", Rules.TRIMTAB, "100m", id="mode Off applies none"),
        pytest.param(False, "Off", Rules.VPA_1_8, "100m", id="upstream's mode Off applies none"),
        pytest.param(True, "Initial", Rules.TRIMTAB, "200m", id="mode Initial applies it"),
    ],
)
def test_the_end_of_a_boost_gives_the_recommendation_that_is_for_the_pod(is_present, mode, rules, want):
    owner = vpa("base", recommended("1Gi", cpu="200m"), mode=mode, policies=POLICIES, min_replicas=1)
    present = world([owner]).vpas[0].vpa
    assert cpu_after(present if is_present else with_computed_for(owner, "For:another:one"), rules) == [
        want,
        want,
    ]


@pytest.mark.parametrize("odd", [0, 1])
def test_a_boost_whose_annotation_cannot_be_read_stays_and_hides_no_other(odd):
    pods = [boosted("db-0"), boosted("db-1")]
    metadata = msgspec.structs.replace(pods[odd].metadata, annotations={"vpaCpuStartupBoost/app": "{"})
    pods[odd] = msgspec.structs.replace(pods[odd], metadata=metadata)
    owner = vpa("base", mode="Off", policies=POLICIES)
    asked, result = run(world([owner], pods), gates=GATES)
    assert asked == [("resize", f"db-{1 - odd}")]
    assert why(result, f"db-{odd}") == "what it had before its startup boost is not known"
