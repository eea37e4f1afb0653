"""What a switched-off gate does to requests: the matrices of the three features, at API level."""

from typing import Any

import pytest

from tests.unit.model.hpa.objects import QUEUE, hpa, messages
from trimtab.model.core.server_rules import KUBERNETES_1_36, KUBERNETES_1_37
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa import create_update, to_v1, validate_update

ON = FeatureGates.parse("AllAlpha=true,AllBeta=true")
OFF = FeatureGates.parse("AllAlpha=false,AllBeta=false,HPAConfigurableTolerance=false")


@pytest.mark.parametrize(
    ("gates", "sent", "old", "kept"),
    [
        pytest.param(OFF, "OwnerReference", "no old object", None, id="SEL-G1 off, create: dropped silently"),
        pytest.param(OFF, "OwnerReference", "LabelSelector", "OwnerReference", id="SEL-G1 off, in use: kept"),
        pytest.param(OFF, "OwnerReference", None, None, id="SEL-G1 off, not in use: dropped"),
        pytest.param(OFF, None, "OwnerReference", None, id="SEL-G1 off, in use: may be removed"),
        pytest.param(OFF, None, "no old object", None, id="SEL-G1 off, absent stays absent"),
        pytest.param(ON, "OwnerReference", "no old object", "OwnerReference", id="SEL-G1 on, create: kept"),
        pytest.param(ON, "LabelSelector", "OwnerReference", "LabelSelector", id="SEL-G1 on, mutable"),
        pytest.param(ON, None, "no old object", None, id="SEL-G1 on, absent is not defaulted"),
        pytest.param(
            OFF, "OwnerReferences", "no old object", None, id="SEL-G1 off, invalid: dropped, not refused"
        ),
    ],
)
def test_selection_strategy(gates, sent, old, kept):
    answer = (
        create_update.create(hpa(selectionStrategy=sent), gates)
        if old == "no old object"
        else create_update.update(hpa(selectionStrategy=sent), hpa(selectionStrategy=old), gates)
    )
    assert answer.errors == ()
    assert answer.stored["spec"].get("selectionStrategy") == kept


@pytest.mark.parametrize("value", ["OwnerReferences", "ownerReference", "", "Everything"])
def test_sel_g1_an_unknown_strategy_is_not_supported(value):
    answers = (
        create_update.create(hpa(selectionStrategy=value), ON),
        create_update.update(hpa(selectionStrategy=value), hpa(), ON),
        create_update.update(hpa(selectionStrategy=value), hpa(selectionStrategy="LabelSelector"), OFF),
    )
    want = f'spec.selectionStrategy: Unsupported value: "{value}": supported values: "LabelSelector", "OwnerReference"'
    assert [messages(answer.errors) for answer in answers] == [[want]] * 3


@pytest.mark.parametrize("value", ["OwnerReference", "LabelSelector"])
def test_sel_g1_the_capital_spelling_is_stored_in_the_canonical_one(value):
    answer = create_update.create(hpa(SelectionStrategy=value), ON)
    assert answer.errors == ()
    assert answer.stored["spec"]["selectionStrategy"] == value
    assert "SelectionStrategy" not in answer.stored["spec"]


def test_a_v1_get_and_put_keeps_the_strategy_even_with_the_gate_off():
    stored = create_update.create(hpa(selectionStrategy="OwnerReference"), ON).stored
    put_back = create_update.update(to_v1(stored), stored, OFF)
    assert put_back.errors == ()
    assert put_back.stored == stored


def tolerances(answer: Any) -> Any:
    behavior = answer.stored["spec"]["behavior"]
    return behavior["scaleUp"].get("tolerance"), behavior["scaleDown"].get("tolerance")


def with_tolerances(up: Any = None, down: Any = None) -> Any:
    rules = {"scaleUp": up, "scaleDown": down}
    return hpa(behavior={name: {"tolerance": value} if value else {} for name, value in rules.items()})


@pytest.mark.parametrize(
    ("gates", "sent", "old", "kept"),
    [
        pytest.param(
            OFF, {"up": "0.05", "down": "0.1"}, None, (None, None), id="TOL-G2 off, create: both dropped"
        ),
        pytest.param(
            ON, {"up": "0.05", "down": "0.1"}, None, ("50m", "100m"), id="TOL-G2 on: canonical form"
        ),
        pytest.param(OFF, {"up": "0.05"}, {}, (None, None), id="TOL-G2 off, not in use: dropped"),
        pytest.param(OFF, {"up": "0.2"}, {"up": "0.1"}, ("200m", None), id="TOL-G2 off, in use: may change"),
        pytest.param(
            OFF,
            {"up": "0.1", "down": "20"},
            {"up": "0.1"},
            ("100m", "20"),
            id="TOL-G2 off, one in use: other may be added",
        ),
    ],
)
def test_tolerance(gates, sent, old, kept):
    new = with_tolerances(**sent)
    answer = (
        create_update.create(new, gates)
        if old is None
        else create_update.update(new, with_tolerances(**old), gates)
    )
    assert answer.errors == ()
    assert tolerances(answer) == kept


