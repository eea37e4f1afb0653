"""The amount of a startup boost, when it ends, and what it refuses."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import NOW, pod, vpa
from trimtab.decide.vertical.admission.startup_boost import (
    BoostError,
    add_boost,
    boost_for,
    expired_boosts,
    is_boosted,
    next_boost_end,
    resources_before_boost,
    without_boosts,
)
from trimtab.decide.vertical.resources.container_resources import NOTHING, ContainerResources
from trimtab.model.core.pod import Container, ResourceRequirements
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import GenericStartupBoost, VerticalPodAutoscaler


def boosting(own=None, general=None, **policy):
    """Make a VPA whose container policy and spec boost so."""
    made = vpa(policies=[{"containerName": "app", "startupBoost": {"cpu": own} if own else None, **policy}])
    data = wire.to_builtins(made)
    data["spec"]["startupBoost"] = {"cpu": general} if general else None
    return wire.convert(data, VerticalPodAutoscaler)


def container(cpu=None, limit=None):
    requests = {"cpu": cpu} if cpu else {}
    limits = {"cpu": limit} if limit else {}
    return Container(
        name="app", resources=wire.convert({"requests": requests, "limits": limits}, ResourceRequirements)
    )


def amounts(**given):
    return {name: Quantity.parse(text) for name, text in given.items()}


FACTOR, MORE = {"type": "Factor", "factor": 3}, {"type": "Quantity", "quantity": "250m"}


@pytest.mark.parametrize(
    ("boost", "recommended", "want"),
    [
        pytest.param(FACTOR, "100m", "300m", id="a factor of the recommendation"),
        pytest.param({"factor": 3}, "100m", "300m", id="a factor without a type"),
        pytest.param(FACTOR, None, "600m", id="a factor of the request"),
        pytest.param({"type": "Factor", "factor": 1}, "100m", "100m", id="a factor of 1"),
        pytest.param(MORE, "100m", "350m", id="a quantity on top"),
        pytest.param(MORE, None, "450m", id="a quantity on top of the request"),
    ],
)
def test_the_boosted_cpu(boost, recommended, want):
    given = ContainerResources(amounts(cpu=recommended) if recommended else {}, {})
    made = add_boost(container("200m"), boosting(boost), given)
    assert made is not None
    assert str(made.resources.requests["cpu"]) == want
    assert add_boost(container("200m"), boosting(), given) is None


@pytest.mark.parametrize(
    ("boost", "words"),
    [
        pytest.param({"type": "Factor"}, "Factor is required", id="no factor"),
        pytest.param({"type": "Factor", "factor": 0}, "must be >= 1", id="factor 0"),
        pytest.param({"type": "Quantity"}, "Quantity is required", id="no quantity"),
        pytest.param({"type": "Odd"}, "unsupported startup boost type: Odd", id="an unknown type"),
    ],
)
def test_a_boost_that_says_nothing_is_an_error(boost, words):
    with pytest.raises(BoostError, match=words):
        add_boost(container("200m"), boosting(boost), NOTHING)


@pytest.mark.parametrize(
    ("most", "want"), [("0", "600m"), ("500m", "500m"), ("600m", "600m"), ("1", "600m")], ids=["none", "less", "equal", "more"]
)  # fmt: skip
def test_a_boost_stops_at_the_largest_cpu(most, want):
    made = add_boost(container("200m"), boosting(FACTOR), NOTHING, Quantity.parse(most))
    assert made is not None
    assert str(made.resources.requests["cpu"]) == want


@pytest.mark.parametrize(
    ("limit", "want"),
    [("1", "600m"), ("600m", "600m"), ("599m", "598m"), ("2m", "1m"), ("1m", "1m")],
    ids=["above", "equal", "below", "two milli", "one milli"],
)
def test_a_boost_of_requests_alone_stays_below_the_limit(limit, want):
    owner = boosting(FACTOR, controlledValues="RequestsOnly")
    made = add_boost(container("200m", limit), owner, NOTHING)
    assert made is not None
    assert (str(made.resources.requests["cpu"]), made.resources.limits) == (want, {})


def test_a_boost_raises_the_limit_in_proportion():
    made = add_boost(container("200m", "400m"), boosting(FACTOR), NOTHING)
    assert made is not None
    assert str(made.resources.limits["cpu"]) == "1200m"


def test_the_policy_of_a_container_comes_before_the_vpas_own():
    own, general = wire.convert(FACTOR, GenericStartupBoost), wire.convert(MORE, GenericStartupBoost)
    assert boost_for("app", boosting(FACTOR, MORE)) == own
    assert boost_for("app", boosting(None, MORE)) == general
    assert boost_for("other", boosting(FACTOR, MORE)) == general
    assert boost_for("app", boosting()) is None


NOTE = '{"requests":{"cpu":"100m","memory":"1Gi"},"limits":{}}'


def boosted(*names, ready=60, **more):
    conditions = [
        {
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": (NOW - timedelta(seconds=ready)).isoformat(),
        }
    ]
    if ready is None:
        conditions = []
    return pod(
        cpu="1",
        conditions=conditions,
        annotations={f"vpaCpuStartupBoost/{name}": NOTE for name in names},
        **more,
    )


def lasting(**seconds):
    """Make a VPA with a boost per container that lasts so many seconds."""
    policies = [
        {"containerName": name, "startupBoost": {"cpu": {**FACTOR, "durationSeconds": duration}}}
        for name, duration in seconds.items()
    ]
    return vpa(policies=policies)


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(
    ("ready", "over", "next_end"),
    [
        pytest.param(9, set(), 11, id="both last"),
        pytest.param(10, set(), 11, id="a second is not over before it is past"),
        pytest.param(11, {"app"}, 31, id="the shorter is over"),
        pytest.param(31, {"app", "side"}, None, id="both are over"),
    ],
)
def test_each_boost_ends_after_its_own_time(ready, over, next_end, order):
    owner = lasting(**dict([("app", 10), ("side", 30)][::order]))
    member = boosted(*["app", "side"][::order], ready=ready)
    assert expired_boosts(member, owner, NOW) == over
    want = None if next_end is None else NOW + timedelta(seconds=next_end - ready)
    assert next_boost_end(member, owner, NOW) == want


def test_a_boost_does_not_end_before_the_pod_is_ready():
    starting = boosted("app", phase="Pending", ready=0)
    unready = msgspec.structs.replace(starting, status=pod(phase="Pending").status)
    assert expired_boosts(unready, lasting(app=0), NOW) == set()
    assert next_boost_end(unready, lasting(app=10), NOW) is None


def test_a_boost_without_a_duration_ends_as_soon_as_the_pod_is_ready():
    assert expired_boosts(boosted("app", ready=0), boosting(FACTOR), NOW) == {"app"}
    general = boosting(FACTOR, {**MORE, "durationSeconds": 30})
    assert expired_boosts(boosted("app", ready=30), general, NOW) == set()
    assert expired_boosts(boosted("app", ready=31), general, NOW) == {"app"}


def test_what_a_container_had_before_its_boost():
    assert is_boosted(boosted("app"))
    assert not is_boosted(pod())
    notes = boosted("app").metadata.annotations
    given = ContainerResources(amounts(cpu="7"), {})
    assert resources_before_boost(notes, "app", given) == given
    assert resources_before_boost(notes, "other", NOTHING) == NOTHING
    assert resources_before_boost(notes, "app", NOTHING) == ContainerResources(
        amounts(cpu="100m", memory="1Gi"), {}
    )
    with pytest.raises(BoostError, match="does not hold resources"):
        resources_before_boost({"vpaCpuStartupBoost/app": "{"}, "app", NOTHING)


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
def test_a_pod_without_its_boosts_has_the_cpu_of_before_and_its_own_memory(order):
    member = boosted("app", memory="2Gi", statuses=[{"name": "app", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}, {"name": "side"}][::order])  # fmt: skip
    (app,) = member.spec.containers
    both = (app, msgspec.structs.replace(app, name="side"))[::order]
    member = msgspec.structs.replace(member, spec=msgspec.structs.replace(member.spec, containers=both))
    plain = {made.name: made.resources.requests for made in without_boosts(member).spec.containers}
    assert plain == {"app": amounts(cpu="100m", memory="2Gi"), "side": amounts(cpu="1", memory="2Gi")}
    statuses = {made.name: made.resources for made in without_boosts(member).status.container_statuses}
    assert statuses["app"] == ResourceRequirements(requests=amounts(cpu="100m", memory="2Gi"))
    assert statuses["side"] is None
    odd = msgspec.structs.replace(
        member, metadata=msgspec.structs.replace(member.metadata, annotations={"vpaCpuStartupBoost/app": "{"})
    )
    assert without_boosts(odd) is odd
