"""The vertical side: recommender, updater and webhook in virtual time.

`Recommender` takes pods, usage and kills, and gives statuses and checkpoints. `Updater` runs update loops against a simulated
API server. `admit` answers for the webhook. All rules are those of `decide` and `operator`, in the order of their programs.
"""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import msgspec
from prometheus_client import CollectorRegistry

from trimtab.cluster import errors
from trimtab.cluster.cache.parts import Share
from trimtab.cluster.cache.shared import NamespacedInformer
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.client import NO_PRECONDITIONS, Client, PatchType, Preconditions
from trimtab.cluster.discovery import Discovery, Served
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.leases.fence import Fence, NoFence
from trimtab.decide.vertical.admission.admit import admit_pod
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.garbage import AggregateCollector
from trimtab.decide.vertical.control.controllers import Controller, ControllerIndex, ControllerKey
from trimtab.decide.vertical.input.checkpoints import save_checkpoints
from trimtab.decide.vertical.input.oom import ooms_of_update
from trimtab.decide.vertical.recommend.plugin_estimates import NO_ESTIMATORS, Estimators, collect_samples
from trimtab.decide.vertical.recommend.quality import expectations_of
from trimtab.decide.vertical.update.disruption_ledger import START_TIMEOUT
from trimtab.decide.vertical.update.resize.annotation import read_resize_annotation
from trimtab.decide.vertical.update.resize.status import ResizeStatus, differs_from_status, resize_status
from trimtab.library.simulator.workload import NEVER, SimulatedNode, SimulatedPod, Used, Workload, moment_of
from trimtab.model import times
from trimtab.model.core.meta import NamespacedName, ObjectMeta
from trimtab.model.core.objects import LimitRange, Node, NodeStatus, ObjectReference
from trimtab.model.core.pod import CPU, MEMORY, Pod, PodSpec
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.metrics_api import ContainerMetrics, MeasuredPod, PodMetrics, PodMetricsList
from trimtab.model.quantity import Quantity
from trimtab.model.status import Status, StatusCause, StatusDetails
from trimtab.model.times import SECOND_NS, format_time
from trimtab.model.vpa.types import (
    VerticalPodAutoscaler,
    VerticalPodAutoscalerCheckpoint,
    VerticalPodAutoscalerStatus,
    VPAScope,
)
from trimtab.operator.control_loop import ControlLoopMetrics
from trimtab.operator.ownership import Ownership
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.vpa_lookup import VpaLookup
from trimtab.operator.vertical.cluster_view import ClusterView, vpa_rules
from trimtab.operator.vertical.estimation import Estimation
from trimtab.operator.vertical.metrics import RecommenderMetrics, UpdaterMetrics
from trimtab.operator.vertical.recommender.bootstrap import HistoryBootstrap
from trimtab.operator.vertical.recommender.checkpoint_objects import owner_vpa
from trimtab.operator.vertical.recommender.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.feeder import ClusterStateFeeder
from trimtab.operator.vertical.recommender.oom_watcher import Kill, OomObserver
from trimtab.operator.vertical.recommender.samples import SampleFeeder
from trimtab.operator.vertical.recommender.status_builder import StatusBuilder
from trimtab.operator.vertical.recommender.usage import PodCapacities, UsageFeed, add_usage
from trimtab.operator.vertical.targets import Controllers, Unsupported
from trimtab.operator.vertical.updater.controller import Updater as ProductionUpdater
from trimtab.operator.vertical.updater.controller import UpdaterDeps
from trimtab.operator.vertical.updater.replacement import ReplacementCheck
from trimtab.operator.vertical.vpa_cache import VpaCache

Checkpoints = tuple[VerticalPodAutoscalerCheckpoint, ...]
T = TypeVar("T")
O = TypeVar("O", Pod, VerticalPodAutoscaler, Node)  # noqa: E741 - an object
NOT_MEASURED = ("Nonem", "None")
GC_NS = 3600 * SECOND_NS


