"""Proof that an evicted pod would come back: its replacement is admitted, differs, and some node has room for it.

The replacement is made as its controller would make it, from the controller's template, and created with
`dryRun=All`. The API server sends it through every webhook, policy, LimitRange and quota, and stores nothing.
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
from trimtab.decide.vertical.resources.node_fit import PlacedPod, PlacedSpec, no_node_fits, node_rooms
from trimtab.decide.vertical.resources.pod_rules import SIZED, pod_totals, scheduler_requests
from trimtab.decide.vertical.resources.proportional import units_of
from trimtab.decide.vertical.update.resize.plan import plan_resize, size_running_pod
from trimtab.model.core.pod import Pod, PodSpec, ResourceList
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
    """Why a pod that is evicted would not come back as it should; the reason is that of an event."""

    reason: str
    message: str


@dataclass
class ReplacementCheck:
    """Asks for one pod after the other, within one loop."""

    client: Client
    view: ClusterView
    creates: bool = True
    """Whether replacements are created in dry runs; else only nodes are looked at."""
    node_fit: str = "free"
    """What a node must have for a replacement: `free` room, `allocatable` room, or `none` is looked for."""
    sees_all_pods: bool = True
    """Whether the updater watches every namespace; else nobody knows which room of a node is free."""
    _used: dict[str, dict[str, int]] | None = None
    _templates: Templates = field(init=False)

    def __post_init__(self) -> None:
        self._templates = Templates(self.client, self.view.discovery)

    async def obstacle(self, pod: Pod, vpa: VerticalPodAutoscaler) -> Obstacle | None:
        """Return why the pod should not be evicted; None if its replacement would be admitted and placed."""
        wanted = await self._templates.replacement(pod)
        made: Json | None = None
        if self.creates:
            try:
                made = await self.client.create(
                    PODS.untyped(), wanted, pod.metadata.namespace, query=_DRY_RUN
                )
            except errors.ApiError as error:
                if found := await self._refused(pod, wanted, vpa, error):
                    return found
            else:
                if self.client.is_dry_run:
                    made = (
                        None  # our webhook changes nothing in a dry run, so the server cannot tell the size
                    )
                elif _is_same_size(pod, made):
                    message = f"the replacement of pod {pod.name} would have the same size as it has"
                    return Obstacle(UNCHANGED, message)
        return self._unplaceable(pod, made or self._sized(wanted, pod, vpa))

    def _sized(self, wanted: Json, pod: Pod, vpa: VerticalPodAutoscaler) -> Json:
        """Return a replacement with the sizes that admission would give it, where no server was asked."""
        ranges = NamespaceRanges(tuple(self.view.limit_ranges)).of(pod.metadata.namespace)
        sizing = size_running_pod(pod, vpa, ranges, self.view.compat)
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
        """Return the obstacle that a refused dry run means; None if it means nothing for an eviction."""
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
        """Return why a quota beside the one that was named may refuse the replacement; the server names the first only.

        What is not larger than the pod takes the pod's place. For more than that every quota is asked by a dry run of a
        resize: it counts what the pod would have beyond what it has, as if its replacement stood in its place.
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
        """Return the pod as a resize in place to the size of its replacement would leave it."""
        ranges = NamespaceRanges(tuple(self.view.limit_ranges)).of(pod.metadata.namespace)
        sizing = size_running_pod(pod, vpa, ranges, self.view.compat)
        plan = plan_resize(pod, vpa, sizing.containers, self.client.clock.now(), self.view.compat)
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
        found = no_node_fits(spec, node_rooms(self.view.nodes, used))
        if found is not None:
            return Obstacle(NO_NODE_FITS, f"pod {pod.name} is not evicted: {found.message}")
        return self._unknown_room(pod, spec)

    def _unknown_room(self, pod: Pod, spec: PlacedSpec) -> Obstacle | None:
        """Return why a replacement may find no free room; one that requests no more takes the room of its pod."""
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
        """Return what the pods of each node request, counted once per loop."""
        if self._used is None:
            self._used = {}
            known: dict[tuple[int, ...], dict[str, int]] = {}
            for pod in self.view.pods:
                if not pod.spec.node_name or pod.is_finished:
                    continue
                spec = pod.spec
                # Pods of one template share these values, so each template is added up once.
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
    """Return whether no container would be given another CPU or memory than it has, startup boosts left out.

    What it has, not what it asks for: while a resize waits, the spec already asks for what the replacement gets.
    """
    before = without_boosts(pod)
    made_of = {one.name: one.resources for one in without_boosts(wire.convert(made, Pod)).spec.containers}
    return all(
        _sized(*requests_and_limits(before, container.name)) == _sized(after.requests, after.limits)
        for container in before.spec.containers
        if (after := made_of.get(container.name)) is not None
    )


def _sized(requests: ResourceList, limits: ResourceList) -> list[Quantity | None]:
    return [amounts.get(name) for amounts in (requests, limits) for name in SIZED]


def _is_quota_met(text: str, pod: Pod) -> bool:
    """Return whether a quota that is exceeded beside the pod would be met in its place."""
    found = _QUOTA.search(text)
    if found is None:
        return False
    requested, used, limited = (_amounts(part) for part in found.groups()[1:])
    freed = _freed(pod)
    if not requested or not all(name in freed and name in used and name in limited for name in requested):
        return False
    return all(used[name] - freed[name] + requested[name] <= limited[name] for name in requested)


def _amounts(text: str) -> dict[str, Quantity]:
    found: dict[str, Quantity] = {}
    for part in text.split(","):
        name, _, amount = part.partition("=")
        try:
            found[name] = Quantity.parse(amount)
        except QuantityError:
            return {}
    return found


def _freed(pod: Pod) -> Mapping[str, Quantity]:
    """Return what a quota counts for a pod that goes."""
    one = Quantity.from_int(1)
    return {"pods": one, "count/pods": one, **scheduler_requests(pod.spec), **_counted(pod.spec)}


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
