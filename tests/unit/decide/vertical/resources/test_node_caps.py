"""Recommendations that must fit the largest node, and pods that must fit their LimitRange."""

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import limit_range_item, recommended, vpa
from trimtab.decide.vertical.resources.capping import Cause, cap_for_pod, cap_to_nodes
from trimtab.decide.vertical.resources.limit_ranges import LimitRanges
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import RecommendedPodResources

RESOURCES = [pytest.param("cpu", "m", id="cpu"), pytest.param("memory", "M", id="memory")]


def amounts_of(capped, bound="target"):
    """Return the amounts of a bound by container, as texts."""
    assert capped.recommendation is not None
    return {
        entry.container_name: {name: str(amount) for name, amount in getattr(entry, bound).items()}
        for entry in capped.recommendation.container_recommendations
    }


def of_two(first, second, *, upper=None):
    entries = (
        recommended(container="first", upper=upper, **first),
        recommended(container="second", **second),
    )
    return RecommendedPodResources(container_recommendations=entries)


def largest(**amounts):
    return {name: Quantity.parse(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize("is_first_large", [True, False])
@pytest.mark.parametrize(("resource", "unit"), RESOURCES)
def test_containers_share_what_the_largest_node_has(resource, unit, is_first_large):
    large, small = {resource: f"3000{unit}"}, {resource: f"1000{unit}"}
    both = (large, small) if is_first_large else (small, large)
    capped = cap_to_nodes(of_two(*both), largest(**{resource: f"2000{unit}"}))
    want = (f"1500{unit}", f"500{unit}") if is_first_large else (f"500{unit}", f"1500{unit}")
    for bound in ("target", "upper_bound", "lower_bound"):
        assert list(amounts_of(capped, bound)) == ["first", "second"]
        assert [amounts[resource] for amounts in amounts_of(capped, bound).values()] == _sums(want)
    assert {cut.cause for cut in capped.cuts} == {Cause.LARGEST_NODE}
    assert {(cut.container, cut.bound) for cut in capped.cuts} == {
        (name, bound) for name in ("first", "second") for bound in ("target", "lower_bound", "upper_bound")
    }


def _sums(texts):
    return [str(Quantity.parse(text)) for text in texts]


def test_only_the_resource_that_does_not_fit_is_cut():
    given = of_two({"cpu": "3", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"})
    capped = cap_to_nodes(given, largest(cpu="2", memory="2Gi"))
    assert amounts_of(capped) == {
        "first": {"cpu": "1500m", "memory": "1Gi"},
        "second": {"cpu": "500m", "memory": "1Gi"},
    }
    assert {cut.resource for cut in capped.cuts} == {"cpu"}


@pytest.mark.parametrize(
    "room",
    [
        pytest.param({"cpu": "4", "memory": "2Gi"}, id="exactly as large"),
        pytest.param({"cpu": "8", "memory": "8Gi"}, id="larger"),
        pytest.param({}, id="nothing is known of the node"),
    ],
)
def test_a_recommendation_that_fits_is_not_cut(room):
    given = of_two({"cpu": "3", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"})
    capped = cap_to_nodes(given, largest(**room))
    assert (capped.recommendation, capped.cuts) == (given, ())


def test_an_upper_bound_is_cut_to_the_nodes_share_too():
    given = of_two({"cpu": "3"}, {"cpu": "1"}, upper={"cpu": "100"})
    capped = cap_to_nodes(given, largest(cpu="2"))
    assert amounts_of(capped, "upper_bound") == {"first": {"cpu": "1500m"}, "second": {"cpu": "500m"}}


def pod_of(resource, unit, **containers):
    """Make a pod of containers with (request, limit) of a resource; a limit of 0 is none."""
    listed = []
    for name, (request, limit) in containers.items():
        resources = {"requests": {resource: f"{request}{unit}"}}
        if limit:
            resources["limits"] = {resource: f"{limit}{unit}"}
        listed.append({"name": name, "resources": resources})
    return wire.convert(
        {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": listed}}, Pod
    )


def fitted(resource, unit, containers, targets, item, **options):
    entries = tuple(
        recommended(container=name, **{resource: f"{amount}{unit}"}) for name, amount in targets.items()
    )
    owner = vpa()
    status = msgspec.structs.replace(
        owner.status, recommendation=RecommendedPodResources(container_recommendations=entries)
    )
    owner = msgspec.structs.replace(owner, status=status)
    bounds = {key: {resource: f"{amount}{unit}"} for key, amount in item.items()}
    ranges = LimitRanges(pod=limit_range_item(type="Pod", **bounds))
    capped = cap_for_pod(owner, pod_of(resource, unit, **containers), ranges, **options)
    assert capped.recommendation is not None
    return {
        entry.container_name: entry.target[resource]
        for entry in capped.recommendation.container_recommendations
    }


@pytest.mark.parametrize(("resource", "unit"), RESOURCES)
@pytest.mark.parametrize(
    ("containers", "targets", "item", "want"),
    [
        pytest.param(
            {"app": (1000, 2000), "side": (100, 200)},
            {"app": 4000},
            {"max": 3000},
            {"app": 1400},
            id="limits of both within the maximum, the container without recommendation stays",
        ),
        pytest.param(
            {"side": (100, 200), "app": (1000, 2000)},
            {"app": 4000},
            {"max": 3000},
            {"app": 1400},
            id="the container without recommendation comes first",
        ),
        pytest.param(
            {"app": (1000, 2000), "side": (100, 200)},
            {"app": 300},
            {"min": 1000},
            {"app": 900},
            id="requests of both reach the minimum",
        ),
        pytest.param(
            {"app": (1000, 2000)},
            {"app": 1000},
            {"min": 500, "max": 2000},
            {"app": 1000},
            id="the limit is exactly the maximum",
        ),
        pytest.param(
            {"app": (1000, 2000)},
            {"app": 1000},
            {"min": 1000},
            {"app": 1000},
            id="the request is exactly the minimum",
        ),
        pytest.param(
            {"app": (1000, 1000), "free": (1000, 0), "side": (100, 200)},
            {"app": 500, "free": 2000},
            {"min": 1000},
            {"app": 800, "free": 3200},
            id="limits of all reach the minimum",
        ),
        pytest.param(
            {"app": (1000, 0)}, {"app": 4000}, {"max": 1000}, {"app": 4000}, id="a pod without limits stays"
        ),
        pytest.param(
            {"app": (1000, 2000), "side": (100, 200)},
            {"app": 4000},
            {"max": 200},
            {"app": 4000},
            id="no room beside the container without recommendation",
        ),
        pytest.param(
            {"app": (1000, 2000), "side": (1000, 2000)},
            {"app": 3000, "side": 1000},
            {"max": 4000},
            {"app": 1500, "side": 500},
            id="two recommended containers share the maximum",
        ),
        pytest.param(
            {"app": (1000, 2000), "side": (1000, 2000)},
            {"app": 300, "side": 100},
            {"min": 800, "max": 4000},
            {"app": 600, "side": 200},
            id="two recommended containers share the minimum",
        ),
    ],
)
def test_a_pod_as_a_whole_fits_its_limit_range(resource, unit, containers, targets, item, want):
    got = fitted(resource, unit, containers, targets, item)
    assert got == {name: Quantity.parse(f"{amount}{unit}") for name, amount in want.items()}


@pytest.mark.parametrize(("resource", "unit"), RESOURCES)
def test_upstream_scales_containers_without_a_recommendation_too(resource, unit):
    containers = {"app": (1000, 2000), "side": (1000, 2000)}
    got = fitted(resource, unit, containers, {"app": 3000}, {"max": 4000}, rules=Rules.VPA_1_8)
    assert got == {name: Quantity.parse(f"{amount}{unit}") for name, amount in (("app", 1500), ("side", 500))}


@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize("is_first", [True, False])
def test_a_resource_that_is_not_recommended_is_not_added(rules, is_first):
    amounts = {"cpu": "1", "memory": "1Gi"}
    names = ["app", "side"] if is_first else ["side", "app"]
    containers = [{"name": name, "resources": {"requests": amounts, "limits": amounts}} for name in names]
    data = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": containers}}
    entries = tuple(
        recommended(container=name, memory="2Gi", cpu="4" if name == "app" else None) for name in names
    )
    owner = vpa()
    status = msgspec.structs.replace(
        owner.status, recommendation=RecommendedPodResources(container_recommendations=entries)
    )
    ranges = LimitRanges(pod=limit_range_item(type="Pod", max={"cpu": "2"}))
    capped = cap_for_pod(
        msgspec.structs.replace(owner, status=status), wire.convert(data, Pod), ranges, rules
    )
    found = amounts_of(capped)
    assert found["app"] == {"cpu": "2", "memory": "2Gi"}
    assert ("cpu" in found["side"]) is (not rules.ours)
