"""The parts of a pod that decisions need, picked once per change of the pod."""

from datetime import datetime
from sys import intern
from typing import NamedTuple, Protocol

import msgspec

from trimtab.decide.horizontal.arithmetic import NEVER, seconds
from trimtab.decide.horizontal.observation.requests import (
    ContainerRequests,
    PodRequests,
    pod_requests,
)
from trimtab.model.core.meta import Condition, OwnerReference
from trimtab.model.core.pod import Pod
from trimtab.model.json.wire import Wire


class MissingRequestError(ValueError):
    """A pod has no request to measure its utilization against."""


class PodSnapshot(Wire):
    """A pod, reduced to what decisions need, with times in seconds since 1970."""

    name: str
    uid: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    phase: str = ""
    is_deleted: bool = False
    ready: str = ""
    """Status of the Ready condition; empty when the pod has no such condition."""
    ready_since: float = NEVER
    started: float | None = None
    requests: dict[str, int] = msgspec.field(default_factory=dict)
    """Requests of the whole pod in thousandths, for the resources that have one."""
    has_pod_level_requests: bool = False
    overhead: dict[str, int] = msgspec.field(default_factory=dict)
    """The overhead of a pod with pod-level requests, in thousandths."""
    containers: tuple[ContainerRequests, ...] = ()
    owners: tuple[OwnerReference, ...] = ()
    node: str = ""
    """The name of its node, if a pod filter needs nodes."""

    @property
    def is_ready(self) -> bool:
        """Return whether the pod runs and is Ready."""
        return self.phase == "Running" and self.ready == "True"

    def request_of(self, resource: str, container: str = "", *, adds_overhead: bool = False) -> int:
        """Return the request of the pod or of one container, or raise MissingRequestError."""
        if container:
            return self._container_request(resource, container)
        request = self.requests.get(resource)
        if adds_overhead and resource in self.overhead:
            return (request or 0) + self.overhead[resource]
        return request if request is not None else self._unlisted_request(resource)

    def _container_request(self, resource: str, container: str) -> int:
        for candidate in self.containers:
            if candidate.name == container:
                if resource in candidate.requests:
                    return candidate.requests[resource]
                raise MissingRequestError(
                    f"missing request for {resource} in container {container} of Pod {self.name}"
                )
        raise MissingRequestError(f"container {container} not found in Pod {self.name}")

    def _unlisted_request(self, resource: str) -> int:
        if self.has_pod_level_requests:
            raise MissingRequestError(f"missing pod-level request for {resource} in Pod {self.name}")
        for container in self.containers:
            if resource not in container.requests:
                raise MissingRequestError(
                    f"missing request for {resource} in container {container.name} of Pod {self.name}"
                )
        return 0  # a pod without containers requests nothing


class PodMetadata(Protocol):
    """The metadata that a snapshot is taken from."""

    @property
    def name(self) -> str:
        """Return the pod's name."""
        ...

    @property
    def uid(self) -> str:
        """Return the pod's uid."""
        ...

    @property
    def deletion_timestamp(self) -> datetime | None:
        """Return when the pod was deleted."""
        ...


class PodStatusFields(Protocol):
    """The status that a snapshot is taken from."""

    @property
    def phase(self) -> str:
        """Return the phase."""
        ...

    @property
    def start_time(self) -> datetime | None:
        """Return when the pod started."""
        ...

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of that type."""
        ...


class SharedPodFields(NamedTuple):
    """What the pods of one workload have in common, so that they can share one object."""

    labels: dict[str, str]
    owners: tuple[OwnerReference, ...]
    asks: PodRequests


def snapshot_pod(pod: Pod, *, pod_level_resources: bool = True) -> PodSnapshot:
    """Take a snapshot of a pod, with the feature gate `pod_level_resources`."""
    meta = pod.metadata
    asks = pod_requests(pod.spec, pod_level_resources=pod_level_resources)
    return build_snapshot(meta, pod.status, SharedPodFields(meta.labels, meta.owner_references, asks))


def build_snapshot(
    meta: PodMetadata, status: PodStatusFields, template: SharedPodFields, node: str = ""
) -> PodSnapshot:
    """Build a snapshot from the pod's own fields and its template.

    The few words of a status are interned, because they are the same in every pod.
    """
    condition = status.condition("Ready")
    asks = template.asks
    return PodSnapshot(
        name=meta.name,
        uid=meta.uid,
        labels=template.labels,
        phase=intern(status.phase),
        is_deleted=meta.deletion_timestamp is not None,
        ready=intern(condition.status) if condition else "",
        ready_since=seconds(condition.last_transition_time) if condition else NEVER,
        started=None if status.start_time is None else seconds(status.start_time),
        requests=asks.requests,
        has_pod_level_requests=asks.is_pod_level,
        overhead=asks.overhead,
        containers=asks.containers,
        owners=template.owners,
        node=node,
    )
