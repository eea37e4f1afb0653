"""v1 and v2 turn into each other without loss; v2beta1 and v2beta2 are read."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.model.hpa.objects import CPU, QUEUE, hpa, policy
from trimtab.model.hpa import canonical, default, read, to_v1, to_v2
from trimtab.model.hpa.manifest import WRITERS, to_own
from trimtab.model.hpa.versions import v1
from trimtab.model.hpa.versions.conversion import v2_to_v1

NAME = st.text("abcxyz", min_size=1, max_size=6)
AMOUNT = st.sampled_from(["1", "500m", "2500", "1Gi", "100k"])
PERCENT = st.integers(1, 200)
SELECTOR = st.one_of(
    st.none(),
    st.just({}),
    st.builds(lambda key, value: {"matchLabels": {key: value}}, NAME, NAME),
    st.builds(lambda key: {"matchExpressions": [{"key": key, "operator": "Exists"}]}, NAME),
)


def some(**fields: Any) -> Any:
    """Draw an object whose None members are left out."""
    return st.fixed_dictionaries(fields).map(lambda drawn: {k: v for k, v in drawn.items() if v is not None})


def maybe(strategy: Any) -> Any:
    return st.one_of(st.none(), strategy)


IDENTIFIER = some(name=NAME, selector=SELECTOR)
TARGET = some(
    type=st.sampled_from(["Value", "AverageValue", "Utilization"]),
    value=maybe(AMOUNT),
    averageValue=maybe(AMOUNT),
    averageUtilization=maybe(PERCENT),
)
CURRENT = some(value=maybe(AMOUNT), averageValue=maybe(AMOUNT), averageUtilization=maybe(PERCENT))
REFERENCE = some(apiVersion=maybe(st.just("apps/v1")), kind=NAME, name=NAME)
RESOURCE = st.sampled_from(["cpu", "memory"])


def metrics(numbers: Any, field: Any) -> Any:
    sources = {
        "Object": some(describedObject=REFERENCE, metric=IDENTIFIER, **{field: numbers}),
        "Pods": some(metric=IDENTIFIER, **{field: numbers}),
        "Resource": some(name=RESOURCE, **{field: numbers}),
        "ContainerResource": some(name=RESOURCE, container=NAME, **{field: numbers}),
        "External": some(metric=IDENTIFIER, **{field: numbers}),
    }
    of_type = [
        source.map(lambda drawn, kind=kind: {"type": kind, kind[0].lower() + kind[1:]: drawn})
        for kind, source in sources.items()
    ]
    # An empty list and none at all say the same, so only one of them is drawn.
    return st.lists(st.one_of(of_type), min_size=1, max_size=4)


RULES = some(
    stabilizationWindowSeconds=maybe(st.integers(0, 3600)),
    selectPolicy=maybe(st.sampled_from(["Max", "Min", "Disabled"])),
    policies=maybe(
        # An API server stores no rules without policies: it fills in none, and refuses an empty list.
        st.lists(
            st.builds(policy, st.sampled_from(["Pods", "Percent"]), PERCENT, PERCENT), min_size=1, max_size=2
        )
    ),
    tolerance=maybe(st.sampled_from(["0", "50m", "20"])),
)
TIME = st.datetimes().map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20))
CONDITION = some(
    type=st.sampled_from(["ScaledToZero", "AbleToScale"]),
    status=st.sampled_from(["True", "False"]),
    reason=maybe(NAME),
    lastTransitionTime=maybe(TIME),
)
SPEC = some(
    minReplicas=maybe(st.integers(0, 3)),
    metrics=maybe(metrics(TARGET, "target")),
    behavior=maybe(some(scaleUp=maybe(RULES), scaleDown=maybe(RULES))),
    selectionStrategy=maybe(st.sampled_from(["LabelSelector", "OwnerReference"])),
)
STATUS = some(
    desiredReplicas=st.integers(0, 9),
    currentReplicas=maybe(st.integers(1, 9)),
    lastScaleTime=maybe(TIME),
    currentMetrics=maybe(metrics(CURRENT, "current")),
    conditions=maybe(st.lists(CONDITION, max_size=2)),
)


@settings(max_examples=150, deadline=None)
@given(SPEC, maybe(STATUS))
def test_v2_to_v1_and_back_changes_nothing(spec, status):
    stored = default(hpa(status=status, **spec))
    assert canonical(to_v2(to_v1(stored))) == canonical(stored)


@settings(max_examples=50, deadline=None)
@given(SPEC)
def test_what_v1_loses_by_upstreams_annotations_alone_is_only_what_they_cannot_say(spec):
    """Upstream keeps sources and numbers, and loses types, the place of CPU, and a second CPU target."""
    stored = default(hpa(**spec))
    back = to_v2(v2_to_v1(stored, exact=False))
    assert back["spec"].get("behavior") == canonical(stored)["spec"].get("behavior")
    assert back["spec"].get("selectionStrategy") == stored["spec"].get("selectionStrategy")
    assert back["metadata"] == stored["metadata"]


def test_tol_c1_a_tolerance_survives_v1():
    stored = default(hpa(behavior={"scaleUp": {"tolerance": 0.05}}))
    in_v1 = to_v1(stored)
    kept = json.loads(in_v1["metadata"]["annotations"][v1.BEHAVIOR_ANNOTATION])
    assert kept["ScaleUp"]["Tolerance"] == "50m"
    assert kept["ScaleDown"]["Tolerance"] is None
    assert to_v2(in_v1) == stored


def test_spec_c1_a_metric_with_a_selector_survives_v1():
    rps = {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "web"},
            "metric": {"name": "rps", "selector": {"matchLabels": {"verb": "GET"}}},
            "target": {"type": "AverageValue", "averageValue": "100"},
        },
    }
    stored = default(hpa(metrics=[rps, CPU]))
    in_v1 = to_v1(stored)
    assert in_v1["spec"]["targetCPUUtilizationPercentage"] == 50
    assert json.loads(in_v1["metadata"]["annotations"][v1.METRICS_ANNOTATION]) == [
        {
            "type": "Object",
            "object": {
                "target": {"kind": "Service", "name": "web"},
                "metricName": "rps",
                "targetValue": "0",
                "selector": {"matchLabels": {"verb": "GET"}},
                "averageValue": "100",
            },
        }
    ]
    assert v1.EXACT_METRICS_ANNOTATION not in in_v1["metadata"]["annotations"]
    assert to_v2(in_v1) == stored


OLD, NEW = (
    "autoscaling.alpha.kubernetes.io/pod-selection-strategy",
    "autoscaling.trimtab.dev/selection-strategy",
)
VERSIONS = ["autoscaling/v1", "autoscaling/v2", "autoscaling/v2beta1", "autoscaling/v2beta2"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("annotation", [NEW, OLD])
@pytest.mark.parametrize("written", WRITERS)
def test_the_annotation_of_a_native_object_is_its_strategy(version, annotation, written):
    """Also the old one of v1 on an object read as v2, which is what kubectl prints of a v1 object."""
    native = hpa(version=version, metadata={"annotations": {annotation: "OwnerReference", "note": "kept"}})
    assert read(native).spec.selection_strategy == "OwnerReference"
    made = WRITERS[written](native)
    is_own = written == "trimtab"
    assert made["spec"].get("selectionStrategy") == ("OwnerReference" if is_own else None)
    assert made["metadata"]["annotations"] == {"note": "kept"} | ({} if is_own else {NEW: "OwnerReference"})


LOSS = maybe(st.sampled_from([{"policy": "Ignore"}, {"policy": "Replicas", "replicas": 3}]))


@st.composite
def manifests(draw: st.DrawFn) -> Any:
    """Draw a manifest of our kind, or of Kubernetes' own with the strategy in an annotation."""
    spec, strategy = draw(SPEC), draw(st.sampled_from([None, "LabelSelector", "OwnerReference"]))
    spec.pop("selectionStrategy", None)
    where = draw(st.sampled_from(["selectionStrategy", "SelectionStrategy", NEW, OLD]))
    if strategy is not None and where.islower():
        return hpa(metadata={"annotations": {where: strategy}}, **spec), strategy
    if spec.get("metrics") and (on_loss := draw(LOSS)):
        spec["metrics"][0]["onLoss"] = on_loss
    if spec.get("metrics") and draw(st.booleans()):
        spec["metrics"][-1]["maxAgeSeconds"] = draw(st.integers(1, 3600))
    return hpa(version="autoscaling.trimtab.dev/v2", **spec, **{where: strategy}), strategy


