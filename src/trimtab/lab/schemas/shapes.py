"""The shapes of objects: which fields exist, their types, and how lists and maps merge.

Built-in kinds come from `builtin.json` (names and types only, renewed by `tools/lab_schemas.py`); custom ones from the
schema of their definition. Pruning, strict field checks, strategic merge, server-side apply and OpenAPI all read
these shapes, so there is one place that knows what a field is.
"""

from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Literal

from trimtab.lab.storage.codec import JsonObject, decode
from trimtab.model.hpa.selection_strategy import FIELD, PROPOSED

Form = Literal[
    "object",
    "map",
    "list",
    "string",
    "integer",
    "number",
    "boolean",
    "int-or-string",
    "quantity",
    "time",
    "any",
]
PREFIX = "#/definitions/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
#: Types whose JSON is not what their Go struct says; the API lets any value of the named form through.
SPECIAL: dict[str, Form] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    META + "Time": "time",
    META + "MicroTime": "time",
    META + "FieldsV1": "any",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "any",
}
#: Fields that the seeds add to autoscaling/v2; the lab serves them as a future API server would.
SEED_FIELDS: dict[str, dict[str, JsonObject]] = {
    f"io.k8s.api.autoscaling.{version}.HorizontalPodAutoscalerSpec": {
        FIELD: {"type": "string"},
        PROPOSED: {"type": "string"},
    }
    for version in ("v1", "v2")
}


@dataclass(slots=True)
class Shape:
    """One type: its form, its children, and how two values of it merge."""

    form: Form
    type_name: str = ""
    fields: dict[str, "Shape"] = field(default_factory=dict)
    values: "Shape | None" = None
    items: "Shape | None" = None
    required: tuple[str, ...] = ()
    list_type: str = "atomic"
    map_keys: tuple[str, ...] = ()
    key_defaults: JsonObject = field(default_factory=dict)
    is_atomic_map: bool = False
    merge_key: str = ""
    patch_strategy: frozenset[str] = frozenset()
    keeps_unknown: bool = False
    #: Fields that a typed server leaves out when they are empty.
    omitted: frozenset[str] = frozenset()
    is_embedded: bool = False

    def child(self, name: str) -> "Shape":
        """Return the shape of a field or of a map's values."""
        found = self.fields.get(name)
        if found is not None:
            return found
        return self.values if self.values is not None else ANY

    def item(self) -> "Shape":
        """Return the shape of a list's items."""
        return self.items if self.items is not None else ANY


ANY = Shape("any", keeps_unknown=True)


@cache
def definitions() -> dict[str, JsonObject]:
    """Return the built-in type table, with the seeds' fields."""
    text = resources.files(__package__).joinpath("builtin.json").read_bytes()
    table: dict[str, JsonObject] = decode(text)
    for name, extra in SEED_FIELDS.items():
        table[name]["properties"].update(extra)
    return table


@cache
def kinds() -> dict[tuple[str, str, str], str]:
    """Return the type name of each (group, version, kind)."""
    return {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, schema in definitions().items()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    }


@cache
def shape_of_kind(group: str, version: str, kind: str) -> Shape:
    """Return the shape of a built-in kind, or one that accepts anything."""
    name = kinds().get((group, version, kind))
    return shape_of_type(name) if name else ANY


_shapes: dict[str, Shape] = {}


def shape_of_type(name: str) -> Shape:
    """Return the shape of a named built-in type; types may refer to themselves."""
    found = _shapes.get(name)
    if found is None:
        if name in SPECIAL:
            form = SPECIAL[name]
            found = _shapes[name] = Shape(form, name, keeps_unknown=form == "any")
        else:
            found = _shapes[name] = Shape("any", name)
            _fill(found, definitions().get(name, {}))
            found.omitted = _omitted_fields(name)
    return found


@cache
def messages() -> dict[str, dict[str, list[str]]]:
    """Return the fields of each Go type by protobuf number: JSON name, kind, and `k` when an empty value is kept."""
    text = resources.files(__package__).joinpath("protobuf.json").read_bytes()
    table: dict[str, dict[str, list[str]]] = decode(text)
    return table


