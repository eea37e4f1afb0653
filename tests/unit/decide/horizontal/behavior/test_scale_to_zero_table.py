"""Z-U: every combination of minReplicas, replicas, condition, gate, metric and load, one expectation per cell."""

import pytest

from tests.unit.decide.horizontal.builders import (
    EVERY_GATE,
    NO_WINDOW,
    average,
    cpu,
    external,
    hpa,
    marked,
    observe,
    pods,
    run,
    series,
    unreadable,
    usage_of,
)
from trimtab.model.feature_gates import FeatureGates

# A cell is `external/cpu/both`: the replicas decided, then ScaledToZero afterwards (T, F, or - for absent), then p if
# the autoscaler says that it is paused. The idle load asks for 0; the busy one asks for 7 by the external metric and
# for twice the replicas by CPU. Without `behavior`, one sync may grow to max(2 x replicas, 4).
TABLE = """
load gate condition min | replicas 0        | replicas 1   | replicas 5
idle on   absent    0   | 0-p/0-p/0-p       | 0T/0F/0T     | 0T/0F/0T
idle on   absent    1   | 0-p/0-p/0-p       | 1-/1-/1-     | 1F/1F/1F
idle on   absent    2   | 0-p/0-p/0-p       | 2F/2F/2F     | 2F/2F/2F
idle on   True      0   | 0T/0Tp/0T         | 0T/0F/0T     | 0T/0F/0T
idle on   True      1   | 1F/1F/1F          | 1F/1F/1F     | 1F/1F/1F
idle on   True      2   | 2F/2F/2F          | 2F/2F/2F     | 2F/2F/2F
idle on   False     0   | 0Fp/0Fp/0Fp       | 0T/0F/0T     | 0T/0F/0T
idle on   False     1   | 0Fp/0Fp/0Fp       | 1F/1F/1F     | 1F/1F/1F
idle on   False     2   | 0Fp/0Fp/0Fp       | 2F/2F/2F     | 2F/2F/2F
idle off  absent    0   | 0-p/0-p/0-p       | 1-/1-/1-     | 1-/1-/1-
idle off  absent    1   | 0-p/0-p/0-p       | 1-/1-/1-     | 1-/1-/1-
idle off  absent    2   | 0-p/0-p/0-p       | 2-/2-/2-     | 2-/2-/2-
idle off  True      0   | 0Tp/0Tp/0Tp       | 1F/1F/1F     | 1F/1F/1F
idle off  True      1   | 0Tp/0Tp/0Tp       | 1F/1F/1F     | 1F/1F/1F
idle off  True      2   | 0Tp/0Tp/0Tp       | 2F/2F/2F     | 2F/2F/2F
idle off  False     0   | 0Fp/0Fp/0Fp       | 1F/1F/1F     | 1F/1F/1F
idle off  False     1   | 0Fp/0Fp/0Fp       | 1F/1F/1F     | 1F/1F/1F
idle off  False     2   | 0Fp/0Fp/0Fp       | 2F/2F/2F     | 2F/2F/2F
busy on   absent    0   | 0-p/0-p/0-p       | 4F/2F/4F     | 7F/10F/10F
busy on   absent    1   | 0-p/0-p/0-p       | 4F/2F/4F     | 7F/10F/10F
busy on   absent    2   | 0-p/0-p/0-p       | 2F/2F/2F     | 7F/10F/10F
busy on   True      0   | 4F/0Tp/4F         | 4F/2F/4F     | 7F/10F/10F
busy on   True      1   | 4F/1F/4F          | 4F/2F/4F     | 7F/10F/10F
busy on   True      2   | 4F/2F/4F          | 2F/2F/2F     | 7F/10F/10F
busy on   False     0   | 0Fp/0Fp/0Fp       | 4F/2F/4F     | 7F/10F/10F
busy on   False     1   | 0Fp/0Fp/0Fp       | 4F/2F/4F     | 7F/10F/10F
busy on   False     2   | 0Fp/0Fp/0Fp       | 2F/2F/2F     | 7F/10F/10F
busy off  absent    0   | 0-p/0-p/0-p       | 4-/2-/4-     | 7-/10-/10-
busy off  absent    1   | 0-p/0-p/0-p       | 4-/2-/4-     | 7-/10-/10-
busy off  absent    2   | 0-p/0-p/0-p       | 2-/2-/2-     | 7-/10-/10-
busy off  True      0   | 0Tp/0Tp/0Tp       | 4F/2F/4F     | 7F/10F/10F
busy off  True      1   | 0Tp/0Tp/0Tp       | 4F/2F/4F     | 7F/10F/10F
busy off  True      2   | 0Tp/0Tp/0Tp       | 2F/2F/2F     | 7F/10F/10F
busy off  False     0   | 0Fp/0Fp/0Fp       | 4F/2F/4F     | 7F/10F/10F
busy off  False     1   | 0Fp/0Fp/0Fp       | 4F/2F/4F     | 7F/10F/10F
busy off  False     2   | 0Fp/0Fp/0Fp       | 2F/2F/2F     | 7F/10F/10F
"""
METRICS = ("external", "cpu", "both")


def cells():
    for line in TABLE.strip().splitlines()[1:]:
        row, *columns = line.split("|")
        load, gate, condition, low = row.split()
        for replicas, column in zip((0, 1, 5), columns, strict=True):
            for metric, want in zip(METRICS, column.strip().split("/"), strict=True):
                name = f"Z-U {load} gate-{gate} condition-{condition} min-{low} replicas-{replicas} {metric}"
                yield pytest.param(load, gate, condition, int(low), replicas, metric, want, id=name)


@pytest.mark.parametrize(("load", "gate", "condition", "low", "replicas", "metric", "want"), list(cells()))
def test_cell(load, gate, condition, low, replicas, metric, want):
    """Z-U."""
    chosen = pods(replicas)
    busy = load == "busy"
    asked = {
        "external": (external(average(100)), series(700 if busy else 0)),
        "cpu": (cpu(50), usage_of(chosen, 100 if busy else 0) if replicas else unreadable()),
    }
    metrics = [asked[name] for name in asked if metric in (name, "both")]
    status = marked(None if condition == "absent" else condition)
    decision = run(
        observe(
            hpa(*(spec for spec, _ in metrics), low=low, high=10, status=status),
            replicas,
            *(reading for _, reading in metrics),
            pods=chosen,
            gates=EVERY_GATE if gate == "on" else FeatureGates(hpa_scale_to_zero=False),
            settings=NO_WINDOW,
        )
    )
    mark = decision.status.condition("ScaledToZero")
    active = decision.status.condition("ScalingActive")
    paused = active is not None and active.reason == "ScalingDisabled"
    got = f"{decision.desired}{'-' if mark is None else mark.status[0]}{'p' if paused else ''}"
    assert got == want
