"""CustomResourceDefinitions: what is wrong with one, and the resource that a good one makes."""

import re
from datetime import datetime
from typing import Any

from trimtab.lab.apiserver.errors import (
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from trimtab.lab.crd.cel import RULES, compile_rule
from trimtab.lab.crd.strategy import CustomStrategy
from trimtab.lab.resources.registry import (
    Registry,
    ScalePaths,
    ServedResource,
    TableColumn,
    version_rank,
)
from trimtab.lab.resources.strategy import Strategy, condition
from trimtab.lab.schemas.shapes import Shape, custom_shape
from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.storage.store import ObjectStore
from trimtab.lab.storage.watch_cache import WatchCacheEvent
from trimtab.model.field_errors import FieldError

TYPES = ("array", "boolean", "integer", "number", "object", "string")
#: Keywords that a structural schema must not use, because pruning and defaulting could not follow them.
FORBIDDEN = (
    "$ref",
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "patternProperties",
    "readOnly",
)
PLURAL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")


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
        """Accept the names and establish at once: nothing else in the lab has to agree."""
        spec = obj["spec"]
        established = "the initial names have been accepted"
        obj["status"] = {
            "conditions": [
                condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                condition("Established", "InitialNamesAccepted", established, now),
            ],
            "acceptedNames": dict(spec.get("names") or {}),
            "storedVersions": [one["name"] for one in spec.get("versions") or () if one.get("storage")],
        }

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Follow the names; remember each version that ever stored objects."""
        status = obj.setdefault("status", {})
        status["acceptedNames"] = dict(obj["spec"].get("names") or {})
        stored: list[str] = list(status.get("storedVersions") or ())
        stored += [
            one["name"]
            for one in obj["spec"].get("versions") or ()
            if one.get("storage") and one["name"] not in stored
        ]
        status["storedVersions"] = stored

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check names, scope, versions and schemas."""
        spec = obj["spec"]
        found = _validate_names(obj["metadata"].get("name", ""), spec)
        if spec.get("scope") not in ("Cluster", "Namespaced"):
            found.append(unsupported_value("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced")))
        versions = spec.get("versions") or []
        if not versions:
            found.append(required("spec.versions", "must have exactly one version marked as storage version"))
        elif sum(1 for one in versions if one.get("storage")) != 1:
            detail = "must have exactly one version marked as storage version"
            found.append(invalid_value("spec.versions", [one.get("name") for one in versions], detail))
        for index, version in enumerate(versions):
            found += _validate_version(version, f"spec.versions[{index}]")
        if spec.get("conversion", {}).get("strategy") not in ("None", "Webhook"):
            path = "spec.conversion.strategy"
            found.append(unsupported_value(path, spec["conversion"].get("strategy", ""), ("None", "Webhook")))
        return found

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Keep what existing objects depend on."""
        before, after = old["spec"], obj["spec"]
        pairs = {
            "spec.group": (before.get("group"), after.get("group")),
            "spec.scope": (before.get("scope"), after.get("scope")),
            "spec.names.plural": (before["names"].get("plural"), after["names"].get("plural")),
            "spec.names.kind": (before["names"].get("kind"), after["names"].get("kind")),
        }
        return [
            invalid_value(path, new, "field is immutable") for path, (was, new) in pairs.items() if was != new
        ]


def _validate_names(name: str, spec: JsonObject) -> list[FieldError]:
    names = spec.get("names") or {}
    found = [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
    if not spec.get("group"):
        found.append(required("spec.group"))
    elif "." not in spec["group"]:
        detail = "should be a domain with at least one dot"
        found.append(invalid_value("spec.group", spec["group"], detail))
    if names.get("plural") and not PLURAL.match(names["plural"]):
        found.append(
            invalid_value(
                "spec.names.plural",
                names["plural"],
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-'",
            )
        )
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if not found and name != wanted:
        found.append(invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    return found


def _validate_version(version: JsonObject, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if not version.get("name"):
        found.append(required(f"{path}.name"))
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        found.append(required(f"{path}.schema.openAPIV3Schema", "schemas are required"))
        return found
    where = f"{path}.schema.openAPIV3Schema"
    if schema.get("type") != "object":
        found.append(required(f"{where}.type", "must be object at the root"))
    return found + list(_structural(schema, where, is_root=True))


def _structural(schema: Any, path: str, *, is_root: bool = False) -> list[FieldError]:
    """Return what makes a schema not structural, or its rules unusable."""
    if not isinstance(schema, dict):
        return []
    found = _validate_node(schema, path, is_root=is_root)
    for name, child in (schema.get("properties") or {}).items():
        found += _structural(child, f"{path}.properties[{name}]")
    found += _structural(schema.get("items"), f"{path}.items")
    return found + _structural(schema.get("additionalProperties"), f"{path}.additionalProperties")


def _validate_node(schema: JsonObject, path: str, *, is_root: bool) -> list[FieldError]:
    """Return what is wrong with one level of a schema."""
    found = _validate_type(schema, path, is_root=is_root)
    found += [
        forbidden_field(f"{path}.{word}", "must not be used in a structural schema")
        for word in FORBIDDEN
        if word in schema
    ]
    if schema.get("properties") and isinstance(schema.get("additionalProperties"), dict):
        detail = "additionalProperties and properties are mutual exclusive"
        found.append(forbidden_field(f"{path}.additionalProperties", detail))
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        detail = "must not be empty if x-kubernetes-list-type is map"
        found.append(required(f"{path}.x-kubernetes-list-map-keys", detail))
    for index, rule in enumerate(schema.get(RULES) or ()):
        problem = compile_rule(rule.get("rule", "")).problem
        if problem:
            where = f"{path}.{RULES}[{index}].rule"
            found.append(invalid_value(where, rule.get("rule", ""), f"compilation failed: {problem}"))
    return found


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
    """Return the resource that a definition serves, or None when no version is served."""
    spec, names = definition["spec"], definition["spec"]["names"]
    served = sorted(
        (one for one in spec["versions"] if one.get("served")), key=lambda one: version_rank(one["name"])
    )
    if not served:
        return None
    schemas = {one["name"]: _schema(one) for one in spec["versions"]}
    return ServedResource(
        spec["group"],
        names["plural"],
        names["kind"],
        versions=tuple(one["name"] for one in served),
        is_namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=_subresources(served),
        has_generation=True,
        strategy=CustomStrategy(schemas),
        singular_name=names.get("singular", ""),
        list_kind_name=names.get("listKind", ""),
        storage_version_name=next(one["name"] for one in spec["versions"] if one.get("storage")),
        shapes=_shapes(schemas, keeps_all=bool(spec.get("preserveUnknownFields"))),
        schemas=schemas,
        columns={one["name"]: _columns(one) for one in served},
        scales={one["name"]: _scale(one) for one in served if "scale" in (one.get("subresources") or {})},
        is_custom=True,
    )


def _schema(version: JsonObject) -> JsonObject:
    found: JsonObject = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return found


def _subresources(versions: list[JsonObject]) -> tuple[str, ...]:
    """Return the subresources that any of the versions has."""
    names = {name for one in versions for name in one.get("subresources") or {}}
    return tuple(name for name in ("status", "scale") if name in names)


def _shapes(schemas: dict[str, JsonObject], *, keeps_all: bool) -> dict[str, Shape]:
    shapes = {name: custom_shape(schema) for name, schema in schemas.items()}
    for shape in shapes.values():
        shape.keeps_unknown = shape.keeps_unknown or keeps_all
    return shapes


def _columns(version: JsonObject) -> tuple[TableColumn, ...]:
    return tuple(
        TableColumn(
            one.get("name", ""),
            one.get("jsonPath", ""),
            one.get("type", "string"),
            one.get("format", ""),
            one.get("priority", 0),
            one.get("description")
            or f"Custom resource definition column (in JSONPath format): {one.get('jsonPath', '')}",
        )
        for one in version.get("additionalPrinterColumns") or ()
    )


def _scale(version: JsonObject) -> ScalePaths:
    paths = version["subresources"]["scale"]
    return ScalePaths(
        paths.get("specReplicasPath", ""),
        paths.get("statusReplicasPath", ""),
        paths.get("labelSelectorPath", ""),
    )


DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class DefinitionKeeper:
    """Keeps the registry in step with the stored definitions."""

    def __init__(self, store: ObjectStore, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        store.listen(self._notice)

    def _notice(self, resource: str, change: WatchCacheEvent) -> None:
        if resource != DEFINITIONS:
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
        made = resource_of(definition)
        if made is None:
            self._registry.remove(group, plural)
        else:
            self._registry.add(made)

    def _empty(self, storage: str) -> None:
        """Remove the objects of a definition that is gone, and end their watches."""
        objects = self._store.resource(storage)
        for key in list(objects.keys):
            self._store.remove(storage, key)
        objects.watch_cache.expire_all()
