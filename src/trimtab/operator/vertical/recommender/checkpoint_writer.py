"""The recommender's histories on their way into checkpoints: when each is due, and once more before it is given up.

A history is saved only by who has loaded all of it, so `keep` is told which VPAs those are; half a history would be
written over the whole one.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from trimtab import tasks
from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.namespaced_informer import NamespacedInformer
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.input.checkpoints import save_checkpoints
from trimtab.model import times
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint as Checkpoint
from trimtab.operator.vertical.recommender.checkpoint_store import (
    COLLECTING_SHARE,
    CheckpointStore,
    OwnedCheckpoint,
    Schedule,
)
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates

log = logging.getLogger(__name__)
LAST_SAVE_SECONDS = 10.0
"""How long the end may take: less than a pod has to end."""

Warn = Callable[[str, str], None]
"""Tells the owner of a VPA, by `namespace/name`, that its history cannot be saved."""


class CheckpointWriter:
    """Saves the histories of the models; one per recommender."""

    def __init__(
        self,
        clock: Clock,
        models: ShardedClusterStates,
        store: CheckpointStore,
        every: float,
        timeout: float,
        warn: Warn,
    ) -> None:
        self._clock = clock
        self._models = models
        self._store = store
        self._timeout = timeout
        self._warn = warn
        self._schedule = Schedule(clock, every)
        self._whole: tuple[str, ...] = ()
        self._orphans_at: float | None = None
        self._parting: dict[int, asyncio.Task[None]] = {}

    async def save_due(self, whole: tuple[str, ...]) -> int:
        """Save the histories whose turn it is; `whole` are the VPAs whose past is loaded."""
        self._whole = tuple(vpa for vpa in whole if self._models.holds(vpa))
        self._schedule.keep({vpa.key for vpa in self._models.vpas()})
        return await self._save(self._schedule.due(self._whole), self._timeout)

    def part_with(self, share: int) -> None:
        """Save what was learnt in a share that is given up, beside everything else, as long as its Lease is ours."""
        vpas = [vpa for vpa in self._whole if self._models.share(vpa) == share]
        # Should the share come back, it comes back empty: none of these is whole before it is loaded again.
        self._whole = tuple(vpa for vpa in self._whole if self._models.share(vpa) != share)
        self._schedule.keep(self._whole)
        if vpas:
            self._parting[share] = tasks.start(f"the last save of share {share}", self._part(share, vpas))

    def is_parting(self, share: int) -> bool:
        """Return whether the last save of a share is under way."""
        return share in self._parting

    def forget(self) -> None:
        """Save nothing of what is known: somebody else knows more."""
        self._whole = ()
        self._schedule.keep(())

    async def save_at_the_end(self) -> None:
        """Save what was learnt since the last time."""
        await asyncio.gather(*self._parting.values())
        await self._save_last(self._whole)

    async def collect_orphans(self, vpas: NamespacedInformer[VerticalPodAutoscaler], interval: float) -> None:
        """Remove checkpoints whose VPA is gone, once per interval."""
        now = self._clock.monotonic()
        is_due = self._orphans_at is None or now - self._orphans_at >= interval
        if COLLECTING_SHARE not in self._models or not is_due or not vpas.has_synced or vpas.last_error():
            return
        self._orphans_at = now
        try:
            await self._store.collect_orphans(frozenset(vpa.key for vpa in vpas), self._is_left_over)
        except errors.ClusterError as error:
            log.warning("orphaned checkpoints are not collected: %s", error)

    def _is_left_over(self, found: OwnedCheckpoint) -> bool:
        """Return whether a checkpoint is of a container that its VPA's pods do not have, and too old to be loaded."""
        state, model = self._models.vpa(found.vpa), self._models.of(found.vpa)
        last = found.status.last_sample_start
        if state is None or model is None or last is None or found.vpa not in self._whole:
            return False
        container = found.spec.container_name
        is_known = container in state.initial or any(key.container == container for key in state.aggregates)
        age_ns = times.to_ns(self._clock.now()) - times.to_ns(last)
        is_expired = model.compat.gone_containers_expire and age_ns >= model.table.config.window_ns
        return state.pod_count > 0 and not is_known and is_expired

    async def _part(self, share: int, vpas: list[str]) -> None:
        try:
            await self._save_last(vpas)
        finally:
            del self._parting[share]

    async def _save_last(self, vpas: Iterable[str]) -> None:
        try:
            async with asyncio.timeout(LAST_SAVE_SECONDS):
                await self._save(vpas, LAST_SAVE_SECONDS, is_last=True)
        except (TimeoutError, errors.ClusterError) as error:
            log.warning("history of the last minutes is not saved: %s", str(error) or "it took too long")

    async def _save(self, vpas: Iterable[str], seconds: float, *, is_last: bool = False) -> int:
        if not self._store.may_write:
            return 0
        saved = [
            checkpoint
            for model, states in self._by_model(vpas)
            for checkpoint in save_checkpoints(model, states, times.to_ns(self._clock.now()))
        ]
        report = await self._store.write(saved, seconds, is_last=is_last)
        # What could not be written is due again in the next loop; so is a history without all that is recommended.
        self._schedule.saved((report.done - report.undone) & self._complete(saved))
        for vpa, message in report.collisions.items():
            self._warn(vpa, message)
        return report.written

    def _complete(self, saved: Iterable[Checkpoint]) -> set[str]:
        """Return the VPAs whose checkpoints hold samples of every container that they recommend for."""
        held: dict[str, set[str]] = {}
        for checkpoint in saved:
            names = held.setdefault(
                f"{checkpoint.metadata.namespace}/{checkpoint.spec.vpa_object_name}", set()
            )
            if checkpoint.status.total_samples_count:
                names.add(checkpoint.spec.container_name)
        return {vpa for vpa, names in held.items() if names and names >= self._recommended(vpa)}

    def _recommended(self, vpa: str) -> set[str]:
        state = self._models.vpa(vpa)
        found = state.recommendation if state is not None else None
        return {one.container_name for one in found.container_recommendations} if found else set()

    def _by_model(self, vpas: Iterable[str]) -> list[tuple[ClusterState, list[VPAState]]]:
        found: dict[int, list[VPAState]] = {}
        for vpa in vpas:
            state = self._models.vpa(vpa)
            if state is not None:
                found.setdefault(self._models.share(vpa), []).append(state)
        return [(self._models[share], states) for share, states in sorted(found.items())]
