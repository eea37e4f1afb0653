"""Upstream's quality metrics, counted a scrape at a time: each bucket as if every sample had been observed by itself."""

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import Load, Recommender, member
from trimtab.decide.vertical.recommend.quality import expectations_of, size_log2
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.quality_metrics import BulkHistogram, QualityMetrics

QUIET, LOUD = Load(100, 10**9), Load(500, 4 * 10**9)


def test_whole_arrays_give_the_buckets_of_single_observations():
    edges = [-1.0, -0.5, 0.0, 0.25, 1.0, 100.0]
    values = np.concatenate([np.random.default_rng(7).uniform(-2, 120, 500), np.array(edges)])
    bulk, single = CollectorRegistry(), CollectorRegistry()
    many = BulkHistogram("x", "Text.", ("mode",), edges, bulk)
    for half in np.array_split(values, 2):
        many.observe(("Off",), half)
    one = Histogram("vpa_quality_x", "Text.", ("mode",), buckets=edges, registry=single)
    for value in values:
        one.labels("Off").observe(value)

    def buckets(registry):
        lines = generate_latest(registry).decode().splitlines()
        return [line for line in lines if "_bucket" in line or "_count" in line]

    assert [float(line.split()[-1]) for line in buckets(bulk)] == [
        float(line.split()[-1]) for line in buckets(single)
    ]


class Judge:
    """A recommender whose samples are judged, and what its registry says."""

    def __init__(self, *vpas) -> None:
        self.model = Recommender(vpas)
        self.model.observe([member("db-0"), member("db-1")])
        self.registry = CollectorRegistry()
        self.metrics = QualityMetrics(self.registry)

    def scrape(self, load: Load) -> None:
        expected = expectations_of(self.model.state)
        cpu, memory = self.model.scrape({"db-0": load, "db-1": load})
        for resource, intake in (("cpu", cpu), ("memory", memory)):
            assert intake.usage is not None
            self.metrics.judge(self.model.state, expected, resource, intake.usage)

    def recommend(self) -> None:
        before = expectations_of(self.model.state)
        self.model.recommend()
        self.metrics.compare(before, expectations_of(self.model.state))

    def count(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"vpa_quality_{name}", labels)


def test_a_sample_without_recommendation_counts_as_missing_and_wholly_as_difference():
    judge = Judge(vpa("base", mode="Recreate"))
    judge.scrape(QUIET)
    assert judge.count("usage_sample_missing_recommendation_count", update_mode="Recreate", resource="cpu", is_oom="false") == 2  # fmt: skip
    labels = {"update_mode": "Recreate", "recommendation_missing": "true"}
    assert judge.count("cpu_recommendation_lower_equal_usage_diffs_cores_sum", **labels) == pytest.approx(0.2)
    assert judge.count("usage_recommendation_relative_diffs_count", update_mode="Recreate", resource="cpu", is_oom="false") is None  # fmt: skip


def test_a_sample_above_its_recommendation_is_told_from_one_below():
    judge = Judge(vpa("base", mode="Recreate"))
    judge.scrape(QUIET)
    judge.recommend()
    judge.scrape(QUIET)
    judge.scrape(LOUD)
    mode = {"update_mode": "Recreate", "recommendation_missing": "false"}
    assert judge.count("cpu_recommendation_over_usage_diffs_cores_count", **mode) == 2
    assert judge.count("cpu_recommendation_lower_equal_usage_diffs_cores_count", **mode) == 2
    assert judge.count("mem_recommendation_lower_equal_usage_diffs_bytes_count", **mode, is_oom="false") == 2
    assert judge.count("cpu_recommendations_cores_count", update_mode="Recreate") == 4
    relative = {"update_mode": "Recreate", "resource": "memory", "is_oom": "false"}
    assert judge.count("usage_recommendation_relative_diffs_count", **relative) == 4