class Refusal(NamedTuple):
    """What the API server says to a request that it refuses: the code, and the reason of the cause."""

    code: int
    message: str
    cause: str = ""


class ApiServer(Protocol):
    """The cluster as production sees it."""

    workload: Workload
    vpas: dict[str, VerticalPodAutoscaler]
    """By `namespace/name`."""
    scopes: dict[str, VPAScope]
    limit_ranges: tuple[LimitRange, ...]
    serves_webhook: bool

    @property
    def now(self) -> float:
        """Return the Unix time."""
        ...

    def refusal(self, request: str, pod: str) -> Refusal | None:
        """Return why a request (`resize`, `evict`) about a pod is refused now."""
        ...

    def did(self, what: str, pod: str) -> None:
        """Count a request: `annotate`, `resize`, `evict`, or one of the latter that was `refused`."""
        ...

    def note(self, text: str) -> None:
        """Log what an autoscaler did."""
        ...


class _Informer(Generic[O]):
    """A cache that is always up to date."""

    def __init__(self, items: Callable[[], Iterable[O]]) -> None:
        self._items: Callable[[], Iterable[O]] = items
        self._subscribers: list[Callable[[Delta[O]], None]] = []

    def __iter__(self) -> Iterator[O]:
        return iter(self._items())

    def get(self, name: str, namespace: str) -> O | None:
        return next((item for item in self._items() if item.metadata.name == name), None)

    def subscribe(self, subscriber: Callable[[Delta[O]], None]) -> None:
        self._subscribers.append(subscriber)

    def publish(self, old: O | None, new: O | None) -> None:
        change = (
            CacheEvent.ADDED if old is None else CacheEvent.DELETED if new is None else CacheEvent.UPDATED
        )
        for subscriber in self._subscribers:
            subscriber(Delta(change, old, new))


class _VpaInformer(_Informer[VerticalPodAutoscaler]):
    """The VPAs. A candidate names each once."""

    def is_superseded(self, _vpa: VerticalPodAutoscaler) -> bool:
        return False


