"""What tests on real nodes do: apply objects, wait for conditions, read what the guest's kernel enforces."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tests.watchdog import wall_seconds
from tools.node.cluster import NodeCluster
from tools.node.disk import LOAD_IMAGE
from trimtab.model.quantity import Quantity

Value = TypeVar("Value")
Sizes = dict[str, str]
MIB = 1024 * 1024
PATIENCE = 240.0
"""Seconds that a condition may take on an idle machine. No test depends on how long it really took."""


class Stage:
    """One namespace of a cluster with real nodes."""

    def __init__(self, cluster: NodeCluster, namespace: str, *, exists: bool = False) -> None:
        self.cluster = cluster
        self.namespace = namespace
        if not exists:
            cluster.control_plane.kubectl("create", "namespace", namespace)
        account = ("get", "serviceaccount", "default", "-n", namespace, "--ignore-not-found", "-o", "name")
        self.until("the namespace has an account", lambda: cluster.control_plane.kubectl(*account).strip())

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """Run kubectl in the namespace as the administrator."""
        return self.cluster.control_plane.kubectl("-n", self.namespace, *arguments, stdin=stdin, check=check)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create or change objects."""
        body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return an object, or an empty one if it is not there."""
        text = self.kubectl("get", kind, name, "-o", "json", "--ignore-not-found")
        found: dict[str, Any] = json.loads(text) if text.strip() else {}
        return found

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """Return the pods that a selector matches, without those that are being deleted."""
        items = json.loads(self.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def ready_pods(
        self, selector: str, count: int, *, where: Callable[[dict[str, Any]], bool] = lambda _: True
    ) -> list[dict[str, Any]]:
        """Wait until so many pods are ready, and return them."""

        def found() -> list[dict[str, Any]]:
            ready = [pod for pod in self.pods(selector) if is_ready(pod) and where(pod)]
            return sorted(ready, key=lambda pod: pod["metadata"]["name"]) if len(ready) == count else []

        return self.until(f"{count} pods of {selector} are ready", found)

    def running_pod(self, selector: str) -> dict[str, Any]:
        """Wait until a container of the only pod runs, ready or not, and return the pod."""

        def found() -> dict[str, Any]:
            pods = self.pods(selector)
            statuses = [status for pod in pods for status in pod["status"].get("containerStatuses", [])]
            return pods[0] if any("running" in status["state"] for status in statuses) else {}

        return self.until(f"a container of {selector} runs", found)

    def pod(self, name: str) -> dict[str, Any]:
        """Return a pod."""
        return self.get("pod", name)

    def events(self, name: str, reason: str) -> list[str]:
        """Return the messages of the events of an object with a reason."""
        fields = f"involvedObject.name={name},reason={reason}"
        items = json.loads(self.kubectl("get", "events", "--field-selector", fields, "-o", "json"))["items"]
        return [event["message"] for event in items]

    def until(self, what: str, found: Callable[[], Value]) -> Value:
        """Wait until a value is true, and return it. On a busy machine the wait is as much longer as it has fewer cores for us."""
        left, before = PATIENCE, time.monotonic()
        while not (value := found()):
            time.sleep(1)
            now = time.monotonic()
            left -= (now - before) / wall_seconds(1.0, os.getloadavg()[0], os.cpu_count() or 1)
            before = now
            assert left > 0, f"it did not happen that {what}"
        return value

    def have_for_itself(self, node: str) -> None:
        """Wait until no other pods are on a node; those of tests before may still end."""
        listing = ("get", "pods", "-A", "-o", "name", "--field-selector")
        kubectl = self.cluster.control_plane.kubectl
        self.until(
            f"{node} has no other pods", lambda: not kubectl(*listing, f"spec.nodeName={node}").strip()
        )

    def in_guest(self, pod: Mapping[str, Any], script: str) -> str:
        """Run a script in the guest on which a pod runs."""
        return self.cluster.nodes[pod["spec"]["nodeName"]].machine.run(script)

    def ask(self, pod: Mapping[str, Any], path: str) -> str:
        """Send a request to the program of a pod, inside its container."""
        return self.kubectl("exec", pod["metadata"]["name"], "--", "/load", "ask", path)

    def cgroup(self, pod: Mapping[str, Any], file: str) -> str:
        """Return what the kernel of the guest enforces for the first container of a pod."""
        return self.in_guest(pod, f"cat {self.cgroup_folder(pod)}/{file}").strip()

    def cgroup_folder(self, pod: Mapping[str, Any]) -> str:
        """Return the cgroup of the first container of a pod, in its guest."""
        container = first_status(pod)["containerID"].partition("://")[2]
        quality = pod["status"]["qosClass"].lower()
        parent = "" if quality == "guaranteed" else f"/{quality}"
        return f"/sys/fs/cgroup/kubepods{parent}/pod{pod['metadata']['uid']}/{container}"

    def requested_memory(self, name: str) -> int:
        """Return the bytes that the first container of a pod requests."""
        return memory_of(self.pod(name)["spec"]["containers"][0]["resources"]["requests"]["memory"])

    def allocated_memory(self, name: str) -> int:
        """Return the bytes that the kubelet has allocated to the first container of a pod."""
        return memory_of(first_status(self.pod(name)).get("allocatedResources", {}).get("memory", "0"))

    def target_memory(self, name: str) -> int:
        """Return the bytes that a VPA recommends, or 0 without a recommendation."""
        recommendation = self.get("tvpa", name).get("status", {}).get("recommendation", {})
        containers = recommendation.get("containerRecommendations", [])
        return memory_of(containers[0]["target"]["memory"]) if containers else 0

    def explain(self, kind: str, name: str) -> str:
        """Return what `trimtab explain` prints."""
        run = subprocess.run(
            [
                sys.executable, "-m", "trimtab", "explain", kind, name, "-n", self.namespace,
                f"--kubeconfig={self.cluster.control_plane.kubeconfig}",
            ],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        return run.stdout + run.stderr


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod has the condition Ready."""
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def workload(kind: str, name: str, *, replicas: int | None = 1, **fields: Any) -> dict[str, Any]:
    """Return a workload whose pods run the load program; `fields` are those of `template`."""
    spec: dict[str, Any] = {"selector": {"matchLabels": {"app": name}}, "template": template(name, **fields)}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def template(
    app: str,
    *,
    cpu: int = 10,
    memory: int = 20,
    requests: Sizes,
    limits: Sizes | None = None,
    args: str = "serve",
    starts_ready: bool = True,
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod template: one container that uses so many millicores and MB, and the other fields of the pod.

    A pod that does not start ready becomes it when its program is asked for `/ready`.
    """
    settings = {"CPU_M": str(cpu), "MEM_MB": str(memory), "SECONDS": "600"}
    if not starts_ready:
        settings["NOT_READY"] = "1"
    container: dict[str, Any] = {
        "name": "load",
        "image": LOAD_IMAGE,
        "imagePullPolicy": "Never",
        "args": [args],
        "env": [{"name": name, "value": value} for name, value in settings.items()],
        "resources": {"requests": requests, **({"limits": limits} if limits else {})},
    }
    if args == "serve":
        probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 5, "timeoutSeconds": 5}
        container["readinessProbe"] = probe
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"terminationGracePeriodSeconds": 2, "containers": [container], **spec},
    }


def vpa(
    name: str,
    kind: str,
    mode: str,
    *,
    target: str = "",
    scope: str = "",
    boost: int = 1,
    controls: Sequence[str] = ("memory",),
    **bounds: Sizes,
) -> dict[str, Any]:
    """Return a VPA; `bounds` are `minAllowed` and `maxAllowed` of all containers, `boost` multiplies CPU at the start.

    It controls memory alone unless told: on a busy machine a guest measures far more CPU than a pod uses, and a pod with such a
    request may not fit.
    """
    policy = {"containerName": "*", "controlledResources": list(controls), **bounds}
    spec: dict[str, Any] = {
        "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target or name},
        "updatePolicy": {"updateMode": mode, "minReplicas": 1},
        "resourcePolicy": {"containerPolicies": [policy]},
    }
    if scope:
        spec["vpaScope"] = {"name": scope}
    if boost > 1:
        spec["startupBoost"] = {"cpu": {"type": "Factor", "factor": boost, "durationSeconds": 0}}
    return {
        "apiVersion": "autoscaling.trimtab.dev/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name},
        "spec": spec,
    }


def scope(name: str, **selector: Any) -> dict[str, Any]:
    """Return a VPAScope with a `podSelector` or a `nodeSelector`."""
    return {
        "apiVersion": "autoscaling.trimtab.dev/v1",
        "kind": "VPAScope",
        "metadata": {"name": name},
        "spec": selector,
    }


def first_status(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a pod's first container."""
    status: dict[str, Any] = pod["status"]["containerStatuses"][0]
    return status


def memory_of(text: str) -> int:
    """Return a quantity of memory in bytes."""
    return Quantity.parse(text).value()
