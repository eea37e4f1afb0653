"""Index of pods and selectors: the pods that a selector matches, the selectors that match a pod.

Pods of one template share their labels, so the index works on distinct label sets. Each is stored once per namespace,
with its pods, and listed under each of its labels. A selector is listed under one label that it requires. A query then
tests only the few candidates that share a label. Selectors that require no certain label (`!old`, `size>5`, everything)
are in a short list per namespace.

Results follow the order in which label sets, pods and selectors were added, so that they are reproducible.
"""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from trimtab.model.labels.requirement import Labels
from trimtab.model.labels.selector import Selector

P = TypeVar("P", bound=Hashable)
S = TypeVar("S", bound=Hashable)

_Label = tuple[str, str]
_LabelSetKey = tuple[_Label, ...]
"""Labels in sorted order. A frozenset of five labels takes 650 bytes more."""


class SelectorIndex(Generic[P, S]):
    """Pods and selectors of all namespaces, by keys of type `P` and `S`."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace[P, S]] = {}
        self._pods: dict[P, _LabelSet[P, S]] = {}
        self._selectors: dict[S, str] = {}

    def set_pod(self, pod: P, namespace: str, labels: Labels) -> None:
        """Add a pod, or replace its labels. The labels are kept and must not change."""
        known = self._pods.get(pod)
        if known is not None:
            if known.namespace == namespace and known.labels == labels:
                return  # most updates of a pod leave its labels alone
            self.remove_pod(pod)
        label_set = self._namespace(namespace).label_set(labels)
        label_set.pods[pod] = None
        self._pods[pod] = label_set

    def remove_pod(self, pod: P) -> None:
        """Remove a pod, if it is in the index."""
        label_set = self._pods.pop(pod, None)
        if label_set is None:
            return
        del label_set.pods[pod]
        if not label_set.pods:
            self._namespaces[label_set.namespace].drop_label_set(label_set)
            self._drop_if_empty(label_set.namespace)

    def set_selector(self, key: S, namespace: str, selector: Selector) -> None:
        """Add a selector, or replace it."""
        self.remove_selector(key)
        self._namespace(namespace).add_selector(key, selector)
        self._selectors[key] = namespace

    def remove_selector(self, key: S) -> None:
        """Remove a selector, if it is in the index."""
        name = self._selectors.pop(key, None)
        if name is not None:
            self._namespaces[name].drop_selector(key)
            self._drop_if_empty(name)

    def has_namespace(self, namespace: str) -> bool:
        """Return whether a namespace has pods or selectors."""
        return namespace in self._namespaces

    def pods_of(self, key: S) -> list[P]:
        """Return the pods that an indexed selector matches."""
        return self._namespaces[self._selectors[key]].pods_of(key)

    def selectors_of(self, pod: P) -> tuple[S, ...]:
        """Return the selectors that match an indexed pod."""
        label_set = self._pods[pod]
        return self._namespaces[label_set.namespace].selectors_of(label_set)

    def _namespace(self, name: str) -> "_Namespace[P, S]":
        known = self._namespaces.get(name)
        if known is None:
            known = self._namespaces[name] = _Namespace(name)
        return known

    def _drop_if_empty(self, name: str) -> None:
        if self._namespaces[name].is_empty:
            del self._namespaces[name]


class _LabelSet(Generic[P, S]):
    """The labels of some pods, and the selectors that matched them at a version of the selectors."""

    __slots__ = ("key", "labels", "matching", "matching_at", "namespace", "pods")

    def __init__(self, namespace: str, key: _LabelSetKey, labels: Labels) -> None:
        self.namespace = namespace
        self.key = key
        self.labels = labels
        self.pods: dict[P, None] = {}
        self.matching: tuple[S, ...] = ()
        self.matching_at = -1


class _Namespace(Generic[P, S]):
    """The index of one namespace, which selectors never cross."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.selectors: dict[S, Selector] = {}
        self._version = 0
        self._order: dict[S, int] = {}
        self._anchors: dict[S, _Label | None] = {}
        self._anchored: dict[_Label | None, dict[S, Selector]] = {}
        self._label_sets: dict[_LabelSetKey, _LabelSet[P, S]] = {}
        self._listed: dict[_Label, dict[_LabelSet[P, S], None]] = {}

    @property
    def is_empty(self) -> bool:
        return not self.selectors and not self._label_sets

    def label_set(self, labels: Labels) -> _LabelSet[P, S]:
        key = tuple(sorted(labels.items()))
        known = self._label_sets.get(key)
        if known is None:
            known = self._label_sets[key] = _LabelSet(self.name, key, labels)
            for label in key:
                self._listed.setdefault(label, {})[known] = None
        return known

    def drop_label_set(self, label_set: _LabelSet[P, S]) -> None:
        del self._label_sets[label_set.key]
        for label in label_set.key:
            listed = self._listed[label]
            del listed[label_set]
            if not listed:
                del self._listed[label]

    def add_selector(self, key: S, selector: Selector) -> None:
        self._version += 1
        self.selectors[key] = selector
        self._order[key] = self._version
        # Of the labels that it requires, the one with the fewest other selectors.
        anchor = min(selector.equalities, key=lambda label: len(self._anchored.get(label, ())), default=None)
        self._anchors[key] = anchor
        self._anchored.setdefault(anchor, {})[key] = selector

    def drop_selector(self, key: S) -> None:
        self._version += 1
        del self.selectors[key], self._order[key]
        anchor = self._anchors.pop(key)
        listed = self._anchored[anchor]
        del listed[key]
        if not listed:
            del self._anchored[anchor]

    def pods_of(self, key: S) -> list[P]:
        selector = self.selectors[key]
        return [
            pod
            for label_set in self._candidates(selector)
            if selector.matches(label_set.labels)
            for pod in label_set.pods
        ]

    def _candidates(self, selector: Selector) -> Iterable[_LabelSet[P, S]]:
        if not selector.equalities:
            return self._label_sets.values()
        return min((self._listed.get(label, {}) for label in selector.equalities), key=len)

    def selectors_of(self, label_set: _LabelSet[P, S]) -> tuple[S, ...]:
        if label_set.matching_at != self._version:
            label_set.matching = self._match(label_set.labels)
            label_set.matching_at = self._version
        return label_set.matching

    def _match(self, labels: Labels) -> tuple[S, ...]:
        keys = [
            key
            for label in (None, *labels.items())
            if label in self._anchored
            for key, selector in self._anchored[label].items()
            if selector.matches(labels)
        ]
        return tuple(sorted(keys, key=self._order.__getitem__)) if len(keys) > 1 else tuple(keys)
