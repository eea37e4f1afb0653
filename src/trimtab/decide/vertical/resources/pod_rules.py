"""The API server's rules about the resources of a whole pod.

They are those of validation, of the LimitRanger plugin and of resizes, for CPU and memory. Amounts of other resources
never change here, so their rules are left to the server. Where versions of Kubernetes differ, `ServerRules` decide.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from trimtab.decide.vertical.resources.limit_ranges import NO_LIMIT_RANGES, LimitRanges
from trimtab.model.core.objects import LimitRangeItem
from trimtab.model.core.pod import CPU, MEMORY, Container, Pod, PodSpec, ResourceList, ResourceRequirements
from trimtab.model.core.server_rules import KUBERNETES_1_36, ServerRules
from trimtab.model.quantity import Quantity

SIZED = (CPU, MEMORY)
CLAIMS_REFUSAL = "pods with resource claims cannot be resized in place before Kubernetes 1.37"
POD_LEVEL_REFUSAL = "pods with pod-level resources cannot be resized in place before Kubernetes 1.36"
_LARGEST_MILLI = (2**63 - 1) // 1000
_NO_AMOUNTS = ResourceRequirements()


class QoSClass(StrEnum):
    """The quality-of-service classes."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


class PodRule(StrEnum):
    """The rule that an amount breaks, in the words of the `vpaUpdates` annotation."""

    LIMIT = "capped to its limit"
    POD_LEVEL = "capped to fit the pod-level resources"
    CONTAINER_RANGE = "capped to fit the container LimitRange"
    POD_RANGE = "capped to fit the LimitRange of pods"
    QOS = "capped to keep the QoS class"


@dataclass(frozen=True)
class Violation:
    """A broken rule."""

    rule: PodRule
    resource: str
    container: str
    """Empty if the rule is about the whole pod."""
    message: str
    """In the server's words."""


def violations(
    pod: Pod, ranges: LimitRanges = NO_LIMIT_RANGES, rules: ServerRules = KUBERNETES_1_36
) -> Iterator[Violation]:
    """Yield the rules of creation that the pod breaks."""
    spec = complete_pod_level(pod.spec, rules)
    for container in (*spec.init_containers, *spec.containers):
        yield from container_violations(container, spec, ranges)
    yield from pod_violations(spec, ranges)
    own = spec.resources or _NO_AMOUNTS
    for resource, limit in _sized(own.limits).items():
        if own.requests.get(resource, Quantity.zero) > limit:
            message = f"must be less than or equal to {resource} limit of {limit}"
            yield Violation(PodRule.POD_LEVEL, resource, "", message)


def container_violations(container: Container, spec: PodSpec, ranges: LimitRanges) -> Iterator[Violation]:
    """Yield the rules that one container breaks by itself."""
    own = container.resources
    for resource in SIZED:
        request, limit = own.requests.get(resource), own.limits.get(resource)
        if request is not None and limit is not None and request > limit:
            message = f"must be less than or equal to {resource} limit of {limit}"
            yield Violation(PodRule.LIMIT, resource, container.name, message)
    most = spec.resources.limits if spec.resources is not None else {}
    for resource in SIZED if container in spec.containers else ():
        limit, pod_limit = own.limits.get(resource), most.get(resource)
        if limit is not None and pod_limit is not None and limit > pod_limit:
            message = f"must be less than or equal to pod limits of {pod_limit}"
            yield Violation(PodRule.POD_LEVEL, resource, container.name, message)
    for resource, message in _range_violations(ranges.container, own):
        yield Violation(PodRule.CONTAINER_RANGE, resource, container.name, message)


def pod_violations(spec: PodSpec, ranges: LimitRanges) -> Iterator[Violation]:
    """Yield the rules that the containers break together."""
    if spec.resources is not None:
        total = container_totals(spec).requests
        for resource in SIZED:
            asked, most = total.get(resource), spec.resources.requests.get(resource)
            if asked is not None and most is not None and asked > most:
                message = f"must be greater than or equal to aggregate container requests of {asked}"
                yield Violation(PodRule.POD_LEVEL, resource, "", message)
    for resource, message in _range_violations(ranges.pod, pod_totals(spec)):
        yield Violation(PodRule.POD_RANGE, resource, "", message)


