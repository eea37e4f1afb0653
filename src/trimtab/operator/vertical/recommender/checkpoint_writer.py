"""Decides when checkpoints are written: once per interval, and once more before a shard or the process ends.

Only complete histories are saved. Part of a history would overwrite the whole one.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from zlib import crc32

from trimtab.clock import Clock, start_task
from trimtab.cluster import errors
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.input.checkpoints import save_checkpoints
from trimtab.model import times
from trimtab.model.core.meta import NamespacedName
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint as Checkpoint
from trimtab.operator.vertical.recommender.checkpoint_objects import owner_vpa
from trimtab.operator.vertical.recommender.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates

log = logging.getLogger(__name__)
LAST_SAVE_SECONDS = 10.0
"""How long the last save may take: less than the grace period of a pod."""

Warn = Callable[[NamespacedName, str], None]
"""Emits an event on a VPA whose history cannot be saved."""


class CheckpointSchedule:
    """Decides when the checkpoints of a VPA are due: at once when new, then once per interval."""

    def __init__(self, clock: Clock, interval: float) -> None:
        self._clock = clock
        self._interval = interval
        self._due_at: dict[NamespacedName, float] = {}

    def due(self, vpas: Iterable[NamespacedName]) -> list[NamespacedName]:
        """Return the VPAs whose checkpoints are due."""
        now = self._clock.monotonic()
        return [vpa for vpa in vpas if self._due_at.get(vpa, now) <= now]

    def saved(self, vpas: Iterable[NamespacedName]) -> None:
        """Schedule the next checkpoints of VPAs that were saved now."""
        now = self._clock.monotonic()
        for vpa in vpas:
            # All VPAs are first saved together, and then spread over the interval.
            is_first = vpa not in self._due_at
            fraction = 0.5 + crc32(str(vpa).encode()) / 2**33 if is_first else 1.0
            self._due_at[vpa] = now + self._interval * fraction

    def keep(self, vpas: Collection[NamespacedName]) -> None:
        """Drop all other VPAs."""
        for vpa in [vpa for vpa in self._due_at if vpa not in vpas]:
            del self._due_at[vpa]


class CheckpointWriter:
    """Saves the histories of the cluster states."""

    def __init__(
        self,
        clock: Clock,
        states: ShardedClusterStates,
        store: CheckpointStore,
        interval: float,
        timeout: float,
        warn: Warn,
    ) -> None:
        self._clock = clock
        self._states = states
        self._store = store
        self._timeout = timeout
        self._warn = warn
        self._schedule = CheckpointSchedule(clock, interval)
        self._complete: tuple[NamespacedName, ...] = ()
        """VPAs whose history is loaded."""
        self._flushes: dict[int, asyncio.Task[None]] = {}

    async def save_due(self, complete: tuple[NamespacedName, ...]) -> None:
        """Save the due histories of VPAs with complete history."""
        self._complete = tuple(vpa for vpa in complete if self._states.holds(vpa))
        present = {state.vpa.metadata.namespaced_name for state in self._states.vpas()}
        self._schedule.keep(present)
        self._store.keep(present)
        await self._save(self._schedule.due(self._complete), self._timeout)

    def has_history(self, vpa: NamespacedName) -> bool:
        """Return whether the whole history of a VPA is loaded, so that it is saved."""
        return vpa in self._complete

    def flush_shard(self, shard: int) -> None:
        """Save the histories of a shard in the background, while its Lease is still ours."""
        vpas = [vpa for vpa in self._complete if self._states.is_in(vpa, shard)]
        # If the shard comes back, its histories are loaded again first.
        self._complete = tuple(vpa for vpa in self._complete if not self._states.is_in(vpa, shard))
        self._schedule.keep(self._complete)
        if vpas:
            self._flushes[shard] = start_task(f"the last save of shard {shard}", self._flush(shard, vpas))

    def is_flushing(self, shard: int) -> bool:
        """Return whether `flush_shard` is under way."""
        return shard in self._flushes

    def discard(self) -> None:
        """Discard pending checkpoints after losing leadership."""
        self._complete = ()
        self._schedule.keep(())

    async def wait_flushed(self) -> None:
        """Wait for the last saves of shards that are being handed over."""
        await asyncio.gather(*self._flushes.values())

    async def close(self) -> None:
        """Save all histories once more."""
        await self.wait_flushed()
        await self._save_last(self._complete)

    async def _flush(self, shard: int, vpas: list[NamespacedName]) -> None:
        try:
            await self._save_last(vpas)
        finally:
            del self._flushes[shard]

    async def _save_last(self, vpas: Iterable[NamespacedName]) -> None:
        try:
            async with asyncio.timeout(LAST_SAVE_SECONDS):
                await self._save(vpas, LAST_SAVE_SECONDS, is_last=True)
        except (TimeoutError, errors.ClusterError) as error:
            log.warning("history of the last minutes is not saved: %s", str(error) or "it took too long")

    async def _save(self, vpas: Iterable[NamespacedName], seconds: float, *, is_last: bool = False) -> None:
        if not self._store.may_write:
            return
        checkpoints = [
            checkpoint
            for state, saved in self._by_state(vpas).items()
            for checkpoint in save_checkpoints(state, saved, times.to_ns(self._clock.now()))
        ]
        report = await self._store.write(checkpoints, seconds, is_last=is_last)
        # Failed writes are due again in the next step. So are VPAs without samples of all their containers.
        self._schedule.saved((report.done - report.undone) & self._with_all_containers(checkpoints))
        for vpa, message in report.collisions.items():
            self._warn(vpa, message)

    def _with_all_containers(self, checkpoints: Iterable[Checkpoint]) -> set[NamespacedName]:
        """Return the VPAs whose checkpoints have samples of every recommended container."""
        sampled: dict[NamespacedName, set[str]] = {}
        for checkpoint in checkpoints:
            names = sampled.setdefault(owner_vpa(checkpoint), set())
            if checkpoint.status.total_samples_count:
                names.add(checkpoint.spec.container_name)
        return {vpa for vpa, names in sampled.items() if names and names >= self._recommended(vpa)}

    def _recommended(self, name: NamespacedName) -> set[str]:
        vpa = self._states.vpa(name)
        if vpa is None or vpa.recommendation is None:
            return set()
        return {container.container_name for container in vpa.recommendation.container_recommendations}

    def _by_state(self, vpas: Iterable[NamespacedName]) -> dict[ClusterState, list[VPAState]]:
        by_state: dict[ClusterState, list[VPAState]] = {}
        for name in vpas:
            state, vpa = self._states.get(name), self._states.vpa(name)
            if state is not None and vpa is not None:
                by_state.setdefault(state, []).append(vpa)
        return by_state