def test_dropping_a_tolerance_keeps_the_rest_of_the_behavior():
    answer = create_update.create(hpa(behavior={"scaleUp": {"tolerance": "0.1", "selectPolicy": "Min"}}), OFF)
    behavior = answer.stored["spec"]["behavior"]
    assert behavior["scaleUp"]["selectPolicy"] == "Min"
    assert behavior["scaleDown"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 15}]


def to_zero(minimum: Any, maximum: Any = 5) -> Any:
    return hpa(minReplicas=minimum, maxReplicas=maximum, metrics=[QUEUE])


@pytest.mark.parametrize(
    ("gates", "new", "old", "accepted"),
    [
        pytest.param(OFF, to_zero(0, 9), to_zero(0), True, id="off, stored zero: other fields may change"),
        pytest.param(OFF, to_zero(1), to_zero(0), True, id="off: zero may be given up"),
        pytest.param(OFF, to_zero(0), to_zero(1), False, id="off: and not be taken back"),
        pytest.param(ON, to_zero(0), to_zero(1), True, id="on: zero may be set"),
    ],
)
def test_zero_replicas(gates, new, old, accepted):
    want = [] if accepted else ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"]
    assert messages(validate_update(new, old, gates)) == want


def test_status_is_not_set_by_create_or_update_and_spec_not_by_a_status_update():
    status = {"desiredReplicas": 3, "currentReplicas": 3}
    created = create_update.create(hpa(status=status), ON).stored
    assert created["status"] == {"desiredReplicas": 0}
    updated = create_update.update(
        hpa(status={"desiredReplicas": 9}, maxReplicas=8), hpa(status=status), ON
    ).stored
    assert (updated["status"], updated["spec"]["maxReplicas"]) == (status, 8)
    reported = create_update.update_status(hpa(status=status, maxReplicas=8), hpa()).stored
    assert (reported["status"], reported["spec"]["maxReplicas"]) == (status, 5)


def test_a_status_has_no_negative_replicas():
    answer = create_update.update_status(hpa(status={"currentReplicas": -1, "desiredReplicas": -2}), hpa())
    assert messages(answer.errors) == [
        "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0",
    ]


@pytest.mark.parametrize(
    ("new_ref", "accepted"),
    [
        pytest.param(
            {"apiVersion": "", "kind": "Deployment", "name": "other"}, True, id="the name may change"
        ),
        pytest.param({"apiVersion": "", "kind": "StatefulSet", "name": "web"}, False, id="the kind may not"),
    ],
)
def test_an_old_reference_without_a_group_stays_editable(new_ref, accepted):
    old = hpa(scaleTargetRef={"kind": "Deployment", "name": "web"})
    errors = validate_update(hpa(scaleTargetRef=new_ref), old, OFF)
    assert [error.field for error in errors] == ([] if accepted else ["spec.scaleTargetRef.apiVersion"])


@pytest.mark.parametrize(
    "request_of",
    [
        lambda sent: create_update.create(sent, ON),
        lambda sent: create_update.update(sent, hpa(), ON),
        lambda sent: create_update.update_status(sent, hpa()),
    ],
    ids=["create", "update", "status"],
)
@pytest.mark.parametrize("version", ["autoscaling/v9", "apps/v1"])
def test_an_object_that_cannot_be_read_is_refused_with_its_errors(request_of, version):
    answer = request_of(hpa(version=version))
    assert answer.stored == {}
    assert [error.field for error in answer.errors] == ["apiVersion"]


def described(version, kind="Ingress"):
    target = {"type": "Value", "value": "1"}
    source = {"apiVersion": version, "kind": kind, "name": "main"}
    return {
        "type": "Object",
        "object": {"metric": {"name": "rps"}, "describedObject": source, "target": target},
    }


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(
    ("stored", "accepted"),
    [
        pytest.param("a/b/c", True, id="stored so: other fields stay editable"),
        pytest.param("networking.k8s.io/v1", False, id="stored well: it cannot become wrong"),
    ],
)
def test_an_invalid_version_of_a_described_object_stays_allowed(stored, accepted, order):
    old = hpa(metrics=[QUEUE, described(stored)][::order])
    new = hpa(metrics=[QUEUE, described("a/b/c")][::order], maxReplicas=9)
    errors = validate_update(new, old, ON)
    assert [error.field.partition(".object.")[2] for error in errors] == (
        [] if accepted else ["describedObject.apiVersion"]
    )
    assert [error.field for error in create_update.create(new, ON).errors] != []


