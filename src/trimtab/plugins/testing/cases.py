"""Inputs for pure plug-ins, generated from a seed, the odd ones first."""

from collections.abc import Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

import msgspec

from trimtab.model.core.meta import OwnerReference
from trimtab.plugins import (
    Amounts,
    EstimatorInput,
    FilterNode,
    FilterPod,
    FilterTarget,
    PodFilterInput,
    PolicyMetric,
    ReplicaPolicyInput,
    UsageHistogram,
    UsageSample,
)
from trimtab.plugins.estimator import MOST_SAMPLES

CASES = 200
START = 1_800_000_000.0
SYNC_PERIOD = 15
_STEP = 6 * 3600.0
_LARGEST: Mapping[str, float] = {"cpu": 512.0, "memory": 4.0 * 2**40}
_SAMPLES = (0, 1, 8, 8, 8, 64)
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


def estimator_inputs(*, with_samples: bool, cases: int = CASES) -> Iterator[EstimatorInput]:
    """Yield inputs of estimators without memory: no usage yet, of one resource, zero, small and huge."""
    for number in range(cases):
        random = Random(number)  # noqa: S311 - test inputs, not secrets
        now = START + number * _STEP
        used = {
            resource: _amounts_used(random, largest) if number else []
            for resource, largest in _LARGEST.items()
        }
        count = sum(map(len, used.values()))
        yield EstimatorInput(
            namespace="shop",
            name="web",
            container="main",
            now=now,
            histograms=MappingProxyType(
                {resource: _histogram(amounts, random) for resource, amounts in used.items()}
            ),
            built_in=MappingProxyType(
                {resource: _built_in(amounts) for resource, amounts in used.items() if amounts}
            ),
            first_sample=START if count else None,
            last_sample=now if count else None,
            sample_count=count,
            samples=_samples(number, random, now) if with_samples and number else (),
            missed_samples=random.choice((0, 0, 7)) if with_samples else 0,
        )


def _amounts_used(random: Random, largest: float) -> list[float]:
    count = random.choice((0, 1, 3, 40))
    return sorted({_amount(random, largest) for _ in range(count)})


def _amount(random: Random, largest: float) -> float:
    return random.choice((0.0, largest / 1e6, random.random() * largest / 1000, random.random() * largest))


def _histogram(ends: list[float], random: Random) -> UsageHistogram:
    return UsageHistogram(
        ends=tuple(ends), weights=tuple(random.choice((1e-6, random.random(), 1e6)) for _ in ends)
    )


def _built_in(ends: list[float]) -> Amounts:
    return Amounts(lower=ends[0], target=ends[len(ends) // 2], upper=ends[-1])


def _samples(number: int, random: Random, now: float) -> tuple[UsageSample, ...]:
    """Return samples since the last call, some a little late; once as many as can wait."""
    count = MOST_SAMPLES if number == 3 else random.choice(_SAMPLES)
    samples = []
    for position in range(count):
        resource = random.choice(tuple(_LARGEST))
        late = random.choice((0.0, 0.0, 60.0))
        at = now - _STEP * (count - position) / count - late
        samples.append(UsageSample(at, resource, _amount(random, _LARGEST[resource])))
    return tuple(samples)
