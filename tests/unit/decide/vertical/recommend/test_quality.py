"""Usage beside recommendations, by update mode and size: every aggregate, both resources, both directions."""

import numpy as np
import pytest

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.decide.vertical.cluster_state.cluster import ContainerId, PodId
from trimtab.decide.vertical.recommend.quality import Expectations, QualityLabels, expectations_of, size_log2

RECREATE = QualityLabels("Recreate", "0")


@pytest.mark.parametrize(
    ("pods", "want"), [(-1, "0"), (0, "0"), (1, "0"), (2, "1"), (3, "1"), (4, "2"), (7, "2"), (8, "3")]
)
def test_the_size_is_the_logarithm_of_the_pods(pods, want):
    assert size_log2(pods) == want


def two_containers(off) -> Recommender:
    """Return a recommender with containers `app` and `side`, one of which may be in mode Off."""
    policies = [{"containerName": off, "mode": "Off"}] if off else []
    recommender = Recommender([vpa("base", policies=policies)])
    recommender.observe([member("db-0")])
    side = ContainerId(PodId("shop", "db-0"), "side")
    recommender.state.add_or_update_container(side, 100, 2**30, recommender.now_ns)
    recommender.scrape({"db-0": Load(1000, 10**9)})
    recommender.recommend()
    return recommender


@pytest.mark.parametrize(("off", "scaled"), [(None, 2), ("app", 1), ("side", 1)])
def test_containers_in_mode_off_are_left_out_and_hide_no_other(off, scaled):
    expected = expectations_of(two_containers(off).state)
    assert (expected.group >= 0).sum() == scaled
    assert expected.groups == (RECREATE,)


def test_recommendations_are_in_cores_and_bytes():
    recommender = two_containers(None)
    expected = expectations_of(recommender.state)
    (row,) = np.flatnonzero(~np.isnan(expected.recommended["cpu"]))
    assert expected.recommended["cpu"][row] == pytest.approx(1.168)
    assert expected.recommended["memory"][row] == pytest.approx(1168723596)


def expecting(cpu, memory, group) -> Expectations:
    recommended = {"cpu": np.array(cpu), "memory": np.array(memory)}
    return Expectations((RECREATE, QualityLabels("Off", "1")), np.array(group), recommended)


def test_changes_are_relative_to_the_recommendation_before():
    nan = np.nan
    before = expecting([1.0, 2.0, 0.0, nan, 1.0], [100.0, 100.0, 100.0, nan, 1.0], [0, 1, 0, 0, -1])
    after = expecting([1.5, 1.0, 1.0, 1.0, 9.0], [100.0, 50.0, nan, 1.0, 9.0], [0, 1, 0, 0, -1])
    found = [(group.update_mode, resource, list(change)) for group, resource, change in before.changes(after)]
    assert found == [
        ("Recreate", "cpu", [0.5]),
        ("Off", "cpu", [-0.5]),
        ("Recreate", "memory", [0.0]),
        ("Off", "memory", [-0.5]),
    ]


@pytest.mark.parametrize("is_wider_after", [True, False])
def test_aggregates_that_came_or_went_are_not_compared(is_wider_after):
    few, many = expecting([1.0], [1.0], [0]), expecting([2.0, 2.0], [2.0, 2.0], [0, 0])
    before, after = (few, many) if is_wider_after else (many, few)
    assert [len(change) for _, _, change in before.changes(after)] == [1, 1]


def test_samples_are_compared_with_the_recommendation_of_their_aggregate():
    recommender = two_containers(None)
    expected = expectations_of(recommender.state)
    reports = dict(zip(("cpu", "memory"), recommender.scrape({"db-0": Load(500, 10**9)}), strict=True))
    want = {"cpu": (0.5, 1.168), "memory": (10**9, 1168723596)}
    for resource, (used, recommended) in want.items():
        usage = reports[resource].usage
        assert usage is not None
        (compared,) = expected.compare(recommender.state, resource, usage)
        assert compared.group == RECREATE
        assert (list(compared.used), list(compared.recommended)) == (
            [pytest.approx(used)],
            [pytest.approx(recommended)],
        )


def test_samples_of_aggregates_that_are_new_or_gone_are_not_compared():
    recommender = two_containers(None)
    before = expectations_of(Recommender([vpa("base")]).state)
    cpu, _ = recommender.scrape({"db-0": Load(500, 10**9)})
    assert cpu.usage is not None
    assert list(before.compare(recommender.state, "cpu", cpu.usage)) == [], "allocated since then"
    expected = expectations_of(recommender.state)
    for key in list(recommender.state.aggregates):
        recommender.state.delete_aggregate(key)
    assert list(expected.compare(recommender.state, "cpu", cpu.usage)) == [], "collected since then"
