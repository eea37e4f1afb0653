"""Builds the vertical components from a client, caches and settings."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from trimtab.cluster.leases.shards import Shards, ShardUser
from trimtab.decide.vertical.compat import DEFAULT, VPA_1_8, VpaCompat
from trimtab.model.feature_gates import FeatureGates
from trimtab.operator.control_loop import ControlLoop, ControlLoopMetrics
from trimtab.operator.horizontal.inputs.pod_usage import ListAllPolicy
from trimtab.operator.ownership import shards_gauge
from trimtab.operator.process import Component
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.compat import upstreams
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.estimation import aggregation_of, estimation_of, post_processing_of
from trimtab.operator.vertical.metrics import (
    AdmissionMetrics,
    RecommenderMetrics,
    UpdaterMetrics,
)
from trimtab.operator.vertical.recommender import controller
from trimtab.operator.vertical.recommender.history_loader import HistoryLoader, make_history
from trimtab.operator.vertical.recommender.usage import UsageFeed
from trimtab.operator.vertical.role_labels import RoleLabelController
from trimtab.operator.vertical.updater import controller as updater
from trimtab.operator.vertical.updater.actuator import WebhookCheck
from trimtab.operator.vertical.updater.replacement import ReplacementCheck
from trimtab.operator.vertical.updater.webhook_check import AdmissionProbe, LeaseCheck

if TYPE_CHECKING:
    from trimtab.operator.vertical.admission.certificates import Certificates
    from trimtab.operator.vertical.admission.webhook import AdmissionWebhook

NEVER_SIZE = frozenset({"recommender", "roles"})
"""Components that read no LimitRanges, and have no right to."""

UPDATING_SHARD = 0
"""The shard whose holder updates pods."""

SharedLoop = TypeVar("SharedLoop", bound=ShardUser)


class VerticalRuntime:
    """What the vertical components of one process share, beyond its `Runtime`."""

    def __init__(self, runtime: Runtime) -> None:
        settings = runtime.settings
        fence = runtime.fence
        self.runtime = runtime
        self.clock = runtime.clock
        self.client = runtime.client
        self.fence = fence
        self.writer = runtime.writer
        self.ownership = runtime.ownership
        self.settings = settings
        self.instance = runtime.instance
        self.registry = runtime.registry
        if isinstance(fence, Shards) and "horizontal" not in settings.components:
            shards_gauge(self.registry).set_function(lambda: len(fence.held()))
        self.caches = runtime.component_informers()
        gates = FeatureGates.parse(settings.feature_gates)
        self.view = ClusterView(
            runtime.client,
            runtime.discovery,
            self.caches,
            gates=gates,
            compat=compat_of(settings.compat),
        )
        if set(settings.components) - NEVER_SIZE:
            self.view.size_pods()
        self.events = runtime.events.recorder("vpa")
        runtime.start()

    @cached_property
    def loop_metrics(self) -> ControlLoopMetrics:
        """Return the metrics of the control loops."""
        return ControlLoopMetrics(self.registry)

    def notify_of_shards(self, loop: SharedLoop) -> SharedLoop:
        """Notify a loop of shards that this replica gains and loses; return the loop."""
        if isinstance(self.fence, Shards):
            self.fence.serve(loop)
        return loop


def compat_of(name: str) -> VpaCompat:
    """Return the rulings that `--compat` names: ours, or upstream's behaviour throughout."""
    return VPA_1_8 if upstreams(name) else DEFAULT


def make_recommender(site: VerticalRuntime, history: HistoryLoader | None = None) -> controller.Recommender:
    """Return the recommender; `history` replaces the loader that the settings name."""
    settings = site.settings
    metrics = RecommenderMetrics(site.registry)

    def count(is_error: bool) -> None:
        metrics.responses.labels("true" if is_error else "false", "metrics.k8s.io").inc()

    whole = ListAllPolicy(site.clock, site.caches, is_allowed=not settings.watch_namespaces)
    usage = UsageFeed(site.runtime.metrics, whole, count)
    tools = controller.RecommenderDeps(
        site.clock,
        site.writer,
        site.ownership,
        site.view,
        usage,
        site.events,
        metrics,
        site.loop_metrics,
    )
    return site.notify_of_shards(
        controller.Recommender(
            tools,
            settings,
            recommending=estimation_of(settings.estimation),
            aggregation=aggregation_of(settings.estimation),
            post=post_processing_of(settings.estimation),
            history=history or make_history(site.clock, settings.history, metrics),
        )
    )


