"""The simulated workload: pods that come when the scale asks for them and are ready a while later."""

from dataclasses import dataclass

import msgspec

from trimtab.decide.horizontal import PodSnapshot
from trimtab.decide.horizontal.observation.requests import ContainerRequests
from trimtab.model.core.meta import ObjectMeta, OwnerReference
from trimtab.model.core.workloads import Scale, ScaleSpec, ScaleStatus
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.simulate.model import Model

UID = "simulated"
LONG_READY = 3600.0
"""The pods of the beginning have been ready for this long, so that nobody takes them for new."""


@dataclass(slots=True)
class _Pod:
    facts: PodSnapshot
    ready_at: float


class SimulatedWorkload:
    """A target with its pods; `scale` and `pods` are what an autoscaler would see of it."""

    def __init__(self, hpa: HorizontalPodAutoscaler, model: Model, replicas: int, now: float) -> None:
        reference = hpa.spec.scale_target_ref
        self._owner = OwnerReference(
            api_version=reference.api_version, kind=reference.kind, name=reference.name, uid=UID
        )
        self._meta = ObjectMeta(name=reference.name, namespace=hpa.metadata.namespace, uid=UID)
        self._containers = _containers(hpa, model)
        self._requests = dict(model.requests)
        self._start_seconds = model.start_seconds
        self._made = 0
        self._pods: list[_Pod] = []
        self._next_ready = float("inf")
        self.resize(replicas, now - LONG_READY - model.start_seconds)
        self.advance(now)

    @property
    def replicas(self) -> int:
        """Return how many pods there are, ready or not."""
        return len(self._pods)

    def advance(self, now: float) -> None:
        """Let those pods become ready whose time has come."""
        if now < self._next_ready:
            return
        for pod in self._pods:
            if pod.facts.ready != "True" and pod.ready_at <= now:
                pod.facts = msgspec.structs.replace(pod.facts, ready="True", ready_since=pod.ready_at)
        self._settle()

    def resize(self, replicas: int, now: float) -> None:
        """Create or delete pods; those that are not ready go first, then the youngest, as a ReplicaSet does it."""
        missing = replicas - len(self._pods)
        self._pods += [self._new(now) for _ in range(missing)]
        if missing < 0:
            keep = sorted(self._pods, key=lambda pod: (pod.facts.ready != "True", pod.ready_at))[:replicas]
            self._pods = sorted(keep, key=lambda pod: pod.ready_at)
        self._settle()

    def _new(self, now: float) -> _Pod:
        self._made += 1
        facts = PodSnapshot(
            name=f"{self._owner.name}-{self._made}",
            uid=f"{UID}-{self._made}",
            phase="Running",
            ready="False",
            ready_since=now,
            started=now,
            requests=self._requests,
            containers=self._containers,
            owners=(self._owner,),
        )
        return _Pod(facts, now + self._start_seconds)

    def _settle(self) -> None:
        self.pods = tuple(pod.facts for pod in self._pods)
        self.ready_names = tuple(pod.facts.name for pod in self._pods if pod.facts.ready == "True")
        self._next_ready = min(
            (pod.ready_at for pod in self._pods if pod.facts.ready != "True"), default=float("inf")
        )
        count = len(self._pods)
        self.scale = Scale(
            metadata=self._meta,
            spec=ScaleSpec(replicas=count),
            status=ScaleStatus(replicas=count, selector=f"simulated={self._owner.name}"),
        )


def _containers(hpa: HorizontalPodAutoscaler, model: Model) -> tuple[ContainerRequests, ...]:
    """Return a container for each that the HPA names, or one; each asks for all that the pod does."""
    named = {spec.container_resource.container for spec in hpa.spec.metrics if spec.container_resource}
    requests = dict(model.requests)
    return tuple(ContainerRequests(name=name, requests=requests) for name in sorted(named) or ["main"])
