"""The VPAs of all kinds that this process acts on.

An own VPA and a native one may have the same name, as they do while a user moves from one kind to the other. Then the own
one counts, so that a name stands for one VPA everywhere else.
"""

from collections.abc import Callable, Iterator

from trimtab.cluster.cache.shared import NamespacedInformer
from trimtab.cluster.cache.store import Delta
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.vertical.kinds import OWN, VpaKind, kind_of

Subscriber = Callable[[Delta[VerticalPodAutoscaler]], None]


class VpaCache:
    """The informers of the watched kinds."""

    def __init__(self) -> None:
        self.by_kind: dict[VpaKind, NamespacedInformer[VerticalPodAutoscaler]] = {}
        self._subscribers: list[Subscriber] = []

    def watch(self, kind: VpaKind, informer: NamespacedInformer[VerticalPodAutoscaler]) -> None:
        """Add the VPAs of a kind."""
        self.by_kind[kind] = informer
        for subscriber in self._subscribers:
            informer.subscribe(subscriber)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` with every change of a watched kind, also of superseded VPAs."""
        self._subscribers.append(subscriber)
        for informer in self.by_kind.values():
            informer.subscribe(subscriber)

    def __iter__(self) -> Iterator[VerticalPodAutoscaler]:
        for informer in self.by_kind.values():
            yield from (vpa for vpa in informer if not self.is_superseded(vpa))

    def get(self, name: str, namespace: str) -> VerticalPodAutoscaler | None:
        """Return the VPA of a name, or None."""
        found = [informer.get(name, namespace) for informer in self.by_kind.values()]
        return next((vpa for vpa in found if vpa is not None and not self.is_superseded(vpa)), None)

    def is_superseded(self, vpa: VerticalPodAutoscaler) -> bool:
        """Return whether it is a native VPA whose name an own one has."""
        own = self.by_kind.get(OWN)
        meta = vpa.metadata
        return vpa.is_native and own is not None and own.get(meta.name, meta.namespace) is not None

    def superseded(self) -> Iterator[VerticalPodAutoscaler]:
        """Yield the native VPAs whose names own ones have."""
        for informer in self.by_kind.values():
            yield from filter(self.is_superseded, informer)

    @property
    def is_read(self) -> bool:
        """Return whether the VPAs of every kind are cached in some namespace, or are not served."""
        return all(informer.is_read for informer in self.by_kind.values())

    def note_written(self, vpa: VerticalPodAutoscaler, resource_version: str) -> None:
        """Reject lists that are older than a write of this process."""
        self.by_kind[kind_of(vpa.api_version)].note_written(vpa.metadata.namespace, resource_version)