def make_updater(site: VerticalRuntime, webhook_check: WebhookCheck | None = None) -> updater.Updater:
    """Return the updater; `webhook_check` replaces the check that the settings name."""
    settings = site.settings
    _replacement_check(site, settings)  # an unknown value fails at start, not in the first step
    fence = site.fence[UPDATING_SHARD] if isinstance(site.fence, Shards) else site.fence
    deps = updater.UpdaterDeps(
        site.clock,
        site.client.fenced(fence),
        fence,
        site.view,
        webhook_check or _webhook_check(site, settings),
        site.events,
        UpdaterMetrics(site.registry),
        site.loop_metrics,
        lambda: _replacement_check(site, settings),
    )
    made = updater.Updater(deps, settings)
    site.notify_of_shards(_UpdatingShard(made))
    return made


class _UpdatingShard:
    """Delays the release of the updating shard until the updater's step ends."""

    def __init__(self, loop: ControlLoop) -> None:
        self._loop = loop

    def shard_gained(self, shard: int) -> None:
        """Do nothing: the loop polls its fence."""

    def shard_lost(self, shard: int) -> None:
        """Do nothing: the fence stops the next action, which ends the step."""

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether an action may be under way."""
        return shard == UPDATING_SHARD and self._loop.is_stepping


def make_admission(site: VerticalRuntime, certificates: "Certificates | None" = None) -> "AdmissionWebhook":
    """Return the admission webhook. Every replica serves it, so no lease fences it."""
    # Imported here: only the webhook makes certificates.
    from trimtab.operator.vertical.admission.webhook import AdmissionWebhook  # noqa: PLC0415

    return AdmissionWebhook(
        site.client,
        site.view,
        site.settings,
        AdmissionMetrics(site.registry),
        instance=site.instance,
        certificates=certificates,
    )


def make_roles(site: VerticalRuntime) -> RoleLabelController:
    """Return the controller of role labels."""
    return site.notify_of_shards(
        RoleLabelController(
            site.writer,
            site.ownership,
            site.view,
            site.events,
            site.settings.excluded_namespaces,
            site.loop_metrics,
        )
    )


LOOPS: dict[str, Callable[[VerticalRuntime], Component]] = {
    "recommender": make_recommender,
    "updater": make_updater,
    "admission": make_admission,
    "roles": make_roles,
}
"""The constructor of each vertical component, by its name in `--components`."""


def _replacement_check(site: VerticalRuntime, settings: Settings) -> ReplacementCheck | None:
    """Return the check before each eviction. Upstream has none."""
    for flag, value, known in (
        ("--replacement-check", settings.updater.replacement_check, ("dry-run", "none")),
        ("--node-fit", settings.updater.node_fit, ("free", "allocatable", "none")),
    ):
        if value not in known:
            raise ValueError(f"{flag}={value} is not known; use {', '.join(known)}")
    creates = settings.updater.replacement_check == "dry-run"
    if upstreams(settings.compat) or not (creates or settings.updater.node_fit != "none"):
        return None
    return ReplacementCheck(
        site.client,
        site.view,
        creates,
        settings.updater.node_fit,
        sees_all_pods=not settings.watch_namespaces,
    )


async def _assume_webhook_works() -> str | None:
    """Skip the check, as upstream's --use-admission-controller-status=false does."""
    return None


def _webhook_check(site: VerticalRuntime, settings: Settings) -> WebhookCheck:
    checks: dict[str, Callable[[], WebhookCheck]] = {
        "probe": lambda: AdmissionProbe(site.clock, site.client, settings.namespace).problem,
        "lease": lambda: LeaseCheck(site.clock, site.client, settings.updater).problem,
        "none": lambda: _assume_webhook_works,
    }
    if settings.updater.admission_check not in checks:
        raise ValueError(
            f"--admission-check={settings.updater.admission_check} is not known; use {', '.join(checks)}"
        )
    return checks[settings.updater.admission_check]()
