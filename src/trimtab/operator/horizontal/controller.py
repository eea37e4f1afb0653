"""The horizontal autoscaler as one component: its caches, its rounds, and what it says about its health."""

import asyncio
import logging
from collections.abc import AsyncIterator
from math import inf

import msgspec

from trimtab.cluster import errors
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.cluster.leases.shards import Shards
from trimtab.cluster.resource import Resource
from trimtab.decide.horizontal import HpaSettings as Numbers
from trimtab.decide.horizontal import Observation, Record
from trimtab.decide.horizontal.config import NAMED
from trimtab.decide.horizontal.status.dry_run import as_dry_run
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.operator import gc_tuning
from trimtab.operator.horizontal.batches import Batches
from trimtab.operator.horizontal.inputs.hpa_cache import HpaCache, HpaState
from trimtab.operator.horizontal.inputs.kinds import (
    NATIVE_HPAS,
    OWN_HPAS,
    ensure_hpa_controller_is_off,
    to_cache_entry,
)
from trimtab.operator.horizontal.inputs.metric_queries import MetricFetcher
from trimtab.operator.horizontal.inputs.owners import Found, OwnerCache
from trimtab.operator.horizontal.inputs.pod_index import PodIndex
from trimtab.operator.horizontal.inputs.pod_usage import ListAllPolicy
from trimtab.operator.horizontal.inputs.targets import TargetCache
from trimtab.operator.horizontal.loop import Loop
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.horizontal.preview import Preview
from trimtab.operator.horizontal.reconciler import Reconciler
from trimtab.operator.horizontal.schedule import SyncPeriods
from trimtab.operator.horizontal.snapshot import DecisionConfig, SnapshotBuilder
from trimtab.operator.horizontal.writer import Writer, WriteSlots
from trimtab.operator.ownership import Ownership, ShardedOwner
from trimtab.operator.pods.follow import follow_pods
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.compat import KUBERNETES, upstreams
from trimtab.operator.settings.settings import Settings

log = logging.getLogger(__name__)

FIRST_LISTS_SECONDS = 10.0
"""How long the first lists are waited for before the rest goes ahead without a kind that cannot be listed."""

STALE_AFTER = 60.0
"""Seconds without a sign from the server after which a cache is too old to decide on (fault F04)."""