@settings(max_examples=150, deadline=None)
@given(manifests(), st.lists(st.sampled_from(sorted(WRITERS)), min_size=1, max_size=5))
def test_no_way_through_the_versions_changes_what_an_hpa_asks_for(manifest, way):
    given_hpa, strategy = manifest
    asked = default(to_own(given_hpa))["spec"]
    assert asked.get("selectionStrategy") == strategy
    for version in way:
        given_hpa = WRITERS[version](given_hpa)
        assert "selectionStrategy" not in given_hpa["spec"] or version == "trimtab"
        assert default(to_own(given_hpa))["spec"] == asked


def test_v1_has_the_defaults_of_behavior_written_out_because_a_server_fills_in_none_there():
    in_v1 = to_v1(hpa(behavior={"scaleDown": {"stabilizationWindowSeconds": 60}}))
    kept = json.loads(in_v1["metadata"]["annotations"][v1.BEHAVIOR_ANNOTATION])
    assert kept["ScaleDown"]["Policies"] == [{"Type": "Percent", "Value": 100, "PeriodSeconds": 15}]
    assert kept["ScaleDown"]["StabilizationWindowSeconds"] == 60
    assert len(kept["ScaleUp"]["Policies"]) == 2


def test_an_empty_list_of_policies_stays_the_mistake_it_is():
    in_v1 = to_v1(hpa(behavior={"scaleDown": {"policies": []}}))
    assert json.loads(in_v1["metadata"]["annotations"][v1.BEHAVIOR_ANNOTATION])["ScaleDown"]["Policies"] == []


