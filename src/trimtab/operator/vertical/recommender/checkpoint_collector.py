"""Deletes orphaned checkpoints: those without their VPA, and those of containers that its pods lost.

Deleted history cannot be restored. So a checkpoint is deleted only if it is found orphaned twice, and its VPA is read from the API
server first.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing

from trimtab.cluster import errors
from trimtab.cluster.cache.parts import list_part
from trimtab.cluster.cache.shared import NamespacedInformer
from trimtab.cluster.client import Client, DeleteOptions, Preconditions
from trimtab.cluster.codec.objects import PartialObject
from trimtab.model import times
from trimtab.model.core.meta import NamespacedName
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.vertical.kinds import OWN, VpaKind
from trimtab.operator.vertical.recommender.checkpoint_objects import CheckpointOptions, OwnedCheckpoint
from trimtab.operator.vertical.recommender.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates

log = logging.getLogger(__name__)

HasHistory = Callable[[NamespacedName], bool]
"""Returns whether the whole history of a VPA is loaded."""


class CheckpointCollector:
    """Deletes the orphaned checkpoints of our shards, for VPAs of one kind."""

    def __init__(
        self,
        client: Client,
        states: ShardedClusterStates,
        store: CheckpointStore,
        has_history: HasHistory,
        options: CheckpointOptions | None = None,
        kind: VpaKind = OWN,
    ) -> None:
        self._kind = kind
        self._client = client
        self._clock = client.clock
        self._states = states
        self._store = store
        self._has_history = has_history
        self._options = options or CheckpointOptions()
        self._collected_at: dict[str, float] = {}
        """When orphans were last collected, by part of the share."""
        self._orphans: dict[str, frozenset[str]] = {}
        """The uids that the last call of `collect` found orphaned, by part of the share."""

    async def collect_due(self, vpas: NamespacedInformer[VerticalPodAutoscaler], interval: float) -> None:
        """Delete checkpoints of our shards whose VPA is gone, once per interval and part of the share.

        A part whose VPAs are not listed is left out until they are.
        """
        now, unknown = self._clock.monotonic(), vpas.doubtful()
        parts = [part for part, _ in vpas.informers()]
        self._collected_at = {part: at for part, at in self._collected_at.items() if part in parts}
        due = [
            part
            for part in parts
            if part not in unknown and now - self._collected_at.get(part, -interval) >= interval
        ]
        self._collected_at |= dict.fromkeys(due, now)
        if due:
            names = frozenset(vpa.metadata.namespaced_name for vpa in vpas)
            await self.collect(names, due)

    async def collect(self, vpas: frozenset[NamespacedName], parts: Sequence[str]) -> list[str]:
        """Delete checkpoints of our shards that two calls find orphaned or left over, and return their keys.

        `parts` are parts of the share, of which `vpas` has all VPAs. A checkpoint belongs to the shard of its VPA.

        A checkpoint is orphaned without its VPA, and left over if the VPA's pods lost its container. An empty list of VPAs
        is more often a mistake (a new CRD, a stale server) than the end of all VPAs. So by default it deletes nothing.
        """
        watched = self._options.share.parts
        self._orphans = {name: uids for name, uids in self._orphans.items() if name in watched}
        if self._client.is_dry_run or not await self._may_collect(vpas):
            self._orphans = {}
            return []
        deleted: list[str] = []
        for name in parts:
            try:
                deleted += await self._collect_in(name, vpas)
            except errors.ClusterError as error:
                where = f" of {name}" if name else ""
                log.warning("orphaned checkpoints%s are not collected: %s", where, error)
        return deleted

    async def _may_collect(self, vpas: frozenset[NamespacedName]) -> bool:
        """Return whether a VPA exists. A shard may have none although other shards have some."""
        if vpas or not self._options.rules.ours:
            return True
        share = self._options.share
        if share.is_fixed or share.namespaces:
            return False
        try:
            async with aclosing(self._client.pages(self._kind.vpas.into(PartialObject), limit=1)) as pages:
                async for page in pages:
                    return bool(page.items)
        except errors.ClusterError as error:
            log.warning("orphaned checkpoints are not collected: %s", error)
        return False

    async def _collect_in(self, name: str, vpas: frozenset[NamespacedName]) -> list[str]:
        part = self._options.share.parts.get(name)
        if part is None:
            return []  # its shard was lost meanwhile
        orphans = {
            checkpoint.metadata.uid: checkpoint
            for checkpoint in await list_part(
                self._client, self._kind.checkpoints.into(OwnedCheckpoint), part
            )
            if self._states.holds(checkpoint.vpa)
            and checkpoint.metadata.namespace not in self._options.ignored_namespaces
            and (checkpoint.vpa not in vpas or self.is_left_over(checkpoint))
        }
        before = self._orphans.get(name, frozenset())
        self._orphans[name] = frozenset(orphans)
        doomed = [checkpoint for uid, checkpoint in orphans.items() if uid in before]
        return [
            checkpoint.metadata.key
            for checkpoint in doomed
            if (checkpoint.vpa in vpas or await self._is_vpa_gone(checkpoint))
            and await self._delete(checkpoint)
        ]

    def is_left_over(self, checkpoint: OwnedCheckpoint) -> bool:
        """Return whether the VPA's pods lost the container and the checkpoint is too old to be loaded."""
        vpa, state = self._states.vpa(checkpoint.vpa), self._states.get(checkpoint.vpa)
        last = checkpoint.status.last_sample_start
        if vpa is None or state is None or last is None or not self._has_history(checkpoint.vpa):
            return False
        container = checkpoint.spec.container_name
        is_known = container in vpa.initial or any(key.container == container for key in vpa.aggregates)
        age_ns = times.to_ns(self._clock.now()) - times.to_ns(last)
        is_expired = state.rules.ours and age_ns >= state.table.config.window_ns
        return vpa.pod_count > 0 and not is_known and is_expired

    async def _is_vpa_gone(self, checkpoint: OwnedCheckpoint) -> bool:
        vpa, resource = checkpoint.vpa, self._kind.vpas
        try:
            await self._client.get(resource, vpa.name, vpa.namespace)
        except (errors.ClusterError, ValueError) as error:
            if isinstance(error, errors.NotFound) and error.lacks_object(resource.plural, vpa.name):
                return True
            log.warning("checkpoint %s is kept: its VPA cannot be read: %s", checkpoint.metadata.key, error)
        return False

    async def _delete(self, checkpoint: OwnedCheckpoint) -> bool:
        meta = checkpoint.metadata
        options = DeleteOptions(Preconditions(uid=meta.uid, resource_version=meta.resource_version))
        try:
            with self._states.writing(checkpoint.vpa) as client:
                await client.delete(self._kind.checkpoints, meta.name, meta.namespace, options=options)
        except errors.ClusterError as error:
            log.warning("orphaned checkpoint %s is not deleted: %s", meta.key, error)
            return False
        self._store.forget(meta.key)
        log.info("deleted checkpoint %s: its VPA or container is gone", meta.key)
        return True
