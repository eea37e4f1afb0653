"""The simulated workload: its pods become ready some time after they are created."""

from dataclasses import dataclass

import msgspec

from trimtab.backtest.model import Model
from trimtab.decide.horizontal import PodSnapshot
from trimtab.decide.horizontal.observation.requests import ContainerRequests
from trimtab.model.core.meta import ObjectMeta, OwnerReference
from trimtab.model.core.workloads import Scale, ScaleSpec, ScaleStatus
from trimtab.model.hpa.types import HorizontalPodAutoscaler

UID = "simulated"
LONG_READY = 3600.0
"""How long the initial pods have been ready, so that they do not count as new."""


@dataclass(slots=True)
class _Pod:
    snapshot: PodSnapshot
    ready_at: float


class SimulatedWorkload:
    """A target with its pods. `scale` and `pods` are what an HPA observes."""

    def __init__(self, hpa: HorizontalPodAutoscaler, model: Model, replicas: int, now: float) -> None:
        reference = hpa.spec.scale_target_ref
        self._owner = OwnerReference(
            api_version=reference.api_version, kind=reference.kind, name=reference.name, uid=UID
        )
        self._meta = ObjectMeta(name=reference.name, namespace=hpa.metadata.namespace, uid=UID)
        self._containers = _containers(hpa, model)
        self._requests = dict(model.requests)
        self._start_seconds = model.start_seconds
        self._created = 0
        self._pods: list[_Pod] = []
        self._next_ready = float("inf")
        self.resize(replicas, now - LONG_READY - model.start_seconds)
        self.advance(now)

    @property
    def replicas(self) -> int:
        """Return the number of pods, ready or not."""
        return len(self._pods)

    def advance(self, now: float) -> None:
        """Mark pods as ready whose start time is over."""
        if now < self._next_ready:
            return
        for pod in self._pods:
            if pod.snapshot.ready != "True" and pod.ready_at <= now:
                pod.snapshot = msgspec.structs.replace(pod.snapshot, ready="True", ready_since=pod.ready_at)
        self._update_views()

    def resize(self, replicas: int, now: float) -> None:
        """Create or delete pods. Like a ReplicaSet, delete unready pods first, then the youngest."""
        missing = replicas - len(self._pods)
        self._pods += [self._create(now) for _ in range(missing)]
        if missing < 0:
            keep = sorted(self._pods, key=lambda pod: (pod.snapshot.ready != "True", pod.ready_at))[:replicas]
            self._pods = sorted(keep, key=lambda pod: pod.ready_at)
        self._update_views()

    def _create(self, now: float) -> _Pod:
        self._created += 1
        snapshot = PodSnapshot(
            name=f"{self._owner.name}-{self._created}",
            uid=f"{UID}-{self._created}",
            phase="Running",
            ready="False",
            ready_since=now,
            started=now,
            requests=self._requests,
            containers=self._containers,
            owners=(self._owner,),
        )
        return _Pod(snapshot, now + self._start_seconds)

    def _update_views(self) -> None:
        self.pods = tuple(pod.snapshot for pod in self._pods)
        self.ready_names = tuple(pod.snapshot.name for pod in self._pods if pod.snapshot.ready == "True")
        self._next_ready = min(
            (pod.ready_at for pod in self._pods if pod.snapshot.ready != "True"), default=float("inf")
        )
        count = len(self._pods)
        self.scale = Scale(
            metadata=self._meta,
            spec=ScaleSpec(replicas=count),
            status=ScaleStatus(replicas=count, selector=f"simulated={self._owner.name}"),
        )


def _containers(hpa: HorizontalPodAutoscaler, model: Model) -> tuple[ContainerRequests, ...]:
    """Return the containers that the HPA names, or a single one. Each requests as much as the pod."""
    named = {spec.container_resource.container for spec in hpa.spec.metrics if spec.container_resource}
    requests = dict(model.requests)
    return tuple(ContainerRequests(name=name, requests=requests) for name in sorted(named) or ["main"])
