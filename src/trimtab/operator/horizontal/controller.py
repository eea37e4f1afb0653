"""The HPA controller as a component: its wiring, its shards and its health."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from trimtab.cluster.cache.parts import ShardedShare
from trimtab.cluster.cache.shared import NamespacedInformer
from trimtab.cluster.leases.family import Family
from trimtab.decide.horizontal.from_status import StatusReason, reason_from_status
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.owners import OwnerLookup
from trimtab.decide.horizontal.records.record import Record
from trimtab.decide.horizontal.status.conditions import as_dry_run
from trimtab.operator import gc_tuning
from trimtab.operator.horizontal.batches import Batches
from trimtab.operator.horizontal.config import DecisionConfig
from trimtab.operator.horizontal.freshness import Freshness
from trimtab.operator.horizontal.hpa_cache import HpaCache
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.hpa_watches import HpaWatches
from trimtab.operator.horizontal.look import Looks, SyncPeriods
from trimtab.operator.horizontal.loop import Loop
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.horizontal.nodes import FilterNeeds, NodeCache
from trimtab.operator.horizontal.observe import InputCaches, SnapshotBuilder
from trimtab.operator.horizontal.owners import OwnerCache
from trimtab.operator.horizontal.pods import PodIndex, PodMatcher
from trimtab.operator.horizontal.queries import MetricFetcher
from trimtab.operator.horizontal.reconciler import Reconciler
from trimtab.operator.horizontal.rivals import RivalCache
from trimtab.operator.horizontal.targets import TargetCache
from trimtab.operator.horizontal.unreadable import UnreadableHpas
from trimtab.operator.horizontal.usage import ListAllPolicy
from trimtab.operator.horizontal.viewer import DryRunDecider
from trimtab.operator.horizontal.write_slots import WriteSlots
from trimtab.operator.horizontal.writer import Writer, WriteRules
from trimtab.operator.ownership import Ownership
from trimtab.operator.pods.follow import follow_pods
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.compat import kubernetes_version
from trimtab.operator.settings.settings import Settings


class HpaController:
    """Reconciles every HPA once per sync period, and at once when its spec changes."""

    name = "horizontal"

    def __init__(self, runtime: Runtime, *, config: DecisionConfig) -> None:
        clock, settings = runtime.clock, runtime.settings
        self.runtime = runtime
        self._config = config
        self.ownership: Ownership = runtime.ownership
        self.hpas = HpaCache(records=settings.records, on_change=self._changed, on_delete=self._deleted)
        self._caches = runtime.component_informers()
        self._watches = HpaWatches(runtime, self._caches, self.hpas)
        freshness = Freshness(clock, self._caches)
        self._targets = TargetCache(runtime.client, runtime.discovery, self._caches, freshness)
        self._pods = PodIndex()
        self._needs = FilterNeeds(runtime.guards)
        self._matcher = PodMatcher(config.gates, self.hpas, self._pods, self._needs)
        self._metrics = HpaControllerMetrics(runtime.registry)
        self._fetcher = self._make_fetcher()
        self._snapshots = SnapshotBuilder(
            clock,
            config,
            self.ownership,
            InputCaches(
                self._targets,
                self._matcher,
                self._make_owners(),
                freshness,
                self._make_nodes(),
                self._make_rivals(),
            ),
            self._fetcher,
        )
        self._reconciler = Reconciler(
            clock, self._snapshots, self._make_writer(), self._metrics, runtime.guards
        )
        self._unreadable = UnreadableHpas(clock, self._caches, self.ownership)
        self._dry_run = DryRunDecider(clock, self._snapshots, self._fetcher, runtime.guards)
        self._batches = Batches(clock, self._fetcher, self._snapshots, self._reconciler, self._metrics)
        self._loop = self._make_loop()
        self._reconciler.on_scaled = self._loop.note_scaled
        self._pod_cache: NamespacedInformer[Any] | None = None
        self._pods_before = 0
        """How many pods were cached when HPAs were last enqueued at the start."""
        self._is_started = False
        self._is_watching = False
        self._open_shards: set[int] = set()
        """The held shards whose HPAs and targets are listed, if only shards are watched."""
        self._metrics.hpas.set_function(self._count_owned)
        fence = runtime.fence
        if isinstance(fence, Family):
            self._metrics.shards.set_function(lambda: len(fence.held()))
            fence.serve(self)

    def _make_fetcher(self) -> MetricFetcher:
        runtime = self.runtime
        runtime.metrics.believe_versions_for(runtime.settings.horizontal.sync_period.total_seconds())
        list_all = ListAllPolicy(runtime.clock, self._caches)
        is_strict = self._config.rules.ours
        return MetricFetcher(
            runtime.clock,
            runtime.metrics,
            runtime.discovery,
            list_all,
            is_strict=is_strict,
        )

    def _make_rivals(self) -> RivalCache:
        runtime, is_ours = self.runtime, self._config.rules.ours
        is_asked = is_ours and not runtime.settings.horizontal.native_hpas
        return RivalCache(
            runtime.clock, runtime.client, is_asked=is_asked, is_only_told=runtime.settings.dry_run
        )

    def _make_nodes(self) -> NodeCache:
        return NodeCache(self._caches, self._needs)

    def _make_owners(self) -> OwnerCache:
        runtime = self.runtime
        return OwnerCache(
            runtime.clock,
            runtime.client,
            runtime.discovery,
            self._caches,
            ttl=runtime.settings.horizontal.owner_cache_ttl.total_seconds(),
            gone_ttl=runtime.settings.horizontal.sync_period.total_seconds(),
            count=self._metrics.count_owner_lookup,
        )

    def _make_writer(self) -> Writer:
        settings = self.runtime.settings
        return Writer(
            self.runtime.clock,
            self.ownership.client_for,
            self._targets,
            self.hpas,
            self.runtime.events.recorder("horizontal-pod-autoscaler"),
            WriteRules(
                WriteSlots(settings.horizontal.concurrent_writes),
                settings.dry_run,
                self._config.max_age,
            ),
            self.runtime.author_for,
        )

    def _make_loop(self) -> Loop:
        clock, periods = self.runtime.clock, _sync_periods(self.runtime.settings)
        looks = Looks(
            clock,
            self._fetcher,
            self._snapshots,
            self._reconciler,
            self._may_reconcile,
            periods,
            self._metrics,
        )
        return Loop(clock, self.hpas, self._may_reconcile, self._batches, looks, periods)

    async def start(self) -> None:
        """Start to watch, and return when the first lists are complete."""
        await self._start_watches()
        await self._wait_for_all_lists()

    async def _start_watches(self) -> None:
        """Start to watch, and return when HPAs and their targets are listed. Pods may still arrive."""
        gate = self._config.gates.enabled("PodLevelResources")
        self._pod_cache = follow_pods(
            self._caches,
            self._pods.on_pod_event,
            self._on_pod_page,
            pod_level_resources=gate,
            keeps_nodes=self._needs.any_nodes,
        )
        await self._watches.start(self._pod_cache)
        self._is_watching = True
        if isinstance(self._caches.share, ShardedShare):
            for shard in self.ownership.held():
                self.shard_gained(shard)

    async def _wait_for_all_lists(self) -> None:
        assert self._pod_cache is not None
        await self._watches.wait_for_lists()
        await self._pod_cache.wait_settled()
        self._is_started = True

    @property
    def is_started(self) -> bool:
        """Return whether the first lists are complete."""
        return self._is_started

    async def run(self) -> None:
        """Run until cancelled."""
        self.runtime.start()
        try:
            await self._start_watches()
            self._reconciler.start(self._finish_start())
            await self._loop.run(self.ownership.may_write, self._before_waiting)
        finally:
            await self.close()

    async def _finish_start(self) -> None:
        """Reconcile the HPAs that waited for their pods, when all lists are complete."""
        await self._wait_for_all_lists()
        self._enqueue_undecided()
        gc_tuning.freeze_startup_objects()
        await self._watches.report_native_only()

    def _on_pod_page(self) -> None:
        """Reconcile HPAs whose pods have arrived, whenever twice as many pods are there."""
        if len(self._pods) >= 2 * self._pods_before:
            self._pods_before = len(self._pods)
            self._enqueue_undecided()

    def _enqueue_undecided(self) -> None:
        self._loop.enqueue_now(
            *(hpa_state.uid for hpa_state in self.hpas if not hpa_state.is_busy and not hpa_state.records)
        )

    def _may_reconcile(self, key: str) -> bool:
        """Return whether this replica owns an HPA, and the pods of its namespace are all cached."""
        pods = self._pod_cache
        if pods is None or not self.ownership.owns(key):
            return False
        if self._caches.share.is_fixed:
            return self._is_started or pods.has_listed(key.partition("/")[0])
        namespace = key.partition("/")[0]
        return self.ownership.share(key) in self._open_shards and (
            pods.has_listed(namespace) or pods.has_settled(namespace)
        )

    async def _before_waiting(self) -> None:
        await self._watches.retry()
        if self._unreadable.has_unreported():
            self._reconciler.start(self._unreadable.report())

    async def step(self) -> None:
        """Reconcile all HPAs once and return after the writes."""
        self._loop.start_sync(self._loop.owned_hpas())
        await self._reconciler.wait_idle()
        await self.runtime.events.flush()

    async def close(self) -> None:
        """Cancel the reconciles that are in progress."""
        await self._reconciler.close()

    async def dry_run(self, namespace: str, name: str) -> Record | None:
        """Decide about one HPA, if it exists, without writing anything."""
        hpa_state = self.hpas.named(namespace, name)
        if hpa_state is None:
            return None
        record = await self._dry_run.decide(hpa_state, tuple(self.hpas))
        if not record.decision.trace.extra_pods:
            return record
        owners = await self.find_owners(record.observation)
        observation = msgspec.structs.replace(record.observation, owners=owners)
        return msgspec.structs.replace(record, observation=observation)

    def stored_reason(self, namespace: str, name: str) -> StatusReason | None:
        """Return the reason of the operator's last decision about an HPA, or None if none is stored."""
        hpa_state = self.hpas.named(namespace, name)
        if hpa_state is None or not hpa_state.stored_reason:
            return None
        hpa = hpa_state.hpa
        status = msgspec.structs.replace(hpa.status, reason=hpa_state.stored_reason)
        return reason_from_status(msgspec.structs.replace(hpa, status=status))

    async def dry_run_all(self) -> AsyncIterator[tuple[HpaState, Record]]:
        """Yield a dry-run decision for every HPA (read-only dashboards)."""
        await self._watches.retry()
        hpa_states = sorted(self.hpas, key=lambda hpa_state: hpa_state.key)
        async for hpa_state, record in self._dry_run.decide_all(hpa_states):
            yield hpa_state, self._as_published(record)

    def _as_published(self, record: Record) -> Record:
        """Return a record as the acting operator makes it, which may run with `--dry-run`."""
        if not self.runtime.settings.dry_run or record.is_dry_run:
            return record
        decision = as_dry_run(record.observation, record.decision)
        return msgspec.structs.replace(record, decision=decision, is_dry_run=True)

    async def find_owners(self, observation: Observation) -> dict[str, OwnerLookup]:
        """Find the owners of all pods of an observation, to explain it."""
        return await self._snapshots.find_all_owners(observation)

    def shard_gained(self, shard: int) -> None:
        """Reconcile the HPAs of a shard at once, or as soon as they and their pods are listed."""
        if not isinstance(self._caches.share, ShardedShare):
            # A leader's first sync is due within a second. It has all HPAs.
            gained = self._of_shard(shard) if self.ownership.count > 1 else []
            self._loop.enqueue_now(*(hpa_state.uid for hpa_state in gained))
        elif self._is_watching:
            self._reconciler.start(self._begin_shard(shard, self._caches.share.parts_of(shard)))

    async def _begin_shard(self, shard: int, parts: tuple[str, ...]) -> None:
        """Wait for the lists of a shard, and reconcile each HPA when its pods are listed."""
        assert self._pod_cache is not None
        await self._watches.wait_for_parts(parts, without=self._pod_cache)
        if shard not in self.ownership.held():
            return
        self._open_shards.add(shard)
        self._enqueue_undecided()
        await self._pod_cache.wait_parts(parts)
        self._loop.enqueue_now(*(hpa_state.uid for hpa_state in self._of_shard(shard)))
        gc_tuning.freeze_startup_objects()

    def shard_lost(self, shard: int) -> None:
        """Wait for the next lists. Without an epoch no HPA is reconciled, and the next one loads the stored memory."""
        self._open_shards.discard(shard)

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether a reconcile of the shard is in progress."""
        return any(hpa_state.is_busy for hpa_state in self._of_shard(shard))

    def _of_shard(self, shard: int) -> list[HpaState]:
        return [hpa_state for hpa_state in self.hpas if self.ownership.share(hpa_state.key) == shard]

    def health(self) -> dict[str, str]:
        """Return what is wrong, by name."""
        problems: dict[str, str] = {}
        if not self._is_started:
            problems["caches"] = "the first lists are not complete"
        return problems | self._watches.problems()

    def caches(self) -> Iterator[NamespacedInformer[Any]]:
        """Yield every cache in use."""
        yield from self._caches

    def has_listed_hpas(self) -> bool:
        """Return whether the HPAs of every kind are cached, or the kind is known not to be served."""
        return self._watches.have_listed()

    def lacks_kinds(self) -> bool:
        """Return whether the cluster serves no kind of HPAs that is acted on."""
        return self._watches.are_absent()

    def unread(self) -> dict[str, str]:
        """Return the last error of each kind that decisions need and that cannot be read now, by plural."""
        return self._watches.unread()

    def warnings(self) -> dict[str, str]:
        """Return what is wrong although HPAs are decided, by name."""
        return self._watches.warnings()

    def _count_owned(self) -> int:
        return sum(self.ownership.owns(hpa_state.key) for hpa_state in self.hpas)

    def _changed(self, hpa_state: HpaState) -> None:
        self._targets.watch(hpa_state.hpa.spec.scale_target_ref)
        self._loop.enqueue_now(hpa_state.uid)

    def _deleted(self, hpa_state: HpaState) -> None:
        self._matcher.forget(hpa_state)
        meta = hpa_state.hpa.metadata
        self._metrics.forget(meta.namespace, meta.name)


def _sync_periods(settings: Settings) -> SyncPeriods:
    # Upstream has a timer for each HPA.
    has_timers, hpas = bool(kubernetes_version(settings.compat)), settings.horizontal
    return SyncPeriods(hpas.sync_period.total_seconds(), hpas.look_period.total_seconds(), has_timers)
