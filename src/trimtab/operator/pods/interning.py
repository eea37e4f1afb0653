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
MAX_BYTES = 8 * 1024 * 1024
"""Bytes that a table remembers for sure, about 6,000 label sets of 6 labels; it never remembers more than twice that.

A table keeps values of deleted pods, and a tenant with a single pod may create thousands in a row.
"""
MAX_VALUE_BYTES = 16 * 1024
"""The size from which a value is not remembered. Pods may have up to 1 MiB of labels or annotations."""


def size_of_text(key: Hashable) -> int:
    """Estimate the bytes that a text, or a tuple of texts, takes with the value that is decoded from it.

    A short string takes 50 bytes more than its text, and a dict or struct about as much for its slot. Each string of
    a JSON text has two quotes.
    """
    if isinstance(key, bytes):
        return 64 + 2 * len(key) + 64 * key.count(b'"')
    if isinstance(key, tuple):
        return 64 + sum(map(size_of_text, key))
    return 64 + 2 * len(key) if isinstance(key, str) else 64


class InternTable(Generic[S, V]):
    """Decoded values by the text they come from. It may drop a value at any time."""

    def __init__(
        self,
        read: Callable[[S], V],
        *,
        size_of: Callable[[Hashable, S], int] = lambda key, _: size_of_text(key),
        most: int = MAX_VALUES,
        most_bytes: int = MAX_BYTES,
    ) -> None:
        self._read = read
        self._size_of = size_of
        self._most = most
        self._most_bytes = most_bytes
        self._recent_bytes = 0
        self._recent: dict[Hashable, V] = {}
        self._older: dict[Hashable, V] = {}

    def of(self, key: Hashable, source: S) -> V:
        """Return the value of `source`. Equal keys stand for equal sources."""
        try:
            return self._recent[key]
        except KeyError:
            return self._remember(key, source)

    def _remember(self, key: Hashable, source: S) -> V:
        value = self._older[key] if key in self._older else self._read(source)
        size = self._size_of(key, source)
        if size > MAX_VALUE_BYTES:
            return value
        if len(self._recent) >= self._most or self._recent_bytes + size > self._most_bytes:
            self._older, self._recent, self._recent_bytes = self._recent, {}, 0
        self._recent[key] = value
        self._recent_bytes += size
        return value


def decode_labels(text: RawJson) -> dict[str, str]:
    """Decode labels."""
    return decode(text, dict[str, str], {})


def decode_owners(text: RawJson) -> tuple[OwnerReference, ...]:
    """Decode owner references."""
    return decode(text, tuple[OwnerReference, ...], ())


def decode(text: RawJson, kind: type[V], default: D) -> V | D:
    """Decode JSON text. Return `default` for text that is empty or null."""
    return default if bytes(text) in _ABSENT else wire.decode(bytes(text), kind)
