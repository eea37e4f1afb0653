"""The shapes of objects: which fields exist, their types, how lists merge, and what is dropped as unknown."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

from trimtab.model.hpa.selection_strategy import FIELD, PROPOSED
from trimtab.model.status import bad_request
from trimtab.model.times import parse_time
from trimtab_lab.storage.codec import JsonObject, decode

Scalar = Literal["string", "integer", "number", "boolean", "int-or-string", "quantity", "time"]
Form = Literal["object", "map", "list", "any"] | Scalar
PREFIX = "#/definitions/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
#: Types whose JSON differs from their Go struct. The API accepts any value of the named form.
SPECIAL: dict[str, Form] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    META + "Time": "time",
    META + "MicroTime": "time",
    META + "FieldsV1": "any",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    EXTENSIONS + "JSON": "any",
    EXTENSIONS + "JSONSchemaPropsOrArray": "any",
    EXTENSIONS + "JSONSchemaPropsOrBool": "any",
    EXTENSIONS + "JSONSchemaPropsOrStringArray": "any",
}
#: Proposed fields of autoscaling/v2, which the lab serves as a future API server would.
SEED_FIELDS: dict[str, dict[str, JsonObject]] = {
    f"io.k8s.api.autoscaling.{version}.HorizontalPodAutoscalerSpec": {
        FIELD: {"type": "string"},
        PROPOSED: {"type": "string"},
    }
    for version in ("v1", "v2")
}
#: Fields of Kubernetes 1.37. Strategies drop them under the rules of an older version.
NEWER_FIELDS: dict[str, dict[str, JsonObject]] = {
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerCondition": {
        "observedGeneration": {"type": "integer", "format": "int64"}
    }
}


@dataclass(slots=True)
class Shape:
    """A type: its form, its fields or items, and how two values merge."""

    form: Form
    type_name: str = ""
    fields: dict[str, "Shape"] = field(default_factory=dict)
    values: "Shape | None" = None
    items: "Shape | None" = None
    list_type: str = "atomic"
    map_keys: tuple[str, ...] = ()
    key_defaults: JsonObject = field(default_factory=dict)
    is_atomic_map: bool = False
    merge_key: str = ""
    patch_strategy: frozenset[str] = frozenset()
    keeps_unknown: bool = False
    #: Fields that a typed server leaves out when they are empty.
    omitted: frozenset[str] = frozenset()

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
    """Return the schemas of built-in types, with the proposed fields."""
    table: dict[str, JsonObject] = _load("builtin.json")
    for name, extra in (SEED_FIELDS | NEWER_FIELDS).items():
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
    """Return the shape of a built-in kind, or `ANY` if it is unknown."""
    name = kinds().get((group, version, kind))
    return shape_of_type(name) if name else ANY


_shapes: dict[str, Shape] = {}


def shape_of_type(name: str) -> Shape:
    """Return the shape of a built-in type. A type may refer to itself."""
    shape = _shapes.get(name)
    if shape is None:
        form = SPECIAL.get(name)
        shape = _shapes[name] = Shape(form or "any", name, keeps_unknown=form == "any")
        if form is None:
            _fill(shape, definitions().get(name, {}))
            shape.omitted = _omitted_fields(name)
    return shape


@cache
def messages() -> dict[str, dict[str, list[str]]]:
    """Return the fields of each Go type by protobuf number.

    A field is its JSON name, its kind, and `k` if an empty value is kept.
    """
    table: dict[str, dict[str, list[str]]] = _load("protobuf.json")
    return table


def _load(name: str) -> Any:
    return decode(resources.files(__package__).joinpath(name).read_bytes())


def _omitted_fields(type_name: str) -> frozenset[str]:
    short = type_name.removeprefix("io.k8s.api.").replace(META, "meta.v1.")
    fields = messages().get(short, {}).values()
    return frozenset(name for name, kind, kept in fields if not kept and not kind.startswith("m:"))


def _fill(shape: Shape, schema: JsonObject) -> None:
    """Complete a shape in place, so that a type that contains itself finds its shape."""
    kind = schema.get("type")
    if "properties" in schema:
        shape.form = "object"
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
    """Return the shape of a field: the shape of its type, with the merge rules of the field."""
    reference = schema.get("$ref")
    if reference:
        shape = shape_of_type(reference.removeprefix(PREFIX))
        if len(schema) == 1:
            return shape
        shape = replace(shape)
    else:
        shape = Shape("any")
        _fill(shape, schema)
    shape.list_type = schema.get("x-kubernetes-list-type", "atomic")
    shape.map_keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
    if set(shape.map_keys) in ({"containerPort", "protocol"}, {"port", "protocol"}):
        shape.key_defaults = {"protocol": "TCP"}
    shape.merge_key = schema.get("x-kubernetes-patch-merge-key", "")
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    shape.patch_strategy = frozenset(strategy.split(",")) if strategy else frozenset()
    shape.is_atomic_map = shape.is_atomic_map or schema.get("x-kubernetes-map-type") == "atomic"
    return shape


def shape_of_structural(schema: JsonObject) -> Shape:
    shape = Shape("any")
    kind = schema.get("type")
    additional = schema.get("additionalProperties")
    if schema.get("x-kubernetes-int-or-string"):
        shape.form = "int-or-string"
    elif kind == "object" and (isinstance(additional, dict) or additional is True):
        shape.form = "map"
        shape.values = ANY if additional is True else shape_of_structural(additional)
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
    shape.keeps_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or shape.form == "any"
    if schema.get("x-kubernetes-embedded-resource"):
        shape.fields = {**object_fields(), **shape.fields}
    return shape


def custom_shape(schema: JsonObject) -> Shape:
    """Return the shape of a custom resource: its schema with type and metadata."""
    shape = shape_of_structural(schema)
    shape.form = "object"
    shape.fields = {**shape.fields, **object_fields()}
    return shape


def object_fields() -> dict[str, Shape]:
    return {
        "apiVersion": Shape("string"),
        "kind": Shape("string"),
        "metadata": shape_of_type(META + "ObjectMeta"),
    }


def is_time(text: str) -> bool:
    try:
        parse_time(text)
    except ValueError:
        return False
    return True


GO_NAMES = {"time": "Time", "integer": "int32", "number": "float64", "boolean": "bool", "string": "string"}
EMPTY: dict[str, Any] = {"object": {}, "map": {}, "list": [], "string": ""}
#: The shapes do not distinguish integers of 32 bits.
INT32_FIELDS = frozenset(
    {"replicas", "minReplicas", "maxReplicas", "minReadySeconds"}
    | {"parallelism", "completions", "backoffLimit"}
)
JSON_FORMS = {
    "string": ("string",),
    "boolean": ("bool",),
    "number": ("number",),
    "quantity": ("number", "string"),
    "integer": (),
    "int-or-string": ("string",),
}


def prune(obj: JsonObject, shape: Shape, kind: str, version: str, *, is_custom: bool = False) -> list[str]:
    """Prune `obj` in place and return the paths of unknown fields. Wrong types raise an error.

    The types of a custom object's own fields are checked by its schema, which reports them all at once.
    """
    what = f'{kind} in version "{version}" cannot be handled as a {kind}'
    return _Pruning(what, is_custom=is_custom).run(obj, shape, kind)


class _Pruning:
    """One pass over one object."""

    def __init__(self, what: str, *, is_custom: bool) -> None:
        self._what = what
        self._is_strict = not is_custom
        self._dropped: list[str] = []
        #: The Go type that holds the current field, for messages.
        self._owner = ""

    def run(self, obj: JsonObject, shape: Shape, kind: str) -> list[str]:
        """Prune an object. Metadata is typed in every kind."""
        if not self._is_strict and isinstance(obj.get("metadata"), dict):
            self._is_strict = True
            self._object(obj["metadata"], shape.child("metadata"), "metadata.", "ObjectMeta")
            self._is_strict = False
        self._object(obj, shape, "", kind)
        return self._dropped

    def _object(self, obj: JsonObject, shape: Shape, path: str, owner: str) -> None:
        for name in list(obj):
            value = obj[name]
            child = shape.fields.get(name)
            if child is None:
                if not shape.keeps_unknown:
                    self._dropped.append(f"{path}{name}")
                    del obj[name]
            elif value is not None:
                self._owner = owner
                self._value(value, child, f"{path}{name}")
                if not value and name in shape.omitted:
                    del obj[name]
            elif self._is_strict:
                del obj[name]

    def _value(self, value: Any, shape: Shape, path: str) -> None:
        form = shape.form
        if form == "any":
            return
        if form in ("object", "map"):
            if not isinstance(value, dict):
                self._reject(value, path, _short(shape) or "map[string]string")
            elif form == "object":
                self._object(value, shape, path + ".", _short(shape))
            else:
                self._fill_nulls(value, value.keys(), shape.values)
                for child in value.values():
                    self._inner(child, shape.values, path)
        elif form == "list":
            if not isinstance(value, list):
                self._reject(value, path, f"[]{_short(shape.item()) or shape.item().form}")
                return
            self._fill_nulls(value, range(len(value)), shape.items)
            owner = self._owner
            for index, child in enumerate(value):
                self._owner = owner
                self._inner(child, shape.items, f"{path}[{index}]")
        elif not _is_scalar(value, form):
            self._reject(value, path, GO_NAMES.get(form, form))
        elif form == "integer" and not _fits_in_go(value, path):
            self._reject(value, path, GO_NAMES[form], f"number {int(value)}")

    def _fill_nulls(self, container: Any, keys: Iterable[Any], shape: Shape | None) -> None:
        """Replace nulls inside a list or map by the empty value of the type."""
        if not self._is_strict or shape is None or shape.form not in EMPTY:
            return
        for key in keys:
            if container[key] is None:
                container[key] = type(EMPTY[shape.form])()

    def _inner(self, value: Any, shape: Shape | None, path: str) -> None:
        if value is not None and shape is not None:
            self._value(value, shape, path)

    def _reject(self, value: Any, path: str, wanted: str, shown: str = "") -> None:
        if self._is_strict:
            where = ".".join(part.partition("[")[0] for part in path.split("."))
            field = f"{self._owner}.{where} of type {wanted}"
            message = f"json: cannot unmarshal {shown or _json_type(value)} into Go struct field {field}"
            raise bad_request(f"{self._what}: {message}")


def _short(shape: Shape) -> str:
    return shape.type_name.rpartition(".")[2]


def _is_scalar(value: Any, form: str) -> bool:
    actual = _json_type(value)
    if actual == "number" and form in ("integer", "int-or-string"):
        return float(value).is_integer()
    if form == "time":
        return actual == "string" and is_time(value)
    return actual in JSON_FORMS[form]


def _fits_in_go(value: float, path: str) -> bool:
    bits = 31 if path.rpartition(".")[2] in INT32_FIELDS else 63
    return bool(-(2**bits) <= value < 2**bits)


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "object" if isinstance(value, dict) else "array"
