"""Admission of pods: SCP-S1, 5.3-13 and 14, F56; twice is once, and nothing is ever refused or raised."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import (
    ALL_GATES,
    LEADER,
    limit_range,
    observed,
    raw_pod,
    recommended,
    scope,
    vpa,
    with_computed_for,
    world,
)
from trimtab.decide.vertical.admission.admit import AdmissionContext, admit_pod
from trimtab.decide.vertical.admission.pod_annotations import ORIGINALS_ANNOTATION
from trimtab.decide.vertical.resources.limit_ranges import NamespaceRanges
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.observation import ObservedController
from trimtab.model.feature_gates import FeatureGates

LEADER_SCOPE = scope("leader", pods=LEADER)


def context(seen, gates=ALL_GATES, rules=Rules.TRIMTAB):
    ranges = NamespaceRanges(seen.limit_ranges)
    return AdmissionContext(
        seen.index(gates, rules), seen.owners(), seen.nodes, {"shop": ranges.of("shop")}, gates, rules
    )


def admit(raw, seen, **more):
    return admit_pod(raw, "shop", context(seen, **more))


def patched(raw: dict[str, Any], operations) -> dict[str, Any]:
    """Apply a patch that only adds, as the API server would; fails where a parent object is missing."""
    result = copy.deepcopy(raw)
    for operation in operations:
        assert operation["op"] == "add"
        *parents, last = [
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        ]
        place: Any = result
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[last] = copy.deepcopy(operation["value"])
    return result


def requests(raw, place=0):
    return raw["spec"]["containers"][place]["resources"]["requests"]


def daemon(node, **labels):
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    return raw_pod("agent-x", labels, owner="DaemonSet/agent", affinity=affinity)


@pytest.mark.parametrize(
    ("node", "want"),
    [
        pytest.param("n1", "8Gi", id="a pod for a big node gets the big nodes' size"),
        pytest.param("n2", "1Gi", id="a pod for a small node the small nodes'"),
        pytest.param("gone", "2Gi", id="a pod for an unknown node the base's"),
    ],
)
def test_scp_s1_daemonset_pods_are_sized_by_node_class_at_admission(node, want):
    target = "DaemonSet/agent"
    vpas = [
        vpa("base", recommended("2Gi"), target=target),
        vpa("big", recommended("8Gi"), scope="big", target=target),
        vpa("small", recommended("1Gi"), scope="small", target=target),
    ]
    seen = world(
        vpas,
        scopes=[scope("big", nodes={"class": "big"}), scope("small", nodes={"class": "small"})],
        nodes={"n1": {"class": "big"}, "n2": {"class": "small"}},
        controllers={"DaemonSet/shop/agent": ObservedController(replicas=2)},
    )
    raw = daemon(node)
    assert requests(patched(raw, admit(raw, seen).operations))["memory"] == want


def test_5_3_13_a_pod_created_without_role_label_gets_the_base_size():
    seen = world(
        [vpa("base", recommended("2Gi")), vpa("leader", recommended("8Gi"), scope="leader")],
        scopes=[LEADER_SCOPE],
    )
    plain, labelled = raw_pod("db-%"), raw_pod("db-%", LEADER)
    assert requests(patched(plain, admit(plain, seen).operations))["memory"] == "2Gi"
    assert requests(patched(labelled, admit(labelled, seen).operations))["memory"] == "8Gi"


def test_5_3_2_a_pod_that_no_vpa_controls_is_not_touched():
    seen = world([vpa("leader", recommended("8Gi"), scope="leader")], scopes=[LEADER_SCOPE])
    answer = admit(raw_pod(), seen)
    assert answer.operations == ()
    assert answer.reason == "no active VPA of StatefulSet/shop/db matches the pod"


def test_scp_g1_with_the_gate_off_a_scoped_vpa_sizes_no_pod():
    seen = world([vpa("leader", recommended("8Gi"), scope="leader")], scopes=[LEADER_SCOPE])
    assert admit(raw_pod(labels=LEADER), seen, gates=FeatureGates()).operations == ()


def test_5_6_a_recommendation_for_another_scope_is_not_applied():
    stale = with_computed_for(vpa("leader", recommended("8Gi"), scope="leader"), "For:another:scope")
    answer = admit(raw_pod(labels=LEADER), observed([stale], scopes=[LEADER_SCOPE]))
    assert answer.operations == ()
    assert "learnt for another target or scope" in answer.reason


def test_the_patch_names_what_was_set_and_which_containers_were_seen():
    raw = raw_pod(limits={"memory": "2Gi"})
    seen = world(
        [
            vpa(
                "base",
                recommended("4Gi"),
                policies=[{"containerName": "app", "maxAllowed": {"memory": "3Gi"}}],
            )
        ]
    )
    annotations = patched(raw, admit(raw, seen).operations)["metadata"]["annotations"]
    assert annotations["vpaObservedContainers"] == "app"
    assert annotations["vpaUpdates"] == (
        "Pod resources updated by base: container 0: memory capped to maxAllowed, "
        "cpu: limit NOT set since originalLimit is nil or 0, memory request, memory limit"
    )


def test_a_container_without_resources_gets_the_objects_it_lacks():
    raw = raw_pod()
    raw["spec"]["containers"] = [{"name": "app"}]
    result = patched(raw, admit(raw, world([vpa("base", recommended("4Gi"))])).operations)
    assert result["spec"]["containers"] == [{"name": "app", "resources": {"requests": {"memory": "4Gi"}}}]


@pytest.mark.parametrize(
    ("rules", "touched"),
    [(Rules.TRIMTAB, True), (Rules.VPA_1_8, False)],
    ids=["ours uses it", "upstream matches nothing"],
)
def test_a_named_pod_without_namespace_is_in_the_requests_namespace(rules, touched):
    raw = raw_pod()
    del raw["metadata"]["namespace"]
    assert bool(admit(raw, world([vpa("base", recommended("4Gi"))]), rules=rules).operations) is touched


def test_mode_off_changes_nothing():
    assert admit(raw_pod(), world([vpa("base", recommended("4Gi"), mode="Off")])).operations == ()


def test_a_sidecar_that_another_webhook_adds_is_noted_without_touching_the_rest():
    raw = raw_pod()
    seen = world([vpa("base", recommended("4Gi"))])
    once = patched(raw, admit(raw, seen).operations)
    once["spec"]["containers"].append({"name": "proxy"})
    operations = admit(once, seen).operations
    assert [(operation["path"], operation["value"]) for operation in operations] == [
        ("/metadata/annotations/vpaObservedContainers", "app, proxy")
    ]


def test_a_container_that_somebody_changed_after_us_is_sized_from_what_it_has_now():
    raw = raw_pod(limits={"memory": "2Gi"})
    seen = world([vpa("base", recommended("4Gi"))])
    once = patched(raw, admit(raw, seen).operations)
    once["spec"]["containers"][0]["resources"]["limits"]["memory"] = "4Gi"
    twice = patched(once, admit(once, seen).operations)
    assert twice["spec"]["containers"][0]["resources"]["limits"]["memory"] == "4Gi"


def test_startup_boost_is_given_once_and_remembers_what_was_before():
    boosted = vpa(
        "base",
        recommended(cpu="200m"),
        policies=[{"containerName": "app", "startupBoost": {"cpu": {"type": "Factor", "factor": 3}}}],
    )
    gates = FeatureGates(cpu_startup_boost=True)
    raw = raw_pod(cpu="100m", memory=None)
    seen = world([boosted])
    once = patched(raw, admit(raw, seen, gates=gates).operations)
    assert requests(once) == {"cpu": "600m"}
    assert (
        once["metadata"]["annotations"]["vpaCpuStartupBoost/app"] == '{"requests":{"cpu":"200m"},"limits":{}}'
    )
    assert admit(once, seen, gates=gates).operations == ()


def test_a_vpa_in_mode_off_boosts_the_start_and_sizes_nothing():
    """It was dropped before its boost was looked at."""
    policies = [{"containerName": "app", "startupBoost": {"cpu": {"type": "Factor", "factor": 2}}}]
    seen = world([vpa("base", recommended(cpu="900m"), mode="Off", policies=policies)])
    raw = raw_pod(cpu="100m", memory=None)
    gates = FeatureGates(cpu_startup_boost=True)
    once = patched(raw, admit(raw, seen, gates=gates).operations)
    assert requests(once) == {"cpu": "200m"}
    assert admit(raw, seen).operations == ()
    driven = world([seen.vpas[0].vpa, vpa("other", recommended(cpu="300m"))])
    assert requests(patched(raw, admit(raw, driven, gates=gates).operations)) == {"cpu": "300m"}


def test_a_startup_boost_that_makes_no_sense_leaves_the_pod_alone_and_says_why():
    broken = vpa(
        "base",
        recommended(cpu="200m"),
        policies=[{"containerName": "app", "startupBoost": {"cpu": {"type": "Odd"}}}],
    )
    answer = admit(raw_pod(), world([broken]), gates=FeatureGates(cpu_startup_boost=True))
    assert answer.operations == ()
    assert answer.error == "unsupported startup boost type: Odd"


def test_illegible_originals_count_as_none():
    raw = raw_pod(annotations={ORIGINALS_ANNOTATION: "{nonsense"})
    operations = admit(raw, world([vpa("base", recommended("4Gi"))])).operations
    assert requests(patched(raw, operations))["memory"] == "4Gi"


MILLI = st.integers(1, 100_000).map(lambda number: f"{number}m")
BYTES = st.integers(1, 2**40).map(str)


@settings(max_examples=80)
@given(
    request_=st.one_of(st.none(), MILLI),
    limit=st.one_of(st.none(), MILLI),
    memory=st.one_of(st.none(), BYTES),
    target=MILLI,
    wanted_memory=BYTES,
    bounds=st.tuples(MILLI, MILLI),
    pod_max=st.one_of(st.none(), MILLI),
    requests_only=st.booleans(),
    annotated=st.booleans(),
)
def test_i18_admitting_a_pod_twice_is_admitting_it_once(
    request_, limit, memory, target, wanted_memory, bounds, pod_max, requests_only, annotated
):
    policies = [{"containerName": "*", "controlledValues": "RequestsOnly"}] if requests_only else []
    ranges = [limit_range(min={"cpu": bounds[0]}, max={"cpu": bounds[1]}, default={"cpu": bounds[1]})]
    if pod_max:
        ranges.append(limit_range("Pod", max={"cpu": pod_max}))
    seen = world([vpa("base", recommended(wanted_memory, target), policies=policies)], ranges=ranges)
    raw = raw_pod(
        cpu=request_,
        memory=memory,
        limits={"cpu": limit} if limit else None,
        annotations={"note": "x"} if annotated else None,
    )
    once = patched(raw, admit(raw, seen).operations)
    again = admit(once, seen)
    assert again.operations == ()
    assert again.reason == "it already has what is recommended"


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.one_of(
            JSON,
            st.fixed_dictionaries(
                {"name": st.text(max_size=4), "namespace": st.just("shop"), "labels": st.just({"app": "db"})},
                optional={
                    "annotations": JSON,
                    "ownerReferences": st.just([{"kind": "StatefulSet", "name": "db", "controller": True}]),
                },
            ),
        ),
        "spec": st.one_of(
            JSON,
            st.fixed_dictionaries(
                {
                    "containers": st.lists(
                        st.fixed_dictionaries({"name": st.just("app")}, optional={"resources": JSON})
                    )
                }
            ),
        ),
        "status": JSON,
    },
)


@settings(max_examples=150)
@given(st.one_of(JSON, PARTS))
def test_f56_no_pod_however_odd_makes_admission_raise(raw):
    for rules in (Rules.TRIMTAB, Rules.VPA_1_8):
        answer = admit(raw, world([vpa("base", recommended("4Gi", "1"))]), rules=rules)
        assert answer.reason
        if isinstance(raw, dict) and answer.operations:
            patched(raw, answer.operations)
