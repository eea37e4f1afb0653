"""The recommender's models: one for each share of the VPAs that this process holds, one in all if it shares with nobody.

A share's model is made when the share is taken up and thrown away when it is lost, so that what another copy learnt
meanwhile is loaded whole, and nothing is counted twice (decision 0036).
"""

from collections.abc import Callable, Iterator

from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.operator.ownership import Ownership, ShardedOwner


class ShardedClusterStates:
    """A model per share; a VPA is in the one of its share."""

    def __init__(self, make: Callable[[], ClusterState], ownership: Ownership) -> None:
        self._make = make
        self._ownership = ownership
        self.is_whole = not isinstance(ownership, ShardedOwner)
        """Whether one model has all VPAs; then it also learns about pods that no VPA matches yet."""
        self._models: dict[int, ClusterState] = {}
        self._lost: set[int] = set()

    def take_up(self) -> None:
        """Begin with the shares that are ours now, and drop those that are not, or were not all the time."""
        held = self._ownership.held()
        for share in [share for share in self._models if share in self._lost or share not in held]:
            del self._models[share]
        self._lost.clear()
        for share in held:
            if share not in self._models:
                self._models[share] = self._make()

    def lose(self, share: int) -> None:
        """Take note that a share is somebody else's from now on; a loop under way may still look at its model."""
        if share in self._models:
            self._lost.add(share)

    def lose_all(self) -> None:
        """Take note that everything is somebody else's."""
        self._lost.update(self._models)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._models))

    def __contains__(self, share: int) -> bool:
        return share in self._models

    def __getitem__(self, share: int) -> ClusterState:
        return self._models[share]

    def all(self) -> list[ClusterState]:
        """Return every model, by share."""
        return [self._models[share] for share in self]

    def share(self, vpa: str) -> int:
        """Return the share of a VPA, by `namespace/name`, whoever has it."""
        return self._ownership.share(vpa)

    def holds(self, vpa: str) -> bool:
        """Return whether a VPA is ours, and was since its model was made."""
        share = self._ownership.share(vpa)
        return share in self._models and share not in self._lost

    def of(self, vpa: str) -> ClusterState | None:
        """Return the model that a VPA belongs to, if it is ours."""
        return self._models.get(self._ownership.share(vpa))

    def vpa(self, key: str) -> VPAState | None:
        """Return a VPA as its model has it."""
        model = self.of(key)
        return None if model is None else model.vpas.get(key)

    def vpas(self) -> Iterator[VPAState]:
        """Yield all VPAs."""
        for model in self.all():
            yield from model.vpas.values()
