"""Notes on pods whose replacement would be refused: when they are written, when they end, and what VPAs say of them."""

import pytest

from tests.unit.decide.vertical.policy_builders import index, pod, vpa, world
from trimtab.decide.vertical.update.refused_replacements import (
    REFUSED_ANNOTATION,
    changed_annotations,
    refusals_by_vpa,
)

REFUSED = "the replacement of pod db-0 would be refused: no"
FIRST, SECOND = "shop/db-0", "shop/db-1"


def noted(name, note=REFUSED, **more):
    return pod(name, annotations={REFUSED_ANNOTATION: note}, **more)


@pytest.mark.parametrize(
    ("pods", "asked", "to_evict", "want"),
    [
        pytest.param([pod("db-0")], {FIRST: REFUSED}, {FIRST}, {"db-0": REFUSED}, id="refused"),
        pytest.param([noted("db-0")], {FIRST: REFUSED}, {FIRST}, {}, id="refused as before"),
        pytest.param([noted("db-0", "old")], {FIRST: REFUSED}, {FIRST}, {"db-0": REFUSED}, id="otherwise"),
        pytest.param([noted("db-0")], {FIRST: ""}, {FIRST}, {"db-0": None}, id="admitted now"),
        pytest.param([noted("db-0")], {}, {FIRST}, {}, id="not asked in this loop"),
        pytest.param([noted("db-0")], {}, set(), {"db-0": None}, id="it should not be evicted any more"),
        pytest.param([pod("db-0")], {}, {FIRST}, {}, id="never asked"),
        pytest.param(
            [noted("db-0"), noted("db-1")],
            {FIRST: ""},
            {FIRST, SECOND},
            {"db-0": None, "db-1": None},
            id="another pod of the template is admitted now",
        ),
        pytest.param(
            [noted("db-0"), noted("db-1")],
            {FIRST: "", SECOND: REFUSED},
            {FIRST, SECOND},
            {"db-0": None},
            id="another is admitted, and this one is refused all the same",
        ),
        pytest.param(
            [noted("db-0"), noted("db-1", owner="StatefulSet/other")],
            {FIRST: ""},
            {FIRST, SECOND},
            {"db-0": None},
            id="a pod of another workload is admitted",
        ),
    ],
)
def test_changed_annotations(pods, asked, to_evict, want):
    assert {changed.name: note for changed, note in changed_annotations(pods, asked, to_evict)} == want


def messages(pods, vpas):
    seen = world(vpas, pods)
    return refusals_by_vpa(pods, index(seen), seen.owners(), seen.nodes)


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([pod("db-0")], {}, id="nothing is noted"),
        pytest.param([noted("db-1"), pod("db-0")], {"shop/base": REFUSED}, id="one pod"),
        pytest.param(
            [noted("db-2"), noted("db-1", "first")],
            {"shop/base": "first; the same goes for db-2"},
            id="the first by name, and the others",
        ),
        pytest.param(
            [noted(f"db-{place}") for place in range(6)],
            {"shop/base": f"{REFUSED}; the same goes for db-1, db-2, db-3 and 2 more"},
            id="many",
        ),
        pytest.param([noted("db-0", phase="Failed")], {}, id="the pod is finished"),
        pytest.param(
            [noted("db-0", phase="Failed"), noted("db-1")], {"shop/base": REFUSED}, id="the first is finished"
        ),
        pytest.param(
            [noted("db-0", owner="StatefulSet/other"), noted("db-1")],
            {"shop/base": REFUSED},
            id="the first is of another workload",
        ),
        pytest.param([pod("db-0"), noted("db-1")], {"shop/base": REFUSED}, id="the first is not noted"),
        pytest.param(
            [noted(f"db-{place}") for place in range(4)],
            {"shop/base": f"{REFUSED}; the same goes for db-1, db-2, db-3"},
            id="as many as are named",
        ),
        pytest.param([noted("db-0", owner="StatefulSet/other")], {}, id="another workload"),
    ],
)
def test_refusals_by_vpa(pods, want):
    assert messages(pods, [vpa("base")]) == want


def test_a_vpa_that_changes_no_pods_says_nothing():
    assert messages([noted("db-0")], [vpa("base", mode="Off")]) == {}