@pytest.mark.parametrize(
    ("kind", "accepted"),
    [("ReplicationController", True), ("Deployment", False)],
    ids=["core group", "other groups"],
)
def test_a_new_target_needs_a_group_unless_it_is_of_the_core_group(kind, accepted):
    sent = hpa(scaleTargetRef={"apiVersion": "", "kind": kind, "name": "web"})
    errors = [error.field for error in create_update.create(sent, ON).errors]
    assert errors == ([] if accepted else ["spec.scaleTargetRef.apiVersion"])


def test_an_object_source_of_another_type_allows_nothing():
    """The stored object is stale: only a metric of type Object is described by it."""
    stale = {**QUEUE, "object": described("a/b/c")["object"]}
    new = hpa(metrics=[described("a/b/c")])
    fields = [error.field for error in validate_update(new, hpa(metrics=[stale]), ON)]
    assert "spec.metrics[0].object.describedObject.apiVersion" in fields


MISSING = "spec.maxReplicas: Required value"
DETAIL = f"{MISSING}: must be set and greater than 0"


@pytest.mark.parametrize(
    ("rules", "old", "want"),
    [
        pytest.param(KUBERNETES_1_36, None, DETAIL, id="1.36"),
        pytest.param(KUBERNETES_1_37, None, MISSING, id="1.37: the declaration says no more"),
        pytest.param(KUBERNETES_1_37, 5, MISSING, id="1.37: an update that takes it away"),
        pytest.param(KUBERNETES_1_37, 0, DETAIL, id="1.37: declarations check only what changed"),
    ],
)
def test_each_version_rejects_a_missing_maximum_in_its_words(rules, old, want):
    sent = hpa(maxReplicas=0)
    answer = (
        create_update.create(sent, ON, rules)
        if old is None
        else create_update.update(sent, hpa(maxReplicas=old), ON, rules)
    )
    assert want in messages(answer.errors)


AT_LEAST = "spec.{}: Invalid value: {}: must be greater than or equal to {}".format
NO_TARGET = ["spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Required value"]


@pytest.mark.parametrize(
    ("spec", "old", "want"),
    [
        pytest.param(
            {"maxReplicas": -1},
            None,
            [AT_LEAST("maxReplicas", -1, "`minReplicas`"), AT_LEAST("maxReplicas", -1, 1)],
            id="the comparison is no declaration",
        ),
        pytest.param(
            {"minReplicas": -1, "maxReplicas": -5, "scaleTargetRef": {}},
            None,
            [
                AT_LEAST("maxReplicas", -5, "`minReplicas`"),
                *NO_TARGET,
                AT_LEAST("minReplicas", -1, 0),
                AT_LEAST("maxReplicas", -5, 1),
            ],
            id="both bounds come after the target",
        ),
        pytest.param(
            {"minReplicas": -1, "maxReplicas": 0},
            None,
            [AT_LEAST("minReplicas", -1, 0), "spec.maxReplicas: Required value"],
            id="a missing maximum",
        ),
        pytest.param(
            {"minReplicas": -1, "maxReplicas": -5},
            {"minReplicas": -1},
            [
                AT_LEAST("minReplicas", -1, 0),
                AT_LEAST("maxReplicas", -5, "`minReplicas`"),
                AT_LEAST("maxReplicas", -5, 1),
            ],
            id="an update checks what changed: the maximum",
        ),
        pytest.param(
            {"minReplicas": -1, "maxReplicas": -5},
            {"maxReplicas": -5},
            [
                AT_LEAST("maxReplicas", -5, 1),
                AT_LEAST("maxReplicas", -5, "`minReplicas`"),
                AT_LEAST("minReplicas", -1, 0),
            ],
            id="an update checks what changed: the minimum",
        ),
    ],
)
def test_errors_of_declared_bounds_come_last_in_1_37(spec, old, want):
    """Recorded answers are compared without order, so that nothing noticed it."""
    sent = hpa(**spec)
    create, update = create_update.create, create_update.update
    answer = (
        create(sent, ON, KUBERNETES_1_37) if old is None else update(sent, hpa(**old), ON, KUBERNETES_1_37)
    )
    assert [text for text in messages(answer.errors) if "apiVersion" not in text] == want
    older = (
        create(sent, ON, KUBERNETES_1_36) if old is None else update(sent, hpa(**old), ON, KUBERNETES_1_36)
    )
    assert len(older.errors) == len(answer.errors)


def test_only_a_server_of_1_37_keeps_and_checks_generations_of_conditions():
    condition = {"type": "ScalingActive", "status": "True", "observedGeneration": -1}
    sent = {**hpa(), "status": {"desiredReplicas": 1, "conditions": [condition]}}
    older = create_update.update_status(sent, hpa(), KUBERNETES_1_36)
    assert "observedGeneration" not in older.stored["status"]["conditions"][0]
    newer = create_update.update_status(sent, hpa(), KUBERNETES_1_37)
    assert newer.stored["status"]["conditions"][0]["observedGeneration"] == -1
    fields = [error.field for error in newer.errors]
    assert "status.conditions[0].observedGeneration" in fields
    assert not [error for error in older.errors if "conditions" in error.field]
