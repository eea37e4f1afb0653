"""What the metrics of the vertical components count, and with which labels and buckets."""

from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.unit.decide.vertical.policy_builders import LEADER, index, recommended, scope, vpa, world
from trimtab.clock import VirtualClock
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.model.core.meta import Condition, NamespacedName
from trimtab.model.labels.selector import Selector
from trimtab.operator.vertical.metrics import (
    ADMISSION_PARTS,
    AdmissionMetrics,
    RecommenderMetrics,
    StepTimer,
    UpdaterMetrics,
)

OBJECTS = "vpa_recommender_vpa_objects_count"
LABELS = ("update_mode", "has_recommendation", "api", "matches_pods", "unsupported_config")


def samples(registry: CollectorRegistry, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Return the values of one metric by their labels, in this order."""
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def buckets(registry: CollectorRegistry, name: str) -> list[float]:
    found = samples(registry, f"{name}_bucket", "le")
    return [float(le) for (le,) in found if le != "+Inf"]


def test_each_step_is_measured_from_the_last_one_and_the_total_from_the_start():
    registry, clock = CollectorRegistry(), VirtualClock()
    clock.advance(1000)
    timer = StepTimer(clock, UpdaterMetrics(registry).steps)
    clock.advance(3)
    timer.step("ListVPAs")
    clock.advance(5)
    timer.step("ListPods")
    clock.advance(7)
    timer.total()
    name = "vpa_updater_execution_latency_seconds"
    assert samples(registry, f"{name}_sum", "step") == {
        ("ListVPAs",): 3.0,
        ("ListPods",): 5.0,
        ("total",): 15.0,
    }
    assert set(samples(registry, f"{name}_count", "step").values()) == {1.0}


def state(name: str, **more: Any) -> VPAState:
    return VPAState(vpa(name, **more), Selector.parse("app=db"))


def with_condition(found: VPAState, kind: str, status: str) -> VPAState:
    found.conditions[kind] = Condition(type=kind, status=status)
    return found


def with_recommendation(found: VPAState) -> VPAState:
    found.recommendation = vpa(recommendation=recommended("1Gi")).status.recommendation
    return found


def without_policy(found: VPAState) -> VPAState:
    spec = msgspec.structs.replace(found.vpa.spec, update_policy=None)
    found.vpa = msgspec.structs.replace(found.vpa, spec=spec)
    return found


@pytest.mark.parametrize(
    ("found", "labels"),
    [
        pytest.param(state("a"), ("Recreate", "false", "v1", "true", "false"), id="new"),
        pytest.param(state("a", mode="Off"), ("Off", "false", "v1", "true", "false"), id="off"),
        pytest.param(
            without_policy(state("a")), ("Recreate", "false", "v1", "true", "false"), id="without a policy"
        ),
        pytest.param(
            with_recommendation(state("a")), ("Recreate", "true", "v1", "true", "false"), id="recommended"
        ),
        pytest.param(
            with_condition(state("a"), "NoPodsMatched", "True"),
            ("Recreate", "false", "v1", "false", "false"),
            id="without pods",
        ),
        pytest.param(
            with_condition(state("a"), "ConfigUnsupported", "True"),
            ("Recreate", "false", "v1", "true", "true"),
            id="unsupported",
        ),
        pytest.param(
            with_condition(state("a"), "ConfigUnsupported", "False"),
            ("Recreate", "false", "v1", "true", "false"),
            id="not unsupported any more",
        ),
        pytest.param(
            state("unusable"), ("Recreate", "false", "v1", "true", "true"), id="whose target is unusable"
        ),
    ],
)
def test_a_vpa_is_counted_by_what_is_true_of_it(found, labels):
    registry = CollectorRegistry()
    metrics = RecommenderMetrics(registry)
    metrics.count_objects([state("gone", mode="Initial")], frozenset())
    metrics.count_objects([found], frozenset({"shop/unusable"}))
    assert samples(registry, OBJECTS, *LABELS) == {labels: 1.0}


def test_alike_vpas_are_counted_together():
    registry = CollectorRegistry()
    states = [state("a"), state("b"), state("c", mode="Off")]
    RecommenderMetrics(registry).count_objects(states, frozenset())
    assert samples(registry, OBJECTS, "update_mode") == {("Recreate",): 2.0, ("Off",): 1.0}


def test_vpas_are_counted_with_and_without_a_scope():
    registry = CollectorRegistry()
    metrics = RecommenderMetrics(registry)
    seen = world([vpa("base"), vpa("lead", scope="leader"), vpa("more")], scopes=[scope(pods=LEADER)])
    claims = [claim for found in index(seen).by_target.values() for claim in found]
    name = "vpa_recommender_vpa_scoped_objects_count"
    metrics.count_levels(claims)
    assert samples(registry, name, "level") == {("0",): 2.0, ("1",): 1.0}
    metrics.count_levels([])
    assert samples(registry, name, "level") == {("0",): 0.0, ("1",): 0.0}


def test_counters_of_deleted_vpas_are_dropped_and_of_others_kept():
    registry = CollectorRegistry()
    metrics = UpdaterMetrics(registry)
    kept, gone = NamespacedName("shop", "kept"), NamespacedName("shop", "gone")
    for name in (kept, gone, kept):
        labels = "2", name.name, name.namespace
        metrics.count_for(name, metrics.resized, *labels).inc()
        metrics.count_for(name, metrics.infeasible, *labels).inc()
    assert metrics.count_for(kept, metrics.resized, "2", "kept", "shop") is metrics.count_for(
        kept, metrics.resized, "2", "kept", "shop"
    )
    metrics.keep_vpas({kept}.__contains__)
    for counted in ("in_place_updated_pods", "in_place_infeasible_skip_pods"):
        found = samples(registry, f"vpa_updater_{counted}_total", "vpa_name", "vpa_namespace")
        assert found == {("kept", "shop"): 2.0}
    metrics.keep_vpas({kept}.__contains__)


def test_a_part_of_the_webhook_has_a_problem_until_it_has_none():
    registry = CollectorRegistry()
    metrics = AdmissionMetrics(registry)

    def shown() -> dict[tuple[str, ...], float]:
        return samples(registry, "trimtab_admission_problem", "part")

    assert shown() == dict.fromkeys([("caches",), ("certificate",), ("lease",)], 0.0)
    metrics.show_problems({"lease"})
    assert shown() == {("caches",): 0.0, ("certificate",): 0.0, ("lease",): 1.0}
    metrics.show_problems(set(ADMISSION_PARTS) - {"lease"})
    assert shown() == {("caches",): 1.0, ("certificate",): 1.0, ("lease",): 0.0}


def test_buckets_of_the_histograms():
    """Queries of users name the bounds of buckets."""
    registry = CollectorRegistry()
    recommender, admission = RecommenderMetrics(registry), AdmissionMetrics(registry)
    recommender.steps.labels("total").observe(1)
    recommender.prometheus_seconds.labels("200", "post").observe(1)
    admission.steps.labels("total").observe(1)
    admission.latency.labels("applied", "Pod").observe(1)
    loops = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300]
    answers = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]
    assert buckets(registry, "vpa_recommender_execution_latency_seconds") == loops
    assert buckets(registry, "vpa_recommender_prometheus_client_api_requests_duration_seconds") == loops
    assert buckets(registry, "vpa_admission_controller_execution_latency_seconds") == answers
    assert buckets(registry, "vpa_admission_controller_admission_latency_seconds") == answers
    assert buckets(registry, "vpa_recommender_recommendation_latency_seconds") == [
        *(1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
    ]
