"""Rules of metadata, which an API server applies to every object on create and update."""

from typing import Any

from trimtab.model.core.meta import ObjectMeta, OwnerReference
from trimtab.model.core.server_rules import KUBERNETES_1_36, ServerRules
from trimtab.model.field_errors import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from trimtab.model.json.wire import Wire
from trimtab.model.labels import names
from trimtab.model.labels.names import check_name

ANNOTATIONS_LIMIT_BYTES = 256 * 1024
MANAGER_LIMIT_BYTES = 128
SUBRESOURCE_LIMIT_BYTES = 256
IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"

_EMPTY = "must not be empty"
_METADATA = FieldPath("metadata")
_OPERATIONS = ("Apply", "Update")
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_STANDARD_FINALIZERS = frozenset({"kubernetes", _ORPHAN, _FOREGROUND})


class ManagedFieldsEntry(Wire):
    """The fields that one manager owns."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    fields_type: str = ""
    subresource: str = ""


class WholeMeta(ObjectMeta, frozen=True):
    """Metadata with the fields that only validation reads."""

    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()


def validate_metadata(
    meta: WholeMeta, path: FieldPath = _METADATA, rules: ServerRules = KUBERNETES_1_36
) -> list[FieldError]:
    """Check the metadata of a new namespaced object whose name is a DNS subdomain."""
    errors = []
    if meta.generate_name:
        errors += check_name(meta.generate_name, path.child("generateName"), names.generate_name_problems)
    missing = "name or generateName is required"
    errors += check_name(meta.name, path.child("name"), names.dns1123_subdomain_problems, missing)
    errors += check_name(meta.namespace, path.child("namespace"), names.dns1123_label_problems, "")
    if meta.generation < 0:
        errors.append(invalid(path.child("generation"), meta.generation, NEGATIVE))
    errors += _validate_finalizers(meta, path.child("finalizers"))
    return errors + _validate_always(meta, path, rules)


def validate_metadata_update(
    meta: WholeMeta, old: WholeMeta, path: FieldPath = _METADATA, rules: ServerRules = KUBERNETES_1_36
) -> list[FieldError]:
    """Check the metadata of an object that replaces `old`."""
    errors = []
    if old.deletion_timestamp is not None and (added := sorted(set(meta.finalizers) - set(old.finalizers))):
        listed = ", ".join(f'"{name}"' for name in added)
        detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
        errors.append(forbidden(path.child("finalizers"), detail))
    if not meta.resource_version:
        errors.append(invalid(path.child("resourceVersion"), "", "must be specified for an update"))
    if meta.generation < 0 and rules.hpa_generations:
        errors.append(invalid(path.child("generation"), meta.generation, NEGATIVE))
    if meta.generation < old.generation:
        errors.append(invalid(path.child("generation"), meta.generation, "must not be decremented"))
    fixed: dict[str, tuple[Any, Any]] = {
        "name": (meta.name, old.name),
        "namespace": (meta.namespace, old.namespace),
        "uid": (meta.uid, old.uid),
        "creationTimestamp": (meta.creation_timestamp, old.creation_timestamp),
        "deletionTimestamp": (meta.deletion_timestamp, old.deletion_timestamp),
        "deletionGracePeriodSeconds": (meta.deletion_grace_period_seconds, old.deletion_grace_period_seconds),
    }
    errors += [invalid(path.child(name), new, IMMUTABLE) for name, (new, was) in fixed.items() if new != was]
    return errors + _validate_always(meta, path, rules)


def _validate_always(meta: WholeMeta, path: FieldPath, rules: ServerRules) -> list[FieldError]:
    """Check what has the same rules on create and update."""
    errors = []
    for key, value in meta.labels.items():
        errors += check_name(key, path.child("labels"), names.label_key_problems)
        errors += check_name(value, path.child("labels"), names.label_value_problems)
    errors += _validate_annotations(meta.annotations, path.child("annotations"))
    errors += _validate_owners(meta.owner_references, path.child("ownerReferences"), rules)
    errors += validate_managed_fields(meta, path.child("managedFields"), rules)
    for position, name in enumerate(meta.finalizers):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid(path.child("finalizers").index(position), name, detail))
    return errors


def _validate_finalizers(meta: WholeMeta, path: FieldPath) -> list[FieldError]:
    errors = [error for name in meta.finalizers for error in check_name(name, path, names.label_key_problems)]
    if {_ORPHAN, _FOREGROUND} <= set(meta.finalizers):
        detail = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        errors.append(invalid(path, list(meta.finalizers), detail))
    return errors


def _validate_annotations(annotations: dict[str, str], path: FieldPath) -> list[FieldError]:
    errors = [
        invalid(path, key, problem)
        for key in annotations
        for problem in names.label_key_problems(key.lower())
    ]
    size = sum(names.byte_length(text) for item in annotations.items() for text in item)
    if size > ANNOTATIONS_LIMIT_BYTES:
        errors.append(too_long(path, ANNOTATIONS_LIMIT_BYTES))
    return errors


def _validate_owners(
    owners: tuple[OwnerReference, ...], path: FieldPath, rules: ServerRules
) -> list[FieldError]:
    errors = []
    for position, owner in enumerate(owners):
        place = path.index(position) if rules.required_owner_fields else path
        errors += _validate_owner(owner, place, rules)
        if (owner.api_version, owner.kind) == ("v1", "Event"):
            errors.append(invalid(place, owner, "/v1, Kind=Event is disallowed from being an owner"))
    controllers = [f"{owner.kind}/{owner.name}" for owner in owners if owner.controller]
    for other in controllers[1:]:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {other}"
        )
        errors.append(invalid(path, list(owners), detail))
    return errors


def _validate_owner(owner: OwnerReference, path: FieldPath, rules: ServerRules) -> list[FieldError]:
    missing = [name for name in ("kind", "name", "uid") if not getattr(owner, name)]
    group, _, version = owner.api_version.rpartition("/")
    has_version = bool(version) and "/" not in group
    if not rules.required_owner_fields:
        errors = (
            []
            if has_version
            else [invalid(path.child("apiVersion"), owner.api_version, "version must not be empty")]
        )
        return errors + [invalid(path.child(name), "", _EMPTY) for name in missing]
    errors = []
    if not owner.api_version:
        errors.append(required(path.child("apiVersion"), _EMPTY))
    elif not has_version:
        detail = "must be <group>/<version> or <version>"
        errors.append(invalid(path.child("apiVersion"), owner.api_version, detail))
    return errors + [required(path.child(name), _EMPTY) for name in missing]


def validate_managed_fields(meta: WholeMeta, path: FieldPath, rules: ServerRules) -> list[FieldError]:
    """Check the entries of the fields' managers."""
    return [
        error
        for position, entry in enumerate(meta.managed_fields)
        for error in _validate_managed_entry(entry, path.index(position), rules)
    ]


def _validate_managed_entry(
    entry: ManagedFieldsEntry, path: FieldPath, rules: ServerRules
) -> list[FieldError]:
    errors = []
    if entry.operation not in _OPERATIONS:
        place = path.child("operation")
        if not rules.required_owner_fields:
            errors.append(invalid(place, entry.operation, "must be `Apply` or `Update`"))
        elif entry.operation:
            errors.append(not_supported(place, entry.operation, _OPERATIONS))
        else:
            errors.append(required(place, _EMPTY))
    if entry.fields_type not in {"", "FieldsV1"}:
        errors.append(invalid(path.child("fieldsType"), entry.fields_type, "must be `FieldsV1`"))
    if names.byte_length(entry.manager) > MANAGER_LIMIT_BYTES:
        errors.append(too_long(path.child("manager"), MANAGER_LIMIT_BYTES))
    if names.byte_length(entry.subresource) > SUBRESOURCE_LIMIT_BYTES:
        errors.append(too_long(path.child("subresource"), SUBRESOURCE_LIMIT_BYTES))
    return errors