class _Controllers(Mapping[ControllerKey, Controller]):
    """The simulated workload and, of a Deployment, its ReplicaSets."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    def _all(self) -> dict[ControllerKey, Controller]:
        workload = self._api.workload
        top = ControllerKey(workload.namespace, workload.kind, workload.name)
        revisions = {pod.revision for pod in workload.pods} | {workload.revision}
        sets = (f"{workload.name}-{revision}" for revision in sorted(revisions))
        below = {
            ControllerKey(workload.namespace, "ReplicaSet", name): Controller(top)
            for name in sets
            if workload.kind == "Deployment"
        }
        return {top: Controller(), **below}

    def __getitem__(self, key: ControllerKey) -> Controller:
        return self._all()[key]

    def __iter__(self) -> Iterator[ControllerKey]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def replicas(self, key: ControllerKey) -> int:
        """Return how many pods the controller should have: an older ReplicaSet those that are left."""
        workload = self._api.workload
        if key.kind != "ReplicaSet" or key.name == f"{workload.name}-{workload.revision}":
            return workload.replicas
        return sum(key.name == f"{workload.name}-{pod.revision}" for pod in workload.pods)

    def owners(self) -> ControllerIndex:
        return ControllerIndex(self._all())

    def cached_selector(self, vpa: VerticalPodAutoscaler) -> Selector | Unsupported:
        workload, target = self._api.workload, vpa.spec.target_ref
        if target is None or (target.kind, target.name) != (workload.kind, workload.name):
            return Unsupported("the target does not exist")
        labels = sorted(workload.selector.items())
        return Selector.parse(",".join(f"{key}={value}" for key, value in labels))

    async def selector_of(self, vpa: VerticalPodAutoscaler) -> Selector | Unsupported:
        return self.cached_selector(vpa)

    async def resolve_target(self, vpa: VerticalPodAutoscaler) -> None:
        """Do nothing: the workload is known."""

    async def resolve(self, pods: Iterable[Pod]) -> None:
        """Do nothing: the owners are known."""


class _Discovery:
    """What a current API server serves."""

    async def served(self, group: str, version: str, plural: str) -> Served:
        return Served(group, version, plural, "", True, frozenset({"resize", "eviction"}))

    async def find_kind(self, api_version: str, kind: str) -> Served:
        group, _, version = api_version.rpartition("/")
        return Served(group, version, f"{kind.lower()}s", kind, True)

    async def kubernetes(self) -> str:
        return "1.37"


class View(ClusterView):
    """The view of a simulated cluster."""

    def __init__(self, api: ApiServer, settings: Settings, estimators: Estimators = NO_ESTIMATORS) -> None:
        self.estimators = estimators
        self.gates, self.rules, self.api = settings.gates, vpa_rules(settings.compat), api
        self.share, self.discovery = Share(), cast("Discovery", _Discovery())
        self.pod_cache: _Informer[Pod] = _Informer(lambda: [pod.api for pod in api.workload.pods])
        self.vpa_cache = _VpaInformer(lambda: list(api.vpas.values()))
        self.pods = cast("NamespacedInformer[Pod]", self.pod_cache)
        self.vpas = cast("VpaCache", self.vpa_cache)
        self.controllers = cast("Controllers", _Controllers(api))
        self.nodes = cast(
            "NamespacedInformer[Node]", _Informer(lambda: map(_node, api.workload.nodes.values()))
        )
        self._scopes = None
        self._kubernetes, self._version, self._snapshot = "1.37", 0, None

    @property
    def limit_ranges(self) -> Any:
        """Return the LimitRanges."""
        return self.api.limit_ranges

    def scopes(self) -> Iterable[VPAScope]:
        """Return the VPAScopes."""
        return self.api.scopes.values() if self.gates.vpa_selector_refinement else ()

    @property
    def has_synced(self) -> bool:
        """Return True: there is no delay between the server and its caches."""
        return True

    def stale_namespaces(self) -> dict[str, str]:
        """Return none."""
        return {}

    def changed(self) -> None:
        """Note that VPAs, scopes, nodes or controllers changed."""
        self._version += 1


def _node(node: SimulatedNode) -> Node:
    room = (node.cpu - node.taken[0], node.memory - node.taken[1])
    status = NodeStatus(capacity=_resources(node.cpu, node.memory), allocatable=_resources(*room))
    return Node(metadata=ObjectMeta(name=node.name, labels=node.labels), status=status)


def _resources(cpu: int, memory: int) -> dict[str, Quantity]:
    return {CPU: Quantity.from_milli(cpu), MEMORY: Quantity.from_int(memory, "BinarySI")}


class _Clock:
    """The time of the simulation. A wait ends at once: a step takes no time."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    def now(self) -> datetime:
        return moment_of(self._api.now)

    def monotonic(self) -> float:
        return self._api.now

    async def sleep(self, seconds: float) -> None:
        """Do not wait."""


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("the simulation cannot wait")


