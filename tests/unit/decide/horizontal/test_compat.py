"""Rules: ours differ from upstream's in each of these, and each version of upstream has its texts and generations."""

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    DEPLOYMENT,
    NO_WINDOW,
    NOW,
    REPLICA_SET,
    UPSTREAM,
    T,
    average,
    behavior,
    container_cpu,
    cpu,
    cpu_value,
    external,
    hpa,
    losing,
    marked,
    object_metric,
    observe,
    pod,
    pods,
    pods_metric,
    rules,
    samples,
    scale,
    series,
    unreadable,
    value,
)
from trimtab.decide.horizontal import (
    ConflictingHpa,
    Memory,
    Owner,
    OwnerNotFound,
    OwnerUnavailable,
    Rules,
    Target,
    after_scale,
    decide,
)
from trimtab.decide.horizontal.memory import Recommendation
from trimtab.decide.horizontal.observation.observation import StaleInput
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus

QUEUE = external(average(100))
THEIRS = pod("theirs", owners=(msgspec.structs.replace(REPLICA_SET, name="x", uid="uid-of-x"),))
OWNED = {REPLICA_SET.uid: Owner(uid=REPLICA_SET.uid, owners=(DEPLOYMENT,)), "uid-of-x": OwnerNotFound()}
RIVAL = ConflictingHpa(
    key="shop/b", selector="app=web", strategy="OwnerReference", target=Target(kind="Deployment", uid="b")
)
BESIDE = ConflictingHpa(key="shop/b", selector="app=web")
OLD = HorizontalPodAutoscalerStatus()


def remembered(uid="uid-of-hpa", **fields):
    known = Memory(
        uid=uid, recommendations=(Recommendation(9, T - 15), Recommendation(4, T - 10)), replicas=4
    )
    return msgspec.structs.replace(known, **fields)


SHOWN_BY = {
    "requests_without_overhead": observe(
        hpa(cpu(50)), 1, samples({"a": 50}), pods=(pod("a", overhead={"cpu": 100}),)
    ),
    "clear_messages": observe(hpa(object_metric(average(10))), 1, series(30)),
    "spec_replicas_within_tolerance": observe(hpa(QUEUE), 4, series(600), scale=scale(4, seen=6)),
    "negative_sums": observe(hpa(QUEUE), 4, series(-9), rules=UPSTREAM, settings=NO_WINDOW),
    "reject_implausible_samples": observe(hpa(QUEUE), 4, series(900, age=9999)),
    "ignore_foreign_samples": observe(hpa(pods_metric(10)), 1, samples({"web-1": 10_000, "x": 99_000})),
    "wait_for_first_samples": observe(hpa(cpu()), 1, samples({}), pods=(pod(age=30.0),)),
    "loss_policies": observe(hpa(losing(QUEUE, "Replicas", replicas=6)), 4, unreadable()),
    "effective_ambiguity": observe(
        hpa(QUEUE, selection_strategy="OwnerReference"),
        4,
        series(400),
        pods=(*pods(4, owners=(REPLICA_SET,)), THEIRS),
        owners=OWNED,
        conflicting_hpas=(RIVAL,),
    ),
    "fallback_never_shrinks": observe(
        hpa(external(value(1000)), selection_strategy="OwnerReference"),
        4,
        series(100),
        pods=pods(4, owners=(REPLICA_SET,)),
        owners={REPLICA_SET.uid: OwnerUnavailable(error="timeout")},
        settings=NO_WINDOW,
    ),
    "stale_never_shrinks": observe(
        hpa(QUEUE),
        4,
        series(100),
        stale_inputs=(StaleInput(input="pods", message="pods: no sign from the server"),),
        settings=NO_WINDOW,
    ),
    "raise_to_min_without_metrics": observe(hpa(QUEUE, low=2, status=marked()), 0, unreadable(), pods=()),
    "keep_condition_while_gate_off": observe(
        hpa(QUEUE, low=0, status=marked()), 0, series(0), pods=(), gates=FeatureGates(hpa_scale_to_zero=False)
    ),
    "floor_one_while_gate_off": observe(
        hpa(QUEUE, low=0), 4, series(0), gates=FeatureGates(hpa_scale_to_zero=False), settings=NO_WINDOW
    ),
    "hold_without_ready_pods": observe(
        hpa(external(value(10))), 4, series(90), pods=pods(4, ready="False"), settings=NO_WINDOW
    ),
    "undivided_average_at_zero": observe(hpa(QUEUE, low=0, status=marked()), 0, series(50), pods=()),
    "percent_policy_leaves_zero": observe(
        hpa(QUEUE, low=0, status=marked(), behavior=behavior(rules(("Percent", 50, 15), window=0))),
        0,
        series(500),
        pods=(),
    ),
    "clear_condition_above_zero": observe(hpa(QUEUE, low=0, status=marked()), 4, series(400)),
    "intent_before_scale": observe(hpa(QUEUE, low=0), 4, series(0), settings=NO_WINDOW),
    "memory_follows_uid": observe(hpa(QUEUE), 4, series(100), memory=remembered("other")),
    "compact_memory": observe(
        hpa(QUEUE), 4, series(400), memory=remembered(recommendations=(Recommendation(4, T - 15),))
    ),
    "limit_repeated_events": observe(
        hpa(QUEUE),
        4,
        series(400),
        conflicting_hpas=(ConflictingHpa(key="shop/b", selector="app=web"),),
        memory=remembered(last_event_times={"AmbiguousSelector": T - 15}),
    ),
    "report_external_changes": observe(hpa(QUEUE), 4, series(400), memory=remembered(replicas=7)),
    "report_ignored_fields": observe(
        hpa(QUEUE, low=0), 1, series(100), gates=FeatureGates(hpa_scale_to_zero=False)
    ),
    "report_extra_pods": observe(hpa(cpu(50)), 1, samples({"a": 50, "b": 50}), pods=(pod("a"), pod("b"))),
    "cause_after_object": observe(hpa(object_metric(value(10))), 1, unreadable()),
    "name_conflicting_hpas": observe(hpa(QUEUE), 4, series(400), conflicting_hpas=(BESIDE,)),
    "observe_generation": observe(hpa(QUEUE, status=OLD), 4, series(400)),
    "observe_generation_without_scale": observe(hpa(QUEUE, status=OLD), 4, series(400), scale=None),
    "skip_generation_zero": observe(hpa(QUEUE, metadata={"generation": 0}, status=OLD), 4, series(400)),
    "condition_generations": observe(hpa(QUEUE, status=OLD), 4, series(400)),
}


