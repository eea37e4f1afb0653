"""The pods of the watched namespaces, indexed by the selectors of HPAs."""

from collections.abc import Iterable

from trimtab.cluster.cache.subscriptions import Delta
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.model.labels.index import SelectorIndex
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.operator.pods.decoder import CachedPod


class PodIndex:
    """Snapshots of all pods, and which HPA's selector matches which pods.

    Pods and HPAs are keyed by uid: a pod that was recreated under the same name is another pod.
    """

    def __init__(self) -> None:
        self._snapshots: dict[str, PodSnapshot] = {}
        self._index: SelectorIndex[str, str] = SelectorIndex()
        self._selectors: dict[str, str] = {}
        self._namespaces: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        """The number of the last change, by namespace, as long as it has pods or selectors."""
        self._changes = 0

    def __len__(self) -> int:
        return len(self._snapshots)

    def on_pod_event(self, delta: Delta[CachedPod]) -> None:
        """Apply an event of the pod cache."""
        if delta.new is not None:
            snapshot = delta.new.facts
            self._snapshots[snapshot.uid] = snapshot
            self._index.set_pod(snapshot.uid, delta.new.namespace, snapshot.labels)
            self._bump(delta.new.namespace)
        elif delta.old is not None:
            self._snapshots.pop(delta.old.uid, None)
            self._index.remove_pod(delta.old.uid)
            self._bump(delta.old.namespace)

    def version(self, namespace: str) -> int:
        """Return a number that is another one after every change of the namespace's pods and selectors."""
        return self._versions.get(namespace, 0)

    def _bump(self, namespace: str) -> None:
        # All namespaces share the count, so that a namespace that comes back does not repeat a number.
        self._changes += 1
        if self._index.has_namespace(namespace):
            self._versions[namespace] = self._changes
        else:
            self._versions.pop(namespace, None)

    def set_selector(self, hpa_uid: str, namespace: str, selector: str) -> None:
        """Index the selector of an HPA, unless it is empty or invalid."""
        if self._selectors.get(hpa_uid) == selector:
            return
        try:
            parsed = Selector.parse(selector)
        except SelectorError:
            parsed = Selector()
        # An empty selector would match every pod, and its HPA would conflict with all HPAs of the namespace.
        if parsed.is_empty:
            self.remove_selector(hpa_uid)
        else:
            self._index.set_selector(hpa_uid, namespace, parsed)
            self._selectors[hpa_uid] = selector
            self._namespaces[hpa_uid] = namespace
            self._bump(namespace)

    def remove_selector(self, hpa_uid: str) -> None:
        """Drop the selector of an HPA."""
        if self._selectors.pop(hpa_uid, None) is not None:
            self._index.remove_selector(hpa_uid)
            self._bump(self._namespaces.pop(hpa_uid))

    def selector_of(self, hpa_uid: str) -> str:
        """Return the indexed selector of an HPA."""
        return self._selectors[hpa_uid]

    def matching(self, hpa_uid: str) -> tuple[PodSnapshot, ...]:
        """Return the pods that an HPA's selector matches, sorted by name."""
        if hpa_uid not in self._selectors:
            return ()
        pods = [self._snapshots[uid] for uid in self._index.pods_of(hpa_uid)]
        pods.sort(key=_name)
        return tuple(pods)

    def also_matched_by(self, hpa_uid: str, pods: Iterable[PodSnapshot]) -> set[str]:
        """Return the uids of other HPAs whose selectors match any of these pods."""
        uids: set[str] = set()
        for pod in pods:
            uids.update(self._index.selectors_of(pod.uid))
        uids.discard(hpa_uid)
        return uids


def _name(pod: PodSnapshot) -> str:
    return pod.name
