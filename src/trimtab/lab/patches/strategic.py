"""Strategic merge patch: a merge that knows which lists are keyed.

The shape of the kind says how each list merges. The directives that kubectl writes are honoured: `$patch`,
`$retainKeys`, `$deleteFromPrimitiveList/...` and `$setElementOrder/...`.
"""

from typing import Any

from trimtab.lab.apiserver.errors import bad_request
from trimtab.lab.schemas.shapes import Shape
from trimtab.lab.storage.codec import JsonObject

PATCH = "$patch"
RETAIN = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
ORDER = "$setElementOrder"


def merge(original: JsonObject, patch: JsonObject, shape: Shape) -> JsonObject:
    """Return `original` with `patch` merged in."""
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
    """Carry out a directive about one list: take items out of it, or put it in order."""
    directive, _, field = name.partition("/")
    listed = merged.get(field)
    if not isinstance(listed, list):
        return
    if directive == DELETE_FROM:
        merged[field] = [one for one in listed if one not in value]
    elif directive == ORDER:
        merged[field] = _in_order(listed, value, original.get(field) or [], shape.child(field).merge_key)


def _merge_field(merged: JsonObject, name: str, value: Any, patch: JsonObject, shape: Shape) -> None:
    if value is None:
        merged.pop(name, None)
        return
    before = merged.get(name)
    if isinstance(value, dict):
        is_merged = isinstance(before, dict) and "replace" not in shape.patch_strategy
        merged[name] = merge(before if is_merged else {}, value, shape)  # type: ignore[arg-type]  # checked just above
        if value.get(PATCH) == "delete":
            merged.pop(name, None)
    elif isinstance(value, list) and "merge" in shape.patch_strategy:
        known = before if isinstance(before, list) else []
        merged[name] = _merge_list(known, value, shape)
        if f"{ORDER}/{name}" not in patch:
            # Without an explicit order the patch's own counts, so that new items come before unmentioned ones.
            merged[name] = _in_order(merged[name], value, known, shape.merge_key)
    else:
        merged[name] = value


def _merge_list(before: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    key = shape.merge_key
    if not key:
        return before + [one for one in patch if one not in before]
    if any(_directive(one) == "replace" for one in patch):
        return [one for one in patch if not (_directive(one) == "replace" and len(one) == 1)]
    merged = list(before)
    for one in patch:
        if not isinstance(one, dict) or key not in one:
            raise bad_request(f"map: {one} does not contain declared merge key: {key}")
        _merge_item(merged, one, shape)
    return merged


def _merge_item(merged: list[Any], one: JsonObject, shape: Shape) -> None:
    """Merge one item into the item with the same key, take that one out, or add a new one."""
    key = shape.merge_key
    places = (at for at, item in enumerate(merged) if isinstance(item, dict) and item.get(key) == one[key])
    at = next(places, None)
    if _directive(one) == "delete":
        if at is not None:
            del merged[at]
    elif at is None:
        merged.append(merge({}, one, shape.item()))
    else:
        merged[at] = merge(merged[at], one, shape.item())


def _directive(item: Any) -> Any:
    return item.get(PATCH) if isinstance(item, dict) else None


def _in_order(merged: list[Any], order: list[Any], server: list[Any], key: str) -> list[Any]:
    """Sort the patch's items as it asks; items it does not name keep their place among their old neighbours."""

    def name(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    ranks = {_hashable(name(item)): index for index, item in enumerate(order)}
    places = {_hashable(name(item)): index for index, item in enumerate(server)}
    named = sorted(
        (item for item in merged if _hashable(name(item)) in ranks),
        key=lambda item: ranks[_hashable(name(item))],
    )
    others = [item for item in merged if _hashable(name(item)) not in ranks]
    result: list[Any] = []
    while named and others:
        first, other = _hashable(name(named[0])), _hashable(name(others[0]))
        # A new item has no old place: the server's own items wait behind it.
        if first in places and other in places and places[other] < places[first]:
            result.append(others.pop(0))
        else:
            result.append(named.pop(0))
    return result + named + others


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, dict | list) else value
