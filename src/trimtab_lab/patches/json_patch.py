"""JSON patch (RFC 6902), with the API server's limits and messages."""

from collections.abc import Callable
from typing import Any

from trimtab.model.json.shape import describe
from trimtab.model.status import StatusError, bad_request, too_large_body
from trimtab_lab.storage.codec import JsonObject, copy_of, decode_json, encode

#: Operations in one patch (CVE-2019-1002100).
MAX_OPERATIONS = 10_000
#: Bytes that the `copy` operations of one patch may add; without a limit a small patch doubles itself into a big one.
MAX_COPIED = 3 * 1024 * 1024

Path = list[str]


class _PatchError(Exception):
    """An operation does not fit the document."""


def parse(body: bytes) -> list[JsonObject]:
    """Decode and check a patch document."""
    operations = decode_json(body)
    if not isinstance(operations, list):
        raise _invalid("a JSON patch is a list of operations", operations)
    for operation in operations:
        if not isinstance(operation, dict):
            raise _invalid("each operation of a JSON patch is an object", operation)
    if len(operations) > MAX_OPERATIONS:
        raise too_large_body(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    return operations


def _invalid(wanted: str, value: Any) -> StatusError:
    return bad_request(f"error decoding patch: {wanted}, not {describe(value)}")


def apply(document: Any, operations: list[JsonObject]) -> Any:
    """Return the document after all operations, or raise an error if one does not fit."""
    document = copy_of(document)
    copied = 0
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                copied = _count_copied(copied, _get(document, _pointer(operation, "from")))
            document = _apply_one(document, operation)
    except _PatchError as problem:
        # Upstream's sentence for every patch that does not fit; the reason is in the cause.
        message = "the server rejected our request due to an error in our request"
        raise StatusError(422, message, {"causes": [{"message": str(problem)}]}) from problem
    return document


def _count_copied(so_far: int, value: Any) -> int:
    total = so_far + len(encode(value))
    if total > MAX_COPIED:
        raise _PatchError(f"the copy operations add more than {MAX_COPIED} bytes to the object")
    return total


def _pointer(operation: JsonObject, name: str) -> Path:
    text = operation.get(name)
    if not isinstance(text, str):
        raise _PatchError(f"operation {operation.get('op')!r} has no {name!r}: it must be a JSON pointer")
    if text and not text.startswith("/"):
        raise _PatchError(
            f"the {name!r} of operation {operation.get('op')!r} is {text!r}: it must begin with '/'"
        )
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _apply_one(document: Any, operation: JsonObject) -> Any:
    name, path = operation.get("op"), _pointer(operation, "path")
    if name in ("add", "replace", "test") and "value" not in operation:
        raise _PatchError(f"operation {name!r} on {operation['path']!r} has no value")
    if name == "add":
        return _change(document, path, _add, copy_of(operation["value"]))
    if name == "remove":
        return _remove(document, path)
    if name == "replace":
        _get(document, path)
        return _change(document, path, _replace, copy_of(operation["value"]))
    if name == "test":
        _test(document, path, operation["value"])
        return document
    if name in ("move", "copy"):
        source = _pointer(operation, "from")
        value = copy_of(_get(document, source))
        if name == "move":
            document = _remove(document, source)
        return _change(document, path, _add, value)
    raise _PatchError(
        f"{name!r} is no operation of a JSON patch: use add, remove, replace, move, copy or test"
    )


def _test(document: Any, path: Path, wanted: Any) -> None:
    try:
        value = _get(document, path)
    except _PatchError:
        # A test for null passes on a missing member, as the API server's library has it.
        if wanted is None:
            return
        raise
    if value != wanted or isinstance(value, bool) is not isinstance(wanted, bool):
        raise _PatchError(f"the test of {_text(path)} failed: its value is another than the one given")


def _get(document: Any, path: Path) -> Any:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(part, len(document) - 1, path)]
        else:
            raise _PatchError(f"there is no {part!r} on the path {_text(path)}")
    return document


def _text(path: Path) -> str:
    return f"/{'/'.join(path)}"


def _index(part: str, last: int, path: Path) -> int:
    if not part.isascii() or not part.lstrip("-").isdigit() or len(part) > 9:
        raise _PatchError(f"{part!r} on the path {_text(path)} is not an index of a list")
    index = int(part)
    if index < 0:
        index += last + 1
    if not 0 <= index <= last:
        raise _PatchError(f"index {part!r} on the path {_text(path)} is out of bounds: the last is {last}")
    return index


def _change(document: Any, path: Path, change: Callable[[Any, Path, Any], None], value: Any) -> Any:
    """Return the document after `change(parent, path, value)`. Without a path, the value replaces it."""
    if not path:
        return value
    change(_get(document, path[:-1]), path, value)
    return document


def _add(parent: Any, path: Path, value: Any) -> None:
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif not isinstance(parent, list):
        raise _PatchError(f"{_text(path[:-1])} has no members, so there can be no {path[-1]!r}")
    elif path[-1] == "-":
        parent.append(value)
    else:
        parent.insert(_index(path[-1], len(parent), path), value)


def _replace(parent: Any, path: Path, value: Any) -> None:
    parent[_index(path[-1], len(parent) - 1, path) if isinstance(parent, list) else path[-1]] = value


def _remove(document: Any, path: Path) -> Any:
    if not path:
        raise _PatchError("the whole document cannot be removed")
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        del parent[_index(path[-1], len(parent) - 1, path)]
    elif isinstance(parent, dict) and path[-1] in parent:
        del parent[path[-1]]
    else:
        raise _PatchError(f"there is no {path[-1]!r} on the path {_text(path)}")
    return document
