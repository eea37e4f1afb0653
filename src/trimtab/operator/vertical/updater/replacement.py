"""Checks before an eviction that the replacement would be admitted, differs, and fits on a node.

The replacement is built from the controller's template and created with `dryRun=All`. The API server then runs all
webhooks, policies, LimitRanges and quotas, and stores nothing.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from trimtab.cluster import errors
from trimtab.cluster.client import Client, PatchType, Preconditions
from trimtab.cluster.resource import PODS, Json
from trimtab.decide.vertical.admission.startup_boost import without_boosts
from trimtab.decide.vertical.resources.container_resources import NOTHING, requests_and_limits
from trimtab.decide.vertical.resources.limit_ranges import NamespaceRanges
from trimtab.decide.vertical.resources.node_fit import PlacedPod, no_node_fits, node_rooms
from trimtab.decide.vertical.resources.pod_rules import SIZED, pod_totals, scheduler_requests
from trimtab.decide.vertical.resources.proportional import units_of
from trimtab.decide.vertical.update.resize.plan import plan_resize, size_running_pod
from trimtab.model.core.pod import Pod, PodSpec, ResourceList
from trimtab.model.core.scheduling import PlacedSpec
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity, QuantityError
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.updater.templates import Templates

log = logging.getLogger(__name__)
REFUSED, UNCHANGED, NO_NODE_FITS = "ReplacementRefused", "ReplacementUnchanged", "NoNodeFits"
FREE_ROOM_UNKNOWN = "FreeRoomUnknown"
_MISSING_RIGHT = 'cannot create resource "pods"'
_QUOTA: Final = re.compile(r"exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)")
_DRY_RUN = [("dryRun", "All")]


@dataclass(frozen=True)
class Obstacle:
    """Why an evicted pod would not come back with its new size, with the reason of an event."""

    reason: str
    message: str


@dataclass
class ReplacementCheck:
    """Checks the replacements of one step."""

    client: Client
    view: ClusterView
    creates: bool = True
    """Whether replacements are created in dry runs. Otherwise only nodes are checked."""
    node_fit: str = "free"
    """What a node must have for a replacement: `free` room, `allocatable` room, or `none` (no check)."""
    sees_all_pods: bool = True
    """Whether the updater watches all namespaces. Otherwise the free room of nodes is unknown."""
    _used: dict[str, dict[str, int]] | None = None
    _templates: Templates = field(init=False)

    def __post_init__(self) -> None:
        self._templates = Templates(self.client, self.view.discovery)

    async def obstacle(self, pod: Pod, vpa: VerticalPodAutoscaler) -> Obstacle | None:
        """Return why the pod should not be evicted, or None if its replacement would run."""
        wanted = await self._templates.replacement(pod)
        made: Json | None = None
        if self.creates:
            try:
                made = await self.client.create(
                    PODS.untyped(), wanted, pod.metadata.namespace, query=_DRY_RUN
                )
            except errors.ApiError as error:
                if obstacle := await self._refused(pod, wanted, vpa, error):
                    return obstacle
            else:
                if self.client.is_dry_run:
                    made = (
                        None  # our webhook changes nothing in a dry run, so the server's answer has no size
                    )
                elif _is_same_size(pod, made):
                    message = f"the replacement of pod {pod.name} would have the same size as it has"
                    return Obstacle(UNCHANGED, message)
        return self._unplaceable(pod, made or self._sized(wanted, pod, vpa))

    def _sized(self, wanted: Json, pod: Pod, vpa: VerticalPodAutoscaler) -> Json:
        """Return a replacement with the sizes that our webhook would give it."""
        ranges = NamespaceRanges(tuple(self.view.limit_ranges)).of(pod.metadata.namespace)
        sizing = size_running_pod(pod, vpa, ranges, self.view.rules, self.view.server_rules)
        given = {
            container.name: sizes
            for container, sizes in zip(pod.spec.containers, sizing.containers, strict=True)
        }
        for container in wanted["spec"]["containers"]:
            resources = container.setdefault("resources", {})
            sizes = given.get(container["name"], NOTHING)
            for part, amounts in (("requests", sizes.requests), ("limits", sizes.limits)):
                texts = {name: str(amount) for name, amount in amounts.items()}
                resources[part] = {**(resources.get(part) or {}), **texts}
        return wanted

    async def _refused(
        self, pod: Pod, wanted: Json, vpa: VerticalPodAutoscaler, error: errors.ApiError
    ) -> Obstacle | None:
        """Return the obstacle behind a refused dry run, or None if an eviction is possible anyway."""
        text = str(error)
        if isinstance(error, errors.Forbidden) and _MISSING_RIGHT in text:
            log.warning(
                "replacements are not proved by dry runs, for lack of the right to create pods: %s", error
            )
            return None
        if isinstance(error, errors.Forbidden) and _is_quota_met(text, pod):
            return await self._unmet_quota(pod, wanted, vpa, error)
        if error.code >= 500 or isinstance(error, errors.TooManyRequests | errors.NotFound):
            raise error
        return Obstacle(REFUSED, f"the replacement of pod {pod.name} would be refused: {error}")

    async def _unmet_quota(
        self, pod: Pod, wanted: Json, vpa: VerticalPodAutoscaler, error: errors.Forbidden
    ) -> Obstacle | None:
        """Return why another quota may refuse the replacement, since the server names the first one only.

        A replacement that is no larger takes the room of its pod. For a larger one a resize of the pod is tried in a
        dry run: quotas count the difference, as if the replacement stood in the place of the pod.
        """
        sized = wire.convert(self._sized(wanted, pod, vpa), PlacedPod).spec
        if _is_no_larger(sized, pod.spec):
            return None
        try:
            resized = await self._resized(pod, vpa)
        except errors.ApiError as other:
            if other.code >= 500 or isinstance(other, errors.TooManyRequests):
                raise
            if isinstance(other, errors.Forbidden) and _QUOTA.search(str(other)):
                return Obstacle(REFUSED, f"the replacement of pod {pod.name} would be refused: {other}")
            resized = pod
        if _is_no_larger(sized, resized.spec):
            return None
        message = (
            f"the replacement of pod {pod.name} may be refused: it asks for more than the pod, and whether all quotas have "
            f"room for that cannot be told; the first one is met only in the place of the pod: {error}"
        )
        return Obstacle(REFUSED, message)

    async def _resized(self, pod: Pod, vpa: VerticalPodAutoscaler) -> Pod:
        """Return the pod after a dry run of an in-place resize to the size of its replacement."""
        ranges = NamespaceRanges(tuple(self.view.limit_ranges)).of(pod.metadata.namespace)
        sizing = size_running_pod(pod, vpa, ranges, self.view.rules, self.view.server_rules)
        now = self.client.clock.now()
        plan = plan_resize(pod, vpa, sizing.containers, now, self.view.rules, self.view.server_rules)
        return await self.client.patch(
            PODS,
            pod.name,
            pod.metadata.namespace,
            list(plan.operations),
            how=PatchType.JSON,
            preconditions=Preconditions(uid=pod.metadata.uid),
            subresource="resize",
            is_dry_run=True,
        )

    def _unplaceable(self, pod: Pod, wanted: Json) -> Obstacle | None:
        if self.node_fit == "none":
            return None
        used = self._requests_by_node() if self.node_fit == "free" else {}
        own = used.get(pod.spec.node_name)
        if own is not None:
            gone = _units(pod.spec)
            used = {**used, pod.spec.node_name: {name: own[name] - gone[name] for name in SIZED}}
        spec = wire.convert(wanted, PlacedPod).spec
        misfit = no_node_fits(spec, node_rooms(self.view.nodes, used))
        if misfit is not None:
            return Obstacle(NO_NODE_FITS, f"pod {pod.name} is not evicted: {misfit.message}")
        return self._unknown_room(pod, spec)

    def _unknown_room(self, pod: Pod, spec: PlacedSpec) -> Obstacle | None:
        """Return why a larger replacement may find no free room."""
        if self.node_fit != "free" or self.sees_all_pods:
            return None
        before, after = _units(pod.spec), _units(spec)
        growing = [name for name in SIZED if after[name] > before[name]]
        if not growing:
            return None
        message = (
            f"pod {pod.name} is not evicted: its replacement requests more {' and '.join(growing)}, and the free room of "
            "nodes is not known, because pods of other namespaces are not watched; --node-fit=allocatable evicts it"
        )
        return Obstacle(FREE_ROOM_UNKNOWN, message)

    def _requests_by_node(self) -> dict[str, dict[str, int]]:
        """Return the requests of the pods of each node, added up once per step."""
        if self._used is None:
            self._used = {}
            known: dict[tuple[int, ...], dict[str, int]] = {}
            for pod in self.view.pods:
                if not pod.spec.node_name or pod.is_finished:
                    continue
                spec = pod.spec
                # Pods of one template share these objects, so each template is added up once.
                key = (id(spec.containers), id(spec.init_containers), id(spec.resources), id(spec.overhead))
                if key not in known:
                    known[key] = _units(spec)
                total = self._used.setdefault(spec.node_name, dict.fromkeys(SIZED, 0))
                for name in SIZED:
                    total[name] += known[key][name]
        return self._used


def _units(spec: PodSpec) -> dict[str, int]:
    asked = scheduler_requests(spec)
    return {name: units_of(name)[0](asked[name]) if name in asked else 0 for name in SIZED}


def _is_same_size(pod: Pod, made: Json) -> bool:
    """Return whether every container would keep its CPU and memory, without startup boosts.

    The actual resources count: while a resize is pending, the spec already has the size of the replacement.
    """
    before = without_boosts(pod)
    after_by_name = {
        container.name: container.resources
        for container in without_boosts(wire.convert(made, Pod)).spec.containers
    }
    return all(
        _sized(*requests_and_limits(before, container.name)) == _sized(after.requests, after.limits)
        for container in before.spec.containers
        if (after := after_by_name.get(container.name)) is not None
    )


def _sized(requests: ResourceList, limits: ResourceList) -> list[Quantity | None]:
    return [amounts.get(name) for amounts in (requests, limits) for name in SIZED]


def _is_quota_met(text: str, pod: Pod) -> bool:
    """Return whether an exceeded quota would have room after the pod is gone."""
    match = _QUOTA.search(text)
    if match is None:
        return False
    requested, used, limited = (_amounts(part) for part in match.groups()[1:])
    freed = _freed(pod)
    if not requested or not all(name in freed and name in used and name in limited for name in requested):
        return False
    return all(used[name] - freed[name] + requested[name] <= limited[name] for name in requested)


def _amounts(text: str) -> dict[str, Quantity]:
    amounts: dict[str, Quantity] = {}
    for part in text.split(","):
        name, _, amount = part.partition("=")
        try:
            amounts[name] = Quantity.parse(amount)
        except QuantityError:
            return {}
    return amounts


def _freed(pod: Pod) -> Mapping[str, Quantity]:
    """Return the quota that a deleted pod frees."""
    single = Quantity.from_int(1)
    return {"pods": single, "count/pods": single, **scheduler_requests(pod.spec), **_counted(pod.spec)}


def _counted(spec: PodSpec) -> dict[str, Quantity]:
    """Return the requests and limits that quotas count for a pod."""
    requests = {f"requests.{name}": amount for name, amount in scheduler_requests(spec).items()}
    limits = {
        f"limits.{name}": amount + spec.overhead.get(name, Quantity.zero)
        for name, amount in pod_totals(spec).limits.items()
    }
    return {**requests, **limits}


def _is_no_larger(spec: PodSpec, other: PodSpec) -> bool:
    most = _counted(other)
    return all(amount <= most.get(name, Quantity.zero) for name, amount in _counted(spec).items())
