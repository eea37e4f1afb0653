"""The rules that the metadata of every object obeys."""

from typing import Any

import pytest

from trimtab.model.core.metadata_validation import (
    WholeMeta,
    validate_metadata,
    validate_metadata_update,
)
from trimtab.model.core.server_rules import KUBERNETES_1_37
from trimtab.model.json import wire

OWNERS = "metadata.ownerReferences"
LISTED = 'supported values: "Apply", "Update"'
GOOD = {"name": "web", "namespace": "shop", "resourceVersion": "1", "uid": "u"}


def meta(**fields: Any) -> Any:
    return wire.convert({**GOOD, **fields}, WholeMeta)


def owner(**fields: Any) -> Any:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "1", **fields}


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({}, [], id="nothing wrong"),
        pytest.param(
            {"name": ""}, ["metadata.name: Required value: name or generateName is required"], id="no name"
        ),
        pytest.param({"namespace": ""}, ["metadata.namespace: Required value"], id="no namespace"),
        pytest.param(
            {"generation": -1},
            ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
            id="a negative generation",
        ),
        pytest.param(
            {"annotations": {"Upper/Case": "x"}}, [], id="annotation keys may have capitals anywhere"
        ),
        pytest.param(
            {"annotations": {"a": "x" * (256 * 1024)}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
            id="annotations are limited",
        ),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                (
                    'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                    "finalizer orphan and foregroundDeletion cannot be both set"
                )
            ],
            id="finalizers that contradict each other",
        ),
        pytest.param(
            {"finalizers": ["mine"]},
            [
                (
                    'metadata.finalizers[0]: Invalid value: "mine": '
                    "name is neither a standard finalizer name nor is it fully qualified"
                )
            ],
            id="a finalizer has a domain",
        ),
        pytest.param(
            {"ownerReferences": [owner(apiVersion="", uid="")]},
            [
                'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
                'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
            ],
            id="an owner is named fully",
        ),
        pytest.param(
            {"managedFields": [{"operation": "Apply", "manager": "m" * 128, "subresource": "s" * 256}]},
            [],
            id="managed fields as long as allowed",
        ),
        pytest.param(
            {"managedFields": [{"operation": "Update", "fieldsType": "FieldsV1", "subresource": "s" * 257}]},
            ["metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes"],
            id="a subresource that is too long",
        ),
        pytest.param(
            {"annotations": {"a": "x" * (256 * 1024 - 1)}}, [], id="annotations as large as allowed"
        ),
        pytest.param({"generation": 0}, [], id="generation 0"),
        pytest.param({"finalizers": ["orphan", "kubernetes"]}, [], id="finalizers of Kubernetes"),
        pytest.param(
            {"managedFields": [{"operation": "Guess", "fieldsType": "V2", "manager": "m" * 129}]},
            [
                'metadata.managedFields[0].operation: Invalid value: "Guess": must be `Apply` or `Update`',
                'metadata.managedFields[0].fieldsType: Invalid value: "V2": must be `FieldsV1`',
                "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
            ],
            id="managed fields",
        ),
    ],
)
def test_new_metadata(fields, want):
    assert [str(error) for error in validate_metadata(meta(**fields))] == want


def test_only_one_owner_controls():
    owners = [owner(controller=True), owner(name="b", controller=True)]
    (error,) = validate_metadata(meta(ownerReferences=owners))
    assert error.detail == (
        'Only one reference can have Controller set to true. Found "true" in references for '
        "ReplicaSet/a and ReplicaSet/b"
    )


