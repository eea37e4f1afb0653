"""VPA vectors: the choice of the controlling VPA, and what admission gives to a pod."""

from typing import Any

from tests.conformance.differences import differences
from tests.conformance.registry import checks
from tests.conformance.vpa_capping import limit_ranges, optional, without_empty
from trimtab.decide.vertical.admission.admit import (
    AdmissionContext,
    admit_pod,
    calculate_operations,
    existing_resources,
)
from trimtab.decide.vertical.admission.pod_annotations import (
    ObservedContainersError,
    parse_observed,
)
from trimtab.decide.vertical.admission.startup_boost import BoostError
from trimtab.decide.vertical.control.claims import VPAIndex, index_vpas
from trimtab.decide.vertical.control.control import control_of
from trimtab.decide.vertical.control.controllers import (
    Controller,
    ControllerIndex,
    ControllerKey,
)
from trimtab.decide.vertical.resources.capping import CappedRecommendation
from trimtab.decide.vertical.resources.container_resources import ContainerResources
from trimtab.decide.vertical.resources.pod_resources import Sizing, size_capped, size_pod
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.pod import Pod, ResourceList
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import RecommendedPodResources, VerticalPodAutoscaler


def vpa_index(entries: list[dict[str, Any]]) -> VPAIndex:
    """Index the VPAs of a case."""
    return index_vpas(
        (
            (
                wire.convert(entry["vpa"], VerticalPodAutoscaler),
                None if entry["selector"] is None else Selector.parse(entry["selector"]),
            )
            for entry in entries
        ),
        rules=Rules.VPA_1_8,
    )


def owners(parents: dict[str, str]) -> ControllerIndex:
    """Read `Kind/namespace/name` -> owner."""
    return ControllerIndex(
        {
            controller_key(name): Controller(controller_key(owner) if owner else None)
            for name, owner in parents.items()
        }
    )


def controller_key(text: str) -> ControllerKey:
    """Read `Kind/namespace/name`."""
    kind, namespace, name = text.split("/")
    return ControllerKey(namespace, kind, name)


def gates(given: dict[str, Any]) -> FeatureGates:
    """Read the feature gates of a case; those not named are off."""
    return FeatureGates.of(given.get("featureGates") or {})


def container_resources(entries: list[dict[str, Any]]) -> tuple[ContainerResources, ...]:
    """Read one `{"Requests", "Limits"}` per container."""
    return tuple(
        ContainerResources(
            optional(entry["Requests"], ResourceList) or {}, optional(entry["Limits"], ResourceList) or {}
        )
        for entry in entries
    )


@checks("kind", "podAdmission", stem="admission")
def pod_admission(case):
    given, expect = case["input"], case["expect"]
    ranges = limit_ranges(given)
    namespace = given["namespace"]
    named = (given["object"].get("metadata") or {}).get("namespace") or namespace
    answer = admit_pod(
        given["object"],
        namespace,
        AdmissionContext(
            vpa_index(given["vpas"]),
            owners(given["parents"]),
            ranges={namespace: ranges, named: ranges},
            gates=gates(given),
            rules=Rules.VPA_1_8,
        ),
    )
    return differences(expect.get("patch"), list(answer.operations) or None)


@checks("kind", "match", stem="admission")
def match(case):
    given = case["input"]
    pod = wire.convert(given["pod"], Pod)
    control = control_of(pod, vpa_index(given["vpas"]), owners(given["parents"]), {})
    return differences(case["expect"], {"vpa": control.key})


@checks("kind", "containersResources", stem="admission")
def containers_resources(case):
    given, expect = case["input"], case["expect"]
    pod = wire.convert(given["pod"], Pod)
    vpa = wire.convert(given["vpa"], VerticalPodAutoscaler)
    ranges = limit_ranges(given)
    if "processedRecommendation" in given:
        capped = CappedRecommendation(optional(given["processedRecommendation"], RecommendedPodResources))
        sizing = size_capped(capped, pod, vpa, ranges)
        annotations = _joined(given.get("processedAnnotations") or {}, sizing.annotations)
    else:
        sizing = size_pod(pod, vpa, ranges, Rules.VPA_1_8)
        annotations = _joined({}, sizing.annotations)
    got = {
        "resources": [
            {"Requests": wire.to_builtins(entry.requests), "Limits": wire.to_builtins(entry.limits)}
            for entry in sizing.containers
        ],
        "annotations": annotations,
    }
    return differences(_clean(expect), _clean({**got, "error": None}))


def _joined(first: dict[str, Any], then: dict[str, Any]) -> dict[str, list[str]]:
    names = first.keys() | then.keys()
    return {name: sorted([*(first.get(name) or ()), *(then.get(name) or ())]) for name in names}


def _clean(data: dict[str, Any]) -> Any:
    notes = {name: sorted(texts) for name, texts in (data.get("annotations") or {}).items() if texts}
    return without_empty({**data, "annotations": notes})


@checks("kind", "calculatePatches", stem="admission")
def calculate_patches(case):
    given, expect = case["input"], case["expect"]
    pod = wire.convert(given["pod"], Pod)
    notes = {name: tuple(texts) for name, texts in (given["annotations"] or {}).items()}
    context = AdmissionContext(
        VPAIndex({}),
        ControllerIndex({}),
        gates=gates(given),
        rules=Rules.VPA_1_8,
        max_boost_cpu=Quantity.parse(given["maxAllowedCPUBoost"]),
    )
    sizing = Sizing(container_resources(given["containersResources"]), notes)
    try:
        operations = calculate_operations(
            pod,
            wire.convert(given["vpa"], VerticalPodAutoscaler),
            sizing,
            existing_resources(given["pod"], pod, Rules.VPA_1_8),
            context,
        )
    except BoostError as error:
        return differences(expect, {"patches": None, "error": str(error)})
    return differences(expect, {"patches": operations, "error": None})


@checks("kind", "observedContainers", stem="admission")
def observed_containers(case):
    got: dict[str, Any]
    try:
        got = {"containers": list(parse_observed(case["input"]["value"])), "error": None}
    except ObservedContainersError as error:
        got = {"containers": None, "error": str(error)}
    return differences(case["expect"], got)
