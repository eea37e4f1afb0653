"""CustomResourceDefinitions: their rules, the resources that they serve, and the rules of custom objects."""

import re
from datetime import datetime
from typing import Any

from trimtab.model.field_errors import ErrorType, FieldError
from trimtab_lab.apiserver.errors import forbidden_field, invalid_value, required, unsupported_value
from trimtab_lab.crd.rules import MISSING, has_rules, violations
from trimtab_lab.crd.schema import apply_defaults
from trimtab_lab.crd.schema import validate as validate_schema
from trimtab_lab.kinds.registry import Registry, ScalePaths, ServedResource, TableColumn, version_rank
from trimtab_lab.kinds.strategy import Strategy, condition
from trimtab_lab.schemas.shapes import Shape, custom_shape
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.storage.store import ObjectStore, WatchCacheEvent

#: Errors of size and shape, after which rules are not evaluated: they could fail or take very long.
BLOCKING = (
    ErrorType.REQUIRED,
    ErrorType.TOO_LONG,
    ErrorType.TOO_MANY,
    ErrorType.TYPE_INVALID,
    ErrorType.NOT_SUPPORTED,
)
SKIPPED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


class CustomStrategy(Strategy):
    """Custom objects. All versions have one form (conversion None)."""

    status_writes_metadata = False
    needs_version_on_update = True

    def __init__(self, schemas: dict[str, JsonObject]) -> None:
        super().__init__()
        self._schemas = schemas

    def _schema(self, obj: JsonObject) -> JsonObject:
        return self._schemas.get(obj["apiVersion"].rpartition("/")[2], {})

    def default(self, obj: JsonObject) -> None:
        """Fill in the schema's defaults."""
        apply_defaults(obj, self._schema(obj))

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Fill in defaults again after admission."""
        self.default(obj)

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Fill in defaults again after admission."""
        self.default(obj)

    def validate_create(self, obj: JsonObject) -> list[FieldError]:
        """Check schema and rules."""
        schema = self._schema(obj)
        errors = validate_schema(_without_metadata(obj), schema)
        return errors + _validate_rules(errors, obj, schema)

    def validate_update(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Check schema and rules. Errors that the stored object has too are ignored."""
        schema = self._schema(obj)
        errors = validate_schema(_without_metadata(obj), schema)
        if errors:
            known = {str(error) for error in validate_schema(_without_metadata(old), schema)}
            errors = [error for error in errors if str(error) not in known]
        return errors + _validate_rules(errors, obj, schema, old)

    def validate_status(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Check schema and rules."""
        return self.validate_update(obj, old)


def _validate_rules(
    errors: list[FieldError], obj: JsonObject, schema: JsonObject, old: Any = MISSING
) -> list[FieldError]:
    if not any(error.type in BLOCKING for error in errors):
        return list(violations(obj, schema, old))
    return [FieldError(ErrorType.INVALID, "<nil>", None, SKIPPED)] if has_rules(schema) else []


def _without_metadata(obj: JsonObject) -> JsonObject:
    return {name: value for name, value in obj.items() if name != "metadata"}


TYPES = ("array", "boolean", "integer", "number", "object", "string")
#: Keywords that a structural schema must not use, because pruning and defaulting do not support them.
FORBIDDEN = (
    *("$ref", "definitions", "dependencies", "deprecated"),
    *("discriminator", "id", "patternProperties", "readOnly"),
)
PLURAL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
PLURAL_RULE = "a DNS-1035 label must consist of lower case alphanumeric characters or '-'"
ONE_STORAGE = "must have exactly one version marked as storage version"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class DefinitionStrategy(Strategy):
    """The rules of CustomResourceDefinitions."""

    def default(self, obj: JsonObject) -> None:
        """Fill in names and conversion."""
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        if names.get("kind"):
            names.setdefault("singular", names["kind"].lower())
            names.setdefault("listKind", names["kind"] + "List")
        spec.setdefault("conversion", {}).setdefault("strategy", "None")

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Accept the names and establish the definition at once."""
        spec = obj["spec"]
        established = "the initial names have been accepted"
        obj["status"] = {
            "conditions": [
                condition("NamesAccepted", "NoConflicts", "no conflicts errors", now),
                condition("Established", "InitialNamesAccepted", established, now),
            ],
            "acceptedNames": dict(spec.get("names") or {}),
            "storedVersions": _stored_versions(spec),
        }

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Accept new names, and add a new storage version to the stored versions."""
        status = obj.setdefault("status", {})
        status["acceptedNames"] = dict(obj["spec"].get("names") or {})
        before = status.get("storedVersions") or ()
        status["storedVersions"] = list(dict.fromkeys([*before, *_stored_versions(obj["spec"])]))

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check names, scope, versions and schemas."""
        spec = obj["spec"]
        errors = _validate_names(obj["metadata"].get("name", ""), spec)
        if spec.get("scope") not in ("Cluster", "Namespaced"):
            errors.append(unsupported_value("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced")))
        versions = spec.get("versions") or []
        if not versions:
            errors.append(required("spec.versions", ONE_STORAGE))
        elif sum(1 for version in versions if version.get("storage")) != 1:
            names = [version.get("name") for version in versions]
            errors.append(invalid_value("spec.versions", names, ONE_STORAGE))
        for index, version in enumerate(versions):
            errors += _validate_version(version, f"spec.versions[{index}]")
        if spec.get("conversion", {}).get("strategy") not in ("None", "Webhook"):
            path = "spec.conversion.strategy"
            errors.append(
                unsupported_value(path, spec["conversion"].get("strategy", ""), ("None", "Webhook"))
            )
        return errors

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Reject changes of what existing objects depend on."""
        before, after = old["spec"], obj["spec"]
        fields = [(f"spec.{name}", before, after, name) for name in ("group", "scope")]
        fields += [
            (f"spec.names.{name}", before["names"], after["names"], name) for name in ("plural", "kind")
        ]
        return [
            invalid_value(path, new.get(name), "field is immutable")
            for path, old, new, name in fields
            if old.get(name) != new.get(name)
        ]


def _stored_versions(spec: JsonObject) -> list[str]:
    return [version["name"] for version in spec.get("versions") or () if version.get("storage")]


def _validate_names(name: str, spec: JsonObject) -> list[FieldError]:
    names = spec.get("names") or {}
    errors = [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
    if not spec.get("group"):
        errors.append(required("spec.group"))
    elif "." not in spec["group"]:
        detail = "should be a domain with at least one dot"
        errors.append(invalid_value("spec.group", spec["group"], detail))
    if names.get("plural") and not PLURAL.match(names["plural"]):
        errors.append(invalid_value("spec.names.plural", names["plural"], PLURAL_RULE))
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if not errors and name != wanted:
        errors.append(invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    return errors


def _validate_version(version: JsonObject, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not version.get("name"):
        errors.append(required(f"{path}.name"))
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        errors.append(required(f"{path}.schema.openAPIV3Schema", "schemas are required"))
        return errors
    where = f"{path}.schema.openAPIV3Schema"
    if schema.get("type") != "object":
        errors.append(required(f"{where}.type", "must be object at the root"))
    return errors + list(_structural(schema, where, is_root=True))


def _structural(schema: Any, path: str, *, is_root: bool = False) -> list[FieldError]:
    """Return what makes a schema not structural, or its rules unusable."""
    if not isinstance(schema, dict):
        return []
    errors = _validate_node(schema, path, is_root=is_root)
    for name, child in (schema.get("properties") or {}).items():
        errors += _structural(child, f"{path}.properties[{name}]")
    errors += _structural(schema.get("items"), f"{path}.items")
    return errors + _structural(schema.get("additionalProperties"), f"{path}.additionalProperties")


def _validate_node(schema: JsonObject, path: str, *, is_root: bool) -> list[FieldError]:
    errors = _validate_type(schema, path, is_root=is_root)
    errors += [
        forbidden_field(f"{path}.{word}", "must not be used in a structural schema")
        for word in FORBIDDEN
        if word in schema
    ]
    if schema.get("properties") and isinstance(schema.get("additionalProperties"), dict):
        detail = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden_field(f"{path}.additionalProperties", detail))
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        detail = "must not be empty if x-kubernetes-list-type is map"
        errors.append(required(f"{path}.x-kubernetes-list-map-keys", detail))
    return errors


def _validate_type(schema: JsonObject, path: str, *, is_root: bool) -> list[FieldError]:
    kind = schema.get("type")
    is_free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if kind is None and not is_free and not is_root:
        return [required(f"{path}.type", "must not be empty for specified object fields")]
    if kind is not None and kind not in TYPES:
        return [unsupported_value(f"{path}.type", kind, TYPES)]
    if kind == "array" and "items" not in schema:
        return [required(f"{path}.items", "must be specified")]
    return []


def resource_of(definition: JsonObject) -> ServedResource | None:
    spec, names = definition["spec"], definition["spec"]["names"]
    served = [version for version in spec["versions"] if version.get("served")]
    served.sort(key=lambda version: version_rank(version["name"]))
    if not served:
        return None
    schemas = {version["name"]: _schema(version) for version in spec["versions"]}
    return ServedResource(
        spec["group"],
        names["plural"],
        names["kind"],
        versions=tuple(version["name"] for version in served),
        is_namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=_subresources(served),
        has_generation=True,
        strategy=CustomStrategy(schemas),
        singular_name=names.get("singular", ""),
        list_kind_name=names.get("listKind", ""),
        storage_version_name=_stored_versions(spec)[0],
        shapes=_shapes(schemas, keeps_all=bool(spec.get("preserveUnknownFields"))),
        schemas=schemas,
        columns={version["name"]: _columns(version) for version in served},
        scales={
            version["name"]: _scale(version)
            for version in served
            if "scale" in (version.get("subresources") or {})
        },
        is_custom=True,
    )


def _schema(version: JsonObject) -> JsonObject:
    schema: JsonObject = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def _subresources(versions: list[JsonObject]) -> tuple[str, ...]:
    names = {name for version in versions for name in version.get("subresources") or {}}
    return tuple(name for name in ("status", "scale") if name in names)


def _shapes(schemas: dict[str, JsonObject], *, keeps_all: bool) -> dict[str, Shape]:
    shapes = {name: custom_shape(schema) for name, schema in schemas.items()}
    for shape in shapes.values():
        shape.keeps_unknown = shape.keeps_unknown or keeps_all
    return shapes


def _columns(version: JsonObject) -> tuple[TableColumn, ...]:
    return tuple(
        TableColumn(
            column.get("name", ""),
            column.get("jsonPath", ""),
            column.get("type", "string"),
            column.get("format", ""),
            column.get("priority", 0),
            column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column.get('jsonPath', '')}",
        )
        for column in version.get("additionalPrinterColumns") or ()
    )


def _scale(version: JsonObject) -> ScalePaths:
    paths = version["subresources"]["scale"]
    return ScalePaths(
        paths.get("specReplicasPath", ""),
        paths.get("statusReplicasPath", ""),
        paths.get("labelSelectorPath", ""),
    )


class DefinitionKeeper:
    """Updates the registry when definitions are stored."""

    def __init__(self, store: ObjectStore, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        store.listen(self._notice)

    def _notice(self, storage: str, change: WatchCacheEvent) -> None:
        if storage != DEFINITIONS:
            return
        definition = change.entry.decoded()
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        if change.action == "DELETED":
            self._registry.remove(group, plural)
            self._empty(f"{plural}.{group}")
            return
        before = change.previous.decoded()["spec"] if change.previous is not None else None
        if before == definition["spec"]:
            return
        resource = resource_of(definition)
        if resource is None:
            self._registry.remove(group, plural)
        else:
            self._registry.add(resource)

    def _empty(self, storage: str) -> None:
        """Delete the objects of a deleted definition, and end their watches."""
        objects = self._store.resource(storage)
        for key in list(objects.keys):
            self._store.remove(storage, key)
        objects.watch_cache.expire_all()
