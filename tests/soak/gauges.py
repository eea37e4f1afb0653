"""Counts what may grow in this process: memory, objects, lengths of containers, tasks, sockets.

Most API objects are not tracked by Python's collector, so counting objects alone would miss them. `lengths` therefore adds up
the lengths of all containers that objects of Trimtab hold, by class and attribute. A leak is then named by its place.
"""

import asyncio
import functools
import gc
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import msgspec

_CACHED = functools._lru_cache_wrapper
_CONTAINERS = (dict, list, set, frozenset, deque)
_DEPTH = 3
"""How deep containers in containers are followed: an index of sets by namespace is two."""
_WIDTH = 20_000
_BUILTINS = frozenset({"dict", "list", "set", "tuple", "function", "cell", "method", "frame", "traceback", "coroutine", "generator", "async_generator", "_asyncio.Task", "_asyncio.Future"})  # fmt: skip


class Gauges(msgspec.Struct, frozen=True):
    """The figures of one moment."""

    rss_bytes: int
    tasks: int
    sockets: int
    watches: int
    labels: int
    objects: dict[str, int]
    """The number of tracked objects, by type."""
    lengths: dict[str, int]
    """The summed lengths of containers, by class and attribute."""


def take(*, watches: int, labels: int) -> Gauges:
    """Collect garbage, then count."""
    clear_bounded_caches()
    gc.unfreeze()  # Trimtab freezes what it allocated at its start, and frozen objects are not listed
    gc.collect()
    everything = gc.get_objects()
    return Gauges(
        rss_bytes=resident_bytes(),
        tasks=sum(isinstance(obj, asyncio.Task) and not obj.done() for obj in everything),
        sockets=count_sockets(),
        watches=watches,
        labels=labels,
        objects=dict(count_types(everything)),
        lengths=dict(count_lengths(everything)),
    )


def clear_bounded_caches() -> None:
    """Empty the caches of functions that have a bound, which fill for days and then stay."""
    for obj in gc.get_objects():
        if (
            isinstance(obj, _CACHED)
            and str(obj.__module__).startswith(("trimtab.", "trimtab_lab."))
            and obj.cache_info().maxsize
        ):
            obj.cache_clear()


def resident_bytes(pid: int | str = "self") -> int:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def count_sockets(pid: int | str = "self") -> int:
    """Return the number of open sockets of a process."""
    number = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            number += str(descriptor.readlink()).startswith("socket:")
        except OSError:
            continue  # closed since the directory was read
    return number


def count_types(objects: Iterable[Any]) -> Counter[str]:
    """Return the number of objects by type, of Trimtab's types and of those that leaks usually consist of."""
    counts = Counter(map(type, objects))
    return Counter({name: number for kind, number in counts.items() if (name := _counted_name(kind))})


def _counted_name(kind: type) -> str:
    module, name = str(kind.__module__), kind.__qualname__
    if module.startswith(("trimtab.", "trimtab_lab.")):
        return f"{module}.{name}"
    full = name if module == "builtins" else f"{module}.{name}"
    return full if full in _BUILTINS else ""


def count_lengths(objects: Iterable[Any]) -> Counter[str]:
    """Return the summed lengths of the containers that Trimtab's objects and modules hold."""
    lengths: Counter[str] = Counter()
    for obj in objects:
        for holder, name, value in _attributes(obj):
            if isinstance(value, _CONTAINERS) or hasattr(value, "cache_info"):
                lengths[f"{holder}.{name}"] += _length(value, _DEPTH)
    return lengths


def _attributes(obj: Any) -> Iterator[tuple[str, str, Any]]:
    kind = type(obj)
    if isinstance(obj, ModuleType):
        holder = obj.__name__
        fields: Mapping[str, Any] = vars(obj)
        if not holder.startswith("trimtab"):
            return
    elif str(kind.__module__).startswith(("trimtab.", "trimtab_lab.")) and not isinstance(
        obj, type | FunctionType
    ):
        holder = f"{kind.__module__}.{kind.__qualname__}"
        fields = getattr(obj, "__dict__", {})
        for base in kind.__mro__:
            for slot in _slots(base):
                value = getattr(obj, slot, None)
                yield holder, slot, value
    else:
        return
    for name, value in list(fields.items()):
        yield holder, name, value


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _length(value: Any, depth: int) -> int:
    if hasattr(value, "cache_info"):
        return int(value.cache_info().currsize)
    length = len(value)
    if depth > 1 and length <= _WIDTH:
        inner = list(value.values()) if isinstance(value, dict) else list(value)
        length += sum(_length(part, depth - 1) for part in inner if isinstance(part, _CONTAINERS))
    return length
