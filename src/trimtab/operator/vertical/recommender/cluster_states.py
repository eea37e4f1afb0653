"""The recommender's cluster states: one per shard that this replica holds, or one in all without shards.

The state of a shard is created when the shard is acquired and listed, and dropped when it is lost. History that another replica
saved meanwhile is then loaded whole, and no sample is counted twice (docs/decisions/shard-work-by-lease-and-fence-every-write.md). No other module of the
recommender works with shard numbers, except to flush or drop a shard.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from trimtab.cluster.client import Client
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.model.core.meta import NamespacedName
from trimtab.operator.ownership import Ownership


class ShardedClusterStates:
    """The cluster states, in the order of their shards."""

    def __init__(
        self,
        make: Callable[[], ClusterState],
        ownership: Ownership,
        is_listed: Callable[[int], bool] = lambda _shard: True,
    ) -> None:
        """Create states by `make` for the shards of which `is_listed` returns True.

        A VPA that is not cached yet would be dropped from its state, and its pods would be incomplete.
        """
        self._make = make
        self._ownership = ownership
        self._is_listed = is_listed
        self.is_whole = ownership.count == 1
        """Whether one state has all VPAs. It then also has pods that no VPA matches yet."""
        self._states: dict[int, ClusterState] = {}
        self._dropped: set[int] = set()

    def sync_shards(self) -> None:
        """Create states for shards acquired since the last call, and remove those of shards lost."""
        held = [shard for shard in self._ownership.held() if self._is_listed(shard)]
        kept = {
            shard: state
            for shard, state in self._states.items()
            if shard in held and shard not in self._dropped
        }
        self._dropped.clear()
        self._states = {shard: kept.get(shard) or self._make() for shard in sorted(held)}

    def drop_shard(self, shard: int) -> None:
        """Mark a shard as lost. Its state stays readable until `sync_shards`, for a step under way."""
        if shard in self._states:
            self._dropped.add(shard)

    def drop_all(self) -> None:
        """Mark all shards as lost."""
        self._dropped.update(self._states)

    def __iter__(self) -> Iterator[ClusterState]:
        return iter(self._states.values())

    def holds(self, vpa: NamespacedName) -> bool:
        """Return whether the shard of a VPA is ours, without a break since its state was created."""
        shard = self._ownership.share(str(vpa))
        return shard in self._states and shard not in self._dropped

    def get(self, vpa: NamespacedName) -> ClusterState | None:
        """Return the state of a VPA's shard, or None if the shard is not ours."""
        return self._states.get(self._ownership.share(str(vpa)))

    def matching(self, vpas: Iterable[str]) -> tuple[ClusterState, ...]:
        """Return our states of the shards of some VPAs, by `namespace/name`."""
        shards = {self._ownership.share(vpa) for vpa in vpas}
        return tuple(state for shard, state in self._states.items() if shard in shards)

    def vpa(self, name: NamespacedName) -> VPAState | None:
        """Return a VPA from the state of its shard."""
        state = self.get(name)
        return None if state is None else state.vpas.get(str(name))

    def vpas(self) -> Iterator[VPAState]:
        """Yield the VPAs of all states."""
        for state in self:
            yield from state.vpas.values()

    def is_in(self, vpa: NamespacedName, shard: int) -> bool:
        """Return whether a VPA belongs to a shard."""
        return self._ownership.share(str(vpa)) == shard

    def writing(self, vpa: NamespacedName, *, is_last: bool = False) -> AbstractContextManager[Client]:
        """Lend the client of a VPA's shard for a write, or for a last write during its hand-over."""
        return self._ownership.writing(self._ownership.share(str(vpa)), is_last=is_last)

    def is_busy(self, shard: int) -> bool:
        """Return whether a write for a shard is under way."""
        return self._ownership.is_busy(shard)
