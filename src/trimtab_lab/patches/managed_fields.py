"""The owners of fields: `metadata.managedFields`, updated on every write, and server-side apply.

Apply sets the fields that the manager lists. It removes fields that the manager listed last time and no other manager owns.
It rejects changes of fields that another manager owns, unless forced.

A path of a field is a tuple of elements: `f:name` for a field, `k:{"name":"x"}` for an item of a keyed list, `v:"x"` for an item
of a set. Its wire form is `fieldsV1`.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trimtab.model.status import StatusError
from trimtab.model.times import format_time
from trimtab_lab.schemas.shapes import Shape
from trimtab_lab.storage.codec import JsonObject, copy_of, decode, encode

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


@dataclass(frozen=True)
class Manager:
    """An owner of fields: name, operation, version and subresource."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    def __str__(self) -> str:
        via = f' with subresource "{self.subresource}"' if self.subresource else ""
        using = f" using {self.api_version}" if self.operation == "Update" else ""
        return f'"{self.name}"{via}{using}'


@dataclass
class Owned:
    """The fields of one manager and when they last changed."""

    paths: set[Path] = field(default_factory=set)
    time: str = ""

    def set_paths(self, paths: set[Path], now: datetime) -> None:
        """Set the fields, and the time if they changed."""
        if paths != self.paths or not self.time:
            self.paths, self.time = paths, format_time(now)


Managers = dict[Manager, Owned]


def read(meta: JsonObject) -> Managers:
    """Return the owners in an object's metadata."""
    managers: Managers = {}
    for entry in meta.get("managedFields") or ():
        if not isinstance(entry, dict) or not entry.get("operation"):
            continue
        name, version = entry.get("manager", ""), entry.get("apiVersion", "")
        manager = Manager(name, entry["operation"], version, entry.get("subresource", ""))
        managers[manager] = Owned(from_wire(entry.get("fieldsV1") or {}), entry.get("time", ""))
    return managers


def write(meta: JsonObject, managers: Managers) -> None:
    """Write the owners into an object's metadata, applied ones first, then by age and name."""
    entries = []
    order = sorted(managers.items(), key=lambda item: (item[0].operation, item[1].time, item[0].name))
    for manager, owned in order:
        if not owned.paths:
            continue
        entry: JsonObject = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
        }
        if owned.time:
            entry["time"] = owned.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = to_wire(owned.paths)
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    if entries:
        meta["managedFields"] = entries
    else:
        meta.pop("managedFields", None)


def track_update(
    obj: JsonObject, old: JsonObject | None, shape: Shape, manager: Manager, now: datetime
) -> None:
    """Make `manager` the owner of the fields that an update changed."""
    changed, removed = _difference(obj, old, shape)
    managers = _previous_owners(obj["metadata"], old)
    if changed or removed:
        lost = changed | removed
        for other, owned in managers.items():
            if other != manager:
                owned.paths -= lost
        own = managers.setdefault(manager, Owned())
        own.set_paths((own.paths | changed) - removed, now)
    write(obj["metadata"], managers)


def _difference(obj: JsonObject, old: JsonObject | None, shape: Shape) -> tuple[set[Path], set[Path]]:
    """Return the fields that an update set, and the fields that it removed."""
    if old is None:
        return set(leaves(obj, shape)), set()
    # Most writes touch one part (a status, say), and only parts that differ can change owners.
    same = {name for name in obj if name != "metadata" and obj[name] == old.get(name)}
    before = leaves({name: value for name, value in old.items() if name not in same}, shape)
    after = leaves({name: value for name, value in obj.items() if name not in same}, shape)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    return changed, before.keys() - after.keys()


def _previous_owners(meta: JsonObject, old: JsonObject | None) -> Managers:
    if meta.get("managedFields") == [{}]:
        return {}  # a list of one empty entry resets all owners
    return read(meta) or (read(old["metadata"]) if old is not None else {})


def apply(
    live: JsonObject, config: JsonObject, shape: Shape, manager: Manager, now: datetime, *, force: bool
) -> JsonObject:
    """Return `live` after `manager` applied `config`."""
    config = copy_of(config)
    config["metadata"].pop("managedFields", None)
    wanted = leaves(config, shape)
    managers = read(live["metadata"])
    merged: JsonObject = copy_of(live)
    merged["metadata"].pop("managedFields", None)
    _overlay(merged, config, shape)
    before, after = leaves(live, shape), leaves(merged, shape)
    changed = {
        path
        for path in wanted
        if path in before and before[path] is not PRESENT and before[path] != after.get(path)
    }
    _resolve(managers, manager, changed, force=force)
    previous = managers.get(manager, Owned()).paths
    others: set[Path] = set().union(*(owned.paths for other, owned in managers.items() if other != manager))
    for path in sorted(previous - wanted.keys(), key=len, reverse=True):
        if not any(other[: len(path)] == path for other in others):
            remove(merged, path, shape)
    managers.setdefault(manager, Owned()).set_paths(set(wanted), now)
    write(merged["metadata"], managers)
    return merged


def _resolve(managers: Managers, manager: Manager, changed: set[Path], *, force: bool) -> None:
    """Remove the changed fields from their owners if forced, else raise a conflict."""
    conflicts = [
        (other, path)
        for other, owned in managers.items()
        if other != manager
        for path in sorted(owned.paths & changed)
    ]
    if not conflicts:
        return
    if not force:
        raise _conflict_error(conflicts)
    for other, path in conflicts:
        managers[other].paths.discard(path)


def _conflict_error(conflicts: list[tuple[Manager, Path]]) -> StatusError:
    by_manager: dict[str, list[str]] = {}
    for manager, path in conflicts:
        by_manager.setdefault(str(manager), []).append(show(path))
    parts = [
        f"conflict with {name}: {paths[0]}"
        if len(paths) == 1
        else f"conflicts with {name}:\n" + "\n".join(f"- {path}" for path in paths)
        for name, paths in by_manager.items()
    ]
    plural = "s" if len(conflicts) > 1 else ""
    message = f"Apply failed with {len(conflicts)} conflict{plural}: " + "\n".join(parts)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": show(path)}
        for manager, path in conflicts
    ]
    return StatusError(409, message, {"causes": causes})


def _overlay(target: Any, config: Any, shape: Shape) -> Any:
    """Return an object with a configuration merged over it, as the shape merges lists."""
    if isinstance(target, dict) and isinstance(config, dict) and not shape.is_atomic_map:
        for name, value in config.items():
            child = shape.child(name)
            target[name] = _overlay(target[name], value, child) if name in target else value
        return target
    if isinstance(target, list) and isinstance(config, list):
        if shape.list_type == "set":
            return target + [item for item in config if item not in target]
        if shape.list_type == "map" and shape.map_keys:
            return _overlay_keyed(target, config, shape)
    return config


def _overlay_keyed(target: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    places = {key_element(item, shape): index for index, item in enumerate(target)}
    for item in config:
        key = key_element(item, shape)
        if key in places:
            target[places[key]] = _overlay(target[places[key]], item, shape.item())
        else:
            places[key] = len(target)
            target.append(item)
    return target
