"""The rules of pods."""

from collections.abc import Mapping
from datetime import datetime

from trimtab.lab.apiserver.errors import forbidden_field, invalid_value
from trimtab.lab.resources.pod_spec import (
    containers_of,
    default_pod_level_requests,
    default_pod_spec,
    default_requests,
    qos_class,
    validate_pod_level,
    validate_pod_spec,
    validate_resources,
)
from trimtab.lab.resources.strategy import Strategy, text_at
from trimtab.lab.storage.codec import JsonObject, copy_of
from trimtab.model.field_errors import FieldError
from trimtab.model.times import format_time

UNCHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
RESIZE_ONLY = "only cpu and memory resources are mutable"
#: What the admission plugins that are on by default add to each pod.
NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TOLERATION_SECONDS = 300


class PodStrategy(Strategy):
    """Pods: most of the spec is fixed at creation; deletion is graceful once a node runs them."""

    is_graceful = True
    returns_deleted = True

    def default(self, obj: JsonObject) -> None:
        """Fill in the spec."""
        spec = obj.setdefault("spec", {})
        default_pod_spec(spec)
        spec.setdefault("enableServiceLinks", True)
        default_requests(spec)
        default_pod_level_requests(spec)

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start as Pending, with what the default admission plugins add."""
        spec = obj["spec"]
        spec.setdefault("priority", 0)
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
        tolerations = spec.setdefault("tolerations", [])
        for key in NODE_TROUBLE:
            if not any(
                one.get("key", key) == key and one.get("effect", "NoExecute") == "NoExecute"
                for one in tolerations
            ):
                tolerations.append(
                    {
                        "key": key,
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": TOLERATION_SECONDS,
                    }
                )
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastTransitionTime": format_time(now),
                }
            ]

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Keep what the status may not lose."""
        status = obj.setdefault("status", {})
        if not status.get("qosClass"):
            status["qosClass"] = old.get("status", {}).get("qosClass") or qos_class(obj["spec"])

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Return what is wrong with a pod."""
        return validate_pod_spec(obj.get("spec", {}), "spec")

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Refuse changes to what is fixed; subresources that may change more do not come here."""
        return [] if obj["spec"] == old["spec"] else validate_spec_update(obj, old)

    def grace_seconds(self, obj: JsonObject, asked: int | None) -> int:
        """Wait only for a pod that a node runs: others go at once."""
        if not text_at(obj, "spec", "nodeName") or text_at(obj, "status", "phase") in ("Failed", "Succeeded"):
            return 0
        own = int(obj["spec"].get("terminationGracePeriodSeconds", 30))
        return own if asked is None else asked

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return what field selectors on pods may use."""
        return {
            "spec.nodeName": text_at(obj, "spec", "nodeName"),
            "spec.restartPolicy": text_at(obj, "spec", "restartPolicy"),
            "spec.schedulerName": text_at(obj, "spec", "schedulerName"),
            "spec.serviceAccountName": text_at(obj, "spec", "serviceAccountName"),
            "spec.hostNetwork": text_at(obj, "spec", "hostNetwork") or "false",
            "status.phase": text_at(obj, "status", "phase"),
            "status.podIP": text_at(obj, "status", "podIP"),
            "status.nominatedNodeName": text_at(obj, "status", "nominatedNodeName"),
        }


def validate_spec_update(obj: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return what a plain update changes in a pod's spec that it may not."""
    before, after = copy_of(old["spec"]), copy_of(obj["spec"])
    after_images = dict(containers_of(after))
    for place, container in containers_of(before):
        if place in after_images:
            container["image"] = after_images[place].get("image")
    for spec in (before, after):
        for name in ("activeDeadlineSeconds", "terminationGracePeriodSeconds"):
            spec.pop(name, None)
    kept = before.pop("tolerations", None) or []
    if any(one not in (after.get("tolerations") or ()) for one in kept):
        return [
            forbidden_field(
                "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
            )
        ]
    after.pop("tolerations", None)
    gates_before, gates_after = before.pop("schedulingGates", []), after.pop("schedulingGates", [])
    if any(gate not in gates_before for gate in gates_after):
        return [
            forbidden_field("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate")
        ]
    return [] if before == after else [forbidden_field("spec", UNCHANGEABLE)]


def validate_resize(obj: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return what a resize changes that it may not."""
    before, after = copy_of(old["spec"]), copy_of(obj["spec"])
    found: list[FieldError] = []
    if text_at(old, "status", "phase") in ("Failed", "Succeeded"):
        return [forbidden_field("", "pod resize is not allowed for pods that have ended")]
    resized = dict(containers_of(after))
    for place, container in containers_of(before):
        other = resized.get(place)
        if other is None:
            continue
        found += validate_resources(other.get("resources") or {}, f"spec.{place}.resources")
        found += _removed(container, other, f"spec.{place}.resources")
        if _fixed_resources(container) != _fixed_resources(other) or _has_claims(container):
            found.append(forbidden_field("spec", RESIZE_ONLY))
        for field in ("resources", "resizePolicy"):
            container.pop(field, None)
            other.pop(field, None)
    found += validate_pod_level(obj["spec"], "spec")
    for spec in (before, after):
        spec.pop("resources", None)
    if before != after:
        found.append(forbidden_field("spec", RESIZE_ONLY))
    seen = qos_class(obj["spec"])
    if not found and seen != (old.get("status", {}).get("qosClass") or qos_class(old["spec"])):
        found.append(invalid_value("spec", seen, "Pod QOS Class may not change as a result of resizing"))
    return found


def _has_claims(container: JsonObject) -> bool:
    # The server compares without claims, so that no resize of a container that has any is ever accepted.
    return bool((container.get("resources") or {}).get("claims"))


def _removed(before: JsonObject, after: JsonObject, path: str) -> list[FieldError]:
    """Return the requests and limits that a resize would take away, which it may not."""
    old, new = before.get("resources") or {}, after.get("resources") or {}
    return [
        forbidden_field(f"{path}.{kind}", f"resource {kind} cannot be removed")
        for kind in ("requests", "limits")
        if set(old.get(kind) or {}) - set(new.get(kind) or {})
    ]


def _fixed_resources(container: JsonObject) -> JsonObject:
    """Return the part of a container's resources that a resize cannot change."""
    resources = container.get("resources") or {}
    fixed = {
        kind: {
            name: value
            for name, value in (resources.get(kind) or {}).items()
            if name not in ("cpu", "memory")
        }
        for kind in ("limits", "requests")
    }
    return {**fixed, "claims": resources.get("claims") or []}
