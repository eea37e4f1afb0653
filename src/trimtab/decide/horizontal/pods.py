"""What a decision needs to know of a pod, picked once per change of the pod and not once per decision."""

import msgspec

from trimtab.decide.horizontal.requests import (
    ContainerRequests,
    container_requests,
    pod_level_requests,
    summed_requests,
)
from trimtab.decide.horizontal.timing import NEVER, seconds
from trimtab.model.meta import OwnerReference
from trimtab.model.pod import Pod
from trimtab.model.wire import Wire


class MissingRequestError(ValueError):
    """A pod does not ask for the resource that its utilisation is wanted of; the text is upstream's."""


class PodFacts(Wire):
    """A pod, reduced to what counts for replicas; times are seconds since 1970."""

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
    containers: tuple[ContainerRequests, ...] = ()
    owners: tuple[OwnerReference, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Return whether the pod runs and says that it is ready."""
        return self.phase == "Running" and self.ready == "True"

    def request_of(self, resource: str, container: str = "") -> int:
        """Return the request of the pod, or of one of its containers; raise MissingRequestError if there is none."""
        if container:
            return self._container_request(resource, container)
        request = self.requests.get(resource)
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
        return 0  # a pod without containers asks for nothing


def pod_facts(pod: Pod, *, pod_level_resources: bool = True) -> PodFacts:
    """Pick the facts of a pod; `pod_level_resources` is the gate of that name."""
    condition = pod.status.condition("Ready")
    containers = container_requests(pod)
    pod_level = pod_level_requests(pod) if pod_level_resources else None
    return PodFacts(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        labels=pod.metadata.labels,
        phase=pod.status.phase,
        is_deleted=pod.metadata.deletion_timestamp is not None,
        ready=condition.status if condition else "",
        ready_since=seconds(condition.last_transition_time) if condition else NEVER,
        started=None if pod.status.start_time is None else seconds(pod.status.start_time),
        requests=summed_requests(containers) if pod_level is None else pod_level,
        has_pod_level_requests=pod_level is not None,
        containers=containers,
        owners=pod.metadata.owner_references,
    )
