"""Defaults and validation of pod specs, shared by pods and pod templates."""

import re
from collections.abc import Iterator

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
from trimtab_lab.resources.amounts import CPU_AND_MEMORY, amounts_of, containers_total
from trimtab_lab.resources.strategy import set_defaults
from trimtab_lab.storage.codec import JsonObject

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
    """Fill in the defaults of a pod spec."""
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
    """Return what is wrong with a pod spec."""
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
