"""Builds the vertical components from a client, caches and settings."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from trimtab.cluster.leases.family import Family, ShardUser
from trimtab.decide.vertical.recommend.plugin_estimates import loaded_estimators
from trimtab.model.author import Author
from trimtab.operator.control_loop import ControlLoop, ControlLoopMetrics
from trimtab.operator.horizontal.usage import ListAllPolicy
from trimtab.operator.ownership import shards_gauge, transitions_of
from trimtab.operator.process import Component
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.compat import upstreams
from trimtab.operator.settings.declare import reject_bad_values
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.cluster_view import ClusterView, vpa_rules
from trimtab.operator.vertical.estimation import Estimation
from trimtab.operator.vertical.kinds import kinds_of
from trimtab.operator.vertical.metrics import (
    AdmissionMetrics,
    RecommenderMetrics,
    UpdaterMetrics,
)
from trimtab.operator.vertical.recommender import controller as recommender
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
        if isinstance(fence, Family) and "horizontal" not in settings.components:
            shards_gauge(self.registry).set_function(lambda: len(fence.held()))
        self.caches = runtime.component_informers()
        gates = settings.gates
        self.view = ClusterView(
            runtime.client,
            runtime.discovery,
            self.caches,
            gates=gates,
            rules=vpa_rules(settings.compat),
            kinds=kinds_of(settings),
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
        """Notify a loop of shards that this replica gains and loses, and return the loop."""
        if isinstance(self.fence, Family):
            self.fence.serve(loop)
        return loop


def make_recommender(
    vertical: VerticalRuntime, history: HistoryLoader | None = None
) -> recommender.Recommender:
    """Return the recommender, with the given history or the one of the settings."""
    settings = vertical.settings
    metrics = RecommenderMetrics(vertical.registry)

    def count(is_error: bool) -> None:
        metrics.responses.labels("true" if is_error else "false", "metrics.k8s.io").inc()

    list_all = ListAllPolicy(vertical.clock, vertical.caches)
    usage = UsageFeed(vertical.runtime.metrics, list_all, count)
    deps = recommender.RecommenderDeps(
        vertical.clock,
        vertical.writer,
        vertical.ownership,
        vertical.view,
        usage,
        vertical.events,
        metrics,
        vertical.loop_metrics,
        vertical.runtime.author_for,
    )
    return vertical.notify_of_shards(
        recommender.Recommender(
            deps,
            settings.recommender,
            settings.namespace_rules,
            Estimation.from_settings(
                settings.estimation, loaded_estimators(vertical.runtime.guards, settings.plugins)
            ),
            history or make_history(vertical.clock, settings.history, metrics),
        )
    )


def make_updater(vertical: VerticalRuntime, webhook_check: WebhookCheck | None = None) -> updater.Updater:
    """Return the updater, with the given webhook check or the one of the settings."""
    settings = vertical.settings
    reject_bad_values(settings.updater)  # at start, not in the first step
    fence = vertical.fence[UPDATING_SHARD] if isinstance(vertical.fence, Family) else vertical.fence
    deps = updater.UpdaterDeps(
        vertical.clock,
        vertical.client.fenced(fence),
        fence,
        vertical.view,
        webhook_check or _webhook_check(vertical, settings),
        vertical.events,
        UpdaterMetrics(vertical.registry),
        vertical.loop_metrics,
        lambda: _replacement_check(vertical, settings),
        lambda: Author(replica=vertical.instance, lease_transitions=transitions_of(fence)),
    )
    made = updater.Updater(deps, settings.updater, settings.namespace_rules)
    vertical.notify_of_shards(_UpdatingShard(made))
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


def make_admission(
    vertical: VerticalRuntime, certificates: "Certificates | None" = None
) -> "AdmissionWebhook":
    """Return the admission webhook. Every replica serves it, so no lease fences it."""
    # Imported here: only the webhook makes certificates.
    from trimtab.operator.vertical.admission.webhook import AdmissionWebhook  # noqa: PLC0415

    return AdmissionWebhook(
        vertical.client,
        vertical.view,
        vertical.settings,
        AdmissionMetrics(vertical.registry),
        instance=vertical.instance,
        certificates=certificates,
    )


def make_roles(vertical: VerticalRuntime) -> RoleLabelController:
    """Return the controller of role labels."""
    return vertical.notify_of_shards(
        RoleLabelController(
            vertical.writer,
            vertical.ownership,
            vertical.view,
            vertical.events,
            vertical.settings.namespace_rules.excluded,
            vertical.loop_metrics,
        )
    )


LOOPS: dict[str, Callable[[VerticalRuntime], Component]] = {
    "recommender": make_recommender,
    "updater": make_updater,
    "admission": make_admission,
    "roles": make_roles,
}
"""The constructor of each vertical component, by its name in `--components`."""


def _replacement_check(vertical: VerticalRuntime, settings: Settings) -> ReplacementCheck | None:
    """Return the check before each eviction. Upstream has none."""
    creates = settings.updater.replacement_check == "dry-run"
    if upstreams(settings.compat) or not (creates or settings.updater.node_fit != "none"):
        return None
    return ReplacementCheck(
        vertical.client,
        vertical.view,
        creates,
        settings.updater.node_fit,
        sees_all_pods=not settings.watch_namespaces,
    )


async def _assume_webhook_works() -> str | None:
    """Skip the check, as upstream's --use-admission-controller-status=false does."""
    return None


def _webhook_check(vertical: VerticalRuntime, settings: Settings) -> WebhookCheck:
    checks: dict[str, Callable[[], WebhookCheck]] = {
        "probe": lambda: AdmissionProbe(vertical.clock, vertical.client, settings.namespace).problem,
        "lease": lambda: LeaseCheck(vertical.clock, vertical.client, settings.updater).problem,
        "none": lambda: _assume_webhook_works,
    }
    return checks[settings.updater.admission_check]()