class _Client(Client):
    """The requests that an updater makes."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self.clock = _Clock(api)

    def fenced(self, fence: Fence) -> "Client":
        """Return the client itself: nothing fences a simulation."""
        return self

    @property
    def is_dry_run(self) -> bool:
        """Return False."""
        return False

    async def get(self, resource: Any, name: str, namespace: str | None = None) -> Any:
        """Return a pod, or the controller with its template."""
        if resource.plural != "pods":
            return {"kind": resource.kind, "spec": {"template": self._api.workload.template}}
        pod = self._pod(name).api
        return pod if resource.struct is Pod else _json(pod)

    async def create(self, resource: Any, body: Any, namespace: str | None = None, *, query: Any = ()) -> Any:
        """Admit a pod in a dry run."""
        return self._api.workload.admit(body)

    async def patch(  # noqa: PLR0913 - as the client's
        self,
        resource: Any,
        name: str,
        namespace: str | None,
        body: Any,
        *,
        how: PatchType = PatchType.MERGE,
        preconditions: Preconditions = NO_PRECONDITIONS,
        subresource: str | None = None,
        is_dry_run: bool = False,
    ) -> Any:
        """Annotate or resize a pod."""
        pod = self._pod(name, preconditions)
        if subresource is None:
            self._api.did("annotate", name)
            self._api.workload.annotate(pod, body["metadata"]["annotations"], self._api.now)
            return pod.api
        self._refuse("resize", name)
        spec = wire.convert(apply_operations({"spec": _json(pod.api.spec)}, body)["spec"], PodSpec)
        if is_dry_run:
            return msgspec.structs.replace(pod.api, spec=spec)
        self._api.did("resize", name)
        self._api.workload.resize(pod, spec, self._api.now)
        return pod.api

    async def evict(
        self,
        name: str,
        namespace: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        dry_run: bool = False,
    ) -> None:
        """Evict a pod."""
        pod = self._pod(name, preconditions)
        self._refuse("evict", name)
        self._api.did("evict", name)
        self._api.workload.delete(pod, self._api.now)

    def _pod(self, name: str, preconditions: Preconditions = NO_PRECONDITIONS) -> SimulatedPod:
        pod = self._api.workload.pod(name)
        if pod is None:
            raise errors.NotFound(f"pod {name}", Status(code=404, reason="NotFound"))
        meta = pod.api.metadata
        is_same = preconditions.uid in (None, meta.uid) and preconditions.resource_version in (
            None,
            meta.resource_version,
        )
        if not is_same:
            raise errors.Conflict(f"pod {name}", Status(code=409, reason="Conflict"))
        return pod

    def _refuse(self, request: str, pod: str) -> None:
        refusal = self._api.refusal(request, pod)
        if refusal is not None:
            self._api.did("refused", pod)
            causes = (StatusCause(reason=refusal.cause),) if refusal.cause else ()
            status = Status(
                kind="Status",
                code=refusal.code,
                message=refusal.message,
                details=StatusDetails(causes=causes),
            )
            raise errors.error_from_status(f"{request} pod {pod}", status)


def _json(value: object) -> Any:
    return msgspec.json.decode(wire.encode(value))


def apply_operations(document: dict[str, Any], operations: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Apply the `add` operations of a JSON patch, in place."""
    for operation in operations:
        *way, last = (step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:])
        node: Any = document
        for step in way:
            node = node[int(step)] if isinstance(node, list) else node[step]
        node[last] = operation["value"]
    return document


@dataclass
class _SavedHistory:
    """The checkpoints that a recommender finds when it starts."""

    checkpoints: Checkpoints
    refused: Mapping[str, str]

    async def read(self, vpas: Iterable[NamespacedName]) -> dict[NamespacedName, list[Any]]:
        wanted: dict[NamespacedName, list[Any]] = {vpa: [] for vpa in vpas}
        for checkpoint in self.checkpoints:
            with suppress(KeyError):
                wanted[owner_vpa(checkpoint)].append(checkpoint)
        return wanted


