"""Interns repeated JSON fragments: equal bytes are decoded once.

Pods of one workload have the same labels, owners and resources, to the byte. A type leaves such parts as `RawJson`,
and an `InternTable` returns the value that equal text was decoded into before
(docs/decisions/cache-only-needed-pod-fields-and-stream-lists.md).
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import msgspec

from trimtab.model.core.meta import OwnerReference
from trimtab.model.json import wire

D = TypeVar("D")
S = TypeVar("S")
V = TypeVar("V")

RawJson = msgspec.Raw
"""JSON text that is not decoded yet."""

NOTHING = RawJson()
_ABSENT = frozenset({b"", b"null"})

MAX_VALUES = 8192
"""Distinct values that a table remembers for sure; beyond twice as many it drops the least recently used ones."""


class InternTable(Generic[S, V]):
    """Decoded values by the text they come from. It may drop a value at any time."""

    def __init__(self, read: Callable[[S], V], most: int = MAX_VALUES) -> None:
        self._read = read
        self._most = most
        self._recent: dict[Hashable, V] = {}
        self._older: dict[Hashable, V] = {}

    def of(self, key: Hashable, source: S) -> V:
        """Return the value of `source`; equal keys stand for equal sources."""
        try:
            return self._recent[key]
        except KeyError:
            return self._remember(key, source)

    def _remember(self, key: Hashable, source: S) -> V:
        value = self._older[key] if key in self._older else self._read(source)
        if len(self._recent) >= self._most:
            self._older, self._recent = self._recent, {}
        self._recent[key] = value
        return value


def decode_labels(text: RawJson) -> dict[str, str]:
    """Decode labels or annotations."""
    return decode(text, dict[str, str], {})


def decode_owners(text: RawJson) -> tuple[OwnerReference, ...]:
    """Decode owner references."""
    return decode(text, tuple[OwnerReference, ...], ())


def decode(text: RawJson, kind: type[V], default: D) -> V | D:
    """Decode JSON text; return `default` for text that is empty or null."""
    return default if bytes(text) in _ABSENT else wire.decode(bytes(text), kind)
