"""Builds the pod that a controller would create as a replacement."""

import copy
from typing import Any, Final

from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.discovery import Discovery, UnknownKindError
from trimtab.cluster.resource import PODS, Json
from trimtab.decide.vertical.admission.patches import (
    HELD_BACK_ANNOTATION,
    IN_PLACE_ANNOTATION,
    UPDATES_ANNOTATION,
)
from trimtab.decide.vertical.admission.pod_annotations import (
    ORIGINALS_ANNOTATION,
    OriginalResources,
)
from trimtab.decide.vertical.control.controllers import owner_of
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire

_WITH_TEMPLATE: Final = frozenset(
    {
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("batch", "Job"),
        ("", "ReplicationController"),
    }
)
"""By group and kind, because other groups have kinds of the same names (batch.volcano.sh/Job)."""
_CONTROLLERS_LABELS: Final = ("controller-revision-hash", "pod-template-hash", "pod-template-generation")
_OWN_ANNOTATIONS: Final = (
    ORIGINALS_ANNOTATION,
    HELD_BACK_ANNOTATION,
    IN_PLACE_ANNOTATION,
    UPDATES_ANNOTATION,
)


class Templates:
    """Builds replacements, and reads each controller once."""

    def __init__(self, client: Client, discovery: Discovery) -> None:
        self._client = client
        self._discovery = discovery
        self._known: dict[str, Json | None] = {}

    async def replacement(self, pod: Pod) -> Json:
        """Return the pod that would replace this one, as its controller would create it."""
        controller = await self._controller(pod)
        if controller is None:
            return _copy_of(await self._client.get(PODS.untyped(), pod.name, pod.metadata.namespace), pod)
        replacement = _from_template(controller, pod)
        if controller["kind"] == "DaemonSet":
            # The DaemonSet controller adds the node affinity and tolerations of the node.
            raw = await self._client.get(PODS.untyped(), pod.name, pod.metadata.namespace)
            for part in ("affinity", "tolerations"):
                if part in raw["spec"]:
                    replacement["spec"][part] = raw["spec"][part]
        return replacement

    async def _controller(self, pod: Pod) -> Json | None:
        """Return the pod's controller, if it is of a kind with a known pod template."""
        owner = owner_of(pod)
        if owner is None or (owner.group, owner.kind) not in _WITH_TEMPLATE:
            return None
        if owner.uid not in self._known:
            try:
                served = await self._discovery.find_kind(owner.api_version, owner.kind)
                controller: Json | None = await self._client.get(
                    served.resource(), owner.name, pod.metadata.namespace
                )
            except (errors.NotFound, errors.Forbidden, UnknownKindError):
                controller = None
            if controller is not None:
                controller.setdefault("kind", owner.kind)
            self._known[owner.uid] = controller
        return self._known[owner.uid]


def _from_template(controller: Json, pod: Pod) -> Json:
    template = copy.deepcopy(controller["spec"]["template"])
    spec: Json = template["spec"]
    claims = controller["spec"].get("volumeClaimTemplates") or ()
    if controller["kind"] == "StatefulSet":
        names = [claim["metadata"]["name"] for claim in claims]
        kept = [volume for volume in spec.get("volumes") or () if volume["name"] not in names]
        claimed = [
            {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod.name}"}} for name in names
        ]
        if kept or claimed:
            spec["volumes"] = [*kept, *claimed]
        spec.setdefault("hostname", pod.name)
        if controller["spec"].get("serviceName"):
            spec.setdefault("subdomain", controller["spec"]["serviceName"])
    meta = template.get("metadata") or {}
    return _pod(
        spec, {**_controllers_labels(pod), **(meta.get("labels") or {})}, meta.get("annotations"), pod
    )


def _controllers_labels(pod: Pod) -> dict[str, str]:
    """Return the labels that a controller adds to its pods, without roles that were set later."""
    return {
        name: value
        for name, value in pod.metadata.labels.items()
        if name in _CONTROLLERS_LABELS or name.partition("/")[0].endswith("kubernetes.io")
    }


def _pod(spec: Json, labels: dict[str, str], annotations: Any, pod: Pod) -> Json:
    owners = [wire.to_builtins(owner) for owner in pod.metadata.owner_references]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{pod.name[:57]}-",
            "namespace": pod.metadata.namespace,
            "labels": labels,
            "annotations": annotations or {},
            "ownerReferences": owners,
        },
        "spec": spec,
    }


def _copy_of(raw: Json, pod: Pod) -> Json:
    """Return the pod without its node and with its original sizes, for unknown kinds of controllers."""
    spec: Json = copy.deepcopy(raw["spec"])
    spec.pop("nodeName", None)
    written = OriginalResources.read(pod).as_template(pod)
    for container, users in zip(spec["containers"], written.spec.containers, strict=True):
        container["resources"] = wire.to_builtins(users.resources)
    # The cached pod has only the annotations that decisions read. Other webhooks may read the rest.
    present: dict[str, str] = raw["metadata"].get("annotations") or {}
    annotations = {name: value for name, value in present.items() if name not in _OWN_ANNOTATIONS}
    return _pod(spec, dict(pod.metadata.labels), annotations, pod)