def _omitted_fields(type_name: str) -> frozenset[str]:
    short = type_name.removeprefix("io.k8s.api.").replace(META, "meta.v1.")
    fields = messages().get(short, {}).values()
    return frozenset(name for name, kind, kept in fields if not kept and not kind.startswith("m:"))


def _fill(shape: Shape, schema: JsonObject) -> None:
    """Complete a shape in place, so that a type that contains itself finds the unfinished one."""
    kind = schema.get("type")
    if "properties" in schema:
        shape.form = "object"
        shape.required = tuple(schema.get("required", ()))
        shape.fields = {name: _field_shape(child) for name, child in schema["properties"].items()}
    elif isinstance(schema.get("additionalProperties"), dict):
        shape.form = "map"
        shape.values = _field_shape(schema["additionalProperties"])
    elif kind == "array":
        shape.form = "list"
        shape.items = _field_shape(schema.get("items", {}))
    elif kind in ("string", "integer", "number", "boolean"):
        shape.form = kind
    else:
        shape.form = "any"
        shape.keeps_unknown = True
    shape.is_atomic_map = schema.get("x-kubernetes-map-type") == "atomic"


def _field_shape(schema: JsonObject) -> Shape:
    """Build the shape of one use of a type, with the merge rules that the use adds."""
    reference = schema.get("$ref")
    if reference and len(schema) == 1:
        return shape_of_type(reference.removeprefix(PREFIX))
    if reference:
        base = shape_of_type(reference.removeprefix(PREFIX))
        shape = replace(base)
    else:
        shape = Shape("any")
        _fill(shape, schema)
    shape.list_type = schema.get("x-kubernetes-list-type", "atomic")
    shape.map_keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
    if set(shape.map_keys) == {"containerPort", "protocol"} or set(shape.map_keys) == {"port", "protocol"}:
        shape.key_defaults = {"protocol": "TCP"}
    shape.merge_key = schema.get("x-kubernetes-patch-merge-key", "")
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    shape.patch_strategy = frozenset(strategy.split(",")) if strategy else frozenset()
    shape.is_atomic_map = shape.is_atomic_map or schema.get("x-kubernetes-map-type") == "atomic"
    return shape


def shape_of_structural(schema: JsonObject) -> Shape:
    """Build the shape of a custom resource's structural schema."""
    shape = Shape("any", required=tuple(schema.get("required", ())))
    kind = schema.get("type")
    additional = schema.get("additionalProperties")
    if schema.get("x-kubernetes-int-or-string"):
        shape.form = "int-or-string"
    elif kind == "object" and isinstance(additional, dict):
        shape.form, shape.values = "map", shape_of_structural(additional)
    elif kind == "object" and additional is True:
        shape.form, shape.values = "map", ANY
    elif kind == "object":
        shape.form = "object"
        shape.fields = {
            name: shape_of_structural(child) for name, child in schema.get("properties", {}).items()
        }
    elif kind == "array":
        shape.form, shape.items = "list", shape_of_structural(schema.get("items", {}))
        shape.list_type = schema.get("x-kubernetes-list-type", "atomic")
        shape.map_keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        item_fields = schema.get("items", {}).get("properties", {})
        shape.key_defaults = {
            key: item_fields[key]["default"]
            for key in shape.map_keys
            if "default" in item_fields.get(key, {})
        }
    elif kind in ("string", "integer", "number", "boolean"):
        shape.form = kind
    shape.is_atomic_map = schema.get("x-kubernetes-map-type") == "atomic"
    shape.is_embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    shape.keeps_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or shape.form == "any"
    if shape.is_embedded:
        shape.fields = {**object_fields(), **shape.fields}
    return shape


def custom_shape(schema: JsonObject) -> Shape:
    """Build the shape of a whole custom resource: its schema plus the type and metadata every object has."""
    shape = shape_of_structural(schema)
    shape.form = "object"
    shape.fields = {**shape.fields, **object_fields()}
    return shape


def object_fields() -> dict[str, Shape]:
    """Return the fields that every object has."""
    return {
        "apiVersion": Shape("string"),
        "kind": Shape("string"),
        "metadata": shape_of_type(META + "ObjectMeta"),
    }
