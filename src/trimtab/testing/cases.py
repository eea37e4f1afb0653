"""Inputs for plug-ins, generated from a seed, the odd ones first."""

from collections.abc import Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

import msgspec

from trimtab.model.core.meta import OwnerReference
from trimtab.plugins import (
    FilterNode,
    FilterPod,
    FilterTarget,
    PodFilterInput,
    PolicyMetric,
    ReplicaPolicyInput,
)

CASES = 200
START = 1_800_000_000.0
SYNC_PERIOD = 15
_PHASES = ("Running", "Running", "Running", "Pending", "Succeeded", "Failed")


def filter_inputs(cases: int = CASES) -> Iterator[PodFilterInput]:
    """Yield inputs of pod filters: no pod, one, many; with and without nodes, owners and labels."""
    for number in range(cases):
        random = Random(number)  # noqa: S311 - test inputs, not secrets
        nodes = [_node(name, random) for name in ("node-a", "node-b", "node-c")]
        count = (0, 1, 100)[number] if number < 3 else random.randrange(12)
        pods = tuple(_pod(f"web-{position}", random, nodes) for position in range(count))
        target = FilterTarget(
            namespace="shop",
            kind="Deployment",
            name="web",
            api_version="apps/v1",
            uid="uid-of-web",
            replicas=max(count + random.randrange(-1, 2), 0),
        )
        yield PodFilterInput(pods=pods, target=target)


def without_nodes(seen: PodFilterInput) -> PodFilterInput:
    """Return an input as filters get it that do not declare `needs_nodes`."""
    pods = tuple(msgspec.structs.replace(pod, node=None) for pod in seen.pods)
    return msgspec.structs.replace(seen, pods=pods)


def _node(name: str, random: Random) -> FilterNode:
    return FilterNode(
        name=name,
        is_unschedulable=random.random() < 0.3,
        labels=MappingProxyType({"topology.kubernetes.io/zone": random.choice("abc")}),
    )


def _pod(name: str, random: Random, nodes: list[FilterNode]) -> FilterPod:
    node = random.choice([*nodes, None])
    phase = random.choice(_PHASES)
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web-1", uid="uid-of-web-1")
    return FilterPod(
        name=name,
        labels=MappingProxyType({"app": "web"} if random.random() < 0.9 else {}),
        phase=phase,
        is_ready=phase == "Running" and random.random() < 0.8,
        is_deleted=random.random() < 0.1,
        started=random.choice((None, START - random.random() * 1e6)),
        owners=(owner,) if random.random() < 0.8 else (),
        node_name=node.name if node else "",
        node=node,
    )


def policy_inputs(parameters: Mapping[str, Any], cases: int = CASES) -> Iterator[ReplicaPolicyInput]:
    """Yield inputs of replica policies without memory: every metric missing, unreadable, zero, small and huge."""
    names = _names(parameters)
    for number in range(cases):
        random = Random(number)  # noqa: S311 - test inputs, not secrets
        low = random.randrange(3)
        yield ReplicaPolicyInput(
            namespace="shop",
            name="web",
            replicas=random.randrange(100),
            min_replicas=low,
            max_replicas=low + random.randrange(1, 100),
            metrics=() if number == 0 else tuple(_metric(name, random) for name in names),
            now=START + number * SYNC_PERIOD,
            parameters=frozen(parameters),
        )


def _names(parameters: Mapping[str, Any]) -> list[str]:
    """Return names of metrics: those that the parameters mention, and common ones."""
    texts = [value for value in parameters.values() if isinstance(value, str)]
    return list(dict.fromkeys([*texts, "cpu", "requests"]))


def _metric(name: str, random: Random) -> PolicyMetric:
    if random.random() < 0.1:
        return PolicyMetric(name=name, type="External", error="the source does not answer")
    value = random.choice((0.0, random.random(), random.random() * 1000, 1e9))
    replicas = random.randrange(100)
    total = random.choice((None, value * replicas))
    return PolicyMetric(name=name, type="External", value=value, target=50.0, total=total, replicas=replicas)


def frozen(value: Any) -> Any:
    """Return JSON that cannot be changed, as plug-ins get it."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: frozen(item) for key, item in value.items()})
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value
