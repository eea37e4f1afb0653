"""The API server's rules for resources: totals, LimitRanges, QoS classes, each with several containers."""

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import limit_range_item, pod
from trimtab.decide.vertical.resources.pod_rules import (
    CLAIMS_REFUSAL,
    POD_LEVEL_REFUSAL,
    _range_violations,
    complete_pod_level,
    container_totals,
    has_claims,
    pod_totals,
    qos_class,
    resize_refusal,
    scheduler_requests,
)
from trimtab.decide.vertical.resources.pod_rules import (
    violations as pod_violations,
)
from trimtab.model.core.pod import PodSpec, ResourceRequirements
from trimtab.model.core.server_rules import KUBERNETES_1_36, KUBERNETES_1_37, rules_of
from trimtab.model.json import wire

BOTH = {"cpu": "1", "memory": "1Gi"}


def resources(requests=None, limits=None):
    return {"requests": requests or {}, "limits": limits or {}}


def spec(*containers, init=(), **more):
    """Make a spec; a container is its resources, an init container `(resources, is_sidecar)`."""
    data = {
        "containers": [{"name": f"c{place}", "resources": own} for place, own in enumerate(containers)],
        "initContainers": [
            {"name": f"i{place}", "resources": own, "restartPolicy": "Always" if is_sidecar else None}
            for place, (own, is_sidecar) in enumerate(init)
        ],
        **more,
    }
    return wire.convert(data, PodSpec)


GUARANTEED, BURSTABLE, NONE = resources(BOTH, BOTH), resources({"cpu": "1"}), resources()
NO_CPU = resources({"memory": "1Gi"}, {"memory": "1Gi"})
ZERO = resources(BOTH, {**BOTH, "cpu": "0"})


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(
    ("odd", "beside", "want"),
    [
        pytest.param(GUARANTEED, GUARANTEED, "Guaranteed", id="both have limits"),
        pytest.param(NONE, GUARANTEED, "Burstable", id="one has nothing"),
        pytest.param(BURSTABLE, GUARANTEED, "Burstable", id="one has no limit"),
        pytest.param(NO_CPU, GUARANTEED, "Burstable", id="one has a limit of memory alone"),
        pytest.param(ZERO, GUARANTEED, "Burstable", id="one has a limit of zero"),
        pytest.param(NONE, NONE, "BestEffort", id="neither has anything"),
        pytest.param(resources({"gpu": "1"}), NONE, "BestEffort", id="other resources do not count"),
        pytest.param(resources({"cpu": "0"}), NONE, "BestEffort", id="zero is nothing"),
    ],
)
def test_a_qos_class_is_that_of_all_containers(odd, beside, want, order):
    assert qos_class(spec(*[beside, odd][::order])) == want
    if beside is not NONE:
        assert qos_class(spec(beside, init=[(odd, False)])) == want


@pytest.mark.parametrize(
    ("own", "want"),
    [
        pytest.param(resources(BOTH, BOTH), "Guaranteed", id="both"),
        pytest.param(resources(BOTH), "Burstable", id="requests alone"),
        pytest.param(resources({"cpu": "1"}, {"cpu": "1"}), "Burstable", id="cpu alone"),
        pytest.param(resources(), "BestEffort", id="nothing"),
    ],
)
def test_pod_level_resources_decide_the_class(own, want):
    assert qos_class(spec(GUARANTEED, resources=own)) == want


@pytest.mark.parametrize(
    ("own", "containers", "want"),
    [
        pytest.param(resources(), (GUARANTEED,), "Guaranteed", id="nothing leaves it to the containers"),
        pytest.param(
            resources(BOTH), (GUARANTEED,), "Guaranteed", id="limits become those of the containers"
        ),
        pytest.param(
            resources({"cpu": "2"}), (GUARANTEED,), "Guaranteed", id="no limit is below its request"
        ),
        pytest.param(resources(BOTH), (GUARANTEED, NONE), "Burstable", id="a container without limits"),
        pytest.param(resources(limits=BOTH), (NONE,), "Guaranteed", id="requests become the limits"),
    ],
)
def test_since_1_37_containers_complete_pod_level_resources(own, containers, want):
    assert qos_class(spec(*containers, resources=own), KUBERNETES_1_37) == want


