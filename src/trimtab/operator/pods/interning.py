"""JSON of which equal parts are read once, and what they say is kept once.

Pods of one workload have the same labels, owners and resources, to the byte. A type that leaves such parts as `Text` is
decoded quickly; `Shared` then finds what the same text said before (docs/decisions/0150-what-is-kept-of-a-pod.md).
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
"""JSON that is not read yet."""

NOTHING = RawJson()
_ABSENT = frozenset({b"", b"null"})

MOST_SHARED = 8192
"""Distinct values of one kind that are remembered; beyond twice as many, the ones seen longest ago are let go."""


class InternTable(Generic[S, V]):
    """Values by what they are read from, each read and kept once.

    It saves memory and work, and nothing depends on it: it may forget at any time.
    """

    def __init__(self, read: Callable[[S], V], most: int = MOST_SHARED) -> None:
        self._read = read
        self._most = most
        self._recent: dict[Hashable, V] = {}
        self._older: dict[Hashable, V] = {}

    def of(self, key: Hashable, source: S) -> V:
        """Return what `source` says; equal keys stand for equal sources."""
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


def labels_in(text: RawJson) -> dict[str, str]:
    """Read labels or annotations."""
    return read(text, dict[str, str], {})


def owners_in(text: RawJson) -> tuple[OwnerReference, ...]:
    """Read owner references."""
    return read(text, tuple[OwnerReference, ...], ())


def read(text: RawJson, kind: type[V], absent: D) -> V | D:
    """Read JSON; what is not there, or is null, is absent."""
    return absent if bytes(text) in _ABSENT else wire.decode(bytes(text), kind)
