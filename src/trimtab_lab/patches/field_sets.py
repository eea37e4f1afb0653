"""Sets of fields for server-side apply: paths through an object, and their wire form (`fieldsV1`).

A path is a tuple of elements: `f:name` for a field, `k:{"name":"x"}` for an item of a keyed list, `v:"x"` for an item
of a set.
"""

from typing import Any

from trimtab_lab.schemas.shapes import Shape
from trimtab_lab.storage.codec import JsonObject, decode, encode

Path = tuple[str, ...]
#: The value of a keyed item or an empty container. The content of an item has paths below it.
PRESENT = object()
#: Metadata without owners: the server sets it.
UNOWNED = frozenset(
    {"name", "namespace", "uid", "generation", "resourceVersion", "managedFields", "selfLink"}
    | {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"}
)


def leaves(obj: JsonObject, shape: Shape) -> dict[Path, Any]:
    """Return the value at every ownable path of an object."""
    paths: dict[Path, Any] = {}
    for name, value in obj.items():
        if name in ("apiVersion", "kind"):
            continue
        if name == "metadata":
            value = {key: child for key, child in value.items() if key not in UNOWNED}
            if not value:
                continue
        _collect(value, shape.child(name), (f"f:{name}",), paths)
    return paths


def _collect(value: Any, shape: Shape, path: Path, paths: dict[Path, Any]) -> None:
    """Add the paths at and below a path. An atomic container is one path."""
    is_keyed = shape.list_type == "map" and bool(shape.map_keys)
    if isinstance(value, dict) and not shape.is_atomic_map:
        _collect_fields(value, shape, path, paths)
    elif isinstance(value, list) and is_keyed:
        for item in value:
            at = (*path, key_element(item, shape))
            paths[at] = PRESENT
            if isinstance(item, dict):
                _collect_fields(item, shape.item(), at, paths)
    elif isinstance(value, list) and shape.list_type == "set":
        paths.update({(*path, _value_element(item)): item for item in value})
    else:
        paths[path] = value
        return
    if not value:
        paths[path] = PRESENT


def _collect_fields(fields: JsonObject, shape: Shape, path: Path, paths: dict[Path, Any]) -> None:
    for name, child in fields.items():
        _collect(child, shape.child(name), (*path, f"f:{name}"), paths)


def key_element(item: Any, shape: Shape) -> str:
    """Return the path element of an item of a keyed list."""
    fields = item if isinstance(item, dict) else {}
    key = {name: fields.get(name, shape.key_defaults.get(name)) for name in sorted(shape.map_keys)}
    return "k:" + encode({name: value for name, value in key.items() if value is not None}).decode()


def _value_element(item: Any) -> str:
    return "v:" + encode(item).decode()


def to_wire(paths: set[Path]) -> JsonObject:
    """Return a set of paths as `fieldsV1`."""
    root: JsonObject = {}
    inner = {path[:depth] for path in paths for depth in range(1, len(path))}
    for path in sorted(paths):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        if path in inner:
            node["."] = {}
    return root


def from_wire(tree: JsonObject) -> set[Path]:
    """Return the paths of `fieldsV1`."""
    paths: set[Path] = set()

    def walk(node: JsonObject, path: Path) -> None:
        if not node and path:
            paths.add(path)
        for element, child in node.items():
            if element == ".":
                paths.add(path)
            elif isinstance(child, dict):
                walk(child, (*path, element))

    walk(tree, ())
    return paths


def show(path: Path) -> str:
    """Return a path as in conflict messages: `.spec.template.spec.containers[name="app"].image`."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            pairs = ",".join(f"{name}={encode(value).decode()}" for name, value in decode(rest).items())
            text += f"[{pairs}]"
        else:
            text += f"[={rest}]"
    return text


def remove(obj: Any, path: Path, shape: Shape) -> None:
    """Remove the value at a path, and containers that become empty."""
    element, rest = path[0], path[1:]
    kind, _, name = element.partition(":")
    if kind == "f" and isinstance(obj, dict) and name in obj:
        if not rest:
            del obj[name]
            return
        remove(obj[name], rest, shape.child(name))
        if obj[name] in ({}, []):
            del obj[name]
    elif isinstance(obj, list):
        for index, item in enumerate(obj):
            if element == (key_element(item, shape) if kind == "k" else _value_element(item)):
                if rest:
                    remove(item, rest, shape.item())
                else:
                    del obj[index]
                return