@pytest.mark.parametrize(
    ("own", "requests", "limits"),
    [
        pytest.param({"requests": {"cpu": "3"}}, {"cpu": "3", "memory": "2Gi"}, {"cpu": "3", "memory": "2Gi"}, id="from requests"),
        pytest.param({"limits": {"cpu": "9"}}, {"cpu": "2", "memory": "2Gi"}, {"cpu": "9", "memory": "2Gi"}, id="from limits"),
        pytest.param({}, {}, {}, id="from nothing"),
    ],
)  # fmt: skip
def test_only_missing_amounts_are_filled_in(own, requests, limits):
    made = spec(GUARANTEED, GUARANTEED, resources=own)
    completed = complete_pod_level(made, KUBERNETES_1_37)
    assert completed.resources == wire.convert({"requests": requests, "limits": limits}, ResourceRequirements)
    assert complete_pod_level(completed, KUBERNETES_1_37) == completed
    assert complete_pod_level(made, KUBERNETES_1_36) == made


def test_since_1_37_containers_may_not_ask_for_more_than_the_pod_level_limit():
    made = spec(resources({"cpu": "3"}), resources=resources(limits={"cpu": "2"}))
    member = msgspec.structs.replace(pod(), spec=made)
    assert [(found.resource, found.message) for found in pod_violations(member, rules=KUBERNETES_1_37)] == [
        ("cpu", "must be less than or equal to cpu limit of 2")
    ]


def totals(made):
    return {name: str(amount) for name, amount in made.requests.items()}


@pytest.mark.parametrize(
    ("containers", "init", "want"),
    [
        pytest.param([("1", "1Gi"), ("2", "1Gi")], [], ("3", "2Gi"), id="containers add up"),
        pytest.param([("1", "1Gi")], [(("2", "512Mi"), False)], ("2", "1Gi"), id="the larger of each resource"),
        pytest.param([("1", "1Gi")], [(("2", "512Mi"), True)], ("3", "1536Mi"), id="a sidecar adds to the containers"),
        pytest.param([("1", "1Gi")], [(("1", "1Gi"), True), (("4", "1Gi"), False)], ("5", "2Gi"), id="a sidecar runs beside later init containers"),
        pytest.param([("1", "1Gi")], [(("4", "1Gi"), False), (("1", "1Gi"), True)], ("4", "2Gi"), id="and not beside earlier ones"),
    ],
)  # fmt: skip
def test_totals_are_what_runs_at_the_same_time(containers, init, want):
    def own(cpu, memory):
        return resources({"cpu": cpu, "memory": memory})

    made = spec(
        *(own(*amounts) for amounts in containers), init=[(own(*amounts), side) for amounts, side in init]
    )
    assert totals(container_totals(made)) == {"cpu": want[0], "memory": want[1]}
    assert pod_totals(made) == container_totals(made)


def test_limits_are_totalled_like_requests():
    made = spec(resources(BOTH, BOTH), resources(BOTH), init=[(resources(BOTH, {"cpu": "5"}), False)])
    assert {name: str(amount) for name, amount in container_totals(made).limits.items()} == {
        "cpu": "5",
        "memory": "1Gi",
    }


def test_pod_level_resources_replace_sums_and_overhead_is_added():
    made = spec(
        resources(BOTH),
        resources({"gpu": "1"}),
        resources=resources({"cpu": "9"}),
        overhead={"cpu": "1", "memory": "1Gi"},
    )
    assert totals(pod_totals(made)) == {"cpu": "9", "memory": "1Gi", "gpu": "1"}
    assert {name: str(amount) for name, amount in scheduler_requests(made).items()} == {
        "cpu": "10",
        "memory": "2Gi",
        "gpu": "1",
    }


CLAIMS = {"claims": [{"name": "gpu"}]}


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
def test_one_claim_is_enough_to_refuse_a_resize(order):
    made = spec(*[BURSTABLE, {**BURSTABLE, **CLAIMS}][::order])
    assert has_claims(made)
    assert has_claims(spec(BURSTABLE, init=[({**BURSTABLE, **CLAIMS}, True)]))
    assert not has_claims(spec(BURSTABLE, BURSTABLE))
    member = msgspec.structs.replace(pod(), spec=made)
    assert resize_refusal(member, member) == CLAIMS_REFUSAL
    assert resize_refusal(member, member, KUBERNETES_1_37) == ""


@pytest.mark.parametrize(
    ("version", "refusal"),
    [
        ("1.34", POD_LEVEL_REFUSAL),
        ("v1.35.4", POD_LEVEL_REFUSAL),
        ("1.36", ""),
        ("v1.37.1", ""),
        ("1.38", ""),
        ("", ""),
    ],
)
def test_pods_with_pod_level_resources_are_resized_since_1_36(version, refusal):
    plain = msgspec.structs.replace(pod(), spec=spec(BURSTABLE))
    whole = msgspec.structs.replace(plain.spec, resources=wire.convert(BURSTABLE, ResourceRequirements))
    member = msgspec.structs.replace(plain, spec=whole)
    rules = rules_of(version)
    assert resize_refusal(member, member, rules) == refusal
    assert resize_refusal(plain, plain, rules) == ""


