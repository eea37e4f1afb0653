"""VPA vectors: estimators, rounding flags, and floats that become amounts."""

from typing import Any

from tests.conformance.differences import differences
from tests.conformance.registry import checks
from tests.conformance.vpa_capping import shown, without_empty
from tests.conformance.vpa_dumps import PERCENTILES, as_doubles, nanoseconds
from tests.unit.decide.vertical.usage_builders import recommend_containers
from trimtab.decide.vertical.cluster_state.aggregates import Aggregate, AggregateTable
from trimtab.decide.vertical.cluster_state.amounts import amount_from_float, millicores_from_cores, scaled
from trimtab.decide.vertical.recommend.estimators import (
    Bound,
    EstimatorSettings,
    Percentiles,
    ResourceSettings,
)
from trimtab.decide.vertical.recommend.quantities import (
    RecommendationRounding,
    cpu_quantity,
    humanized,
    memory_quantity,
)
from trimtab.decide.vertical.recommend.recommendation import (
    RecommenderSettings,
    pod_resources,
)
from trimtab.model.json import wire
from trimtab.model.vpa.types import ContainerResourcePolicy, VerticalPodAutoscalerCheckpointStatus

_BOUNDS: dict[str, Bound] = {"target": "target", "lowerBound": "lower_bound", "upperBound": "upper_bound"}


def settings_of(data: dict[str, Any]) -> RecommenderSettings:
    """Read a case's recommender flags."""
    per_resource = {
        resource: ResourceSettings(
            Percentiles(
                target=float(data[f"target{name}Percentile"]),
                lower_bound=float(data[f"lowerBound{name}Percentile"]),
                upper_bound=float(data[f"upperBound{name}Percentile"]),
            ),
            confidence_interval_ns=nanoseconds(data[f"confidenceInterval{name}Seconds"]),
        )
        for resource, name in (("cpu", "CPU"), ("memory", "Memory"))
    }
    return RecommenderSettings(
        estimators=EstimatorSettings(**per_resource, safety_margin=float(data["safetyMarginFraction"])),
        pod_min_cpu_millicores=float(data["podMinCPUMillicores"]),
        pod_min_memory_mib=float(data["podMinMemoryMb"]),
        rounding=rounding_of(data),
    )


def rounding_of(data: dict[str, Any]) -> RecommendationRounding:
    """Read a case's rounding flags."""
    return RecommendationRounding(
        cpu_millicores=data["roundCPUMillicores"],
        memory_bytes=data["roundMemoryBytes"],
        humanize_memory=data["humanizeMemory"],
    )


@checks("kind", "recommend", stem="recommend")
def recommend(case):
    table = AggregateTable(block_columns=8)
    profiles = {}
    for name, given in case["containers"].items():
        profiles[name] = Aggregate(table)
        refusal = profiles[name].load(
            wire.convert(given["checkpoint"], VerticalPodAutoscalerCheckpointStatus)
        )
        if refusal:
            return f"checkpoint of {name} refused: {refusal}"
        if given.get("policy"):
            profiles[name].apply_policy(wire.convert(given["policy"], ContainerResourcePolicy), per_vpa=False)
    settings = settings_of(case["settings"])
    containers = recommend_containers(profiles, settings)
    got = {
        "amounts": {
            container.name: {name: container.amounts[bound] for name, bound in _BOUNDS.items()}
            for container in containers
        },
        "recommendation": shown(pod_resources(containers, settings.rounding)),
        "loaded": {name: _loaded(profile) for name, profile in profiles.items()},
    }
    want = {key: case["expect"][key] for key in got}
    return differences(as_doubles(_without_empty(want)), as_doubles(_without_empty(got)))


def _without_empty(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: without_empty(value) for key, value in answer.items()}


def _loaded(profile: Aggregate) -> dict[str, dict[str, float]]:
    shares = [float(share) for share in PERCENTILES]
    return {
        name: dict(zip(PERCENTILES, histogram.percentiles(shares), strict=True))
        for name, histogram in (("cpuPercentiles", profile.cpu), ("memoryPercentiles", profile.memory))
    }


@checks("kind", "format", stem="recommend")
def rounding_flags(case):
    rounding = rounding_of(case)
    got = {
        "resourceList": {
            "cpu": str(cpu_quantity(case["cpuMillicores"], rounding)),
            "memory": str(memory_quantity(case["memoryBytes"], rounding)),
        },
        "humanizedMemory": humanized(case["memoryBytes"]),
    }
    return differences(case["expect"], got)


@checks("kind", "amount", stem="recommend")
def amounts(case):
    got = {
        "cpuMillicores": millicores_from_cores(_float(case["cores"])),
        "memoryBytes": amount_from_float(_float(case["bytes"])),
        "scaled": scaled(case["scaleOf"], _float(case["scaleBy"])),
    }
    return differences(case["expect"], got)


def _float(value: float | str) -> float:
    return float(value.replace("+", "")) if isinstance(value, str) else float(value)
