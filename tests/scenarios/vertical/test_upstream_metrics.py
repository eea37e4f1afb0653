"""Metrics have upstream's names, labels and steps, and are counted by loops that did something."""

import json
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from tests.scenarios.vertical.stage import FOLLOWER, LEADER, Actor, Stage
from tests.support.clock import in_virtual_time
from trimtab.operator.vertical.metrics import RecommenderMetrics, UpdaterMetrics

UPSTREAM = json.loads((Path(__file__).parents[2] / "data" / "upstream-vpa-metrics.json").read_text())
"""Every metric of upstream's VPA with its labels, and the steps that its programs measure."""


@pytest.fixture
def measured(play_lab):
    """Return what a loop of each program left in the registry: evictions by one VPA, resizes by another."""
    found: dict[str, list[dict[str, str]]] = {}

    async def scenario(stage: Stage) -> None:
        for name, mode in (("db", "Recreate"), ("web", "InPlaceOrRecreate")):
            await stage.statefulset(name, 3)
            await stage.vpa(name, name, mode=mode)
        stage.use(**{f"{name}_{number}": FOLLOWER for name in ("db", "web") for number in range(3)})
        async with stage.running(compat="vpa-1.8", admission_check="none") as actor, stage.admitting(actor):
            await stage.recommend(actor, 2)
            await stage.update(actor)
            await stage.heal("db")  # the pod that was evicted comes back through admission
            found.update(_samples(actor))

    play_lab(scenario)
    return found


def _samples(actor: Actor) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for family in actor.registry.collect():
        for sample in family.samples:
            if sample.value:
                found.setdefault(sample.name, []).append(sample.labels)
    return found


def names_of(metric: str, samples: dict[str, list[dict[str, str]]]) -> list[str]:
    return [name for name in (metric, f"{metric}_count", f"{metric}_sum") if name in samples]


ELSEWHERE = {
    "vpa_recommender_prometheus_client_api_requests_count": "needs --storage=prometheus",
    "vpa_recommender_prometheus_client_api_requests_duration_seconds": "needs --storage=prometheus",
    "vpa_updater_failed_eviction_attempts_total": "nothing failed",
    "vpa_updater_failed_in_place_update_attempts_total": "nothing failed",
    "vpa_updater_in_place_infeasible_skip_pods_total": "every node has room",
    "vpa_updater_admission_controller_status_invalid_total": "admission runs",
    "vpa_quality_usage_sample_missing_recommendation_count": "every sample has one",
}
"""What this story does not bring about; `test_every_metric_is_declared` covers these."""


@pytest.mark.parametrize("metric", sorted(set(UPSTREAM["metrics"]) - set(ELSEWHERE)))
def test_a_metric_is_counted_with_upstreams_labels(measured, metric):
    """Five were missing, and six gauges were declared and never set."""
    names = names_of(metric, measured)
    if metric.startswith("vpa_quality") and not names:
        pytest.skip("usage was at or below, or above what was recommended, not both")
    assert names
    for name in names:
        for labels in measured[name]:
            assert set(labels) - {"le"} == set(UPSTREAM["metrics"][metric])


@pytest.mark.parametrize("program", sorted(UPSTREAM["steps"]))
def test_each_step_is_measured(measured, program):
    """The updater measured the total alone; upstream's benchmark reads every step."""
    steps = {labels["step"] for labels in measured[f"{program}_execution_latency_seconds_count"]}
    assert steps == set(UPSTREAM["steps"][program])


@pytest.mark.parametrize("metric", sorted(ELSEWHERE))
def test_every_metric_is_declared(metric):

    registry = CollectorRegistry()
    holders = [RecommenderMetrics(registry), UpdaterMetrics(registry)]
    assert holders
    families = {family.name for family in registry.collect()}
    assert {metric, metric.removesuffix("_total")} & families


@in_virtual_time
async def test_the_time_to_a_first_recommendation_is_observed_once_per_vpa(stage):
    """Neither a VPA without samples counts, nor one whose recommendation changes later."""
    name = "vpa_recommender_recommendation_latency_seconds"
    for workload, replicas in (("db", 2), ("idle", 0)):
        await stage.statefulset(workload, replicas)
        await stage.vpa(workload, workload, mode="Off")
    await stage.pass_time(600)
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        first = await stage.target("db")
        stage.use(db_0=LEADER, db_1=LEADER)
        await stage.recommend(actor, 3)
        assert await stage.target("db") != first
        assert (await stage.read_vpa("idle"))["status"]["conditions"]
        assert actor.count(f"{name}_count") == 1
        assert actor.count(f"{name}_sum") == pytest.approx(600, abs=120)
