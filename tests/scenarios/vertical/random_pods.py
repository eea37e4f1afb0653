"""Random pods, LimitRanges, policies and recommendations; the same seed makes the same case.

Bounds are drawn around what the pod has, so that most pods are admitted as they are and many sizes are not.
"""

import copy
import math
import random
from dataclasses import dataclass, field
from typing import Any

from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler

Json = dict[str, Any]
UNITS = {"cpu": "m", "memory": ""}
SMALLEST = {"cpu": 10, "memory": 2**20}
LARGEST = {"cpu": 8_000, "memory": 2**35}


@dataclass(frozen=True)
class Case:
    """One pod of a namespace, and two VPAs that size it one after the other."""

    seed: int
    pod: Json
    vpas: tuple[VerticalPodAutoscaler, ...]


@dataclass
class Namespace:
    """The items of a namespace's LimitRange, and pods that were drawn with it."""

    items: list[Json] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)


def namespace_of(seed: int, pods: int) -> Namespace:
    """Return a namespace with some pods; the first decides its bounds."""
    chance = random.Random(seed)
    first = _pod(chance)
    found = Namespace(_items(chance, first))
    for number in range(pods):
        own = random.Random(seed * 1_000 + number)
        pod = _like(own, first) if own.random() < 0.9 else _pod(own)
        names = [container["name"] for container in pod["spec"]["containers"]]
        found.cases.append(Case(seed * 1_000 + number, pod, (_vpa(own, names), _vpa(own, names))))
    return found


def _like(chance: random.Random, pod: Json) -> Json:
    """Return the pod, or a copy of it whose requests are a little smaller."""
    made: Json = copy.deepcopy(pod)
    if chance.random() < 0.5:
        return made
    for container in made["spec"]["containers"]:
        requests = container["resources"].get("requests", {})
        for resource, text in requests.items():
            if chance.random() < 0.3:
                requests[resource] = _text(resource, int(text.removesuffix("m")) * chance.uniform(0.8, 1))
    return made


