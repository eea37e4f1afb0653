"""The arithmetic of a pod's resources, as the recorded answers of the real server show it.

It is written beside the rules by which Trimtab sizes pods and shares none of them, so that the lab can prove those wrong.
"""

from collections.abc import Iterator

from trimtab.model.core.server_rules import ServerRules
from trimtab.model.quantity import Quantity, QuantityError
from trimtab_lab.storage.codec import JsonObject

Amounts = dict[str, Quantity]
CPU_AND_MEMORY = ("cpu", "memory")
#: A larger number has no milli value, so such amounts are compared as whole numbers.
LARGEST_MILLI = (2**63 - 1) // 1000


def amounts_of(owner: JsonObject, kind: str) -> Amounts:
    """Return the requests or limits of a container or of a whole pod. What is no quantity is left out."""
    amounts: Amounts = {}
    for name, text in ((owner.get("resources") or {}).get(kind) or {}).items():
        try:
            amounts[name] = Quantity.parse(str(text))
        except QuantityError:
            continue  # validation reports it
    return amounts


def _plus(first: Amounts, second: Amounts) -> Amounts:
    return first | {name: first.get(name, Quantity.zero) + amount for name, amount in second.items()}


def _larger(first: Amounts, second: Amounts) -> Amounts:
    return first | {name: max(first.get(name, amount), amount) for name, amount in second.items()}


def containers_total(spec: JsonObject, kind: str) -> Amounts:
    """Return what the containers need together: while they run, or for the largest step of the start."""
    running: Amounts = {}
    for container in spec.get("containers") or ():
        running = _plus(running, amounts_of(container, kind))
    sidecars: Amounts = {}
    largest_step: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = amounts_of(container, kind)
        step = _plus(sidecars, own)
        largest_step = _larger(largest_step, step)
        if container.get("restartPolicy") == "Always":
            running, sidecars = _plus(running, own), step
    return _larger(running, largest_step)


def pod_total(spec: JsonObject, kind: str) -> Amounts:
    """Return what counts for the pod: its own CPU and memory, else those of its containers."""
    own = amounts_of(spec, kind)
    return containers_total(spec, kind) | {name: own[name] for name in CPU_AND_MEMORY if name in own}


def complete_pod_level(spec: JsonObject, rules: ServerRules) -> None:
    """Fill in missing amounts of the whole pod by those of its containers.

    Since 1.37 that happens after admission, for requests and limits. Before, only requests beside limits were filled in.
    """
    resources = spec.get("resources")
    if not isinstance(resources, dict) or not (resources.get("limits") or resources.get("requests")):
        return
    if not rules.completes_pod_level and not resources.get("limits"):
        return
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asked, own, most = (
        containers_total(spec, "requests"),
        amounts_of(spec, "requests"),
        amounts_of(spec, "limits"),
    )
    requests = {
        name: next(given[name] for given in (own, asked, most) if name in given)
        for name in CPU_AND_MEMORY
        if name in own or name in asked or name in most
    }
    _fill(resources, "requests", requests)
    if rules.completes_pod_level:
        total = containers_total(spec, "limits")
        limited = [
            name
            for name in requests
            if name in CPU_AND_MEMORY and all(name in amounts_of(each, "limits") for each in containers)
        ]
        _fill(resources, "limits", {name: max(total[name], requests[name]) for name in limited})


def _fill(resources: JsonObject, kind: str, amounts: Amounts) -> None:
    if amounts:
        texts = {name: str(amount) for name, amount in amounts.items()}
        resources[kind] = texts | (resources.get(kind) or {})


def qos_class(spec: JsonObject, rules: ServerRules) -> str:
    """Return the quality-of-service class of a pod."""
    whole = spec.get("resources")
    has_amounts = bool(whole and (whole.get("requests") or whole.get("limits")))
    is_whole = has_amounts if not rules.empty_pod_level_counts else whole is not None
    owners = [spec] if is_whole else [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    sums: dict[str, Amounts] = {"requests": {}, "limits": {}}
    has_both_limits = True
    for owner in owners:
        for kind, total in sums.items():
            given = amounts_of(owner, kind)
            counted = {name: given[name] for name in CPU_AND_MEMORY if name in given and given[name].sign > 0}
            sums[kind] = _plus(total, counted)
            if kind == "limits" and len(counted) < len(CPU_AND_MEMORY) and (given or not is_whole):
                has_both_limits = False
    if not sums["requests"] and not sums["limits"]:
        return "BestEffort"
    return "Guaranteed" if has_both_limits and sums["requests"] == sums["limits"] else "Burstable"


def range_violations(item: JsonObject, requests: Amounts, limits: Amounts) -> Iterator[str]:
    """Yield how amounts break the bounds of an item of a LimitRange."""
    for name, least in _bounds(item, "min"):
        request, limit = requests.get(name), limits.get(name)
        bound = f"minimum {name} usage per {item['type']} is {least}"
        if request is None:
            yield f"{bound}.  No request is specified"
        elif _exceeds(least, request):
            yield f"{bound}, but request is {request}"
        elif limit is not None and _exceeds(least, limit):
            yield f"{bound}, but limit is {limit}"
    for name, most in _bounds(item, "max"):
        request, limit = requests.get(name), limits.get(name)
        bound = f"maximum {name} usage per {item['type']} is {most}"
        if limit is None:
            yield f"{bound}.  No limit is specified"
        elif _exceeds(limit, most):
            yield f"{bound}, but limit is {limit}"
        elif request is not None and _exceeds(request, most):
            yield f"{bound}, but request is {request}"
    for name, ratio in _bounds(item, "maxLimitRequestRatio"):
        bound = f"{name} max limit to request ratio per {item['type']} is {ratio}"
        if problem := _ratio_problem(requests.get(name), limits.get(name), ratio):
            yield f"{bound}, but {problem}"


def _bounds(item: JsonObject, field: str) -> Iterator[tuple[str, Quantity]]:
    for name, text in (item.get(field) or {}).items():
        yield name, Quantity.parse(str(text))


def _exceeds(amount: Quantity, other: Quantity) -> bool:
    if max(amount.value(), other.value()) > LARGEST_MILLI:
        return amount.value() > other.value()
    return amount.milli_value() > other.milli_value()


def _ratio_problem(request: Quantity | None, limit: Quantity | None, ratio: Quantity) -> str:
    if request is None or request.is_zero:
        return "no request is specified or request is 0"
    if limit is None or limit.is_zero:
        return "no limit is specified or limit is 0"
    is_large = max(request.value(), limit.value(), ratio.value()) > LARGEST_MILLI
    actual = (
        float(limit.value()) / float(request.value())
        if is_large
        else float(limit.milli_value()) / float(request.milli_value())
    )
    # The server compares floats in thousandths, so an exact ratio may fail by its last digit.
    return f"provided ratio is {actual:f}" if actual * 1000 > float(ratio.milli_value()) else ""
