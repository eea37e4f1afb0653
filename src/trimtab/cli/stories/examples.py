"""What `trimtab up` can put up in place of the stories: files of the user, or many workloads."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from trimtab.library.documents import read_documents, unpacked
from trimtab.model.quantity import Quantity
from trimtab.model.readable import counted
from trimtab_lab.load.curves import Curve, Spikes, constant
from trimtab_lab.load.load import CPU_ANNOTATION
from trimtab_lab.load.plan import KIND as LOAD_PLAN
from trimtab_lab.load.plan import LoadPlan, WorkloadLoad, parse_plan

_WORKLOADS: Final = ("Deployment", "StatefulSet", "ReplicaSet")
_DEFAULT_NAMESPACE: Final = "default"


class UserFiles:
    """Manifests of the user. Load plans among them set the load.

    A workload that has a load neither from a plan nor from an annotation works at half of its requests. Raise ValueError
    for files that cannot be used.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.title = ", ".join(str(path) for path in paths)
        documents = [(document, path) for path in paths for document in _objects(path)]
        self._objects = [obj for obj, _ in documents if obj["kind"] != LOAD_PLAN]
        plans = [
            parse_plan(yaml.safe_dump(obj), path.parent)
            for obj, path in documents
            if obj["kind"] == LOAD_PLAN
        ]
        workloads = [load for plan in plans for load in plan.workloads]
        planned = {load.target for load in workloads}
        self.defaults = tuple(
            load
            for load in map(_default_load, self._objects)
            if load is not None and load.target not in planned
        )
        """The loads that the files do not set."""
        self._load = LoadPlan(
            seed=next((plan.seed for plan in plans), 0),
            workloads=(*workloads, *self.defaults),
            series=tuple(series for plan in plans for series in plan.series),
        )

    def objects(self) -> list[dict[str, Any]]:
        """Return the objects to apply."""
        return self._objects

    def load(self) -> LoadPlan:
        """Return the load of the workloads."""
        return self._load


def _objects(path: Path) -> list[dict[str, Any]]:
    found = [part.data for document in read_documents(str(path)) for part in unpacked(document)]
    for obj in found:
        if not isinstance(obj, dict) or not obj.get("apiVersion") or not obj.get("kind"):
            raise ValueError(f"{path}: a document has no apiVersion or no kind")
    return found


def _default_load(obj: Mapping[str, Any]) -> WorkloadLoad | None:
    """Return half of the CPU that all replicas of a workload request, or None if there is none."""
    if obj["kind"] not in _WORKLOADS:
        return None
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    template = spec.get("template") or {}
    if CPU_ANNOTATION in ((template.get("metadata") or {}).get("annotations") or {}):
        return None
    containers = (template.get("spec") or {}).get("containers") or []
    requests = [
        ((container.get("resources") or {}).get("requests") or {}).get("cpu", "0") for container in containers
    ]
    millicores = sum(Quantity.parse(str(request)).milli_value() for request in requests)
    replicas = spec.get("replicas")
    total = millicores * (1 if replicas is None else replicas) // 2
    if not total:
        return None
    namespace = meta.get("namespace", _DEFAULT_NAMESPACE)
    return WorkloadLoad(
        name=f"{namespace}/{meta['name']}",
        namespace=namespace,
        workload=meta["name"],
        cpu=constant(f"{total}m"),
    )


class ManyWorkloads:
    """Workloads with an HPA each, in namespaces of 43, as a big cluster has them."""

    PER_NAMESPACE: Final = 43

    def __init__(self, count: int) -> None:
        self._numbers = range(count)
        self.title = counted(count, "workload")

    def objects(self) -> list[dict[str, Any]]:
        """Return a Deployment and its HPA for each workload."""
        return [obj for number in self._numbers for obj in self._workload(number)]

    def load(self) -> LoadPlan:
        """Return loads that hold most workloads, and move some up and down."""
        return LoadPlan(
            workloads=tuple(
                WorkloadLoad(
                    name="/".join(self._key(number)),
                    namespace=self._key(number)[0],
                    workload=self._key(number)[1],
                    cpu=_curve(number),
                )
                for number in self._numbers
            )
        )

    def _key(self, number: int) -> tuple[str, str]:
        return f"team-{number // self.PER_NAMESPACE:02d}", f"service-{number:04d}"

    def _workload(self, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
        namespace, name = self._key(number)
        meta, labels = {"name": name, "namespace": namespace}, {"app": name}
        container = {
            "name": "app",
            "image": "app",
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        }
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
        hpa = {
            "apiVersion": "autoscaling.trimtab.dev/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": meta,
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                "minReplicas": 1,
                "maxReplicas": 2 if number % 10 == _BUSY else 3,
                "metrics": [{"type": "Resource", "resource": cpu}],
            },
        }
        return deployment, hpa


_BUSY: Final = 9
_WAVE: Final = 4


def _curve(number: int) -> Curve:
    """Return the load of a workload: one in ten is above its maximum, one in ten moves, the others are near 60 %."""
    if number % 10 == _BUSY:
        return constant("300m")
    if number % 10 == _WAVE:
        return Spikes(
            base=Quantity.parse("58m"),
            peak=Quantity.parse("150m"),
            every=600.0,
            lasts=120.0,
            first=60.0 + number % 540,
        )
    return constant(f"{56 + number % 9}m")
