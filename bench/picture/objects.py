"""One workload as users have it: Deployment, ReplicaSet, Pod, HPA and VPA, with probes, volumes and field owners.

These are the seeds that the API server stores once; the generator multiplies what it stored. Every name has a fixed
width, because a clone differs from its seed only in bytes of the same length.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.picture.api import Json

SEED_NAMESPACE = "bench-seed"
SEED_APP = "app-seedx"
SEED_HASH = "5eed5eed"
SEED_POD = "podno"
SEED_IP = "10.199.199.199"
SEED_NODE = "node-xyz"
STARTED = "2026-01-01T00:00:00Z"
CPU_REQUEST = 100
CPU_TARGET = 60
MEMORY_TARGET = 80
NODES = 200
NO_ANNOTATIONS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Names:
    """What one workload is called."""

    number: int
    namespaces: int

    @property
    def namespace(self) -> str:
        """Workloads are dealt out over the namespaces in turn."""
        return f"bench-{self.number % self.namespaces:04}"

    @property
    def app(self) -> str:
        """Deployment, HPA and VPA share a name."""
        return f"app-{self.number:05}"

    @property
    def hash(self) -> str:
        """Return the hash in the name of the ReplicaSet."""
        return f"{self.number * 2654435761 % 2**32:08x}"

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of the pods."""
        return labels_of(self.app, self.hash)

    def pod(self, number: int) -> str:
        """Return the name of one pod."""
        return f"{self.app}-{self.hash}-{number:05}"


def labels_of(app: str, template_hash: str | None = None) -> dict[str, str]:
    """Return the labels of a pod template, or of a pod when it has a hash."""
    labels = {"app": app, "tier": "web", "app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "shop"}
    return labels | ({"pod-template-hash": template_hash} if template_hash else {})


def deployment(pods: int) -> Json:
    """Return the seed of a Deployment."""
    selector = {"matchLabels": {"app": SEED_APP}}
    spec = {"replicas": pods, "selector": selector, "template": _template(labels_of(SEED_APP))}
    return {"metadata": {"name": SEED_APP, "labels": {"app": SEED_APP}}, "spec": spec}


def replica_set(pods: int, owner: Json) -> Json:
    """Return the seed of the Deployment's ReplicaSet."""
    labels = labels_of(SEED_APP, SEED_HASH)
    selector = {"matchLabels": {"app": SEED_APP, "pod-template-hash": SEED_HASH}}
    meta = {"name": f"{SEED_APP}-{SEED_HASH}", "labels": labels, "ownerReferences": [_owner(owner)]}
    return {"metadata": meta, "spec": {"replicas": pods, "selector": selector, "template": _template(labels)}}


def pod(owner: Json) -> Json:
    """Return the seed of a pod."""
    template = _template(labels_of(SEED_APP, SEED_HASH))
    stem = f"{SEED_APP}-{SEED_HASH}-"
    meta = template["metadata"] | {
        "name": stem + SEED_POD,
        "generateName": stem,
        "ownerReferences": [_owner(owner)],
    }
    return {"metadata": meta, "spec": template["spec"] | {"nodeName": SEED_NODE}}


def counts(pods: int) -> Json:
    """Return the status of a Deployment or ReplicaSet whose pods are all there."""
    return {
        "status": {
            "observedGeneration": 1,
            "replicas": pods,
            "readyReplicas": pods,
            "availableReplicas": pods,
        }
    }


def running() -> Json:
    """Return the status of a pod that has been ready for long."""
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": STARTED} for kind in kinds]
    container = {
        "name": "main",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": f"shop/{SEED_APP}:1.2.3",
        "imageID": "shop/app@sha256:" + "9f86d081884c7d65" * 4,
        "containerID": "containerd://" + "60303ae22b998861" * 4,
        "state": {"running": {"startedAt": STARTED}},
    }
    return {
        "status": {
            "phase": "Running",
            "qosClass": "Burstable",
            "hostIP": "10.0.0.1",
            "hostIPs": [{"ip": "10.0.0.1"}],
            "podIP": SEED_IP,
            "podIPs": [{"ip": SEED_IP}],
            "startTime": STARTED,
            "conditions": conditions,
            "containerStatuses": [container],
        }
    }


def hpa(pods: int, metrics: tuple[str, ...], annotations: Mapping[str, str] = NO_ANNOTATIONS) -> Json:
    """Return the seed of an HPA that may go anywhere at once, so that a reaction is one write."""
    targets = {"cpu": CPU_TARGET, "memory": MEMORY_TARGET}
    specs = [
        {
            "type": "Resource",
            "resource": {
                "name": name,
                "target": {"type": "Utilization", "averageUtilization": targets[name]},
            },
        }
        for name in metrics
    ]
    spec = {
        "scaleTargetRef": _target(),
        "minReplicas": 1,
        "maxReplicas": pods * 10,
        "metrics": specs,
        "behavior": {"scaleUp": _at_once(900), "scaleDown": _at_once(100)},
    }
    meta = {"name": SEED_APP, "labels": {"app": SEED_APP}, "annotations": dict(annotations)}
    return {"metadata": meta, "spec": spec}


def vpa() -> Json:
    """Return the seed of a VPA that only recommends."""
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": SEED_APP},
        "spec": {"targetRef": _target(), "updatePolicy": {"updateMode": "Off"}},
    }


def _target() -> Json:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": SEED_APP}


def _at_once(percent: int) -> Json:
    policy = {"type": "Percent", "value": percent, "periodSeconds": 1}
    return {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [policy]}


def _owner(of: Json) -> Json:
    meta = of["metadata"]
    kept = {"apiVersion": of["apiVersion"], "kind": of["kind"], "name": meta["name"], "uid": meta["uid"]}
    return kept | {"controller": True, "blockOwnerDeletion": True}


def _template(labels: dict[str, str]) -> Json:
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8080",
        "checksum/config": "9f86d081884c7d65" * 4,
    }
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": _pod_spec()}


def _pod_spec() -> Json:
    def probe(path: str) -> Json:
        return {"httpGet": {"path": path, "port": 8080}}

    container = {
        "name": "main",
        "image": f"shop/{SEED_APP}:1.2.3",
        "env": [{"name": "GOMAXPROCS", "value": "2"}, {"name": "LOG_LEVEL", "value": "info"}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {
            "requests": {"cpu": f"{CPU_REQUEST}m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
    }
    volume = {"name": "config", "configMap": {"name": f"{SEED_APP}-config"}}
    return {"containers": [container], "volumes": [volume]}
