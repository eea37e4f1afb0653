"""Lookups that an informer keeps up to date: by owner uid, by node, by anything a function names."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from trimtab.cluster.codec import Object
from trimtab.model.core.pod import Pod

T = TypeVar("T", bound=Object)
K = TypeVar("K", bound=Hashable)


class KeyIndex(Generic[T, K]):
    """The objects under each key; an object may have several keys or none."""

    def __init__(self, keys: Callable[[T], Iterable[K]]) -> None:
        self._keys = keys
        self._objects: dict[K, dict[str, T]] = {}

    def get(self, key: K) -> Mapping[str, T]:
        """Return the objects under `key` by uid; a view, not to be kept across a wait."""
        return self._objects.get(key, {})

    def keys(self) -> Iterable[K]:
        """Return the keys that have objects."""
        return self._objects.keys()

    def add(self, new: T) -> None:
        """Take in an object."""
        for key in self._keys(new):
            self._objects.setdefault(key, {})[new.metadata.uid] = new

    def update(self, old: T, new: T) -> None:
        """Replace an object by its newer self."""
        self.remove(old)
        self.add(new)

    def remove(self, old: T) -> None:
        """Forget an object."""
        for key in self._keys(old):
            objects = self._objects.get(key)
            if objects is not None:
                objects.pop(old.metadata.uid, None)
                if not objects:
                    del self._objects[key]


def by_uid() -> KeyIndex[T, str]:
    """Return an index by the object's own uid, for walking up owner chains."""
    return KeyIndex(lambda thing: (thing.metadata.uid,))


def by_owner() -> KeyIndex[T, str]:
    """Return an index by the uid of the controlling owner."""
    return KeyIndex(
        lambda thing: [owner.uid for owner in thing.metadata.owner_references if owner.controller]
    )


def by_node() -> KeyIndex[Pod, str]:
    """Return an index of pods by the node that they are bound to."""
    return KeyIndex(lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
