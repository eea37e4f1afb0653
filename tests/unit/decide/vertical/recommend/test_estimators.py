"""Percentile, margin, confidence, floor: amounts and the reasons for them."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.vertical.usage_builders import DAY_NS, MINUTE_NS, START_NS, recommend_containers
from trimtab.decide.vertical.cluster_state.aggregates import Aggregate, AggregateTable
from trimtab.decide.vertical.cluster_state.containers import ContainerHistory, ContainerTable
from trimtab.decide.vertical.recommend.estimators import (
    BOUNDS,
    EstimatorSettings,
    Percentiles,
    ResourceSettings,
    confidence_multipliers,
)
from trimtab.decide.vertical.recommend.quantities import RecommendationRounding, cpu_quantity, memory_quantity
from trimtab.decide.vertical.recommend.recommendation import (
    ContainerRecommendation,
    RecommenderSettings,
    pod_resources,
)
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import ContainerResourcePolicy

USAGE = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**12)), min_size=1, max_size=30)


def profile(usage, every_ns=MINUTE_NS, policy=None) -> Aggregate:
    aggregate = Aggregate(AggregateTable(block_columns=2))
    history = ContainerHistory(ContainerTable(aggregate.table))
    history.aggregate = aggregate.row
    for number, (millicores, memory) in enumerate(usage):
        history.add_cpu(millicores, START_NS + number * every_ns)
        history.add_memory(memory, START_NS + number * every_ns)
    aggregate.apply_policy(policy, per_vpa=True)
    return aggregate


def recommend(usage, every_ns=MINUTE_NS, policy=None) -> ContainerRecommendation:
    (found,) = recommend_containers({"app": profile(usage, every_ns, policy)}, RecommenderSettings())
    return found


@pytest.mark.parametrize(
    ("known", "lower", "upper"),
    [
        pytest.param(0.5, 0.99601, 3.0, id="half a day known"),
        pytest.param(1.0, 0.99800, 2.0, id="a day known"),
        pytest.param(7.0, 0.99971, 1.142857, id="a week known"),
        pytest.param(0.0, 0.0, np.inf, id="nothing known"),
    ],
)
def test_confidence_widens_the_bounds_and_leaves_the_target(known, lower, upper):
    target, low, high = confidence_multipliers(np.array([known]))[:, 0]
    assert target == 1
    assert low == pytest.approx(lower, abs=5e-6)
    assert high == pytest.approx(upper, rel=1e-6)


def test_one_sample_gives_a_target_the_lowest_lower_bound_and_an_upper_bound_without_limit():
    amounts = recommend([(1000, 10**9)]).amounts
    assert amounts["target"] == {"cpu": 1168, "memory": 1168723596}
    assert amounts["lower_bound"] == {"cpu": 25, "memory": 250 * 2**20}
    assert amounts["upper_bound"] == {"cpu": 10**14, "memory": 10**14}


def test_no_sample_at_all_ends_at_the_floor():
    amounts = recommend_containers(
        {"app": Aggregate(AggregateTable(block_columns=1))}, RecommenderSettings()
    )[0].amounts
    assert set(map(str, amounts.values())) == {str({"cpu": 25, "memory": 250 * 2**20})}


def test_containers_share_the_pods_minimum():
    table = AggregateTable(block_columns=2)
    two = recommend_containers({"b": Aggregate(table), "a": Aggregate(table)}, RecommenderSettings())
    assert [container.name for container in two] == ["a", "b"]
    assert [container.amounts["target"]["cpu"] for container in two] == [12, 12]


def test_every_number_says_how_it_came_about():
    """In units that people use; buckets, raw bytes and infinite factors were shown."""
    reasons = recommend([(1000, 10**9)] * 200).derivations
    assert str(reasons["target"]["cpu"]) == "1168m: 90 % of CPU samples are at most 1016m, margin 152m"
    assert str(reasons["upper_bound"]["cpu"]) == (
        "9619m: 95 % of CPU samples are at most 1016m, margin 152m, x 8.24 for 200 samples"
    )
    assert str(reasons["target"]["memory"]).startswith("1.09 GiB: 90 % of memory peaks are at most ")
    low = recommend([(1, 10**6)]).derivations["target"]["memory"]
    assert str(low) == (
        "250 MiB: 90 % of memory peaks are at most 9.54 MiB, margin 1.43 MiB, raised to the pod's minimum"
    )
    assert low.is_floor


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_an_upper_bound_of_a_few_samples_is_none(resource):
    """Two samples made a bound of 100,000,000,000 cores."""
    upper = recommend([(1000, 10**9)] * 2).derivations["upper_bound"][resource]
    assert (str(upper), upper.is_confident) == ("no upper bound yet: 2 samples", False)


def test_a_container_without_samples_says_so():
    assert "no cpu samples yet" in str(recommend([]).derivations["target"]["cpu"])


def test_a_policy_may_set_percentiles_and_margin_for_its_own_container():
    usage = [(100, 10**8)] * 60 + [(2000, 10**8)] * 40
    policy = ContainerResourcePolicy(
        target_percentile=Quantity.parse("0.5"), safety_margin_fraction=Quantity.parse("0")
    )
    assert recommend(usage).amounts["target"]["cpu"] == 2406
    assert recommend(usage, policy=policy).amounts["target"]["cpu"] == 110
    assert EstimatorSettings().for_container(ContainerResourcePolicy()) == EstimatorSettings()


@pytest.mark.parametrize("bound", BOUNDS)
def test_own_percentiles_and_margin_hold_for_both_resources(bound):
    policy = msgspec.structs.replace(
        ContainerResourcePolicy(), **{f"{bound}_percentile": Quantity.parse("0.42")}
    )
    plain, own = EstimatorSettings(), EstimatorSettings().for_container(policy)
    want = replace(Percentiles(), **{bound: 0.42})
    assert (own.cpu.percentiles, own.memory.percentiles, own.safety_margin) == (
        want,
        want,
        plain.safety_margin,
    )
    margin = plain.for_container(ContainerResourcePolicy(safety_margin_fraction=Quantity.parse("0.25")))
    assert margin == EstimatorSettings(plain.cpu, plain.memory, 0.25)
    assert plain.for_container(None) is plain


def test_the_defaults_of_the_estimate_are_upstreams():
    resource = ResourceSettings(Percentiles(0.9, 0.5, 0.95), DAY_NS)
    assert EstimatorSettings() == EstimatorSettings(resource, resource, 0.15)
    assert Percentiles().shares == (0.9, 0.5, 0.95)


def test_resources_that_are_not_controlled_are_left_out():
    found = recommend([(100, 10**9)], policy=ContainerResourcePolicy(controlled_resources=("memory",)))
    assert list(found.amounts["target"]) == ["memory"]
    assert list(pod_resources([found], RecommendationRounding()).container_recommendations[0].target) == [
        "memory"
    ]


@settings(max_examples=60)
@given(USAGE, st.integers(0, 29), st.integers(1, 10**6), st.integers(1, 10**12))
def test_more_usage_never_lowers_a_recommendation(usage, place, more_cpu, more_memory):
    place %= len(usage)
    cpu, memory = usage[place]
    higher = [*usage[:place], (cpu + more_cpu, memory + more_memory), *usage[place + 1 :]]
    # A window that begins with 0 takes no higher peak (upstream's), so that a first 0 is left out here.
    usage, higher = ([(one, max(two, 1)) for one, two in each] for each in (usage, higher))
    before, after = recommend(usage).amounts, recommend(higher).amounts
    for bound, amounts in before.items():
        for resource, amount in amounts.items():
            assert after[bound][resource] >= amount


@settings(max_examples=60)
@given(USAGE, st.sampled_from([MINUTE_NS, 60 * MINUTE_NS, DAY_NS]))
def test_a_target_lies_within_its_bounds(usage, every_ns):
    amounts = recommend(usage, every_ns).amounts
    for resource in ("cpu", "memory"):
        assert (
            amounts["lower_bound"][resource]
            <= amounts["target"][resource]
            <= amounts["upper_bound"][resource]
        )


@pytest.mark.parametrize(
    ("rounding", "want"),
    [
        pytest.param(RecommendationRounding(), ("1234m", "1234567890"), id="as it is"),
        pytest.param(
            RecommendationRounding(cpu_millicores=50, memory_bytes=2**20),
            ("1250m", "1178Mi"),
            id="up to multiples",
        ),
        pytest.param(
            RecommendationRounding(cpu_millicores=0, memory_bytes=-1),
            ("1234m", "1234567890"),
            id="0 rounds nothing",
        ),
        pytest.param(
            RecommendationRounding(humanize_memory=True),
            ("1234m", "1234803097600m"),
            id="for people, two decimals",
        ),
    ],
)
def test_rounding_flags(rounding, want):
    assert (str(cpu_quantity(1234, rounding)), str(memory_quantity(1234567890, rounding))) == want
