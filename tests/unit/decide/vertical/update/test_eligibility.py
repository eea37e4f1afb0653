"""Which pods should change and which first: every rule with two containers, both resources and both directions."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import ALL_GATES, NOW, pod, recommended, vpa
from trimtab.decide.vertical.update.eligibility import (
    Eligibility,
    Priority,
    UpdateCandidate,
    UpdateThresholds,
    admits_eviction,
    check_eligibility,
    has_quick_oom,
    in_update_order,
    is_lower_anywhere,
    oom_threshold,
    update_priority,
)
from trimtab.model.core.pod import Container, ContainerStatus, ResourceRequirements
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import EvictionRequirement, RecommendedPodResources

OBSERVED = "vpaObservedContainers"


def amounts(cpu=None, memory=None):
    given = {"cpu": cpu, "memory": memory}
    return {resource: Quantity.parse(text) for resource, text in given.items() if text}


def containers(**requests):
    """Make a pod with a container per keyword: `(cpu, memory)` or None for no requests."""
    made = tuple(
        Container(name=name, resources=ResourceRequirements(requests=amounts(*(asked or ()))))
        for name, asked in requests.items()
    )
    member = pod()
    return msgspec.structs.replace(member, spec=msgspec.structs.replace(member.spec, containers=made))


def recommendation(*entries):
    return RecommendedPodResources(container_recommendations=tuple(entries))


def annotated(member, names):
    metadata = msgspec.structs.replace(member.metadata, annotations={OBSERVED: names})
    return msgspec.structs.replace(member, metadata=metadata)


@pytest.mark.parametrize("names", [("known", "other"), ("other", "known")], ids=["odd last", "odd first"])
def test_a_container_without_recommendation_does_not_hide_the_others(names):
    member = containers(**dict.fromkeys(names, ("100m", "1Gi")))
    priority = update_priority(member, recommendation(recommended("2Gi", "100m", container="known")))
    assert priority == Priority(is_outside_range=True, is_scale_up=True, resource_diff=1.0)


@pytest.mark.parametrize("names", [("seen", "new"), ("new", "seen")], ids=["odd last", "odd first"])
def test_a_container_that_the_webhook_did_not_see_is_left_out(names):
    member = annotated(containers(**dict.fromkeys(names, ("100m", "1Gi"))), "seen")
    entries = [recommended("2Gi", container="seen"), recommended("64Gi", container="new")]
    assert update_priority(member, recommendation(*entries)).resource_diff == 1.0


@pytest.mark.parametrize("names", [("sized", "bare"), ("bare", "sized")], ids=["odd last", "odd first"])
def test_a_container_without_requests_is_out_of_range_and_the_others_still_count(names):
    requests = {"sized": ("100m", "1Gi"), "bare": None}
    member = containers(**{name: requests[name] for name in names})
    entries = [recommended("2Gi", "100m", container=name) for name in names]
    priority = update_priority(member, recommendation(*entries))
    # Requested 1Gi of 4Gi and 100m of 200m.
    assert priority == Priority(is_outside_range=True, is_scale_up=True, resource_diff=3.0 + 1.0)


def test_a_pod_without_any_request_differs_by_the_whole_recommendation():
    priority = update_priority(containers(app=None), recommendation(recommended(cpu="250m")))
    assert priority.resource_diff == 249.0


@pytest.mark.parametrize(
    ("cpu", "memory", "outside", "up", "difference"),
    [
        pytest.param("100m", "1Gi", False, False, 0.0, id="exactly as recommended"),
        pytest.param("200m", "1Gi", True, False, 0.5, id="too much cpu"),
        pytest.param("50m", "1Gi", True, True, 1.0, id="too little cpu"),
        pytest.param("100m", "2Gi", True, False, 0.5, id="too much memory"),
        pytest.param("100m", "512Mi", True, True, 1.0, id="too little memory"),
        pytest.param("80m", "1Gi", False, True, 0.25, id="on the lower bound of cpu"),
        pytest.param("125m", "1Gi", False, False, 0.2, id="on the upper bound of cpu"),
        pytest.param("100m", "1600Mi", False, False, 0.36, id="on the upper bound of memory"),
        pytest.param("50m", "2Gi", True, True, 1.5, id="both directions add up"),
    ],
)
def test_requests_are_compared_with_target_and_bounds_of_both_resources(cpu, memory, outside, up, difference):
    entry = recommended(
        "1Gi", "100m", lower={"cpu": "80m", "memory": "700Mi"}, upper={"cpu": "125m", "memory": "1600Mi"}
    )
    priority = update_priority(containers(app=(cpu, memory)), recommendation(entry))
    assert (priority.is_outside_range, priority.is_scale_up) == (outside, up)
    assert priority.resource_diff == pytest.approx(difference)


def test_two_containers_add_up_before_they_are_compared():
    member = containers(a=("100m", "1Gi"), b=("300m", "1Gi"))
    entries = [recommended(cpu="200m", container="a"), recommended(cpu="200m", container="b")]
    priority = update_priority(member, recommendation(*entries))
    assert priority == Priority(is_outside_range=True, is_scale_up=True, resource_diff=0.0)


@pytest.mark.parametrize(
    ("quick", "outside", "age", "difference", "want"),
    [
        pytest.param(True, True, 0, 0.0, "OOM-killed, but", id="killed, and nothing would change"),
        pytest.param(True, False, 0, 0.01, "+OOM-killed soon", id="killed: any change, at any age"),
        pytest.param(False, True, 0, 0.01, "+outside", id="out of range: any change, at any age"),
        pytest.param(False, False, None, 9.0, "no start time", id="not started"),
        pytest.param(False, False, 3599, 9.0, "younger than 1 h", id="a second too young"),
        pytest.param(False, False, 3600, 0.199, "differ by 0.199, less than 0.2", id="a little too near"),
        pytest.param(False, False, 3600, 0.2, "+differ by 0.2", id="old and different enough"),
    ],
)
def test_a_pod_changes_when_it_is_wrong_or_old_and_different_enough(quick, outside, age, difference, want):
    member = pod()
    started = None if age is None else NOW - timedelta(seconds=age)
    member = msgspec.structs.replace(
        member, status=msgspec.structs.replace(member.status, start_time=started)
    )
    eligibility = check_eligibility(
        member,
        Priority(is_outside_range=outside, is_scale_up=True, resource_diff=difference),
        is_quick_oom=quick,
        now=NOW,
        thresholds=UpdateThresholds(min_change=0.2, lifetime=timedelta(hours=1)),
    )
    assert isinstance(eligibility, Eligibility)
    assert eligibility.is_eligible is want.startswith("+")
    assert want.lstrip("+") in eligibility.reason


def killed(name="app", *, ran=60, ago=60, reason="OOMKilled"):
    finished = NOW - timedelta(seconds=ago)
    terminated = {
        "reason": reason,
        "startedAt": (finished - timedelta(seconds=ran)).isoformat(),
        "finishedAt": finished.isoformat(),
    }
    return wire.convert({"name": name, "lastState": {"terminated": terminated}}, ContainerStatus)


def with_statuses(member, *statuses):
    return msgspec.structs.replace(
        member, status=msgspec.structs.replace(member.status, container_statuses=statuses)
    )


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param(killed(), True, id="just now, after a minute"),
        pytest.param(killed(ran=599), True, id="ran for less than the threshold"),
        pytest.param(killed(ran=600), False, id="ran for the threshold"),
        pytest.param(killed(ago=599), True, id="less than the threshold ago"),
        pytest.param(killed(ago=600), False, id="the threshold ago"),
        pytest.param(killed(reason="Error"), False, id="ended for another reason"),
        pytest.param(ContainerStatus(name="app"), False, id="never ended"),
    ],
)
@pytest.mark.parametrize("place", [0, 1], ids=["first", "last"])
def test_an_oom_kill_is_quick_if_it_is_recent_and_the_container_was_young(status, want, place):
    statuses = [ContainerStatus(name="calm")]
    statuses.insert(place, status)
    assert has_quick_oom(with_statuses(pod(), *statuses), vpa(), NOW, timedelta(minutes=10)) is want


def test_an_oom_kill_counts_only_for_containers_that_the_vpa_sizes():
    member = with_statuses(pod(), killed("app"))
    assert has_quick_oom(annotated(member, "app"), vpa(), NOW, timedelta(minutes=10))
    assert not has_quick_oom(annotated(member, "other"), vpa(), NOW, timedelta(minutes=10))
    off = vpa(policies=[{"containerName": "app", "mode": "Off"}])
    assert not has_quick_oom(member, off, NOW, timedelta(minutes=10))


def test_a_vpa_sets_its_own_threshold_of_quick_oom_kills_behind_the_gate():
    default, own = timedelta(minutes=10), vpa(evictAfterOOMSeconds=60)
    assert oom_threshold(own, default, ALL_GATES) == timedelta(minutes=1)
    assert oom_threshold(own, default, FeatureGates()) == default
    assert oom_threshold(vpa(), default, ALL_GATES) == default


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param(("1Gi", "100m"), ("1Gi", "100m"), False, id="the same"),
        pytest.param(("1Gi", "100m"), ("2Gi", "200m"), False, id="both rose"),
        pytest.param(("1Gi", "100m"), ("512Mi", "200m"), True, id="memory fell"),
        pytest.param(("1Gi", "100m"), ("2Gi", "50m"), True, id="cpu fell"),
        pytest.param(("1Gi", None), ("2Gi", "50m"), False, id="cpu is new"),
    ],
)
@pytest.mark.parametrize("others", [(), ("other",)], ids=["alone", "after another container"])
def test_an_infeasible_resize_is_retried_when_any_target_fell(before, after, want, others):
    earlier = recommendation(recommended(*before, container="app"))
    entries = [recommended("1Gi", container=name) for name in others]
    assert is_lower_anywhere(earlier, recommendation(*entries, recommended(*after, container="app"))) is want
    assert not is_lower_anywhere(None, recommendation(recommended(*after)))
    assert not is_lower_anywhere(earlier, None)


HIGHER, LOWER = "TargetHigherThanRequests", "TargetLowerThanRequests"


def requirement(change, *resources):
    return EvictionRequirement(resources=resources, change_requirement=change)


@pytest.mark.parametrize(
    ("requirements", "target", "want"),
    [
        pytest.param(None, ("1Gi", "100m"), True, id="no update policy"),
        pytest.param((), ("1Gi", "100m"), True, id="no requirements"),
        pytest.param((requirement(HIGHER, "cpu"),), ("1Gi", "101m"), True, id="cpu must rise and does"),
        pytest.param((requirement(HIGHER, "cpu"),), ("1Gi", "100m"), False, id="cpu must rise and stays"),
        pytest.param((requirement(LOWER, "cpu"),), ("1Gi", "99m"), True, id="cpu must fall and does"),
        pytest.param((requirement(LOWER, "cpu"),), ("1Gi", "100m"), False, id="cpu must fall and stays"),
        pytest.param((requirement(LOWER, "cpu"),), ("1Gi", "101m"), False, id="cpu must fall and rises"),
        pytest.param((requirement(HIGHER, "cpu", "memory"),), ("2Gi", "1m"), True, id="any resource of one"),
        pytest.param(
            (requirement(HIGHER, "cpu"), requirement(HIGHER, "memory")), ("2Gi", "1m"), False, id="all of several"
        ),
        pytest.param(
            (requirement(HIGHER, "cpu"), requirement(LOWER, "memory")), ("1Mi", "1"), True, id="each its direction"
        ),
        pytest.param((requirement(LOWER, "cpu"),), ("2Gi", None), True, id="no target counts as zero"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("names", [("app", "other"), ("other", "app")], ids=["odd last", "odd first"])
def test_one_container_must_meet_every_eviction_requirement(requirements, target, want, names):
    member = containers(**dict.fromkeys(names, ("100m", "1Gi")))
    assert admits_eviction(member, recommendation(recommended(*target)), requirements) is want


@pytest.mark.parametrize(
    "asked", [("100m", None), (None, "1Gi"), None], ids=["no memory", "no cpu", "neither"]
)
def test_a_container_without_both_requests_meets_every_requirement(asked):
    member = containers(app=asked)
    assert admits_eviction(member, recommendation(recommended("1Gi", "1")), (requirement(LOWER, "cpu"),))


def test_a_pod_without_recommendation_meets_no_requirement():
    assert not admits_eviction(pod(), None, ())


def test_pods_that_need_more_go_first_then_those_that_differ_more():
    order = [(True, 2.0), (True, 1.0), (False, 9.0), (False, 1.0)]
    candidates = [
        UpdateCandidate(pod(f"db-{place}"), Priority(False, up, difference), None)
        for place, (up, difference) in enumerate(order)
    ]
    assert [entry.pod.name for entry in in_update_order(reversed(candidates))] == [
        "db-0",
        "db-1",
        "db-2",
        "db-3",
    ]
    assert not candidates[0].is_urgent


def test_the_default_thresholds_are_upstreams():
    assert UpdateThresholds() == UpdateThresholds(0.1, timedelta(hours=12), timedelta(minutes=10))
