"""The rules of pods."""

from collections.abc import Mapping
from datetime import datetime

from trimtab.model.core.server_rules import KUBERNETES_1_37, ServerRules
from trimtab.model.field_errors import FieldError
from trimtab_lab.apiserver.errors import forbidden_field, invalid_value
from trimtab_lab.resources.amounts import complete_pod_level, qos_class
from trimtab_lab.resources.pod_spec import (
    containers_of,
    default_pod_spec,
    default_requests,
    validate_pod_level,
    validate_pod_spec,
    validate_resources,
)
from trimtab_lab.resources.strategy import Strategy, condition, set_defaults, text_at
from trimtab_lab.storage.codec import JsonObject, copy_of

UNCHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
#: Subresources of pods.
SUBRESOURCES = "status eviction binding resize log ephemeralcontainers"
RESIZE_ONLY = "only cpu and memory resources are mutable"
#: Tolerations that the default admission plugins add to each pod, for 300 seconds.
NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class PodStrategy(Strategy):
    """Pods, whose spec is mostly immutable and whose deletion is graceful once a node runs them."""

    def __init__(self, rules: ServerRules = KUBERNETES_1_37) -> None:
        self._rules = rules

    is_graceful = True
    returns_deleted = True
    selectable_fields = (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    )

    def default(self, obj: JsonObject) -> None:
        """Fill in the spec."""
        spec = obj.setdefault("spec", {})
        default_pod_spec(spec)
        spec.setdefault("enableServiceLinks", True)
        default_requests(spec)
        if not self._rules.completes_pod_level:
            complete_pod_level(spec, self._rules)

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start as Pending, with what the default admission plugins add."""
        spec = obj["spec"]
        set_defaults(spec, priority=0, preemptionPolicy="PreemptLowerPriority", tolerations=[])
        toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in NODE_TROUBLE:
            if not any(_tolerates(existing, key) for existing in spec["tolerations"]):
                spec["tolerations"].append({"key": key, **toleration})
        complete_pod_level(spec, self._rules)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec, self._rules)}
        if spec.get("schedulingGates"):
            message = "Scheduling is blocked due to non-empty scheduling gates"
            gated = condition("PodScheduled", "SchedulingGated", message, now, status="False")
            obj["status"]["conditions"] = [gated]

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Keep the quality-of-service class."""
        status = obj.setdefault("status", {})
        if not status.get("qosClass"):
            status["qosClass"] = old.get("status", {}).get("qosClass") or qos_class(obj["spec"], self._rules)

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Return what is wrong with a pod."""
        return validate_pod_spec(obj.get("spec", {}), "spec")

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Reject changes of immutable fields."""
        return [] if obj["spec"] == old["spec"] else validate_spec_update(obj, old)

    def grace_seconds(self, obj: JsonObject, requested: int | None) -> int:
        """Return the grace period of a pod that a node runs, else 0."""
        if not text_at(obj, "spec", "nodeName") or text_at(obj, "status", "phase") in ("Failed", "Succeeded"):
            return 0
        own = int(obj["spec"].get("terminationGracePeriodSeconds", 30))
        return own if requested is None else requested

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return the values that field selectors compare."""
        host_network = text_at(obj, "spec", "hostNetwork") or "false"
        return {**super().fields(obj), "spec.hostNetwork": host_network}


def _tolerates(toleration: JsonObject, key: str) -> bool:
    return bool(toleration.get("key", key) == key and toleration.get("effect", "NoExecute") == "NoExecute")


def validate_spec_update(obj: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return which changes of a pod's spec a plain update may not make."""
    before, after = copy_of(old["spec"]), copy_of(obj["spec"])
    after_images = dict(containers_of(after))
    for place, container in containers_of(before):
        if place in after_images:
            container["image"] = after_images[place].get("image")
    for spec in (before, after):
        for name in ("activeDeadlineSeconds", "terminationGracePeriodSeconds"):
            spec.pop(name, None)
    kept, tolerations = before.pop("tolerations", None) or [], after.pop("tolerations", None) or []
    if any(toleration not in tolerations for toleration in kept):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden_field("spec.tolerations", detail)]
    gates_before, gates_after = before.pop("schedulingGates", []), after.pop("schedulingGates", [])
    if any(gate not in gates_before for gate in gates_after):
        detail = "only deletion is allowed, but found new scheduling gate"
        return [forbidden_field("spec.schedulingGates", detail)]
    return [] if before == after else [forbidden_field("spec", UNCHANGEABLE)]


def validate_resize(obj: JsonObject, old: JsonObject, rules: ServerRules) -> list[FieldError]:
    """Return which changes a resize may not make."""
    if refusal := _never_resized(old, rules):
        return [forbidden_field("", refusal)]
    before, after = copy_of(old["spec"]), copy_of(obj["spec"])
    errors: list[FieldError] = []
    resized = dict(containers_of(after))
    for place, container in containers_of(before):
        other = resized.get(place)
        if other is None:
            continue
        errors += validate_resources(other.get("resources") or {}, f"spec.{place}.resources")
        errors += _removed(container, other, f"spec.{place}.resources")
        is_refused = _has_claims(container) and not rules.resizes_claims
        if is_refused or _fixed_resources(container) != _fixed_resources(other):
            errors.append(forbidden_field("spec", RESIZE_ONLY))
        for field in ("resources", "resizePolicy"):
            container.pop(field, None)
            other.pop(field, None)
    errors += validate_pod_level(obj["spec"], "spec")
    for spec in (before, after):
        spec.pop("resources", None)
    if before != after:
        errors.append(forbidden_field("spec", RESIZE_ONLY))
    qos = qos_class(obj["spec"], rules)
    if not errors and qos != (old.get("status", {}).get("qosClass") or qos_class(old["spec"], rules)):
        errors.append(invalid_value("spec", qos, "Pod QOS Class may not change as a result of resizing"))
    return errors


def _never_resized(pod: JsonObject, rules: ServerRules) -> str:
    """Return why no resize of the pod is allowed, whatever it changes, or empty if one may be."""
    if text_at(pod, "status", "phase") in ("Failed", "Succeeded"):
        return "pod resize is not allowed for pods that have ended"
    whole = pod["spec"].get("resources") or {}
    has_amounts = bool(whole.get("requests") or whole.get("limits"))
    return (
        "pods with pod-level resources cannot be resized"
        if has_amounts and not rules.resizes_pod_level
        else ""
    )


def _has_claims(container: JsonObject) -> bool:
    # Before 1.37 the server compares without claims, so it rejects every resize of a container with claims.
    return bool((container.get("resources") or {}).get("claims"))


def _removed(before: JsonObject, after: JsonObject, path: str) -> list[FieldError]:
    """Return the errors for requests and limits that a resize would remove."""
    old, new = before.get("resources") or {}, after.get("resources") or {}
    return [
        forbidden_field(f"{path}.{kind}", f"resource {kind} cannot be removed")
        for kind in ("requests", "limits")
        if set(old.get(kind) or {}) - set(new.get(kind) or {})
    ]


def _fixed_resources(container: JsonObject) -> JsonObject:
    """Return the part of a container's resources that a resize may not change."""
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
