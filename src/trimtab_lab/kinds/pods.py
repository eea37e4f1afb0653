"""The rules of pods and of pod templates."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from trimtab.model.core.server_rules import ServerRules
from trimtab.model.field_errors import FieldError
from trimtab.model.labels import names
from trimtab.model.quantity import Quantity, QuantityError
from trimtab_lab.apiserver.errors import (
    duplicate_value,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from trimtab_lab.kinds.amounts import (
    CPU_AND_MEMORY,
    amounts_of,
    complete_pod_level,
    containers_total,
    qos_class,
)
from trimtab_lab.kinds.strategy import Strategy, condition, set_defaults, text_at
from trimtab_lab.storage.codec import JsonObject, copy_of

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
RESTART_POLICIES = ("Always", "Never", "OnFailure")
DEFAULT_MODE = 0o644
NOT_NEGATIVE = "must be greater than or equal to 0"
PORT_RANGE = "must be between 1 and 65535, inclusive"
STANDARD_RESOURCE = re.compile(r"^(cpu|memory|ephemeral-storage|hugepages-.*|.*/.*)$")


def containers_of(spec: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield every container with its path below the spec."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield f"{field}[{index}]", container


def default_pod_spec(spec: JsonObject) -> None:
    set_defaults(spec, restartPolicy="Always", terminationGracePeriodSeconds=30, dnsPolicy="ClusterFirst")
    set_defaults(spec, securityContext={}, schedulerName="default-scheduler")
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for _, container in containers_of(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        if set(volume) == {"name"}:
            volume["emptyDir"] = {}
        for kind in ("configMap", "secret", "projected", "downwardAPI"):
            if isinstance(volume.get(kind), dict):
                volume[kind].setdefault("defaultMode", DEFAULT_MODE)


def _default_container(container: JsonObject) -> None:
    set_defaults(container, resources={}, imagePullPolicy=_pull_policy(container.get("image", "")))
    set_defaults(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(kind)
        if isinstance(probe, dict):
            set_defaults(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            if isinstance(probe.get("httpGet"), dict):
                set_defaults(probe["httpGet"], path="/", scheme="HTTP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            reference.setdefault("apiVersion", "v1")


def _pull_policy(image: str) -> str:
    # An image whose name can mean another image later is pulled every time.
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return "Always" if tag in ("", "latest") and "@" not in image else "IfNotPresent"


def default_requests(spec: JsonObject) -> None:
    """Set missing requests of containers to their limits. Pods do this, templates do not."""
    for _, container in containers_of(spec):
        limits = container["resources"].get("limits")
        if limits:
            set_defaults(container["resources"].setdefault("requests", {}), **limits)


def validate_pod_level(spec: JsonObject, path: str) -> list[FieldError]:
    """Return what is wrong with pod-level resources, and with containers that exceed them."""
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return []
    errors = validate_resources(resources, f"{path}.resources")
    if resources.get("claims"):
        detail = "claims may not be set for Resources at pod-level"
        errors.append(forbidden_field(f"{path}.resources.claims", detail))
    total, own = containers_total(spec, "requests"), amounts_of(spec, "requests")
    for name in CPU_AND_MEMORY:
        if name in total and name in own and total[name] > own[name]:
            detail = f"must be greater than or equal to aggregate container requests of {total[name]}"
            errors.append(invalid_value(f"{path}.resources.requests[{name}]", str(own[name]), detail))
    most = amounts_of(spec, "limits")
    for index, container in enumerate(spec.get("containers") or ()):
        limits = amounts_of(container, "limits")
        for name in CPU_AND_MEMORY:
            if name in limits and name in most and limits[name] > most[name]:
                where = f"{path}.resources.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {most[name]}"
                errors.append(invalid_value(where, str(limits[name]), detail))
    return errors


def validate_pod_spec(spec: JsonObject, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not spec.get("containers"):
        errors.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for place, container in containers_of(spec):
        errors += _validate_container(container, f"{path}.{place}", seen)
    policy, grace = spec.get("restartPolicy", ""), spec.get("terminationGracePeriodSeconds", 0)
    if policy not in RESTART_POLICIES:
        errors.append(unsupported_value(f"{path}.restartPolicy", policy, RESTART_POLICIES))
    if grace < 0:
        errors.append(invalid_value(f"{path}.terminationGracePeriodSeconds", grace, NOT_NEGATIVE))
    return errors + validate_pod_level(spec, path)


def _validate_container(container: JsonObject, path: str, seen: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    name = container.get("name", "")
    if not name:
        errors.append(required(f"{path}.name"))
    else:
        problems = names.dns1123_label_problems(name)
        errors += [invalid_value(f"{path}.name", name, problem) for problem in problems]
        if name in seen:
            errors.append(duplicate_value(f"{path}.name", name))
        seen.add(name)
    image, policy = container.get("image", ""), container.get("imagePullPolicy", "")
    if not image:
        errors.append(required(f"{path}.image"))
    elif image != image.strip():
        errors.append(invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace"))
    if policy not in PULL_POLICIES:
        errors.append(unsupported_value(f"{path}.imagePullPolicy", policy, PULL_POLICIES))
    for index, port in enumerate(container.get("ports") or ()):
        number = port.get("containerPort", 0)
        if not 0 < number < 65536:
            errors.append(invalid_value(f"{path}.ports[{index}].containerPort", number, PORT_RANGE))
    return errors + validate_resources(container.get("resources") or {}, f"{path}.resources")


def validate_resources(resources: JsonObject, path: str) -> list[FieldError]:
    """Return what is wrong with requests and limits."""
    errors: list[FieldError] = []
    amounts: dict[str, dict[str, Quantity]] = {"limits": {}, "requests": {}}
    for kind, parsed in amounts.items():
        for name, text in (resources.get(kind) or {}).items():
            where = f"{path}.{kind}[{name}]"
            try:
                parsed[name] = Quantity.parse(str(text))
            except QuantityError as problem:
                errors.append(invalid_value(where, text, str(problem)))
                continue
            if parsed[name].sign < 0:
                errors.append(invalid_value(where, text, NOT_NEGATIVE))
            if not STANDARD_RESOURCE.match(name):
                errors.append(invalid_value(where, name, "must be a standard resource for containers"))
    for name, request in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        if limit is not None and request > limit:
            detail = f"must be less than or equal to {name} limit of {limit}"
            errors.append(invalid_value(f"{path}.requests", str(request), detail))
    return errors


def validate_labels(labels: JsonObject | None, path: str) -> list[FieldError]:
    """Return what is wrong with a label map."""
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        errors += [invalid_value(path, key, problem) for problem in names.label_key_problems(key)]
        errors += [invalid_value(path, value, problem) for problem in names.label_value_problems(str(value))]
    return errors


UNCHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
#: Subresources of pods.
POD_SUBRESOURCES = "status eviction binding resize log ephemeralcontainers"
RESIZE_ONLY = "only cpu and memory resources are mutable"
#: Tolerations that the default admission plugins add to each pod, for 300 seconds.
NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class PodStrategy(Strategy):
    """Pods, whose spec is mostly immutable and whose deletion is graceful once a node runs them."""

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
        if not self.rules.completes_pod_level:
            complete_pod_level(spec, self.rules)

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start as Pending, with what the default admission plugins add."""
        spec = obj["spec"]
        set_defaults(spec, priority=0, preemptionPolicy="PreemptLowerPriority", tolerations=[])
        toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in NODE_TROUBLE:
            if not any(_tolerates(existing, key) for existing in spec["tolerations"]):
                spec["tolerations"].append({"key": key, **toleration})
        complete_pod_level(spec, self.rules)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec, self.rules)}
        if spec.get("schedulingGates"):
            message = "Scheduling is blocked due to non-empty scheduling gates"
            gated = condition("PodScheduled", "SchedulingGated", message, now, status="False")
            obj["status"]["conditions"] = [gated]

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Keep the quality-of-service class."""
        status = obj.setdefault("status", {})
        if not status.get("qosClass"):
            status["qosClass"] = old.get("status", {}).get("qosClass") or qos_class(obj["spec"], self.rules)

    def validate(self, obj: JsonObject) -> list[FieldError]:
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