def test_a_resize_may_not_change_the_class():
    def member(own):
        return msgspec.structs.replace(pod(), spec=spec(own))

    assert resize_refusal(member(GUARANTEED), member(GUARANTEED)) == ""
    assert "from Burstable to Guaranteed" in resize_refusal(member(BURSTABLE), member(GUARANTEED))


def test_a_pod_keeps_the_class_that_an_older_server_gave_to_it():
    made = spec(BURSTABLE, resources=resources())
    member = msgspec.structs.replace(pod(), spec=made)
    older = msgspec.structs.replace(
        member, status=msgspec.structs.replace(member.status, qos_class="BestEffort")
    )
    assert resize_refusal(member, member, KUBERNETES_1_37) == ""
    assert "from BestEffort to Burstable" in resize_refusal(older, older, KUBERNETES_1_37)
    assert resize_refusal(older, older, KUBERNETES_1_36) == ""


def violations(item, requests=None, limits=None, kind="Container"):
    """Return what a LimitRange says of one container, as resource and the beginning of the message."""
    own = wire.convert(resources(requests, limits), ResourceRequirements)
    return [
        (resource, message.partition(" is ")[0])
        for resource, message in _range_violations(limit_range_item(type=kind, **item), own)
    ]


@pytest.mark.parametrize(
    ("item", "requests", "limits", "want"),
    [
        pytest.param({"min": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "1"}, [], id="the minimum"),
        pytest.param({"min": {"cpu": "1"}}, {"cpu": "999m"}, {"cpu": "1"}, [("cpu", "minimum cpu usage per Container")], id="a request below it"),
        pytest.param({"min": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "999m"}, [("cpu", "minimum cpu usage per Container")], id="a limit below it"),
        pytest.param({"min": {"cpu": "1"}}, {"cpu": "1"}, {}, [], id="a minimum needs no limit"),
        pytest.param({"min": {"cpu": "1"}}, {}, {"cpu": "1"}, [("cpu", "minimum cpu usage per Container")], id="a minimum needs a request"),
        pytest.param({"max": {"memory": "1Gi"}}, {"memory": "1Gi"}, {"memory": "1Gi"}, [], id="the maximum"),
        pytest.param({"max": {"memory": "1Gi"}}, {}, {"memory": "1025Mi"}, [("memory", "maximum memory usage per Container")], id="a limit above it"),
        pytest.param({"max": {"memory": "1Gi"}}, {"memory": "1025Mi"}, {"memory": "1Gi"}, [("memory", "maximum memory usage per Container")], id="a request above it"),
        pytest.param({"max": {"memory": "1Gi"}}, {"memory": "1Mi"}, {}, [("memory", "maximum memory usage per Container")], id="a maximum needs a limit"),
        pytest.param({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "2"}, [], id="the ratio"),
        pytest.param({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "2001m"}, [("cpu", "cpu max limit to request ratio per Container")], id="above the ratio"),
        pytest.param({"maxLimitRequestRatio": {"cpu": "2"}}, {}, {"cpu": "2"}, [("cpu", "cpu max limit to request ratio per Container")], id="a ratio needs a request"),
        pytest.param({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {}, [("cpu", "cpu max limit to request ratio per Container")], id="a ratio needs a limit"),
        pytest.param({"min": {"gpu": "9"}}, {"gpu": "1"}, {}, [], id="other resources are the server's own business"),
        pytest.param({"min": {"cpu": "2", "memory": "2"}}, {"cpu": "1", "memory": "1"}, {}, [("cpu", "minimum cpu usage per Container"), ("memory", "minimum memory usage per Container")], id="both resources"),
        pytest.param({"max": {"memory": "9007199254740993"}}, {}, {"memory": "9007199254740994"}, [("memory", "maximum memory usage per Container")], id="amounts beyond thousandths"),
        pytest.param({"max": {"memory": "1"}}, {}, {"memory": "1e18"}, [("memory", "maximum memory usage per Container")], id="one amount beyond thousandths"),
    ],
)  # fmt: skip
def test_a_limit_range_is_broken_by_each_of_its_bounds(item, requests, limits, want):
    assert violations(item, requests, limits) == want


def test_no_limit_range_is_never_broken():
    assert list(_range_violations(None, wire.convert(resources(), ResourceRequirements))) == []
