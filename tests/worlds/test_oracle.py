"""Which sizes the oracle calls allowed: one HPA on a queue of 10 per pod, with samples and syncs every 15 s."""

import pytest

from tests.worlds.hpas_life import Record, Size
from tests.worlds.hpas_workload import Sample
from tests.worlds.oracle import promises

METRIC = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "100m"}},
}
END = 900


def life(asked, sizes, behavior=None, *, first, metric=METRIC, away=(0, 0), resets=()):
    """Return what was seen where `asked` has the pods asked for, each from when on, and `sizes` the changes."""
    spec = {
        "minReplicas": 1,
        "maxReplicas": 20,
        "metrics": [metric],
        **({"behavior": behavior} if behavior else {}),
    }
    record = Record(specs=[(0.0, spec)], resets=list(resets))
    for at in range(0, END, 15):
        pods = next(pods for since, pods in reversed(asked) if since <= at)
        size = next((size.new for size in reversed(sizes) if size.at <= at), first)
        unit = 10_000 if metric is METRIC else 100
        record.samples.append((float(at), (Sample(float(at), pods * unit, size, True),)))
        if not away[0] <= at < away[1]:
            record.asked.append(at + 4.0)
            record.deciders.append((at + 4.0, "a"))
    record.sizes = list(sizes)
    return promises("web", record, {"replicas": first}, END)


def kinds(broken):
    return [line.partition(":")[0] for line in broken]


POLICY = {"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}
NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}


@pytest.mark.parametrize(
    ("asked", "sizes", "more", "want"),
    [
        pytest.param(
            [(0, 9), (100, 2)],
            [Size(410, 9, 2, "a")],
            {"first": 9},
            [],
            id="a window that has passed holds nothing",
        ),
        pytest.param(
            [(0, 9), (100, 2)], [Size(300, 9, 2, "a")], {"first": 9}, ["window"], id="a window is not cut"
        ),
        pytest.param(
            [(0, 9), (100, 2)], [Size(300, 9, 2, "")], {"first": 9}, [], id="a user may scale at any time"
        ),
        pytest.param(
            [(0, 3), (100, 9)],
            [Size(110, 3, 5, "a"), Size(169, 5, 7, "a")],
            {"first": 3, "behavior": POLICY},
            [],
            id="a rate allows another step when its period ends",
        ),
        pytest.param(
            [(0, 3), (100, 9)],
            [Size(110, 3, 5, "a"), Size(140, 5, 7, "a")],
            {"first": 3, "behavior": POLICY},
            ["rate"],
            id="a rate is not exceeded",
        ),
        pytest.param(
            [(0, 3), (100, 9)],
            [Size(110, 3, 5, "a"), Size(130, 5, 3, ""), Size(140, 3, 5, "a")],
            {"first": 3, "behavior": POLICY},
            ["rate"],
            id="what a user removes is not given back by a rate",
        ),
        pytest.param(
            [(0, 9), (100, 2)],
            [Size(460, 9, 2, "a")],
            {"first": 9, "away": (60, 440)},
            ["size after an outage"],
            id="nothing shrinks on the first sample after an outage",
        ),
        pytest.param(
            [(0, 8), (100, 4)],
            [Size(110, 8, 4, "a"), Size(112, 4, 2, "a")],
            {"first": 8, "behavior": NO_WINDOW, "metric": CPU},
            ["one sample lowers once"],
            id="one sample does not lower twice",
        ),
        pytest.param(
            [(0, 8), (100, 4), (150, 2)],
            [Size(110, 8, 4, "a"), Size(155, 4, 2, "a")],
            {"first": 8, "behavior": NO_WINDOW, "metric": CPU},
            [],
            id="another sample may lower again",
        ),
        pytest.param(
            [(0, 9), (90, 1)],
            [Size(100, 0, 1, ""), Size(110, 1, 4, "a")],
            {"first": 9, "resets": [100.0]},
            ["growth that was asked for"],
            id="another target does not grow by what the last one needed",
        ),
        pytest.param(
            [(0, 25)], [Size(50, 18, 25, "a")], {"first": 18}, ["bounds"], id="sizes stay within the bounds"
        ),
        pytest.param(
            [(0, 9)], [Size(50, 3, 6, "a")], {"first": 3}, [], id="without behavior, sizes double per sync"
        ),
        pytest.param(
            [(0, 9)],
            [Size(50, 3, 7, "a")],
            {"first": 3},
            ["rate"],
            id="without behavior, sizes do not more than double",
        ),
    ],
)
def test_the_oracle_allows_what_the_specification_allows(asked, sizes, more, want):
    assert kinds(life(asked, sizes, **more)) == want


def test_two_programs_that_take_turns_decide_at_one_time():
    record = Record(specs=[(0.0, {})], deciders=[(float(at), "ab"[at // 15 % 2]) for at in range(0, 90, 15)])
    assert kinds(promises("web", record, {"replicas": 1}, END)) == ["one decider"]


def test_a_fail_over_is_no_second_decider():
    record = Record(
        specs=[(0.0, {})], deciders=[(float(at), "a" if at < 45 else "b") for at in range(0, 90, 15)]
    )
    assert promises("web", record, {"replicas": 1}, END) == []
