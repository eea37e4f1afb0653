"""Whose the past is: first samples by VPA and container, and deleted pods whose VPA is in doubt."""

from types import SimpleNamespace

import pytest

from tests.unit.decide.vertical.policy_builders import index, scope, vpa, world
from tests.unit.decide.vertical.usage_builders import HOUR_NS, START_NS, member
from trimtab.decide.vertical.input.history import HistoryContext, first_samples
from trimtab.decide.vertical.input.history_pods import HistoricalPods, _any_selects
from trimtab.decide.vertical.input.usage import Capacity
from trimtab.model.labels.selector import Selector
from trimtab.model.usage_history import ContainerName, Labelled, UsageHistory

NAN = float("nan")
LEADER, FOLLOWER = ({"app": "db", "role": role} for role in ("leader", "follower"))
LEADERS = scope("leader", pods={"role": "leader"})
ON_ARM = scope("arm", nodes={"arch": "arm64"})


def historical(vpas, scopes=(), live=(), recorded=("app", "role")) -> HistoricalPods:
    seen = world(vpas, live, scopes)
    return HistoricalPods(
        "shop",
        index(seen),
        seen.owners(),
        seen.nodes,
        live={pod.name: pod for pod in live},
        recorded_labels=frozenset(recorded),
    )


def firsts(cpu, labels, vpas=(), scopes=()):
    """Return the hour of the first sample by VPA and container."""
    vpas = vpas or [vpa("base"), vpa("leader", scope="leader")]
    times = tuple(START_NS + hour * HOUR_NS for hour in range(4))
    series = {ContainerName(*name.split("/")): values for name, values in cpu.items()}
    told = {pod: tuple(Labelled(since, found) for since, found in entries) for pod, entries in labels.items()}
    history = UsageHistory("shop", times, cpu=series, labels=told)
    context = HistoryContext(
        historical(vpas, scopes or (LEADERS,)).attribute, lambda _pod: Capacity(64_000, 256 * 10**9)
    )
    found = first_samples(history, context)
    return {owner: (moment - START_NS) // HOUR_NS for owner, moment in found.items()}


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
def test_the_first_sample_of_a_vpa_is_the_earliest_of_its_pods(order):
    cpu = {"db-0/app": (NAN, 1.0, 1.0, 1.0), "db-1/app": (NAN, NAN, NAN, 1.0), "db-2/app": (NAN,) * 4}
    labels = {name: [(0, FOLLOWER)] for name in ("db-0", "db-1", "db-2")}
    assert firsts(dict(list(cpu.items())[::order]), labels) == {("shop/base", "app"): 1}


def test_every_container_has_its_own_first_sample():
    cpu = {"db-0/app": (1.0, 1.0, 1.0, 1.0), "db-0/side": (NAN, NAN, 1.0, 1.0)}
    assert firsts(cpu, {"db-0": [(0, FOLLOWER)]}) == {
        ("shop/base", "app"): 0,
        ("shop/base", "side"): 2,
    }


def test_a_pod_that_changed_its_role_counts_for_both_vpas():
    cpu = {"db-0/app": (NAN, 1.0, 1.0, 1.0)}
    assert firsts(cpu, {"db-0": [(0, FOLLOWER), (2, LEADER)]}) == {
        ("shop/base", "app"): 1,
        ("shop/leader", "app"): 1,
    }


def test_nothing_that_was_measured_is_no_first_sample():
    assert firsts({"db-0/app": (NAN,) * 4}, {"db-0": [(0, FOLLOWER)]}) == {}
    assert firsts({"db-0/app": (1.0,) * 4}, {}) == {}, "without labels its VPA is in doubt"


def test_the_label_changes_of_one_pod_do_not_hide_those_of_another():
    cpu = {"db-0/app": (1.0,) * 4, "db-1/app": (NAN, 1.0, 1.0, 1.0)}
    labels = {"db-0": [(0, None)], "db-1": [(0, FOLLOWER)]}
    assert firsts(cpu, labels) == {("shop/base", "app"): 1}
    swapped = {"db-1": [(0, None)], "db-0": [(0, FOLLOWER)]}
    assert firsts(cpu, swapped) == {("shop/base", "app"): 0}


@pytest.mark.parametrize(
    ("vpas", "scopes", "is_known"),
    [
        pytest.param([vpa("base")], (), True, id="one target, no scope"),
        pytest.param([vpa("base"), vpa("leader", scope="leader")], (LEADERS,), True, id="a scope of labels"),
        pytest.param([vpa("arm", scope="arm")], (ON_ARM,), False, id="a scope of nodes"),
        pytest.param(
            [vpa("base"), vpa("arm", scope="arm")], (ON_ARM,), False, id="one of two has a scope of nodes"
        ),
        pytest.param(
            [vpa("arm", scope="arm"), vpa("base")], (ON_ARM,), False, id="the first has a scope of nodes"
        ),
        pytest.param(
            [vpa("base"), vpa("other", target="StatefulSet/other")], (), False, id="two targets match"
        ),
        pytest.param([], (), False, id="no VPA"),
    ],
)
def test_a_deleted_pod_belongs_to_the_only_target_that_its_labels_match(vpas, scopes, is_known):
    found = historical(vpas, scopes).attribute("db-9", LEADER)
    assert (found is not None) is is_known
    if found is not None:
        assert found[0] == LEADER
        assert found[1].receivers


@pytest.mark.parametrize("labels", [None, {"app": "web"}], ids=["unknown labels", "labels of another"])
def test_a_deleted_pod_that_no_target_matches_belongs_to_none(labels):
    assert historical([vpa("base")]).attribute("db-9", labels) is None


def claim(selector):
    return SimpleNamespace(selector=Selector.parse(selector) if selector else None)


@pytest.mark.parametrize(
    ("selectors", "is_selected"),
    [
        pytest.param(["app=db", "app=web"], True, id="the first"),
        pytest.param(["app=web", "app=db"], True, id="the last"),
        pytest.param(["", "app=db"], True, id="beside a claim without a selector"),
        pytest.param(["app=db", ""], True, id="before a claim without a selector"),
        pytest.param(["", ""], False, id="without selectors"),
        pytest.param(["app=web", "app=cache"], False, id="none"),
        pytest.param([], False, id="no claim"),
    ],
)
def test_labels_belong_to_a_target_that_any_of_its_claims_selects(selectors, is_selected):
    assert _any_selects(tuple(map(claim, selectors)), LEADER) is is_selected


@pytest.mark.parametrize(
    ("recorded", "labels", "want"),
    [
        pytest.param(("role",), {"role": "leader"}, "leader", id="a recorded label replaces the present one"),
        pytest.param(("role",), {}, None, id="a recorded label that was absent is absent"),
        pytest.param((), {}, "follower", id="a label that is not recorded is the present one"),
    ],
)
def test_recorded_labels_count_and_present_ones_fill_the_rest(recorded, labels, want):
    live = member("db-0", "follower")
    found = historical([vpa("base")], live=[live], recorded=recorded).attribute("db-0", labels)
    assert found is not None
    assert found[0].get("role") == want
    assert found[0]["app"] == "db"