@pytest.mark.parametrize(
    ("resource", "recommended"),
    [("cpu", "cpu_recommendations_cores"), ("memory", "mem_recommendations_bytes")],
)
def test_a_difference_is_told_as_a_share_of_the_recommendation(resource, recommended):
    """Only their number was checked; a share does not depend on the unit."""
    judge = Judge(vpa("base", mode="Recreate"))
    judge.scrape(QUIET)
    judge.recommend()
    judge.scrape(LOUD)
    oom = {"is_oom": "false"}
    labels = {"update_mode": "Recreate", **(oom if resource == "memory" else {})}
    target = (judge.count(f"{recommended}_sum", **labels) or 0.0) / 2
    usage = {"cpu": LOUD.millicores / 1000, "memory": LOUD.memory}[resource]
    found = judge.count(
        "usage_recommendation_relative_diffs_sum", update_mode="Recreate", resource=resource, **oom
    )
    assert found == pytest.approx(2 * (usage / target - 1))


def test_changes_of_recommendations_are_told_by_the_size_of_the_vpa():
    judge = Judge(vpa("base", mode="Recreate"))
    judge.scrape(QUIET)
    judge.recommend()
    labels = {"update_mode": "Recreate", "resource": "cpu", "vpa_size_log2": "1"}
    assert judge.count("relative_recommendation_changes_count", **labels) is None
    for _ in range(3):
        judge.scrape(LOUD)
    judge.recommend()
    assert judge.count("relative_recommendation_changes_count", **labels) == 2  # one per label set
    assert (judge.count("relative_recommendation_changes_sum", **labels) or 0) > 3


@pytest.mark.parametrize(("pods", "label"), [(0, "0"), (1, "0"), (2, "1"), (3, "1"), (1024, "10")])
def test_sizes_are_grouped_by_their_logarithm(pods, label):
    assert size_log2(pods) == label


def test_every_recommender_metric_of_upstream_is_there_under_its_name():
    registry = CollectorRegistry()
    RecommenderMetrics(registry)
    names = {family.name for family in registry.collect()}
    assert names >= {
        "vpa_recommender_vpa_objects_count",
        "vpa_recommender_recommendation_latency_seconds",
        "vpa_recommender_aggregate_container_states_count",
        "vpa_recommender_metric_server_responses",
        "vpa_recommender_execution_latency_seconds",
        "vpa_quality_usage_recommendation_relative_diffs",
        "vpa_quality_usage_sample_missing_recommendation_count",
        "vpa_quality_cpu_recommendation_over_usage_diffs_cores",
        "vpa_quality_mem_recommendation_over_usage_diffs_bytes",
        "vpa_quality_cpu_recommendation_lower_equal_usage_diffs_cores",
        "vpa_quality_mem_recommendation_lower_equal_usage_diffs_bytes",
        "vpa_quality_cpu_recommendations_cores",
        "vpa_quality_mem_recommendations_bytes",
        "vpa_quality_relative_recommendation_changes",
    }


def test_usage_that_equals_its_recommendation_is_not_below_it():
    registry = CollectorRegistry()
    metrics = QualityMetrics(registry)
    used, wanted = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 1.0])
    for resource in ("cpu", "memory"):
        metrics._differ(used, wanted, resource, ("Off", "false"), "true")
    labels = {"update_mode": "Off", "recommendation_missing": "false"}
    for name, more in (("cpu", {}), ("mem", {"is_oom": "true"})):
        unit = "cores" if name == "cpu" else "bytes"
        found = [
            registry.get_sample_value(
                f"vpa_quality_{name}_recommendation_{side}_usage_diffs_{unit}_count", labels | more
            )
            for side in ("over", "lower_equal")
        ]
        assert found == [1.0, 2.0]


def test_the_bounds_are_those_of_upstream():
    registry = CollectorRegistry()
    metrics = QualityMetrics(registry)
    cores, sizes = [0.01 * 2**power for power in range(17)], [1e6 * 2**power for power in range(17)]
    assert cores[-1] == 655.36
    assert sizes[-1] == 65_536_000_000
    for histogram in (metrics.cpu, metrics.cpu_over, metrics.cpu_under):
        assert histogram._edges.tolist() == cores
    for histogram in (metrics.memory, metrics.memory_over, metrics.memory_under):
        assert histogram._edges.tolist() == sizes
    shares = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0]
    assert metrics.relative._edges.tolist() == [
        *(-share for share in reversed(shares)),
        0.0,
        *shares,
        *(2.5, 5.0, 10.0, 25.0, 50.0, 100.0),
    ]