class _Kills:
    """The kills since the last step, as the recommender observes them."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.waiting: tuple[Kill, ...] = ()

    def on_pod(self, delta: Delta[Pod]) -> None:
        if delta.old is not None and delta.new is not None:
            ooms = ooms_of_update(delta.old, delta.new, self._view.rules)
            self.waiting += tuple(Kill(oom, delta.new) for oom in ooms)

    def take(self) -> tuple[Kill, ...]:
        taken, self.waiting = self.waiting, ()
        return taken

    def put_back(self, kills: tuple[Kill, ...]) -> None:
        self.waiting = (*kills, *self.waiting)


class Sample(NamedTuple):
    """What a pod used at a moment. Amounts of resources that were not measured are missing."""

    pod: str
    at: float
    used: Used
    resources: tuple[str, ...] = (CPU, MEMORY)


class Recommender:
    """A process with the recommender. It begins with the checkpoints that it finds."""

    def __init__(self, view: View, settings: Settings, checkpoints: Checkpoints = ()) -> None:
        estimation = Estimation.from_settings(settings.estimation, view.estimators)
        self._view = view
        self._estimators = estimation.estimators
        self._states = ShardedClusterStates(
            lambda: ClusterState(
                estimation.aggregation,
                view.rules,
                per_vpa_config=view.gates.per_vpa_config,
                block_columns=64,
            ),
            Ownership(_Client(view.api), NoFence()),
        )
        self._states.sync_shards()
        served = frozenset({settings.recommender.recommender_name, *estimation.estimators})
        self._feeder = ClusterStateFeeder(
            self._states,
            served,
            settings.namespace_rules.ignored,
            matched_only=settings.recommender.memory_saver,
        )
        metrics = RecommenderMetrics(CollectorRegistry())
        self._history = HistoryBootstrap(
            view, self._states, cast("CheckpointStore", _SavedHistory(checkpoints, {})), metrics
        )
        self._kills = _Kills(view)
        self._samples = SampleFeeder(
            self._states,
            self._feeder,
            self._history,
            cast("UsageFeed", None),
            cast("OomObserver", self._kills),
            metrics,
            self._estimators,
        )
        self._builder = StatusBuilder(
            view, self._states, settings.namespace_rules, estimation, metrics, is_dry_run=False
        )
        self._collector = AggregateCollector(GC_NS)
        self.period = settings.recommender.recommender_interval.total_seconds()
        view.pod_cache.subscribe(self._kills.on_pod)

    def step(
        self, samples: Iterable[Sample]
    ) -> list[tuple[VerticalPodAutoscaler, VerticalPodAutoscalerStatus]]:
        """Run one loop. Return the VPAs whose statuses are to be written."""
        view, api = self._view, self._view.api
        now = moment_of(api.now)
        now_ns = times.to_ns(now)
        control = finish(view.control_snapshot())
        victims = [kill.pod for kill in self._kills.waiting if kill.pod is not None]
        loaded = self._feeder.load(view, control, now_ns, victims)
        capacities = PodCapacities(view.capacities(), self._feeder.node_of)
        finish(self._history.load(control, loaded.new, capacities, now))
        answers = [
            PodMetricsList(items=tuple(_pod_metrics(sample, api.workload.namespace) for sample in samples))
        ]
        (state,) = self._states
        for resource, intake in add_usage(state, answers, capacities, now).reports.items():
            collect_samples(state, self._estimators, resource, intake.usage)
        if self._kills.waiting:
            expected = {state: expectations_of(state)}
            period_ns = int(self.period * SECOND_NS)
            self._samples.add_ooms(frozenset(), expected, capacities, now_ns, period_ns)
        self._feeder.forget_gone()
        changes = self._builder.build(control, loaded, now_ns)
        self._collector.collect(state, now_ns, lambda vpa: True)
        return [(change.vpa, change.status) for change in changes]

    def save(self) -> Checkpoints:
        """Return the checkpoints of all VPAs, as they are saved."""
        (state,) = self._states
        return save_checkpoints(state, list(state.vpas.values()), int(self._view.api.now) * SECOND_NS)


def _pod_metrics(sample: Sample, namespace: str) -> PodMetrics:
    return PodMetrics(
        metadata=MeasuredPod(name=sample.pod, namespace=namespace),
        timestamp=format_time(moment_of(sample.at)),
        containers=tuple(
            ContainerMetrics(
                name=name,
                usage={
                    resource: text
                    for resource, text in ((CPU, f"{cpu}m"), (MEMORY, str(memory)))
                    if resource in sample.resources and text not in NOT_MEASURED
                },
            )
            for name, (cpu, memory) in sample.used.items()
        ),
    )


class _Events:
    """Logs the events of the updater."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    def event(self, about: ObjectReference, kind: str, reason: str, note: str, *, action: str = "") -> None:
        self._api.note(f"{reason}: {about.kind} {about.name}: {note}")


