"""The pods, as the decisions see them: facts picked once per change, found by namespace and label query."""

from collections.abc import Iterable

from trimtab.cluster.cache import Delta
from trimtab.decide.horizontal import PodFacts, pod_facts
from trimtab.model.pod import Pod
from trimtab.model.selector import Selector
from trimtab.model.selector_index import SelectorIndex


class PodBook:
    """Facts of every pod, and which autoscaler's label query finds which pods.

    Uids are the keys: a pod recreated under the same name is another pod.
    """

    def __init__(self, *, pod_level_resources: bool) -> None:
        self._pod_level_resources = pod_level_resources
        self._facts: dict[str, PodFacts] = {}
        self._index: SelectorIndex[str, str] = SelectorIndex()
        self._selectors: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._facts)

    def take(self, delta: Delta[Pod]) -> None:
        """Follow a change of the pod cache."""
        if delta.new is not None:
            meta = delta.new.metadata
            self._facts[meta.uid] = pod_facts(delta.new, pod_level_resources=self._pod_level_resources)
            self._index.set_pod(meta.uid, meta.namespace, meta.labels)
        elif delta.old is not None:
            self._facts.pop(delta.old.metadata.uid, None)
            self._index.remove_pod(delta.old.metadata.uid)

    def watch(self, autoscaler: str, namespace: str, selector: str) -> None:
        """Keep the label query of an autoscaler (by uid) in the index; one that does not parse matches nothing."""
        if self._selectors.get(autoscaler) != selector:
            self._index.set_selector(autoscaler, namespace, Selector.parse(selector))
            self._selectors[autoscaler] = selector

    def forget(self, autoscaler: str) -> None:
        """Drop the label query of an autoscaler."""
        if self._selectors.pop(autoscaler, None) is not None:
            self._index.remove_selector(autoscaler)

    def of(self, autoscaler: str) -> tuple[PodFacts, ...]:
        """Return the pods that an autoscaler's label query finds, sorted by name."""
        if autoscaler not in self._selectors:
            return ()
        found = [self._facts[uid] for uid in self._index.pods_of(autoscaler)]
        found.sort(key=_name)
        return tuple(found)

    def rivals(self, autoscaler: str, pods: Iterable[PodFacts]) -> set[str]:
        """Return the other autoscalers whose label queries find any of these pods."""
        found: set[str] = set()
        for pod in pods:
            found.update(self._index.selectors_of(pod.uid))
        found.discard(autoscaler)
        return found

    def selector_of(self, autoscaler: str) -> str:
        """Return the label query of an autoscaler."""
        return self._selectors[autoscaler]


def _name(pod: PodFacts) -> str:
    return pod.name
