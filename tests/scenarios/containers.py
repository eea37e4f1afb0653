"""Finds every container that a running process holds, and its size, by the path from the process to it."""

import asyncio
import functools
import types
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_OPAQUE = ("trimtab_lab", "tests.", "logging", "threading")
"""Modules whose objects are no part of the process: the API server, the test, and Python's own registries."""
_LEAVES = (type, types.ModuleType, str, bytes, int, float, asyncio.AbstractEventLoop)
_OPENED = ("trimtab", "prometheus_client", "collections", "functools", "asyncio")


def container_sizes(roots: Mapping[str, object]) -> Counter[str]:
    """Return the number of elements of all containers, by path; elements of one container share a path."""
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: deque[tuple[str, object]] = deque(roots.items())
    while waiting:
        path, value = waiting.popleft()
        if id(value) in seen or isinstance(value, _LEAVES):
            continue
        seen.add(id(value))
        if isinstance(value, dict | list | set | frozenset | deque | tuple):
            if not isinstance(value, tuple | frozenset):
                sizes[path] += len(value)
            elements = value.values() if isinstance(value, dict) else value
            waiting.extend((f"{path}[]", element) for element in list(elements))
        else:
            waiting.extend((f"{path}.{name}", part) for name, part in _parts(value))
    return sizes


def _parts(value: object) -> Iterator[tuple[str, Any]]:
    """Yield what an object refers to, by name."""
    if isinstance(value, types.MethodType):
        yield "self", value.__self__
    elif isinstance(value, types.FunctionType):
        yield from zip(value.__code__.co_freevars, map(_content, value.__closure__ or ()), strict=True)
    elif isinstance(value, asyncio.Task):
        coroutine: Any = value.get_coro()
        while coroutine is not None and getattr(coroutine, "cr_frame", None) is not None:
            yield from coroutine.cr_frame.f_locals.items()
            coroutine = coroutine.cr_await
    elif isinstance(value, functools.partial):
        yield "func", value.func
        yield "args", value.args
    elif isinstance(value, msgspec.Struct):
        yield from ((name, getattr(value, name)) for name in value.__struct_fields__)
    elif type(value).__module__.startswith(_OPENED) and not type(value).__module__.startswith(_OPAQUE):
        yield from getattr(value, "__dict__", {}).items()
        for cls in type(value).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in {"__weakref__", "__dict__"} and hasattr(value, name):
                    yield name, getattr(value, name)


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None
