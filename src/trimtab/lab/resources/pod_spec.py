"""Defaults and checks of a pod's spec, shared by pods and by every template that makes them."""

import re
from collections.abc import Iterator

from trimtab.decide.vertical.resources import pod_rules
from trimtab.decide.vertical.resources.limit_ranges import NO_LIMIT_RANGES
from trimtab.decide.vertical.resources.pod_rules import (
    SIZED,
    PodRule,
    container_totals,
    container_violations,
    pod_violations,
)
from trimtab.lab.apiserver.errors import (
    duplicate_value,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from trimtab.lab.storage.codec import JsonObject
from trimtab.model.core.pod import PodSpec
from trimtab.model.field_errors import FieldError
from trimtab.model.json import wire
from trimtab.model.labels import names
from trimtab.model.quantity import Quantity, QuantityError

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
RESTART_POLICIES = ("Always", "Never", "OnFailure")
DEFAULT_MODE = 0o644


def containers_of(spec: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield every container with its path below the spec."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield f"{field}[{index}]", container


def default_pod_spec(spec: JsonObject) -> None:
    """Fill in what a pod spec leaves out."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
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
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(kind)
        if isinstance(probe, dict):
            for name, value in (
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ):
                probe.setdefault(name, value)
            if isinstance(probe.get("httpGet"), dict):
                probe["httpGet"].setdefault("path", "/")
                probe["httpGet"].setdefault("scheme", "HTTP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            reference.setdefault("apiVersion", "v1")


def _pull_policy(image: str) -> str:
    """Pull an image every time if it can change under its name."""
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return "Always" if tag in ("", "latest") and "@" not in image else "IfNotPresent"


def default_requests(spec: JsonObject) -> None:
    """Take the limits of containers as their requests where none are given; only pods do this, not templates."""
    for _, container in containers_of(spec):
        limits = container["resources"].get("limits")
        if limits:
            requests = container["resources"].setdefault("requests", {})
            for name, value in limits.items():
                requests.setdefault(name, value)


def default_pod_level_requests(spec: JsonObject) -> None:
    """Give a pod with limits of its own the requests that it leaves out: its containers', else its limits."""
    resources = spec.get("resources")
    if not isinstance(resources, dict) or not resources.get("limits"):
        return
    try:
        totals = container_totals(wire.convert(spec, PodSpec)).requests
    except wire.WireError:
        return  # validation says what is wrong
    asked = {name: str(amount) for name, amount in totals.items() if name in SIZED}
    limits = {name: amount for name, amount in resources["limits"].items() if name in SIZED}
    resources["requests"] = {**limits, **asked, **(resources.get("requests") or {})}


def validate_pod_level(spec: JsonObject, path: str) -> list[FieldError]:
    """Return what is wrong with pod-level resources, and with containers that exceed them."""
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return []
    found = validate_resources(resources, f"{path}.resources")
    if resources.get("claims"):
        detail = "claims may not be set for Resources at pod-level"
        found.append(forbidden_field(f"{path}.resources.claims", detail))
    try:
        typed = wire.convert(spec, PodSpec)
    except wire.WireError:
        return found
    for violation in pod_violations(typed, NO_LIMIT_RANGES):
        where = f"{path}.resources.requests[{violation.resource}]"
        found.append(invalid_value(where, resources["requests"][violation.resource], violation.message))
    for index, container in enumerate(typed.containers):
        for violation in container_violations(container, typed, NO_LIMIT_RANGES):
            if violation.rule is PodRule.POD_LEVEL:
                where = f"{path}.resources.containers[{index}][{violation.resource}].limits"
                amount = str(container.resources.limits[violation.resource])
                found.append(invalid_value(where, amount, violation.message))
    return found


def validate_pod_spec(spec: JsonObject, path: str) -> list[FieldError]:
    """Return what is wrong with a pod spec."""
    found: list[FieldError] = []
    if not spec.get("containers"):
        found.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for place, container in containers_of(spec):
        found += _validate_container(container, f"{path}.{place}", seen)
    if spec.get("restartPolicy") not in RESTART_POLICIES:
        found.append(
            unsupported_value(f"{path}.restartPolicy", spec.get("restartPolicy", ""), RESTART_POLICIES)
        )
    grace = spec.get("terminationGracePeriodSeconds", 0)
    if grace < 0:
        found.append(
            invalid_value(
                f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"
            )
        )
    return found + validate_pod_level(spec, path)


def _validate_container(container: JsonObject, path: str, seen: set[str]) -> list[FieldError]:
    found: list[FieldError] = []
    name = container.get("name", "")
    if not name:
        found.append(required(f"{path}.name"))
    else:
        found += [
            invalid_value(f"{path}.name", name, complaint) for complaint in names.dns1123_label_problems(name)
        ]
        if name in seen:
            found.append(duplicate_value(f"{path}.name", name))
        seen.add(name)
    if not container.get("image"):
        found.append(required(f"{path}.image"))
    elif container["image"] != container["image"].strip():
        found.append(
            invalid_value(f"{path}.image", container["image"], "must not have leading or trailing whitespace")
        )
    if container.get("imagePullPolicy") not in PULL_POLICIES:
        found.append(
            unsupported_value(f"{path}.imagePullPolicy", container.get("imagePullPolicy", ""), PULL_POLICIES)
        )
    for index, port in enumerate(container.get("ports") or ()):
        if not 0 < port.get("containerPort", 0) < 65536:
            where = f"{path}.ports[{index}].containerPort"
            found.append(
                invalid_value(where, port.get("containerPort", 0), "must be between 1 and 65535, inclusive")
            )
    return found + validate_resources(container.get("resources") or {}, f"{path}.resources")


def validate_resources(resources: JsonObject, path: str) -> list[FieldError]:
    """Return what is wrong with requests and limits."""
    found: list[FieldError] = []
    amounts: dict[str, dict[str, Quantity]] = {"limits": {}, "requests": {}}
    for kind, parsed in amounts.items():
        for name, text in (resources.get(kind) or {}).items():
            try:
                parsed[name] = Quantity.parse(str(text))
            except QuantityError as problem:
                found.append(invalid_value(f"{path}.{kind}[{name}]", text, str(problem)))
                continue
            if parsed[name].sign < 0:
                found.append(
                    invalid_value(f"{path}.{kind}[{name}]", text, "must be greater than or equal to 0")
                )
            if not re.match(r"^(cpu|memory|ephemeral-storage|hugepages-.*|.*/.*)$", name):
                found.append(
                    invalid_value(
                        f"{path}.{kind}[{name}]", name, "must be a standard resource for containers"
                    )
                )
    for name, request in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        if limit is not None and request > limit:
            detail = f"must be less than or equal to {name} limit of {limit}"
            found.append(invalid_value(f"{path}.requests", str(request), detail))
    return found


def qos_class(spec: JsonObject) -> str:
    """Return the quality-of-service class of a pod; one that cannot be read is refused before it matters."""
    try:
        return pod_rules.qos_class(wire.convert(spec, PodSpec)).value
    except wire.WireError:
        return "BestEffort"


def validate_labels(labels: JsonObject | None, path: str) -> list[FieldError]:
    """Return what is wrong with a label map."""
    found: list[FieldError] = []
    for key, value in (labels or {}).items():
        found += [invalid_value(path, key, complaint) for complaint in names.label_key_problems(key)]
        found += [
            invalid_value(path, value, complaint) for complaint in names.label_value_problems(str(value))
        ]
    return found
