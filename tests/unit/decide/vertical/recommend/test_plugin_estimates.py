"""A VPA that names an estimator gets its amounts; everything after the estimate is as for every VPA."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import DAY_NS, Load, Recommender, member
from trimtab.decide.vertical.explain import _amounts
from trimtab.decide.vertical.input.checkpoints import ESTIMATE_ANNOTATION, load_checkpoint, save_checkpoints
from trimtab.decide.vertical.recommend.plugin_estimates import LoadedEstimator, saved_estimators
from trimtab.model.vpa.types import RecommenderSelector
from trimtab.plugins.estimator import MOST_SAMPLES, Amounts, Estimate, EstimatorInput, UsageHistogram
from trimtab.plugins.guard import PluginFailure

NAME = "example.com/fixed"
GIB = float(2**30)


class Fixed:
    """An estimator that answers what a test says, and remembers what it saw."""

    def __init__(self, cpu=(1.0, 2.0, 3.0), memory=None) -> None:
        given = {"cpu": cpu, "memory": memory}
        self.amounts = {
            name: Amounts(lower=bounds[0], target=bounds[1], upper=bounds[2])
            for name, bounds in given.items()
            if bounds is not None
        }
        self.seen: list[EstimatorInput] = []
        self.failure = ""

    def __call__(self, seen):
        self.seen.append(seen)
        if self.failure:
            return PluginFailure(plugin=NAME, reason="PluginRaised", message=self.failure)
        calls = (seen.memory or {"calls": 0})["calls"] + 1
        return Estimate(amounts=self.amounts, reason="as the test says", memory={"calls": calls})


def running(fixed, *, needs_samples=False, name=NAME, policies=()):
    made = vpa("base", policies=policies)
    spec = msgspec.structs.replace(made.spec, recommenders=(RecommenderSelector(name=name),))
    recommender = Recommender([msgspec.structs.replace(made, spec=spec)])
    recommender.observe([member("db-0"), member("db-1")])
    recommender.estimators = {NAME: LoadedEstimator(NAME, "1.0", fixed, needs_samples)}
    return recommender


def amounts_of(recommender):
    (entry,) = recommender.recommend()["base"].status.recommendation.container_recommendations
    return {
        bound: {name: str(amount) for name, amount in getattr(entry, bound).items()}
        for bound in ("lower_bound", "target", "upper_bound", "uncapped_target")
    }


def test_its_amounts_replace_the_built_in_ones_of_the_resources_it_names():
    fixed, plain = running(Fixed()), running(Fixed(), name="default")
    for recommender in (fixed, plain):
        recommender.scrape({"db-0": Load(300, 2**30)})
    got, own = amounts_of(fixed), amounts_of(plain)
    assert [got[bound]["cpu"] for bound in got] == ["1", "2", "3", "2"]
    assert [got[bound]["memory"] for bound in got] == [own[bound]["memory"] for bound in own]


def test_policies_cap_and_minimums_raise_its_amounts():
    policy = {"containerName": "*", "maxAllowed": {"cpu": "1500m"}}
    recommender = running(Fixed(cpu=(0.0, 2.0, 3.0), memory=(0, 1, GIB)), policies=[policy])
    recommender.scrape({"db-0": Load(300, 2**30)})
    got = amounts_of(recommender)
    assert (got["target"]["cpu"], got["uncapped_target"]["cpu"]) == ("1500m", "2")
    assert got["lower_bound"]["cpu"] == "25m"
    assert got["target"]["memory"] == "250Mi"


def test_it_sees_the_usage_of_all_pods_and_what_trimtab_itself_would_recommend():
    fixed = Fixed()
    recommender = running(fixed)
    recommender.scrape({"db-0": Load(300, 2**30), "db-1": Load(2000, 2**30)})
    recommender.recommend()
    (seen,) = fixed.seen
    assert (seen.namespace, seen.name, seen.container, seen.sample_count) == ("shop", "base", "app", 2)
    cpu = seen.histograms["cpu"]
    assert cpu.percentile(0.5) == pytest.approx(0.3, rel=0.06)
    assert cpu.percentile(1.0) == pytest.approx(2.0, rel=0.06)
    assert seen.built_in["cpu"].target > 2.0
    assert seen.last_sample == seen.now
    assert seen.samples == (), "nobody asked for them"


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.001, 10)), min_size=1), st.floats(0, 1))
def test_a_percentile_holds_its_share_of_the_weight(buckets, share):
    ends = sorted({end for end, _ in buckets})
    weights = [weight for _, weight in buckets][: len(ends)]
    histogram = UsageHistogram(ends=tuple(ends), weights=tuple(weights))
    found = histogram.percentile(share)
    below = sum(weight for end, weight in zip(ends, weights, strict=True) if end < found)
    upto = sum(weight for end, weight in zip(ends, weights, strict=True) if end <= found)
    assert below <= share * sum(weights) + 1e-9
    assert upto >= share * sum(weights) - 1e-9


def test_each_sample_is_shown_once_and_waits_while_the_estimator_fails():
    fixed = Fixed()
    recommender = running(fixed, needs_samples=True)
    recommender.scrape({"db-0": Load(300, 2**30), "db-1": Load(500, 2**30)})
    recommender.recommend()
    fixed.failure = "out of order"
    recommender.scrape({"db-0": Load(600, 2**31)})
    recommender.recommend()
    fixed.failure = ""
    recommender.scrape({"db-0": Load(700, 2**31)})
    recommender.recommend()
    amounts = [[sample.amount for sample in seen.samples if sample.resource == "cpu"] for seen in fixed.seen]
    assert amounts == [[0.3, 0.5], [0.6], [0.6, 0.7]]
    assert fixed.seen[2].samples[1].amount == 2 * GIB
    assert fixed.seen[2].missed_samples == 0


def test_samples_that_wait_are_bounded_and_the_missing_ones_are_counted():
    fixed = Fixed()
    recommender = running(fixed, needs_samples=True)
    for _ in range(MOST_SAMPLES // 2 + 5):
        recommender.scrape({"db-0": Load(300, 2**30)})
    recommender.recommend()
    assert (len(fixed.seen[0].samples), fixed.seen[0].missed_samples) == (MOST_SAMPLES, 10)


def test_a_failure_keeps_the_last_recommendation_and_its_end_removes_the_condition():
    fixed = Fixed()
    recommender = running(fixed)
    recommender.scrape({"db-0": Load(300, 2**30)})
    before = recommender.recommend()["base"].status
    fixed.failure = "it raised KeyError: 'zone'"
    failed = recommender.recommend()["base"].status
    assert failed.recommendation == before.recommendation
    assert [(found.type, found.status, found.message) for found in failed.conditions] == [
        ("ComputedFor", "True", "all pods of the target"),
        ("EstimatorFailed", "True", "it raised KeyError: 'zone'"),
        ("RecommendationProvided", "True", ""),
    ]
    fixed.failure = ""
    assert recommender.recommend()["base"].status.conditions == before.conditions


def test_its_memory_and_last_answer_survive_a_restart():
    fixed = Fixed()
    recommender = running(fixed)
    recommender.scrape({"db-0": Load(300, 2**30)})
    recommender.recommend()
    recommender.recommend()
    (saved,) = save_checkpoints(recommender.state, list(recommender.state.vpas.values()), recommender.now_ns)
    again = Fixed()
    restarted = running(again)
    assert load_checkpoint(restarted.state, saved, restarted.now_ns) is None
    explained = saved_estimators(restarted.state.vpas["shop/base"])[NAME]
    assert explained.version == "1.0"
    restarted.recommend()
    assert again.seen[0].memory == {"calls": 2}


def test_another_estimator_starts_without_the_memory():
    recommender = running(Fixed())
    recommender.scrape({"db-0": Load(300, 2**30)})
    recommender.recommend()
    (saved,) = save_checkpoints(recommender.state, list(recommender.state.vpas.values()), recommender.now_ns)
    other = running(Fixed(), name="example.com/other")
    assert load_checkpoint(other.state, saved, other.now_ns) is None
    assert other.state.vpas["shop/base"].estimator is None


def test_a_memory_that_cannot_be_read_is_reported_and_the_history_is_loaded():
    recommender = running(Fixed())
    recommender.scrape({"db-0": Load(300, 2**30)})
    recommender.recommend()
    (saved,) = save_checkpoints(recommender.state, list(recommender.state.vpas.values()), recommender.now_ns)
    saved.metadata.annotations[ESTIMATE_ANNOTATION] = "{"
    restarted = running(Fixed())
    error = load_checkpoint(restarted.state, saved, restarted.now_ns)
    assert error is not None
    assert "the estimator starts without its memory" in error
    assert restarted.state.vpas["shop/base"].initial


def test_the_explanation_names_estimator_version_and_reason():
    recommender = running(Fixed(cpu=(0.001, 2.0, 3.0)))
    recommender.scrape({"db-0": Load(300, 2**30)})
    recommender.now_ns += DAY_NS
    texts = {
        (entry.resource, entry.bound): entry.text
        for entry in _amounts(recommender.recommend()["base"].containers)
    }
    assert texts["cpu", "target"] == "2: example.com/fixed 1.0: as the test says"
    assert texts["cpu", "lower_bound"].endswith("as the test says, raised to the pod's minimum")
    assert "memory peaks are at most" in texts["memory", "target"]


def test_a_checkpoint_of_a_vpa_without_estimator_has_no_such_annotation():
    recommender = running(Fixed(), name="default")
    recommender.scrape({"db-0": Load(300, 2**30)})
    recommender.recommend()
    (saved,) = save_checkpoints(recommender.state, list(recommender.state.vpas.values()), recommender.now_ns)
    assert ESTIMATE_ANNOTATION not in saved.metadata.annotations
    assert recommender.state.vpas["shop/base"].estimator is None
