"""Caps: their order, their names, and that what comes out lies within them."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import limit_range, limit_range_item, pod, recommended, vpa
from trimtab.decide.vertical.recommend.quantities import round_to_whole_cores
from trimtab.decide.vertical.resources.capping import Cause, cap_by_policy, cap_for_pod
from trimtab.decide.vertical.resources.limit_ranges import LimitRanges, merge_limit_ranges
from trimtab.decide.vertical.resources.pod_resources import size_pod
from trimtab.decide.vertical.resources.proportional import (
    boundary_request,
    proportional_limit,
    scale,
)
from trimtab.decide.vertical.rules import Rules
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import PodResourcePolicy, RecommendedPodResources, VerticalPodAutoscaler

Q = Quantity.parse


def policy(name="app", **more):
    return {"containerName": name, **more}


def entries_of(capped):
    assert capped.recommendation is not None
    return capped.recommendation.container_recommendations


def target_of(capped, place=0):
    entry = entries_of(capped)[place]
    return {resource: str(amount) for resource, amount in entry.target.items()}


def one_pod(**more):
    return pod(**{"cpu": "100m", "memory": "100Mi", **more})


@pytest.mark.parametrize(
    ("policies", "want", "cause"),
    [
        pytest.param([], "500m", None, id="no policy, no cut"),
        pytest.param([policy(minAllowed={"cpu": "1"})], "1", Cause.MIN_ALLOWED, id="raised to minAllowed"),
        pytest.param([policy(maxAllowed={"cpu": "200m"})], "200m", Cause.MAX_ALLOWED, id="cut to maxAllowed"),
        pytest.param(
            [policy(minAllowed={"cpu": "1"}, maxAllowed={"cpu": "200m"})],
            "200m",
            Cause.MAX_ALLOWED,
            id="the maximum wins over the minimum",
        ),
        pytest.param([policy(maxAllowed={"cpu": "0"})], "500m", None, id="a zero bound is no bound"),
        pytest.param(
            [policy("*", maxAllowed={"cpu": "10m"}), policy(maxAllowed={"cpu": "200m"})],
            "200m",
            Cause.MAX_ALLOWED,
            id="the container's own policy beats the star",
        ),
        pytest.param(
            [policy("*", maxAllowed={"cpu": "10m"}), policy("*", maxAllowed={"cpu": "20m"})],
            "20m",
            Cause.MAX_ALLOWED,
            id="of two stars the last counts",
        ),
    ],
)
def test_policies_cap_and_are_named(policies, want, cause):
    capped = cap_for_pod(vpa(recommendation=recommended(cpu="500m"), policies=policies), one_pod())
    assert target_of(capped) == {"cpu": want}
    last = [cut for cut in capped.cuts if cut.bound == "target"][-1:]
    assert [cut.cause for cut in last] == ([cause] if cause else [])
    assert str(entries_of(capped)[0].uncapped_target["cpu"]) == "500m"


def test_a_cut_says_what_it_did():
    capped = cap_for_pod(
        vpa(recommendation=recommended(cpu="2"), policies=[policy(maxAllowed={"cpu": "1"})]), one_pod()
    )
    assert str(capped.cuts[0]) == "app: cpu capped to maxAllowed: 2 became 1"
    assert capped.annotations == {"app": ("cpu capped to maxAllowed",)}


def test_requests_only_stay_below_the_users_limit():
    policies = [policy(controlledValues="RequestsOnly")]
    capped = cap_for_pod(
        vpa(recommendation=recommended(cpu="2"), policies=policies), one_pod(limits={"cpu": "500m"})
    )
    assert target_of(capped) == {"cpu": "500m"}
    assert capped.annotations == {"app": ("cpu capped to container limit",)}


@pytest.mark.parametrize(
    ("item", "want", "cause"),
    [
        pytest.param(
            {"max": {"cpu": "1"}}, "500m", Cause.LIMIT_RANGE_MAX, id="the limit at twice the request fits Max"
        ),
        pytest.param(
            {"min": {"cpu": "4"}}, "4", Cause.LIMIT_RANGE_MIN, id="request and limit both reach Min"
        ),
        pytest.param({"max": {"cpu": "8"}}, "2", None, id="room enough"),
    ],
)
def test_container_limit_ranges_count_by_the_ratio_of_limit_to_request(item, want, cause):
    ranges = LimitRanges(container=limit_range_item(type="Container", **item))
    capped = cap_for_pod(vpa(recommendation=recommended(cpu="2")), one_pod(limits={"cpu": "200m"}), ranges)
    assert target_of(capped) == {"cpu": want}
    assert [cut.cause for cut in capped.cuts if cut.bound == "target"] == ([cause] if cause else [])


def test_limit_range_comes_before_policy():
    ranges = LimitRanges(container=limit_range_item(max={"cpu": "1"}))
    policies = [policy(minAllowed={"cpu": "3"})]
    capped = cap_for_pod(
        vpa(recommendation=recommended(cpu="2"), policies=policies), one_pod(limits={"cpu": "100m"}), ranges
    )
    assert target_of(capped) == {"cpu": "3"}
    assert [cut.cause for cut in capped.cuts if cut.bound == "target"] == [
        Cause.LIMIT_RANGE_MAX,
        Cause.MIN_ALLOWED,
    ]


def two_containers(sidecar_requests=None):
    return wire.convert(
        {
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "containers": [
                    {"name": "app", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}},
                    {"name": "sidecar", "resources": {"requests": sidecar_requests or {}}},
                ]
            },
        },
        type(pod()),
    )


def test_a_pod_limit_range_scales_what_is_recommended_and_leaves_the_rest():
    ranges = LimitRanges(
        pod=limit_range_item(type="Pod", max={"cpu": "2", "memory": "1Gi"}, min={"memory": "1Gi"})
    )
    given_pod = two_containers({"cpu": "100m"})
    ours = cap_for_pod(vpa(recommendation=recommended(cpu="4")), given_pod, ranges)
    assert [entry.container_name for entry in entries_of(ours)] == ["app"]
    assert target_of(ours) == {"cpu": "2"}
    assert ours.cuts[0].cause is Cause.POD_LIMIT_RANGE
    upstream = cap_for_pod(vpa(recommendation=recommended(cpu="4")), given_pod, ranges, Rules.VPA_1_8)
    assert [entry.container_name for entry in entries_of(upstream)] == [
        "app",
        "sidecar",
    ]


def test_a_pod_limit_range_with_a_container_nobody_recommends_for_does_not_crash():
    ranges = LimitRanges(pod=limit_range_item(type="Pod", max={"cpu": "500m"}))
    for rules in (Rules.VPA_1_8, None):
        arguments = (vpa(recommendation=recommended(cpu="4")), two_containers(), ranges)
        capped = cap_for_pod(*arguments, rules) if rules else cap_for_pod(*arguments)
        assert target_of(capped) == {"cpu": "500m"}


@pytest.mark.parametrize(
    "policies",
    [
        pytest.param([policy(mode="Off")], id="a container in mode Off"),
        pytest.param([policy(controlledResources=["memory"])], id="a resource that is not controlled"),
    ],
)
def test_a_stale_recommendation_does_not_apply_to(policies):
    capped = cap_for_pod(vpa(recommendation=recommended(cpu="2"), policies=policies), one_pod())
    assert all(not entry.target for entry in entries_of(capped))


def test_a_global_maximum_fills_only_what_the_policy_leaves_open():
    recommendation = RecommendedPodResources(
        container_recommendations=(recommended(cpu="8", memory="8Gi"), recommended(cpu="8", container="side"))
    )
    policies = wire.convert({"containerPolicies": [policy(maxAllowed={"cpu": "6"})]}, PodResourcePolicy)
    capped = cap_by_policy(recommendation, policies, {"cpu": Q("4"), "memory": Q("4Gi")})
    assert target_of(capped, 0) == {"cpu": "6", "memory": "4Gi"}
    assert target_of(capped, 1) == {"cpu": "4"}


def test_whole_cores_are_rounded_up_for_the_container_that_asks():
    annotated = wire.convert(
        {"metadata": {"annotations": {"vpa-post-processor.kubernetes.io/app_integerCPU": "true"}}},
        VerticalPodAutoscaler,
    )
    recommendation = RecommendedPodResources(
        container_recommendations=(recommended(cpu="1100m"), recommended(cpu="1100m", container="side"))
    )
    rounded = round_to_whole_cores(annotated, recommendation).container_recommendations
    assert [str(entry.target["cpu"]) for entry in rounded] == ["2", "1100m"]


def test_several_limit_ranges_are_as_strict_as_all_of_them():
    merged = merge_limit_ranges(
        [limit_range(max={"cpu": "4"}, min={"cpu": "1"}), limit_range(max={"cpu": "2"}, min={"cpu": "500m"})],
        "shop",
        "Container",
    )
    assert merged is not None
    assert (str(merged.max["cpu"]), str(merged.min["cpu"])) == ("2", "1")
    assert merge_limit_ranges([limit_range(max={"cpu": "4"})], "elsewhere", "Container") is None


@pytest.mark.parametrize(
    ("limit", "request_", "recommended_", "default", "want"),
    [
        pytest.param("2", "1", "3", None, "6", id="the ratio is kept"),
        pytest.param(None, "1", "3", "2", "6", id="the LimitRange's default stands in for a limit"),
        pytest.param(None, "1", "3", None, None, id="no limit stays no limit"),
        pytest.param("2", None, "3", None, "3", id="a limit without request is a request"),
        pytest.param("2", "1", None, None, None, id="nothing recommended, nothing limited"),
    ],
)
def test_limits_follow_requests(limit, request_, recommended_, default, want):
    amounts = [Q(text) if text else None for text in (limit, request_, recommended_, default)]
    answer = proportional_limit("cpu", *amounts)
    assert (str(answer.limit) if answer.limit else None) == want


def test_a_limit_beyond_int64_is_capped_and_says_so():
    answer = proportional_limit("memory", Q("8Ei"), Q("1"), Q("7Ei"), None)
    assert answer.limit == Quantity.from_int(2**63 - 1)
    assert "capping limit to int64" in answer.note


def test_a_base_of_zero_scales_nothing():
    assert scale("memory", Q("5"), Q("0"), Q("9")).quantity == Q("5")


CPU_AMOUNTS = st.integers(1, 200_000).map(Quantity.from_milli)


@settings(max_examples=100)
@given(CPU_AMOUNTS, CPU_AMOUNTS, CPU_AMOUNTS)
def test_a_boundary_request_keeps_the_limit_within_the_boundary(request_, limit, boundary):
    least = boundary_request("cpu", request_, limit, boundary, None)
    kept = proportional_limit("cpu", limit, request_, least, None).limit
    assert kept is None or kept <= boundary


@settings(max_examples=100)
@given(
    CPU_AMOUNTS,
    st.tuples(CPU_AMOUNTS, CPU_AMOUNTS).map(sorted),
    st.tuples(CPU_AMOUNTS, CPU_AMOUNTS).map(sorted),
    st.booleans(),
)
def test_a_capped_recommendation_lies_within_its_caps(target, allowed, bounds, requests_only):
    low, high = allowed
    policies = [
        policy(
            minAllowed={"cpu": str(low)},
            maxAllowed={"cpu": str(high)},
            controlledValues="RequestsOnly" if requests_only else "RequestsAndLimits",
        )
    ]
    entry = recommended(cpu=str(target), lower={"cpu": str(bounds[0])}, upper={"cpu": str(bounds[1])})
    member = one_pod(limits={"cpu": "50"})
    capped = cap_for_pod(vpa(recommendation=entry, policies=policies), member)
    found = entries_of(capped)[0]
    for amounts in (found.target, found.lower_bound, found.upper_bound):
        ceiling = min(high, Q("50")) if requests_only else high
        assert min(low, ceiling) <= amounts["cpu"] <= ceiling
    assert found.uncapped_target["cpu"] == target


@settings(max_examples=60)
@given(CPU_AMOUNTS, CPU_AMOUNTS, CPU_AMOUNTS)
def test_a_sized_pod_fits_its_pod_limit_range(target, limit, most):
    ranges = LimitRanges(pod=limit_range_item(type="Pod", max={"cpu": str(most)}))
    member = one_pod(limits={"cpu": str(limit)})
    sizing = size_pod(member, vpa(recommendation=recommended(cpu=str(target))), ranges)
    assert sizing.containers[0].limits.get("cpu", Q("0")) <= most


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(
    ("odd", "want"),
    [
        pytest.param(policy("sidecar", mode="Off"), None, id="a container in mode Off"),
        pytest.param(policy("sidecar", controlledResources=["memory"]), {"memory": "8Gi"}, id="memory alone"),
        pytest.param(policy("sidecar", controlledResources=[]), {}, id="nothing is controlled"),
        pytest.param(policy("sidecar"), {"cpu": "8", "memory": "8Gi"}, id="both"),
    ],
)
def test_a_container_that_is_not_controlled_does_not_hide_the_other(odd, want, order):
    entries = [recommended("8Gi", "8"), recommended("8Gi", "8", container="sidecar")][::order]
    owner = vpa(recommendation=entries[0], policies=[odd])
    recommendation = RecommendedPodResources(container_recommendations=tuple(entries))
    owner = msgspec.structs.replace(
        owner, status=msgspec.structs.replace(owner.status, recommendation=recommendation)
    )
    found = {entry.container_name: entry for entry in entries_of(cap_for_pod(owner, two_containers()))}
    assert {name: str(amount) for name, amount in found["app"].target.items()} == {
        "cpu": "8",
        "memory": "8Gi",
    }
    for bound in ("target", "lower_bound", "upper_bound"):
        if want is None:
            assert "sidecar" not in found
        else:
            amounts = getattr(found["sidecar"], bound)
            assert {name: str(amount) for name, amount in amounts.items()} == want