@pytest.mark.parametrize(
    ("fields", "old", "want"),
    [
        pytest.param({}, {}, [], id="nothing changed"),
        pytest.param(
            {"resourceVersion": ""},
            {},
            ['metadata.resourceVersion: Invalid value: "": must be specified for an update'],
            id="an update says what it updates",
        ),
        pytest.param(
            {"name": "other", "uid": "v"},
            {},
            [
                'metadata.name: Invalid value: "other": field is immutable',
                'metadata.uid: Invalid value: "v": field is immutable',
            ],
            id="identity is fixed",
        ),
        pytest.param({"generation": 2}, {"generation": 2}, [], id="the same generation"),
        pytest.param(
            {"finalizers": ["a.b/c", "d.e/f"]},
            {"finalizers": ["a.b/c"]},
            [],
            id="a new finalizer of a living object",
        ),
        pytest.param(
            {"generation": 1},
            {"generation": 2},
            ["metadata.generation: Invalid value: 1: must not be decremented"],
            id="generations grow",
        ),
        pytest.param(
            {"finalizers": ["a.b/c", "d.e/f"], "deletionTimestamp": "2026-01-15T12:00:00Z"},
            {"finalizers": ["a.b/c"], "deletionTimestamp": "2026-01-15T12:00:00Z"},
            [
                (
                    "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
                    'found new finalizers []string{"d.e/f"}'
                )
            ],
            id="nothing new waits for a deletion",
        ),
    ],
)
def test_changed_metadata(fields, old, want):
    assert [str(error) for error in validate_metadata_update(meta(**fields), meta(**old))] == want


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("namespace", "other"),
        ("creationTimestamp", "2026-01-15T12:00:00Z"),
        ("deletionTimestamp", "2026-01-15T12:00:00Z"),
        ("deletionGracePeriodSeconds", 3),
    ],
)
def test_a_fixed_field_cannot_be_set_changed_or_cleared(field, value):
    for new, old in (({field: value}, {}), ({}, {field: value})):
        (error,) = validate_metadata_update(meta(**new), meta(**old))
        assert (error.field, error.detail) == (f"metadata.{field}", "field is immutable")


@pytest.mark.parametrize("place", [0, 1], ids=["first", "last"])
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"kind": ""}, "kind"),
        ({"name": ""}, "name"),
        ({"uid": ""}, "uid"),
        ({"apiVersion": "apps/"}, "apiVersion"),
    ],
)
def test_every_owner_is_checked(wrong, field, place):
    owners = [owner(name="b")]
    owners.insert(place, owner(**wrong))
    assert [error.field for error in validate_metadata(meta(ownerReferences=owners))] == [
        f"metadata.ownerReferences.{field}"
    ]


def test_an_event_is_no_owner():
    (error,) = validate_metadata(meta(ownerReferences=[owner(apiVersion="v1", kind="Event")]))
    assert "disallowed from being an owner" in error.detail
    assert validate_metadata(meta(ownerReferences=[owner(apiVersion="events.k8s.io/v1", kind="Event")])) == []


@pytest.mark.parametrize(
    ("labels", "want"), [({"a b": "x"}, 1), ({"a": "x y"}, 1), ({"a": ""}, 0), ({"": "x"}, 2)]
)
def test_labels_are_checked_on_create_and_on_update(labels, want):
    assert len(validate_metadata(meta(labels=labels))) == want
    assert len(validate_metadata_update(meta(labels=labels), meta())) == want


def test_a_generated_name_may_end_with_a_dash():
    assert validate_metadata(meta(generateName="web-")) == []
    (error,) = validate_metadata(meta(generateName="-"))
    assert error.field == "metadata.generateName"


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"ownerReferences": [owner(), owner(uid="", kind="")]},
            [
                "metadata.ownerReferences[1].kind: Required value: must not be empty",
                "metadata.ownerReferences[1].uid: Required value: must not be empty",
            ],
            id="a missing field is required, at its index",
        ),
        pytest.param(
            {"ownerReferences": [owner(apiVersion="")]},
            ["metadata.ownerReferences[0].apiVersion: Required value: must not be empty"],
            id="so is the version",
        ),
        pytest.param(
            {"ownerReferences": [owner(apiVersion="apps/v1/x")]},
            [f'{OWNERS}[0].apiVersion: Invalid value: "apps/v1/x": must be <group>/<version> or <version>'],
            id="a version of three parts",
        ),
        pytest.param(
            {"managedFields": [{"operation": ""}, {"operation": "Guess"}]},
            [
                "metadata.managedFields[0].operation: Required value: must not be empty",
                f'metadata.managedFields[1].operation: Unsupported value: "Guess": {LISTED}',
            ],
            id="managed fields",
        ),
    ],
)
def test_new_metadata_on_a_server_of_1_37(fields, want):
    assert [str(error) for error in validate_metadata(meta(**fields), rules=KUBERNETES_1_37)] == want


def test_a_version_of_three_parts_has_no_version_on_a_server_of_1_36():
    (error,) = validate_metadata(meta(ownerReferences=[owner(apiVersion="apps/v1/x")]))
    assert error.detail == "version must not be empty"
