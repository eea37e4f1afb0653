"""Which sizes the oracle allows, and that seeds keep their worlds."""

import pytest

from tests.worlds.real.oracle import broken_promises
from tests.worlds.real.profiles import draw_profile, make_world

EXTERNAL = {
    "external": {
        "metric": {"name": "external-0"},
        "target": {"type": "AverageValue", "averageValue": "1000m"},
    }
}


def life(sizes, *, load, behavior=None):
    """A life with one metric, served every second: the load in pods, or None while it cannot be had."""
    spec = {"minReplicas": 1, "maxReplicas": 10, "metrics": [{"type": "External", **EXTERNAL}]}
    served, wanted = [], sizes[0][1]
    for second in range(60):
        wanted = next((new for at, _, new, _ in reversed(sizes) if at <= second), wanted)
        level = load(second)
        how, value = ("missing", None) if level is None else ("ok", level * 1000)
        served.append((second + 0.1, 0, how, value, wanted, wanted, 30.0, wanted, wanted, 0.1))
    return {
        "metrics": [{"name": "external-0", "kind": "External", "resource": None, "resolution": 1, "request": 1000}],
        "settings": {"sync": 1, "window": 20},
        "specs": [(0.0, spec | ({"behavior": behavior} if behavior else {}))],
        "sizes": sizes, "served": served, "gone": [],
    }  # fmt: skip


ONE_IN_20 = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 20}]}}


@pytest.mark.parametrize(
    ("sizes", "load", "behavior", "promises"),
    [
        pytest.param([(30.2, 3, 6, "controller")], lambda at: 3 if at < 30 else 6, None, [], id="growth that is asked for"),
        pytest.param([(30.2, 3, 11, "controller")], lambda at: 20, None, ["bounds"], id="above the maximum"),
        pytest.param([(30.2, 3, 7, "controller")], lambda at: 9, None, ["rate"], id="more than twice in one sync"),
        pytest.param(
            [(10.2, 3, 4, "controller"), (30.3, 4, 5, "controller")], lambda at: 9, ONE_IN_20, [], id="a pod in each period"
        ),
        pytest.param(
            [(10.2, 3, 4, "controller"), (20.2, 4, 5, "controller")], lambda at: 9, ONE_IN_20, ["rate"],
            id="two pods in one period",
        ),
        pytest.param(
            [(30.2, 6, 2, "controller")], lambda at: 6 if at < 28 else 2, None, ["window"], id="lowered within the window"
        ),
        pytest.param([(50.2, 6, 2, "controller")], lambda at: 6 if at < 28 else 2, None, [], id="lowered after the window"),
        pytest.param(
            [(30.2, 3, 5, "controller")], lambda at: 3 if at < 20 else None, None, ["blind"], id="without a metric for long"
        ),
        pytest.param([(30.2, 3, 12, "hand")], lambda at: 3, None, [], id="a user may do anything"),
    ],
)  # fmt: skip
def test_oracle(sizes, load, behavior, promises):
    assert [each.promise for each in broken_promises(life(sizes, load=load, behavior=behavior))] == promises


def test_a_seed_keeps_its_world():
    """Stories are told with their seeds. They say nothing once a draw has come between others."""
    profile = draw_profile("30")
    world = make_world("30.5", profile)
    assert [(event.at, event.what) for event in profile.events] == [(22.3, "etcd-stop"), (48.4, "429-writes")]
    assert (world.minimum, world.maximum, world.replicas, world.start_up) == (1, 10, 1, 4)
    assert [(each.at, each.what) for each in world.happenings] == [(50.1, "edit"), (61.2, "outage")]