class HpaController:
    """Decides about every HPA, once per period and whenever a spec changes."""

    name = "horizontal"

    def __init__(
        self,
        runtime: Runtime,
        *,
        rules: DecisionConfig,
    ) -> None:
        settings, clock, client, fence = runtime.settings, runtime.clock, runtime.client, runtime.fence
        self.runtime = runtime
        self._clock = clock
        self._client = client
        self._settings = settings
        self._rules = rules
        self.ownership: Ownership = runtime.ownership
        self._shared = runtime.ownership if isinstance(runtime.ownership, ShardedOwner) else None
        self._recorder = runtime.events.recorder("horizontal-pod-autoscaler")
        self._caches = runtime.component_informers()
        self._discovery = runtime.discovery
        self._targets = TargetCache(client, self._discovery, self._caches)
        self._pods = PodIndex()
        self.autoscalers = HpaCache(
            records=settings.records, on_change=self._changed, on_delete=self._deleted
        )
        self._telemetry = HpaControllerMetrics(runtime.registry)
        runtime.metrics.believe_versions_for(settings.horizontal.sync_period.total_seconds())
        self._observer = SnapshotBuilder(
            rules, self.autoscalers, self._pods, self._make_owners(), self._make_questions()
        )
        self._reconciler = Reconciler(
            clock, self.ownership, self._targets, self._observer, self._make_writer(), self._telemetry
        )
        self._batches = Batches(
            clock, self.ownership, self._targets, self._observer, self._reconciler, self._telemetry
        )
        self._preview = Preview(clock, self._observer, self._reconciler)
        self._loop = Loop(clock, self.autoscalers, self.ownership, self._batches, _pace_of(settings))
        self._wanted: dict[str, Resource[HorizontalPodAutoscaler]] = {}
        self._missing: dict[str, str] = {}
        self._only_looks = isinstance(fence, ClosedFence)
        self._is_started = False
        self._telemetry.autoscalers.set_function(self._count_owned)
        if isinstance(fence, Shards):
            self._telemetry.shards.set_function(lambda: len(fence.held()))
            fence.serve(self)

    def _make_questions(self) -> MetricFetcher:
        whole = ListAllPolicy(self._clock, self._caches, is_allowed=not self._settings.watch_namespaces)
        is_strict = self._rules.compat.refuse_absurd_samples
        return MetricFetcher(self.runtime.metrics, self._discovery, whole, is_strict=is_strict)

    def _make_owners(self) -> OwnerCache:
        return OwnerCache(
            self._clock,
            self._client,
            self._discovery,
            self._caches,
            ttl=self._settings.horizontal.owner_cache_ttl.total_seconds(),
            gone_ttl=self._settings.horizontal.sync_period.total_seconds(),
            count=self._telemetry.owner_looked_up,
        )

    def _make_writer(self) -> Writer:
        return Writer(
            self.ownership.client_for,
            self._targets,
            self.autoscalers,
            self._recorder,
            slots=WriteSlots(self._settings.horizontal.concurrent_writes),
            dry_run=self._settings.dry_run,
        )

    async def start(self) -> None:
        """Begin to watch, and return once everything is known that a first round needs."""
        gate = self._rules.gates.enabled("PodLevelResources")
        pods = follow_pods(self._caches, self._pods.take, pod_level_resources=gate)
        if self._settings.horizontal.own_hpas:
            self._wanted["own"] = OWN_HPAS
        if self._settings.horizontal.native_hpas:
            self._wanted["native"] = NATIVE_HPAS
        await self._watch_hpas()
        await pods.wait_synced()
        # Targets are known from the HPAs; their watches started while the lists came in.
        await self._wait_for_lists()
        self._is_started = True

    @property
    def is_started(self) -> bool:
        """Return whether the first lists are in."""
        return self._is_started

    async def step(self) -> None:
        """Go one whole round, writes included, and return; for tests and for a look on the spot."""
        self._loop.begin_round(self._loop.all_owned())
        await self._reconciler.settle()
        await self.runtime.events.flush()

    async def glance(self, namespace: str, name: str) -> Record | None:
        """Decide about one HPA without writing anything; None if there is no such HPA."""
        autoscaler = self.autoscalers.named(namespace, name)
        if autoscaler is None:
            return None
        record = await self._preview.one(autoscaler, tuple(self.autoscalers))
        if not record.decision.trail.extra:
            return record
        owners = await self.owners_of(record.observation)
        seen = msgspec.structs.replace(record.observation, owners=owners)
        return msgspec.structs.replace(record, observation=seen)

    async def owners_of(self, seen: Observation) -> dict[str, Found]:
        """Look up who owns the pods of an observation, for a person who looks at it."""
        return await self._observer.owners_of(seen)

    async def look_on(self) -> AsyncIterator[tuple[HpaState, Record]]:
        """Decide about every HPA without writing anything, for one who shows what another copy does."""
        await self._seek()
        everyone = sorted(self.autoscalers, key=lambda one: one.key)
        async for autoscaler, record in self._preview.all(everyone):
            yield autoscaler, self._as_told(record)

    def _as_told(self, record: Record) -> Record:
        """Return a record as an operator with `--dry-run` makes it, if the one that acts has it."""
        if not self._settings.dry_run or record.is_dry_run:
            return record
        told = as_dry_run(record.observation, record.decision)
        return msgspec.structs.replace(record, decision=told, is_dry_run=True)

    async def run(self) -> None:
        """Work until cancelled."""
        self.runtime.start()
        try:
            await self.start()
            gc_tuning.freeze_startup_objects()
            await self._loop.run(self._may_decide, self._seek)
        finally:
            await self.close()

    async def close(self) -> None:
        """End the reconciles that are under way."""
        await self._reconciler.close()

    def lead(self) -> None:
        """Begin to lead, at once."""
        self._loop.hurry()

    def shard_gained(self, shard: int) -> None:
        """Begin to decide about a shard, at once."""
        self._loop.hurry(*(one.uid for one in self._of_shard(shard)))

    def shard_lost(self, shard: int) -> None:
        """Do nothing: without an epoch nothing is decided, and the next epoch begins with what is stored."""

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether a decision about the shard is still under way."""
        return any(one.is_busy for one in self._of_shard(shard))

    def _of_shard(self, shard: int) -> list[HpaState]:
        shared = self._shared
        return [one for one in self.autoscalers if shared is not None and shared.share(one.key) == shard]

    def health(self) -> dict[str, str]:
        """Return what is wrong, by name; empty when all is well."""
        problems = dict(self._missing)
        if not self._is_started:
            problems["caches"] = "the first lists are not complete"
        if self._shared is not None and (why := self._shared.problem()):
            problems["shards"] = why
        problems |= self._unlisted() | self._stale_caches()
        return problems

    def _count_owned(self) -> int:
        return sum(self.ownership.owns(one.key) for one in self.autoscalers)

    def _may_decide(self) -> bool:
        return self.ownership.may_write() and not self._stale_caches()

    async def _seek(self) -> None:
        """Look again for kinds of HPAs that were not served before."""
        if self._missing:
            await self._watch_hpas()

    async def _watch_hpas(self) -> None:
        for name, resource in self._wanted.items():
            try:
                served = await self._discovery.served(resource.group, resource.version, resource.plural)
            except errors.ClusterError as error:
                self._missing[name] = str(error)
                continue
            if served is None:
                self._missing[name] = (
                    f"{resource.plural}.{resource.group} is not served: install it with "
                    "`trimtab crds | kubectl apply --server-side -f -`"
                )
                continue
            if resource is NATIVE_HPAS and (problem := await self._rival_problem()):
                self._missing[name] = problem
                continue
            self._missing.pop(name, None)
            self._caches.want(resource.with_transform(to_cache_entry)).subscribe(
                self.autoscalers.follow(resource)
            )
        await self._wait_for_lists()
        for name in self._missing:
            log.warning("%s HPAs: %s", name, self._missing[name])
        self._wanted = {name: self._wanted[name] for name in self._missing}

    async def _rival_problem(self) -> str:
        """Return why it is not known whether kube-controller-manager scales too; raise if it does."""
        if self._only_looks:
            return ""
        try:
            await ensure_hpa_controller_is_off(
                self._client, self._settings.watch_namespaces, self._clock.now()
            )
        except errors.ClusterError as error:
            return f"whether kube-controller-manager acts on native HPAs cannot be seen: {error}"
        return ""

    async def _wait_for_lists(self) -> None:
        """Wait for the lists under way; one kind that may not be listed does not hold up the others (fault F16)."""
        try:
            async with asyncio.timeout(FIRST_LISTS_SECONDS):
                await self._caches.wait_synced()
        except TimeoutError:
            for name, problem in self._unlisted().items():
                log.warning("%s: %s", name, problem)

    def _unlisted(self) -> dict[str, str]:
        return {
            cache.resource.plural: cache.last_error() or "the first list is not complete"
            for cache in self._caches
            if not cache.has_synced
        }

    def _stale_caches(self) -> dict[str, str]:
        return {
            cache.resource.plural: f"no sign from the server for {cache.staleness():.0f} s"
            for cache in self._caches
            if cache.has_synced and cache.staleness() > STALE_AFTER
        }

    def _changed(self, autoscaler: HpaState) -> None:
        self._targets.watch(autoscaler.hpa.spec.scale_target_ref)
        self._loop.hurry(autoscaler.uid)

    def _deleted(self, autoscaler: HpaState) -> None:
        self._observer.forget(autoscaler)
        if self._shared is not None:
            self._shared.forget(autoscaler.key)
        meta = autoscaler.hpa.metadata
        self._telemetry.forget(meta.namespace, meta.name)


def _pace_of(settings: Settings) -> SyncPeriods:
    # Upstream looks at nothing between two syncs.
    look = (
        0.0 if KUBERNETES in upstreams(settings.compat) else settings.horizontal.look_period.total_seconds()
    )
    return SyncPeriods(settings.horizontal.sync_period.total_seconds(), look)


def rules_of(settings: Settings) -> DecisionConfig:
    """Return what decisions go by; raise ValueError with a clear text if a setting is wrong."""
    compat = NAMED[KUBERNETES] if KUBERNETES in upstreams(settings.compat) else NAMED["trimtab"]
    for flag, given in {
        "--metrics-max-age": settings.metrics.metrics_max_age.total_seconds(),
        "--metrics-max-age-windows": settings.metrics.metrics_max_age_windows,
        "--metrics-max-ahead": settings.metrics.metrics_max_ahead.total_seconds(),
    }.items():
        if not 0 <= given < inf:
            raise ValueError(f"{flag}: {given:g} is negative or no number")
    numbers = Numbers(
        tolerance=settings.horizontal.tolerance,
        cpu_initialization_period=settings.horizontal.cpu_initialization_period.total_seconds(),
        initial_readiness_delay=settings.horizontal.initial_readiness_delay.total_seconds(),
        downscale_stabilization=settings.horizontal.downscale_stabilization.total_seconds(),
        stale_after=settings.metrics.metrics_max_age.total_seconds(),
        stale_windows=settings.metrics.metrics_max_age_windows,
        ahead_limit=settings.metrics.metrics_max_ahead.total_seconds(),
    )
    return DecisionConfig(numbers, FeatureGates.parse(settings.feature_gates), compat)