def container_totals(spec: PodSpec) -> ResourceRequirements:
    """Return the sum of containers and sidecars, or the largest init container if that is more."""
    running = _added(container.resources for container in spec.containers)
    beside, starting = _NO_AMOUNTS, _NO_AMOUNTS
    for container in spec.init_containers:
        if container.is_sidecar:
            running = _added((running, container.resources))
            beside = _added((beside, container.resources))
            starting = _larger(starting, beside)
        else:
            starting = _larger(starting, _added((container.resources, beside)))
    return _larger(running, starting)


def pod_totals(spec: PodSpec) -> ResourceRequirements:
    """Return the pod's totals, in which pod-level resources replace the sums of containers."""
    totals = container_totals(spec)
    if spec.resources is None:
        return totals
    return ResourceRequirements(
        requests={**totals.requests, **_sized(spec.resources.requests)},
        limits={**totals.limits, **_sized(spec.resources.limits)},
    )


def complete_pod_level(spec: PodSpec, rules: ServerRules) -> PodSpec:
    """Return the spec with the pod-level amounts that the server fills in after admission."""
    own = spec.resources
    if not rules.completes_pod_level or own is None or not (own.requests or own.limits):
        return spec
    totals = container_totals(spec)
    requests = {**_sized(own.limits), **_sized(totals.requests), **own.requests}
    everywhere = (*spec.containers, *spec.init_containers)
    limits = {
        resource: max(requests[resource], totals.limits[resource])
        for resource in SIZED
        if resource in requests and all(resource in container.resources.limits for container in everywhere)
    }
    completed = msgspec.structs.replace(own, requests=requests, limits={**limits, **own.limits})
    return msgspec.structs.replace(spec, resources=completed)


def scheduler_requests(spec: PodSpec) -> ResourceList:
    """Return the requests that the scheduler reserves for the pod, with its overhead."""
    asked = pod_totals(spec).requests
    return {name: _sum(asked.get(name), spec.overhead.get(name)) for name in {*asked, *spec.overhead}}


def _added(parts: Iterable[ResourceRequirements]) -> ResourceRequirements:
    requests: ResourceList = {}
    limits: ResourceList = {}
    for part in parts:
        for total, amounts in ((requests, part.requests), (limits, part.limits)):
            for resource, amount in amounts.items():
                total[resource] = _sum(total.get(resource), amount)
    return ResourceRequirements(requests=requests, limits=limits)


def _larger(first: ResourceRequirements, second: ResourceRequirements) -> ResourceRequirements:
    def merged(left: ResourceList, right: ResourceList) -> ResourceList:
        return {
            name: max(amounts[name] for amounts in (left, right) if name in amounts)
            for name in (*left, *(name for name in right if name not in left))
        }

    return ResourceRequirements(
        requests=merged(first.requests, second.requests), limits=merged(first.limits, second.limits)
    )


def _sum(first: Quantity | None, second: Quantity | None) -> Quantity:
    return (first or Quantity.zero) + (second or Quantity.zero)


def _sized(amounts: ResourceList) -> ResourceList:
    return {resource: amounts[resource] for resource in SIZED if resource in amounts}


def _range_violations(item: LimitRangeItem | None, own: ResourceRequirements) -> Iterator[tuple[str, str]]:
    """Yield resource and message of each bound of a LimitRange that the amounts break."""
    if item is None:
        return
    for resource in SIZED:
        request, limit = own.requests.get(resource), own.limits.get(resource)
        least, most = item.min.get(resource), item.max.get(resource)
        ratio = item.max_limit_request_ratio.get(resource)
        if least is not None and (message := _min_violation(request, limit, least)):
            yield resource, f"minimum {resource} usage per {item.type} is {least}{message}"
        if most is not None and (message := _max_violation(request, limit, most)):
            yield resource, f"maximum {resource} usage per {item.type} is {most}{message}"
        if ratio is not None and (message := _ratio_violation(request, limit, ratio)):
            yield resource, f"{resource} max limit to request ratio per {item.type} is {ratio}, but {message}"


def _min_violation(request: Quantity | None, limit: Quantity | None, least: Quantity) -> str:
    if request is None:
        return ".  No request is specified"
    if _is_more(least, request):
        return f", but request is {request}"
    return f", but limit is {limit}" if limit is not None and _is_more(least, limit) else ""