def test_a_v1_client_that_changes_the_cpu_target_is_obeyed():
    """The exact metrics are a copy; what v1 says openly wins over them."""
    in_v1 = to_v1(hpa(metrics=[CPU, QUEUE]))
    assert v1.EXACT_METRICS_ANNOTATION in in_v1["metadata"]["annotations"]
    in_v1["spec"]["targetCPUUtilizationPercentage"] = 70
    metrics = to_v2(in_v1)["spec"]["metrics"]
    assert metrics[0] == QUEUE
    assert metrics[1]["resource"]["target"]["averageUtilization"] == 70


def test_metadata_and_unknown_fields_go_through_whole():
    metadata = {
        "annotations": {"note": "kept"},
        "finalizers": ["example.com/wait"],
        "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {}}}],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Thing", "name": "x", "uid": "1", "controller": False}
        ],
    }
    stored = hpa(metadata=metadata, futureField={"a": [1]})
    in_v1 = to_v1(stored)
    assert in_v1["metadata"] == stored["metadata"]
    assert in_v1["spec"]["futureField"] == {"a": [1]}
    back = to_v2(in_v1)
    assert back["metadata"] == stored["metadata"]
    assert back["spec"]["futureField"] == {"a": [1]}


@pytest.mark.parametrize("broken", ["", "abc", "[]", "{}", "null", "[3]", '{"ScaleUp": 3}', "[" * 100_000])
def test_annotations_that_cannot_be_read_are_ignored_and_removed(broken):
    notes = dict.fromkeys(v1.ROUND_TRIP_ANNOTATIONS, broken)
    found = to_v2(hpa(version="autoscaling/v1", metadata={"annotations": notes}))
    assert "annotations" not in found["metadata"]
    assert "behavior" not in found["spec"]
    assert [metric["resource"]["target"]["averageUtilization"] for metric in found["spec"]["metrics"]] == [80]


def test_a_behavior_annotation_is_read_in_any_case():
    note = '{"scaleup": {"POLICIES": [{"type": "Pods", "value": 1, "periodseconds": 5}]}}'
    found = to_v2(hpa(version="autoscaling/v1", metadata={"annotations": {v1.BEHAVIOR_ANNOTATION: note}}))
    assert found["spec"]["behavior"] == {"scaleUp": {"policies": [policy("Pods", 1, 5)]}}


def test_v2beta2_is_v2_under_an_older_name():
    given = hpa(metrics=[QUEUE], behavior={"scaleUp": {"selectPolicy": "Max"}})
    assert to_v2({**given, "apiVersion": "autoscaling/v2beta2"}) == to_v2(given)


def test_v2beta1_writes_metrics_flat():
    flat = [
        {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 50}},
        {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
        {"type": "Pods", "pods": {"metricName": "rps", "targetAverageValue": "1000m"}},
        {
            "type": "Object",
            "object": {
                "target": {"apiVersion": "v1", "kind": "Service", "name": "web"},
                "metricName": "hits",
                "targetValue": "10",
            },
        },
        {
            "type": "External",
            "external": {
                "metricName": "queue",
                "metricSelector": {"matchLabels": {"a": "b"}},
                "targetAverageValue": "30",
            },
        },
    ]
    found: Any = read(hpa(version="autoscaling/v2beta1", metrics=flat)).spec.metrics
    cpu, memory, pods, hits, queue = found
    assert (cpu.resource.target.type, cpu.resource.target.average_utilization) == ("Utilization", 50)
    assert (memory.resource.target.type, str(memory.resource.target.average_value)) == ("AverageValue", "1Gi")
    assert (pods.pods.metric.name, str(pods.pods.target.average_value)) == ("rps", "1")
    assert (hits.object.described_object.name, hits.object.target.type) == ("web", "Value")
    assert (queue.external.metric.selector.match_labels, queue.external.target.type) == (
        {"a": "b"},
        "AverageValue",
    )