@pytest.mark.parametrize("difference", SHOWN_BY)
def test_each_difference_changes_a_decision(difference):
    seen = SHOWN_BY[difference]
    outcomes = [outcome(msgspec.structs.replace(seen, rules=rules)) for rules in Rules]
    assert outcomes[0] not in outcomes[1:]


def outcome(seen):
    before = decide(seen, NOW)
    after = after_scale(seen, before)
    return before.intent, after.desired, after.status, after.events, after.memory


@pytest.mark.parametrize(
    "metric", [pods_metric("100m"), cpu_value("100m"), cpu(100), container_cpu("main", 100)]
)
@pytest.mark.parametrize("theirs", [THEIRS, None], ids=["left out by the filter", "not even listed"])
def test_by_owner_no_sample_of_a_rejected_pod_counts_under_compat(metric, theirs):
    """RH-L2: the strategy rejects the pod; averaging strays in is how upstream treats unlisted pods by label."""
    chosen = pods(2, owners=(REPLICA_SET,))
    used = {pod.name: 100 for pod in chosen}

    def decided(*others, **more):
        seen = observe(
            hpa(metric, selection_strategy="OwnerReference"),
            2,
            samples(used | more),
            pods=(*chosen, *others),
            owners=OWNED,
            rules=Rules.KUBERNETES_1_36,
        )
        return decide(seen, NOW)

    foreign = decided(*([] if theirs is None else [theirs]), theirs=9_000)
    alone = decided()
    assert (foreign.desired, foreign.status.current_metrics) == (2, alone.status.current_metrics)


def active(decision):
    return decision.status.condition("ScalingActive")


OURS = "pods by selector app=web are controlled by multiple HPAs: [shop/b shop/c shop/web]"
EXAMPLES = "pods by selector app=web are controlled by more than one HPA (e.g. [shop/b shop/c])"
CAUSE_LAST = "unable to get metric rps on Ingress shop/main: something went wrong"
MIXED_UP = "unable to get metric rps: Ingress on shop main/something went wrong"


@pytest.mark.parametrize(
    ("compat", "ambiguity", "failure"),
    [
        pytest.param(Rules.KUBERNETES_1_36, OURS, MIXED_UP, id="1.36"),
        pytest.param(Rules.KUBERNETES_1_37, EXAMPLES, CAUSE_LAST, id="1.37"),
        pytest.param(Rules.TRIMTAB, OURS, CAUSE_LAST, id="ours"),
    ],
)
def test_each_version_has_its_texts(compat, ambiguity, failure):
    others = (BESIDE, ConflictingHpa(key="shop/c", selector="app=web"))
    seen = observe(hpa(QUEUE), 4, series(400), conflicting_hpas=others, rules=compat)
    assert active(decide(seen, NOW)).message == ambiguity
    seen = observe(hpa(object_metric(value(10))), 1, unreadable(), rules=compat)
    assert active(decide(seen, NOW)).message.endswith(f": {failure}")
