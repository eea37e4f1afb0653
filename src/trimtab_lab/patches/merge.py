"""Merge patch (RFC 7386) and strategic merge patch.

In a strategic merge patch, the shape of the kind decides how each list merges. The directives that kubectl writes are
supported: `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/...` and `$setElementOrder/...`.
"""

from collections.abc import Callable
from typing import Any

from trimtab.model.status import bad_request
from trimtab_lab.schemas.shapes import Shape
from trimtab_lab.storage.codec import JsonObject

PATCH = "$patch"
RETAIN = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
ORDER = "$setElementOrder"


def merge(target: Any, patch: Any) -> Any:
    """Return `target` with `patch` merged in. A null removes a field, and lists are replaced whole."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def merge_strategically(original: JsonObject, patch: JsonObject, shape: Shape) -> JsonObject:
    """Return `original` with a strategic merge patch merged in."""
    directive = patch.get(PATCH)
    if directive == "delete":
        return {}
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != PATCH}
    if directive not in (None, "merge"):
        raise bad_request(f"invalid strategic merge patch: unknown $patch directive {directive!r}")
    merged = dict(original)
    if RETAIN in patch:
        kept = set(patch[RETAIN])
        merged = {name: value for name, value in merged.items() if name in kept}
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_field(merged, name, value, patch, shape.child(name))
    for name, value in patch.items():
        _arrange(merged, name, value, original, shape)
    return merged


def _arrange(merged: JsonObject, name: str, value: Any, original: JsonObject, shape: Shape) -> None:
    """Carry out a directive about a list: delete items or set their order."""
    directive, _, field = name.partition("/")
    items = merged.get(field)
    if not isinstance(items, list):
        return
    if directive == DELETE_FROM:
        merged[field] = [item for item in items if item not in value]
    elif directive == ORDER:
        merged[field] = _in_order(items, value, original.get(field) or [], shape.child(field).merge_key)


def _merge_field(merged: JsonObject, name: str, value: Any, patch: JsonObject, shape: Shape) -> None:
    before = merged.get(name)
    if value is None:
        merged.pop(name, None)
    elif isinstance(value, dict):
        base = before if isinstance(before, dict) and "replace" not in shape.patch_strategy else {}
        merged[name] = merge_strategically(base, value, shape)
        if value.get(PATCH) == "delete":
            merged.pop(name, None)
    elif isinstance(value, list) and "merge" in shape.patch_strategy:
        items = before if isinstance(before, list) else []
        merged[name] = _merge_list(items, value, shape)
        if f"{ORDER}/{name}" not in patch:
            # Without an explicit order the patch's own counts, so that new items come before unmentioned ones.
            merged[name] = _in_order(merged[name], value, items, shape.merge_key)
    else:
        merged[name] = value


def _merge_list(before: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    key = shape.merge_key
    if not key:
        return before + [item for item in patch if item not in before]
    if any(_directive(item) == "replace" for item in patch):
        return [item for item in patch if not (_directive(item) == "replace" and len(item) == 1)]
    merged = list(before)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        _merge_item(merged, item, shape)
    return merged


def _merge_item(merged: list[Any], patch: JsonObject, shape: Shape) -> None:
    """Merge an item into the item with the same key, delete that item, or add a new one."""
    key = shape.merge_key
    places = (at for at, item in enumerate(merged) if isinstance(item, dict) and item.get(key) == patch[key])
    at = next(places, None)
    if _directive(patch) == "delete":
        if at is not None:
            del merged[at]
    elif at is None:
        merged.append(merge_strategically({}, patch, shape.item()))
    else:
        merged[at] = merge_strategically(merged[at], patch, shape.item())


def _directive(item: Any) -> Any:
    return item.get(PATCH) if isinstance(item, dict) else None


def _in_order(merged: list[Any], order: list[Any], server: list[Any], key: str) -> list[Any]:
    """Sort items as the patch does. Other items keep their place among their old neighbours."""
    identity = _identity(key)
    ranks = {identity(item): index for index, item in enumerate(order)}
    places = {identity(item): index for index, item in enumerate(server)}
    named = sorted(
        (item for item in merged if identity(item) in ranks), key=lambda item: ranks[identity(item)]
    )
    others = [item for item in merged if identity(item) not in ranks]
    result: list[Any] = []
    while named and others:
        first, other = identity(named[0]), identity(others[0])
        # A new item has no old place: the server's own items come after it.
        if first in places and other in places and places[other] < places[first]:
            result.append(others.pop(0))
        else:
            result.append(named.pop(0))
    return result + named + others


def _identity(key: str) -> Callable[[Any], Any]:
    """Return the function that identifies an item, by its key or by its value."""

    def identity(item: Any) -> Any:
        value = item.get(key) if key and isinstance(item, dict) else item
        return repr(value) if isinstance(value, dict | list) else value

    return identity
