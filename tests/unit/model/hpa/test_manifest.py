"""HPAs are read from any version and any shape of input, and written back without loss."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.model.hpa.objects import CPU, QUEUE, hpa, messages, policy
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa import (
    InvalidObjectError,
    decode_errors,
    default,
    read,
    to_v1,
    to_v2,
    validate_create,
    validate_update,
)

GATES = FeatureGates.parse("AllAlpha=true")

FULL = hpa(
    metrics=[CPU, QUEUE],
    minReplicas=0,
    behavior={"scaleUp": {"policies": [policy()], "tolerance": "0.1"}, "scaleDown": {"selectPolicy": "Min"}},
    selectionStrategy="OwnerReference",
    status={"desiredReplicas": 2, "conditions": [{"type": "AbleToScale", "status": "True"}]},
    metadata={"labels": {"app": "web"}, "finalizers": ["example.com/x"]},
)


def test_the_capital_spelling_of_the_seed_is_an_alias():
    assert read(hpa(SelectionStrategy="OwnerReference")).spec.selection_strategy == "OwnerReference"
    assert to_v2(hpa(SelectionStrategy="OwnerReference"))["spec"]["selectionStrategy"] == "OwnerReference"


def test_both_spellings_may_agree_but_not_differ():
    agreeing = hpa(SelectionStrategy="LabelSelector", selectionStrategy="LabelSelector")
    assert read(agreeing).spec.selection_strategy == "LabelSelector"
    differing = hpa(SelectionStrategy="OwnerReference", selectionStrategy="LabelSelector")
    assert messages(validate_create(differing, GATES)) == [
        (
            'spec.SelectionStrategy: Invalid value: "OwnerReference": '
            "selectionStrategy is also set, to another value: remove SelectionStrategy"
        )
    ]


@pytest.mark.parametrize(
    ("data", "want"),
    [
        pytest.param([], ['Invalid value: "[]": must be an object, not a list'], id="a list"),
        pytest.param(None, ['Invalid value: "None": must be an object, not null'], id="nothing"),
        pytest.param(
            {"apiVersion": "autoscaling/v3", "kind": "HorizontalPodAutoscaler"},
            [
                (
                    'apiVersion: Unsupported value: "autoscaling/v3": supported values: "autoscaling.trimtab.dev/v2", '
                    '"autoscaling/v1", "autoscaling/v2", "autoscaling/v2beta1", "autoscaling/v2beta2"'
                )
            ],
            id="a version that does not exist",
        ),
        pytest.param(
            hpa(maxReplicas="five"),
            ['spec.maxReplicas: Invalid value: "five": must be an integer, not text'],
            id="text for a number",
        ),
        pytest.param(
            hpa(maxReplicas=2**31),
            ["spec.maxReplicas: Invalid value: 2147483648: must fit in a 32-bit integer"],
            id="a number too large for the API",
        ),
        pytest.param(
            {**hpa(), "metadata": []},
            ['metadata: Invalid value: "[...]": must be an object, not a list'],
            id="a list for metadata",
        ),
        pytest.param(
            hpa(
                metrics=[{"type": "Pods", "pods": {"metric": {"name": 3}, "target": {"averageValue": "1x"}}}]
            ),
            ["spec.metrics[0].pods.metric.name", "spec.metrics[0].pods.target.averageValue"],
            id="every wrong value is named",
        ),
        pytest.param(
            hpa(SelectionStrategy=3),
            ["spec.SelectionStrategy: Invalid value: 3: must be text, not an integer"],
            id="the alias has a type too",
        ),
        pytest.param(
            hpa(version="autoscaling/v1", targetCPUUtilizationPercentage="many"),
            ['spec.targetCPUUtilizationPercentage: Invalid value: "many": must be an integer, not text'],
            id="v1 is checked as v1",
        ),
    ],
)
def test_decode_errors_name_the_field(data, want):
    found = messages(decode_errors(data))
    assert [line.startswith(start) for line, start in zip(found, want, strict=True)] == [True] * len(want)
    assert validate_create(data, GATES) == decode_errors(data)


def test_a_document_nested_too_deeply_is_an_error_not_a_crash():
    nested: Any = {}
    for _ in range(100_000):
        nested = {"a": nested}
    assert messages(decode_errors(hpa(extra=nested))) == [
        'Invalid value: "{...}": is nested too deeply to be read'
    ]


def test_a_number_of_thousands_of_digits_is_an_error_not_a_crash():
    queue = {
        "type": "External",
        "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": 16**9000}},
    }
    assert decode_errors(hpa(metrics=[queue]))


def test_reading_what_cannot_be_read_raises_one_error_with_all_the_reasons():
    with pytest.raises(InvalidObjectError, match=r"spec\.maxReplicas") as caught:
        read(hpa(maxReplicas="five", minReplicas="one"))
    assert [error.field for error in caught.value.errors] == ["spec.minReplicas", "spec.maxReplicas"]


JUNK = st.sampled_from([None, [], {}, "", "x", 0, -1, 2**40, 1.5, True, [None], {"a": None}, float("nan")])


def paths(data: Any, path: Any = ()) -> Any:
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from paths(value, (*path, key))


def replaced(data: Any, path: Any, junk: Any) -> Any:
    if not path:
        return junk
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = replaced(data[path[0]], path[1:], junk)
    return copy


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([path for path in paths(FULL) if path]), JUNK, st.booleans())
def test_wrong_values_anywhere_give_errors_and_never_an_exception(path, junk, in_v1):
    data = replaced(to_v1(FULL) if in_v1 and path[0] != "spec" else FULL, path[:1] if in_v1 else path, junk)
    errors = validate_create(data, GATES)
    assert all(error.message for error in errors)


def test_the_api_group_of_our_own_is_kept():
    assert to_v2(hpa(version="autoscaling.trimtab.dev/v2"))["apiVersion"] == "autoscaling.trimtab.dev/v2"


def test_a_typed_value_is_as_good_as_its_json():
    typed = read(FULL)
    assert validate_create(typed, GATES) == validate_create(FULL, GATES) == []
    assert default(typed)["spec"] == default(FULL)["spec"]
    assert messages(validate_update(read(hpa(maxReplicas=0)), typed, GATES)) == [
        "spec.maxReplicas: Required value: must be set and greater than 0",
        "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
    ]