def _max_violation(request: Quantity | None, limit: Quantity | None, most: Quantity) -> str:
    if limit is None:
        return ".  No limit is specified"
    if _is_more(limit, most):
        return f", but limit is {limit}"
    return f", but request is {request}" if request is not None and _is_more(request, most) else ""


def _is_more(amount: Quantity, other: Quantity) -> bool:
    if max(amount.value(), other.value()) > _LARGEST_MILLI:
        return amount.value() > other.value()
    return amount.milli_value() > other.milli_value()


def _ratio_violation(request: Quantity | None, limit: Quantity | None, ratio: Quantity) -> str:
    if request is None or request.is_zero:
        return "no request is specified or request is 0"
    if limit is None or limit.is_zero:
        return "no limit is specified or limit is 0"
    if max(request.value(), limit.value(), ratio.value()) > _LARGEST_MILLI:
        actual = float(limit.value()) / float(request.value())
    else:
        actual = float(limit.milli_value()) / float(request.milli_value())
    # The server compares floats in thousandths, so an exact ratio may fail by the last digit.
    is_over = actual * 1000 > float(ratio.milli_value())
    return f"provided ratio is {actual:f}" if is_over else ""


def qos_class(spec: PodSpec, rules: ServerRules = KUBERNETES_1_36) -> QoSClass:
    """Return the QoS class of a pod, by its pod-level resources where it has any."""
    spec = complete_pod_level(spec, rules)
    own = spec.resources
    if own is not None and (rules.empty_pod_level_counts or _has_amounts(own)):
        # Pod-level requests without limits never make a pod Guaranteed, since the two lists differ in length.
        return _class_of((own,), only_listed=True)
    everywhere = (*spec.containers, *spec.init_containers)
    return _class_of(tuple(container.resources for container in everywhere))


def _class_of(parts: Sequence[ResourceRequirements], *, only_listed: bool = False) -> QoSClass:
    requests = _positive(part.requests for part in parts)
    limits = _positive(part.limits for part in parts)
    if not requests and not limits:
        return QoSClass.BEST_EFFORT
    has_limits = all(
        all(name in part.limits and part.limits[name].sign > 0 for name in SIZED)
        for part in parts
        if part.limits or not only_listed
    )
    return QoSClass.GUARANTEED if has_limits and requests == limits else QoSClass.BURSTABLE


def _positive(lists: Iterable[ResourceList]) -> ResourceList:
    totals: ResourceList = {}
    for amounts in lists:
        for name in SIZED:
            if name in amounts and amounts[name].sign > 0:
                totals[name] = _sum(totals.get(name), amounts[name])
    return totals


def present_class(pod: Pod, rules: ServerRules = KUBERNETES_1_36) -> QoSClass:
    """Return the QoS class that the server gave to the pod, else the one that it would give."""
    # An upgrade of the server does not change the class of a pod.
    return QoSClass(pod.status.qos_class) if pod.status.qos_class else qos_class(pod.spec, rules)


def resize_refusal(before: Pod, after: Pod, rules: ServerRules = KUBERNETES_1_36) -> str:
    """Return why the server would refuse a resize on any node, or empty if it would not."""
    if refusal := never_resized(before.spec, rules):
        return refusal
    was, becomes = present_class(before, rules), qos_class(after.spec, rules)
    return f"its QoS class may not change from {was} to {becomes} by a resize" if was != becomes else ""


def never_resized(spec: PodSpec, rules: ServerRules) -> str:
    """Return why the server refuses every resize of the pod, or empty if it does not."""
    if has_claims(spec) and not rules.resizes_claims:
        return CLAIMS_REFUSAL
    is_pod_level = spec.resources is not None and _has_amounts(spec.resources)
    return POD_LEVEL_REFUSAL if is_pod_level and not rules.resizes_pod_level else ""


def _has_amounts(resources: ResourceRequirements) -> bool:
    return bool(resources.requests or resources.limits)


def has_claims(spec: PodSpec) -> bool:
    """Return whether a container uses a resource claim (DRA)."""
    return any(container.resources.claims for container in (*spec.containers, *spec.init_containers))


def with_resources(pod: Pod, resources: Sequence[ResourceRequirements]) -> Pod:
    """Return the pod whose main containers have these resources."""
    containers = tuple(
        msgspec.structs.replace(container, resources=own)
        for container, own in zip(pod.spec.containers, resources, strict=True)
    )
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=containers))
