"""Prunes decoded JSON to a shape: drops unknown fields, checks the types of the others.

Like a typed server, the lab keeps only known fields of built-in kinds. It omits nulls, and empty values where the type
omits them.
"""

from collections.abc import Iterable
from typing import Any

from trimtab.model.times import parse_time
from trimtab_lab.apiserver.errors import bad_request
from trimtab_lab.schemas.shapes import Shape
from trimtab_lab.storage.codec import JsonObject


def is_time(text: str) -> bool:
    """Return whether a text is an RFC 3339 time."""
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