def _amount(chance: random.Random, resource: str) -> int:
    low, high = math.log(SMALLEST[resource]), math.log(LARGEST[resource])
    found = int(math.exp(chance.uniform(low, high)))
    return chance.choice((found, max(found // 100 * 100, SMALLEST[resource])))


def _text(resource: str, amount: float) -> str:
    return f"{max(int(amount), 1)}{UNITS[resource]}"


def _resources(chance: random.Random) -> Json:
    requests: Json = {}
    limits: Json = {}
    kind = chance.choice(("none", "guaranteed", "ratio", "ratio", "ratio", "requests", "mixed"))
    for resource in UNITS:
        shape = chance.choice(("ratio", "requests", "none", "limits", "equal")) if kind == "mixed" else kind
        amount = _amount(chance, resource)
        factor = chance.choice((1.001, 1.5, 2, 3, 7, 10)) if shape == "ratio" else 1
        if shape in ("ratio", "requests", "equal", "guaranteed"):
            requests[resource] = _text(resource, amount)
        if shape in ("ratio", "limits", "equal", "guaranteed"):
            limits[resource] = _text(resource, amount * factor)
    found = {"requests": requests, "limits": limits}
    return {name: amounts for name, amounts in found.items() if amounts}


def _pod(chance: random.Random) -> Json:
    count = chance.choice((1, 1, 2, 2, 3))
    has_claims = chance.random() < 0.15
    containers = []
    for number in range(count):
        resources = _resources(chance)
        if has_claims and chance.random() < 0.6:
            resources["claims"] = [{"name": "device"}]
        containers.append({"name": f"app-{number}", "image": "b", "resources": resources})
    spec: Json = {"containers": containers}
    if chance.random() < 0.35:
        spec["initContainers"] = [_init(chance, number) for number in range(chance.choice((1, 1, 2)))]
    if has_claims:
        spec["resourceClaims"] = [{"name": "device", "resourceClaimTemplateName": "any"}]
    if chance.random() < 0.35:
        spec["resources"] = _pod_level(chance, spec)
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u-1", "controller": True}
    metadata = {"generateName": "db-", "labels": {"app": "db"}, "ownerReferences": [owner]}
    if chance.random() < 0.5:
        metadata["annotations"] = {"note": "of another"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _init(chance: random.Random, number: int) -> Json:
    made: Json = {"name": f"init-{number}", "image": "b", "resources": _resources(chance)}
    return made | ({"restartPolicy": "Always"} if chance.random() < 0.6 else {})


def _numbers(spec: Json, kind: str, resource: str) -> list[int]:
    containers = (*spec["containers"], *spec.get("initContainers", ()))
    found = []
    for container in containers:
        own = container["resources"]
        text = own.get(kind, {}).get(resource) or own.get("limits", {}).get(resource)
        if text:
            found.append(int(text.removesuffix("m")))
    return found


def _pairs(spec: Json, resource: str) -> list[tuple[int, int]]:
    """Return request and limit of each container that has both."""
    found = []
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        amounts = [container["resources"].get(kind, {}).get(resource) for kind in ("requests", "limits")]
        if all(amounts):
            found.append((int(amounts[0].removesuffix("m")), int(amounts[1].removesuffix("m"))))
    return found


def _pod_level(chance: random.Random, spec: Json) -> Json:
    found: Json = {"requests": {}, "limits": {}}
    for resource in UNITS:
        if chance.random() < 0.2:
            continue
        asked = sum(_numbers(spec, "requests", resource)) or SMALLEST[resource]
        most = max([asked, *_numbers(spec, "limits", resource)])
        room = chance.choice((0.8, 1, 1, 1.3, 3))
        kind = chance.choice(("both", "equal", "requests", "limits"))
        if kind in ("both", "requests"):
            found["requests"][resource] = _text(resource, asked * room)
        if kind in ("both", "limits"):
            found["limits"][resource] = _text(resource, most * max(room, 1) * chance.choice((1, 2)))
        if kind == "equal":
            found["requests"][resource] = found["limits"][resource] = _text(resource, most * room)
    return {name: amounts for name, amounts in found.items() if amounts}


def _items(chance: random.Random, pod: Json) -> list[Json]:
    """Draw bounds around what a pod has."""
    items: list[Json] = []
    for kind in ("Container", "Pod"):
        if chance.random() < 0.5:
            item: Json = {"type": kind}
            for resource in UNITS:
                _bound(chance, item, resource, pod["spec"], is_pod=kind == "Pod")
                _make_consistent(item, resource)
            if len(item) > 1:
                items.append(item)
    return items


def _bound(chance: random.Random, item: Json, resource: str, spec: Json, *, is_pod: bool) -> None:
    requests, limits = _numbers(spec, "requests", resource), _numbers(spec, "limits", resource)
    most = (sum(limits) if is_pod else max(limits, default=0)) or LARGEST[resource]
    least = (sum(requests) if is_pod else min(requests, default=0)) or SMALLEST[resource]
    if chance.random() < 0.4:
        item.setdefault("max", {})[resource] = _text(resource, most * chance.choice((1, 1.2, 2, 5)))
    if chance.random() < 0.3:
        item.setdefault("min", {})[resource] = _text(resource, least / chance.choice((1, 1.2, 2, 5)))
    if chance.random() < 0.3:
        pairs = _pairs(spec, resource)
        ratio = max((limit / request for request, limit in pairs), default=1)
        ratios = (math.ceil(ratio * 1000), math.ceil(ratio * 1300), math.ceil(ratio) * 2000)
        item.setdefault("maxLimitRequestRatio", {})[resource] = f"{chance.choice(ratios)}m"
        if not is_pod:
            item.setdefault("default", {})[resource] = _text(resource, most)
            item.setdefault("defaultRequest", {})[resource] = _text(resource, most)
    if not is_pod and chance.random() < 0.2:
        item.setdefault("default", {})[resource] = _text(resource, most)
        item.setdefault("defaultRequest", {})[resource] = _text(resource, min(most, least))


def _make_consistent(item: Json, resource: str) -> None:
    """Drop what the server refuses of a LimitRange: bounds that contradict each other."""

    def number(bound: str) -> float | None:
        text = item.get(bound, {}).get(resource)
        return None if text is None else float(text.removesuffix("m"))

    least, most, ratio = number("min"), number("max"), number("maxLimitRequestRatio")
    if least and most and (least > most or (ratio and ratio / 1000 > most / least)):
        del item["min"][resource]
        least = None
    for bound in ("default", "defaultRequest"):
        amount = number(bound)
        if amount is not None:
            low, high = least or 1, most or math.inf
            item[bound][resource] = _text(resource, min(max(amount, low), high))


def _vpa(chance: random.Random, containers: list[str]) -> VerticalPodAutoscaler:
    entries, policies = [], []
    for name in containers:
        if chance.random() < 0.9:
            named = [resource for resource in UNITS if chance.random() < 0.9]
            target = {resource: _text(resource, _amount(chance, resource)) for resource in named}
            entries.append(
                {"containerName": name, "target": target, "lowerBound": target, "upperBound": target}
            )
        if chance.random() < 0.5:
            policies.append({"containerName": name, **_policy(chance)})
    data = {
        "metadata": {"name": "base", "namespace": "shop", "generation": 1},
        "spec": {
            "targetRef": {"kind": "StatefulSet", "name": "db", "apiVersion": "apps/v1"},
            "updatePolicy": {"updateMode": "InPlaceOrRecreate"},
            "resourcePolicy": {"containerPolicies": policies} if policies else None,
        },
        "status": {"observedGeneration": 1, "recommendation": {"containerRecommendations": entries}},
    }
    return wire.convert(data, VerticalPodAutoscaler)


def _policy(chance: random.Random) -> Json:
    found: Json = {}
    if chance.random() < 0.4:
        found["controlledValues"] = "RequestsOnly"
    if chance.random() < 0.15:
        found["mode"] = "Off"
    if chance.random() < 0.2:
        found["controlledResources"] = [chance.choice(tuple(UNITS))]
    for bound in ("minAllowed", "maxAllowed"):
        if chance.random() < 0.2:
            resource = chance.choice(tuple(UNITS))
            found[bound] = {resource: _text(resource, _amount(chance, resource))}
    return found
