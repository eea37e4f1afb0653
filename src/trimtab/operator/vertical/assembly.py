"""Puts the vertical loops together from a client, caches and settings."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from prometheus_client import CollectorRegistry

from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.fence import Fence, NoFence
from trimtab.cluster.sharding import Shards, ShardUser
from trimtab.decide.vertical.compat import DEFAULT, VPA_1_8, Compat
from trimtab.decide.vertical.estimate import EstimatorSettings
from trimtab.decide.vertical.recommend import RecommenderSettings
from trimtab.decide.vertical.recommender import PostProcessing
from trimtab.metrics.reader import MetricsReader
from trimtab.model.gates import FeatureGates
from trimtab.model.quantity import Quantity
from trimtab.model.resources import CPU, MEMORY
from trimtab.operator.caches import Caches
from trimtab.operator.horizontal.usage import WholeList
from trimtab.operator.ownership import ownership_of, shards_gauge
from trimtab.operator.process import Component
from trimtab.operator.settings import Settings
from trimtab.operator.vertical import recommender, updater
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.history import HistoryLoader
from trimtab.operator.vertical.history_setup import make_history
from trimtab.operator.vertical.performing import Proof
from trimtab.operator.vertical.probe import AdmissionProbe, LeaseCheck
from trimtab.operator.vertical.roles import RoleKeeper
from trimtab.operator.vertical.settings import VerticalSettings
from trimtab.operator.vertical.telemetry import AdmissionMetrics, RecommenderMetrics, UpdaterMetrics
from trimtab.operator.vertical.usage import UsageFeed

if TYPE_CHECKING:
    from trimtab.operator.vertical.admission.component import Admission
    from trimtab.operator.vertical.admission.keeping import Certificates

Sharing = TypeVar("Sharing", bound=ShardUser)


class Site:
    """Where the loops of one process run: everything they share. Make it inside the event loop; `close` at the end."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        settings: Settings,
        *,
        registry: CollectorRegistry | None = None,
        fence: Fence | None = None,
        instance: str = "trimtab",
    ) -> None:
        self.clock = clock
        self.client = client
        self.fence = fence or NoFence()
        self.writer = client.fenced(self.fence)
        self.ownership = ownership_of(client, self.fence)
        self.settings = settings
        self.instance = instance
        self.registry = registry or CollectorRegistry()
        if isinstance(fence, Shards) and "horizontal" not in settings.components:
            shards_gauge(self.registry).set_function(lambda: len(fence.held()))
        self.caches = Caches(client, settings.watch_namespaces)
        gates = FeatureGates.parse(settings.feature_gates)
        self.view = ClusterView(client, self.caches, gates=gates, compat=compat_of(settings.compat))
        self.events = EventRecorder(self.writer, "vpa", instance)
        self.reader = MetricsReader(
            clock,
            client,
            deadline=settings.metrics_deadline.total_seconds(),
            max_bytes=settings.metrics_max_bytes,
        )
        self._telling = asyncio.ensure_future(self.events.run())

    def sharing(self, loop: Sharing) -> Sharing:
        """Let a loop know of the shards that come and go, if there are any; return it."""
        if isinstance(self.fence, Shards):
            self.fence.serve(loop)
        return loop

    async def close(self) -> None:
        """Stop watching; events that wait are written first."""
        self._telling.cancel()
        await asyncio.gather(self._telling, return_exceptions=True)
        await self.reader.close()
        await self.caches.close()


def compat_of(name: str) -> Compat:
    """Return the rulings that `--compat` names: ours, or upstream's behaviour throughout."""
    return VPA_1_8 if name else DEFAULT


def make_recommender(site: Site, history: HistoryLoader | None = None) -> recommender.Recommender:
    """Return the recommender; `history` stands in for the one that the settings name."""
    settings = site.settings
    metrics = RecommenderMetrics(site.registry)

    def count(is_error: bool) -> None:
        metrics.responses.labels("true" if is_error else "false", "metrics.k8s.io").inc()

    whole = WholeList(site.clock, site.caches, is_allowed=not settings.watch_namespaces)
    usage = UsageFeed(site.reader, whole, count)
    tools = recommender.Tools(site.clock, site.writer, site.ownership, site.view, usage, site.events, metrics)
    return site.sharing(
        recommender.Recommender(
            tools,
            settings,
            recommending=_recommending(settings),
            post=_post(settings),
            history=history or make_history(site.clock, settings),
        )
    )


def make_updater(site: Site, proof: Proof | None = None) -> updater.Updater:
    """Return the updater; `proof` stands in for the check of admission that the settings name."""
    settings = site.settings
    fence = site.fence[updater.UPDATING_SHARD] if isinstance(site.fence, Shards) else site.fence
    tools = updater.Tools(
        site.clock,
        site.client.fenced(fence),
        fence,
        site.view,
        proof or _proof(site, settings),
        site.events,
        UpdaterMetrics(site.registry),
    )
    return site.sharing(updater.Updater(tools, settings, dry_run=settings.dry_run))


def make_admission(site: Site, certificates: "Certificates | None" = None) -> "Admission":
    """Return the admission webhooks; every copy serves, so nothing of it is fenced by the lease."""
    # Imported when it runs: only the webhooks make certificates.
    from trimtab.operator.vertical.admission.component import Admission  # noqa: PLC0415

    return Admission(
        site.client,
        site.view,
        site.settings,
        AdmissionMetrics(site.registry),
        instance=site.instance,
        certificates=certificates,
    )


def make_roles(site: Site) -> RoleKeeper:
    """Return the keeper of roles from Leases."""
    return site.sharing(RoleKeeper(site.writer, site.ownership, site.view, site.events))


LOOPS: dict[str, Callable[[Site], Component]] = {
    "recommender": make_recommender,
    "updater": make_updater,
    "admission": make_admission,
    "roles": make_roles,
}
"""Every vertical loop, by the name that `--components` has for it."""


def _proof(site: Site, settings: VerticalSettings) -> Proof:
    checks: dict[str, Callable[[], Proof]] = {
        "probe": lambda: AdmissionProbe(site.clock, site.client, settings.namespace).problem,
        "lease": lambda: LeaseCheck(site.clock, site.client).problem,
    }
    if settings.admission_check not in checks:
        raise ValueError(
            f"--admission-check={settings.admission_check} is not known; use {' or '.join(checks)}"
        )
    return checks[settings.admission_check]()


def _recommending(settings: VerticalSettings) -> RecommenderSettings:
    return RecommenderSettings(
        estimators=EstimatorSettings(safety_margin=settings.recommendation_margin_fraction),
        pod_min_cpu_millicores=settings.pod_min_cpu_millicores,
        pod_min_memory_mib=settings.pod_min_memory_mb,
    )


def _post(settings: VerticalSettings) -> PostProcessing:
    bounds = {CPU: settings.container_max_allowed_cpu, MEMORY: settings.container_max_allowed_memory}
    return PostProcessing(
        global_max={resource: Quantity.parse(text) for resource, text in bounds.items() if text}
    )
