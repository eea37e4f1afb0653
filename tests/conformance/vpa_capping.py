"""VPA vectors: policies, LimitRanges, whole cores, and limits that keep their ratio."""

from typing import Any

from tests.conformance.differences import differences
from tests.conformance.registry import checks
from trimtab.decide.vertical.recommend.quantities import round_to_whole_cores
from trimtab.decide.vertical.resources.capping import cap_by_policy, cap_for_pod
from trimtab.decide.vertical.resources.limit_ranges import (
    Bound,
    LimitRanges,
    fit_pod_amount,
    merge_limit_ranges,
)
from trimtab.decide.vertical.resources.proportional import (
    FractionRounding,
    boundary_request,
    proportional_limit,
    proportional_limits,
    scale,
)
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.objects import LimitRange, LimitRangeItem
from trimtab.model.core.pod import Pod, ResourceList
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import (
    PodResourcePolicy,
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
)

_BOUNDS: dict[str, Bound] = {"target": "target", "lowerBound": "lower_bound", "upperBound": "upper_bound"}


def optional(data: Any, kind: type) -> Any:
    """Read a value that may be null."""
    return None if data is None else wire.convert(data, kind)


def limit_ranges(given: dict[str, Any]) -> LimitRanges:
    """Read the merged LimitRanges of a case."""
    return LimitRanges(
        optional(given.get("containerLimitRange"), LimitRangeItem),
        optional(given.get("podLimitRange"), LimitRangeItem),
    )


def without_empty(data: Any) -> Any:
    """Drop nulls and empty objects: Go tells a nil map from an empty one, the API does not."""
    if isinstance(data, dict):
        cleaned = {key: without_empty(value) for key, value in data.items()}
        return {key: value for key, value in cleaned.items() if value not in (None, {}, ())}
    if isinstance(data, list | tuple):
        return [without_empty(value) for value in data]
    return data


def shown(value: Any) -> Any:
    """Return a struct or quantity as plain data, without what is empty."""
    return without_empty(wire.to_builtins(value))


@checks("kind", "applyCapping", stem="capping")
def apply_capping(case):
    given, expect = case["input"], case["expect"]
    missing = next((name for name in ("vpa", "pod") if given[name] is None), None)
    if missing:
        # Our types know no nil object; the error is all there is to tell.
        return differences(
            expect, {"annotations": None, "recommendation": None, "error": f"cannot process nil {missing}"}
        )
    capped = cap_for_pod(
        wire.convert(given["vpa"], VerticalPodAutoscaler),
        wire.convert(given["pod"], Pod),
        limit_ranges(given),
        Rules.VPA_1_8,
    )
    got = {
        "recommendation": shown(capped.recommendation),
        "annotations": {name: sorted(texts) for name, texts in capped.annotations.items()},
        "error": None,
    }
    want = {
        **expect,
        "recommendation": without_empty(expect.get("recommendation")),
        "annotations": {name: sorted(texts) for name, texts in (expect.get("annotations") or {}).items()},
    }
    return differences(want, got)


@checks("kind", "applyPolicy", stem="capping")
def apply_policy(case):
    given, expect = case["input"], case["expect"]
    capped = cap_by_policy(
        optional(given["recommendation"], RecommendedPodResources),
        optional(given["policy"], PodResourcePolicy),
        optional(given["globalMaxAllowed"], ResourceList),
    )
    return differences(without_empty(expect), without_empty({"recommendation": shown(capped.recommendation)}))


@checks("kind", "integerCPU", stem="capping")
def integer_cpu(case):
    given = case["input"]
    rounded = round_to_whole_cores(
        wire.convert(given["vpa"], VerticalPodAutoscaler),
        wire.convert(given["recommendation"], RecommendedPodResources),
    )
    return differences(without_empty(case["expect"]), without_empty({"recommendation": shown(rounded)}))


@checks("kind", "podLimitRange", stem="capping")
def pod_limit_range(case):
    given = case["input"]
    fitted = fit_pod_amount(
        tuple(wire.convert(entry, RecommendedContainerResources) for entry in given["resources"]),
        wire.convert(given["pod"], Pod),
        wire.convert(given["limitRange"], LimitRangeItem),
        given["resource"],
        _BOUNDS[given["field"]],
        scales_all=True,
    )
    return differences(without_empty(case["expect"]["resources"]), shown(fitted))


@checks("kind", "limitRange", stem="capping")
def limit_range(case):
    given = case["input"]
    item = merge_limit_ranges(
        [wire.convert(entry, LimitRange) for entry in given["limitRanges"] or ()],
        given["namespace"],
        given["type"],
    )
    return differences(without_empty(case["expect"]["item"]), shown(item))


@checks("kind", "proportionalLimit", stem="capping")
def proportional(case):
    given, expect = case["input"], case["expect"]
    limits, notes = proportional_limits(
        *(
            optional(given[key], ResourceList) or {}
            for key in ("originalLimit", "originalRequest", "recommendation", "defaultLimit")
        )
    )
    got = {"limit": limits if limits is None else shown(limits), "annotations": list(notes)}
    return differences(expect, got)


@checks("kind", "proportionalResourceLimit", stem="capping")
def proportional_resource(case):
    given = case["input"]
    answer = proportional_limit(
        given["resource"],
        *(
            _quantity(given[key])
            for key in ("originalLimit", "originalRequest", "recommendedRequest", "defaultLimit")
        ),
    )
    return differences(case["expect"], {"limit": _text(answer.limit), "annotation": answer.note})


@checks("kind", "boundaryRequest", stem="capping")
def boundary(case):
    given = case["input"]
    limit = _quantity(given["boundaryLimit"])
    answer = boundary_request(
        given["resource"],
        _quantity(given["originalRequest"]),
        _quantity(given["originalLimit"]),
        limit or Quantity.zero,
        _quantity(given["defaultLimit"]),
    )
    return differences(case["expect"], {"quantity": _text(answer)})


@checks("kind", "scaleQuantity", stem="capping")
def scale_quantity(case):
    given = case["input"]
    amount, base, result = (
        _quantity(given[key]) or Quantity.zero for key in ("scaledQuantity", "scaleBase", "scaleResult")
    )
    scaled = scale(given["resource"], amount, base, result, FractionRounding(given["rounding"]))
    return differences(case["expect"], {"quantity": str(scaled.quantity), "capped": scaled.is_capped})


def _quantity(text: str | None) -> Quantity | None:
    return None if text is None else Quantity.parse(text)


def _text(quantity: Quantity | None) -> str | None:
    return None if quantity is None else str(quantity)