class Updater(ProductionUpdater):
    """A process with the updater."""

    def __init__(self, view: View, settings: Settings) -> None:
        self.woken = False
        self.requests = _Client(view.api)
        registry = CollectorRegistry()
        checks = settings.updater
        creates = checks.replacement_check == "dry-run"
        has_check = not settings.compat and (creates or checks.node_fit != "none")

        async def webhook_problem() -> str | None:
            return None if view.api.serves_webhook else "the webhook does not answer"

        deps = UpdaterDeps(
            _Clock(view.api),
            self.requests,
            NoFence(),
            view,
            webhook_problem,
            cast("EventRecorder", _Events(view.api)),
            UpdaterMetrics(registry),
            ControlLoopMetrics(registry),
            lambda: ReplacementCheck(self.requests, view, creates, checks.node_fit) if has_check else None,
        )
        super().__init__(deps, checks, settings.namespace_rules)
        self.period = checks.updater_interval.total_seconds()

    def wake(self) -> None:
        """Note that a step is wanted early."""
        self.woken = True

    def run_step(self) -> None:
        """Run one loop."""
        self.woken = False
        try:
            finish(self.step())
        except errors.ClusterError as error:
            self._view_api.note(f"the updater's loop failed: {error}")

    def quiet_until(self) -> float:
        """Return until when nothing is left to do, if nothing changes. Time alone changes some decisions."""
        state, now = self._state, self._view_api.now
        limits = state.eviction_limits
        is_open = state.disruptions or state.resizes_first_seen or limits.backoffs or limits.evictions
        is_tried = any(trial.evicted_at or trial.paused_until for trial in limits.trials.values())
        if is_open or is_tried or self._problems or self._again_at or self._view.gates.cpu_startup_boost:
            return now
        return min((self._next_moment(pod, now) for pod in self._view.pods), default=NEVER)

    @property
    def _view_api(self) -> ApiServer:
        return cast("View", self._view).api

    def _next_moment(self, pod: Pod, now: float) -> float:
        """Return when a pod is next old enough, or too long killed, or too long not ready, for another decision."""
        thresholds = self._updating.thresholds
        moments = []
        if (started := pod.status.start_time) is not None:
            moments += [started + thresholds.lifetime, started + START_TIMEOUT]
        moments += [
            condition.last_transition_time + START_TIMEOUT
            for condition in pod.status.conditions
            if condition.last_transition_time is not None
        ]
        for status in pod.status.container_statuses:
            ended = status.last_state.terminated
            if ended is not None and ended.finished_at is not None:
                moments.append(ended.finished_at + thresholds.evict_after_oom)
                moments.append(ended.finished_at + START_TIMEOUT)
        waits = resize_status(pod, moment_of(now)) is not ResizeStatus.NONE or differs_from_status(pod)
        if waits or read_resize_annotation(pod).refused_at is not None:
            return now
        return min((at for at in (moment.timestamp() for moment in moments) if at > now), default=NEVER)


def admission(view: View) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what the webhook does to a new pod."""
    lookup = VpaLookup(_Client(view.api), view)
    for vpa in view.api.vpas.values():
        view.vpa_cache.publish(None, vpa)

    def admit(raw: dict[str, Any]) -> dict[str, Any]:
        if not view.api.serves_webhook:
            return raw
        namespace = view.api.workload.namespace
        context = finish(lookup.admission_context(wire.convert(raw, Pod)))
        return apply_operations(raw, admit_pod(raw, namespace, context).operations)

    return admit
