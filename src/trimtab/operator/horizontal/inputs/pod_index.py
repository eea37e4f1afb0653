"""The pods, as the decisions see them, found by namespace and label query."""

from collections.abc import Iterable

from trimtab.cluster.cache.subscriptions import Delta
from trimtab.decide.horizontal import PodSnapshot
from trimtab.model.labels.index import SelectorIndex
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.operator.pods.decoder import CachedPod


class PodIndex:
    """Facts of every pod, and which autoscaler's label query finds which pods.

    Uids are the keys: a pod recreated under the same name is another pod.
    """

    def __init__(self) -> None:
        self._facts: dict[str, PodSnapshot] = {}
        self._index: SelectorIndex[str, str] = SelectorIndex()
        self._selectors: dict[str, str] = {}
        self._homes: dict[str, str] = {}
        self._changes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._facts)

    def take(self, delta: Delta[CachedPod]) -> None:
        """Follow a change of the pod cache."""
        if delta.new is not None:
            facts = delta.new.facts
            self._facts[facts.uid] = facts
            self._index.set_pod(facts.uid, delta.new.namespace, facts.labels)
            self._changed(delta.new.namespace)
        elif delta.old is not None:
            self._facts.pop(delta.old.uid, None)
            self._index.remove_pod(delta.old.uid)
            self._changed(delta.old.namespace)

    def changes_in(self, namespace: str) -> int:
        """Return how often pods or label queries of a namespace changed: an equal number means equal answers."""
        return self._changes.get(namespace, 0)

    def _changed(self, namespace: str) -> None:
        self._changes[namespace] = self._changes.get(namespace, 0) + 1

    def watch(self, autoscaler: str, namespace: str, selector: str) -> None:
        """Keep the label query of an autoscaler (by uid) in the index; an empty one and a wrong one match nothing."""
        if self._selectors.get(autoscaler) == selector:
            return
        try:
            parsed = Selector.parse(selector)
        except SelectorError:
            parsed = Selector()
        # An empty query matches every pod: its HPA would be the rival of all others in the namespace.
        if parsed.is_empty:
            self.forget(autoscaler)
        else:
            self._index.set_selector(autoscaler, namespace, parsed)
            self._selectors[autoscaler] = selector
            self._homes[autoscaler] = namespace
            self._changed(namespace)

    def forget(self, autoscaler: str) -> None:
        """Drop the label query of an autoscaler."""
        if self._selectors.pop(autoscaler, None) is not None:
            self._index.remove_selector(autoscaler)
            self._changed(self._homes.pop(autoscaler))

    def of(self, autoscaler: str) -> tuple[PodSnapshot, ...]:
        """Return the pods that an autoscaler's label query finds, sorted by name."""
        if autoscaler not in self._selectors:
            return ()
        found = [self._facts[uid] for uid in self._index.pods_of(autoscaler)]
        found.sort(key=_name)
        return tuple(found)

    def rivals(self, autoscaler: str, pods: Iterable[PodSnapshot]) -> set[str]:
        """Return the other autoscalers whose label queries find any of these pods."""
        found: set[str] = set()
        for pod in pods:
            found.update(self._index.selectors_of(pod.uid))
        found.discard(autoscaler)
        return found

    def selector_of(self, autoscaler: str) -> str:
        """Return the label query of an autoscaler."""
        return self._selectors[autoscaler]


def _name(pod: PodSnapshot) -> str:
    return pod.name
