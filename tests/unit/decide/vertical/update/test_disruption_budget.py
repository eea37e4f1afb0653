"""The budget of one controller: how many pods may go, for every kind of controller and every count."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import pod, resize_condition
from trimtab.decide.vertical.admission.pod_annotations import BOOST_PREFIX
from trimtab.decide.vertical.control.controllers import ControllerKey
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.disruption_budget import (
    ReplicaGroup,
    assign_groups,
    by_creator,
    count_group,
)

DB = ControllerKey("shop", "StatefulSet", "db")


@pytest.mark.parametrize(
    ("configured", "tolerance", "running", "evicted", "resized", "want"),
    [
        pytest.param(4, 2, 4, 0, 0, True, id="all run"),
        pytest.param(4, 2, 4, 1, 0, True, id="the second of two"),
        pytest.param(4, 2, 4, 2, 0, False, id="two are gone"),
        pytest.param(4, 2, 4, 0, 2, False, id="two are resized"),
        pytest.param(4, 2, 4, 1, 1, False, id="one of each"),
        pytest.param(4, 2, 3, 0, 0, True, id="one is missing already"),
        pytest.param(4, 2, 2, 0, 0, False, id="as many are missing as may be"),
        pytest.param(1, 0, 1, 0, 0, True, id="tolerance 0: one while all run"),
        pytest.param(2, 0, 1, 0, 0, False, id="tolerance 0: none while one is missing"),
        pytest.param(3, 0, 3, 1, 0, False, id="tolerance 0: no second eviction"),
        pytest.param(3, 0, 3, 0, 1, False, id="tolerance 0: none after a resize"),
        pytest.param(3, 0, 4, 0, 0, True, id="more run than are wanted"),
    ],
)
def test_a_group_allows_a_disruption_while_enough_pods_stay(
    configured, tolerance, running, evicted, resized, want
):
    group = ReplicaGroup(configured, tolerance, running=running, evicted=evicted, resized=resized)
    assert group.is_disruptable is want


@given(st.integers(1, 20), st.integers(0, 20), st.integers(0, 25))
def test_disrupting_while_allowed_never_goes_below_what_must_run(configured, tolerance, running):
    group = ReplicaGroup(configured, min(tolerance, configured), running=running)
    gone = 0
    while group.is_disruptable:
        group = group.after_eviction() if gone % 2 else group.after_resize()
        gone += 1
    assert group.evicted + group.resized == gone
    assert running - gone >= min(running, configured - max(group.tolerance, 1))


def test_missing_pods_are_those_that_do_not_run_and_those_just_evicted():
    group = ReplicaGroup(configured=5, tolerance=1, running=3)
    assert group.missing == 2
    assert group.after_eviction().missing == 3
    assert group.after_resize().missing == 2
    assert ReplicaGroup(configured=2, tolerance=1, running=3).missing == 0


@pytest.mark.parametrize("kind", ["ReplicationController", "ReplicaSet", "StatefulSet", "DaemonSet"])
@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["ours", "upstream"])
def test_a_known_kind_has_the_replicas_of_its_spec_or_no_budget(kind, rules):
    creator = ControllerKey("shop", kind, "db")
    counted = count_group(creator, [pod(), pod("db-1")], 7, 0.5, rules)
    assert counted is not None
    assert (counted.configured, counted.tolerance, counted.running) == (7, 3, 2)
    for unknown in (None, 0):
        assert count_group(creator, [pod()], unknown, 0.5, rules) is None


@pytest.mark.parametrize(
    ("kind", "replicas", "ours", "upstreams"),
    [
        pytest.param("Job", None, 2, 2, id="a Job has as many as it has"),
        pytest.param("Job", 9, 2, 2, id="whatever it asks for"),
        pytest.param("Rollout", 9, 9, 0, id="an unknown kind: its replicas, upstream none"),
        pytest.param("Rollout", None, 2, 0, id="an unknown kind without replicas: its pods, upstream none"),
    ],
)
def test_other_kinds_have_a_budget_with_us(kind, replicas, ours, upstreams):
    members, creator = [pod(), pod("db-1")], ControllerKey("shop", kind, "db")
    for rules, want in ((Rules.TRIMTAB, ours), (Rules.VPA_1_8, upstreams)):
        counted = count_group(creator, members, replicas, 0.5, rules)
        assert counted is not None
        assert (counted.configured, counted.tolerance) == (want, want // 2)


def test_pods_are_counted_by_their_state():
    members = [
        pod("db-0", phase="Pending"),
        pod("db-1", conditions=[resize_condition()]),
        pod("db-2"),
        pod("db-3"),
    ]
    upstream = count_group(DB, members, 4, 0.5, Rules.VPA_1_8)
    ours = count_group(DB, members, 4, 0.5, Rules.TRIMTAB, available={"shop/db-2"})
    assert upstream == ReplicaGroup(4, 2, pending=1, running=3, resizing=1)
    assert ours == ReplicaGroup(4, 2, pending=1, running=1, resizing=1)


def test_pods_without_controller_have_no_budget_with_us_and_a_common_one_upstream():
    members = [pod("lone", owner=None), pod("db-0"), pod("lone-2", owner=None), pod("db-1")]
    assert {
        key: [member.name for member in group] for key, group in by_creator(members, Rules.TRIMTAB).items()
    } == {DB: ["db-0", "db-1"]}
    nobody = ControllerKey("shop", "", "")
    assert [member.name for member in by_creator(members, Rules.VPA_1_8)[nobody]] == ["lone", "lone-2"]


WEB = ControllerKey("shop", "ReplicaSet", "web")
SMALL = ControllerKey("shop", "ReplicaSet", "small")


def members_of(*groups):
    owners = {"web": ["web-0", "web-1"], "small": ["small-0"]}
    return [pod(name, owner=f"ReplicaSet/{group}") for group in groups for name in owners[group]]


@pytest.mark.parametrize("order", [("web", "small"), ("small", "web")], ids=["odd last", "odd first"])
def test_a_group_with_too_few_pods_is_left_and_the_others_are_not(order):
    membership = assign_groups(
        members_of(*order), 2, minimum_is_waived=False, known={WEB, SMALL}, rules=Rules.TRIMTAB
    )
    assert membership.creators == {"shop/web-0": WEB, "shop/web-1": WEB}
    assert membership.below_minimum == frozenset()


@pytest.mark.parametrize("order", [("web", "small"), ("small", "web")], ids=["odd last", "odd first"])
def test_an_unknown_group_is_left_and_the_others_are_not(order):
    membership = assign_groups(
        members_of(*order), 1, minimum_is_waived=False, known={WEB}, rules=Rules.TRIMTAB
    )
    assert membership.creators == {"shop/web-0": WEB, "shop/web-1": WEB}


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["ours", "upstream"])
def test_a_waived_minimum_admits_small_groups_and_names_them(rules):
    membership = assign_groups(
        members_of("web", "small"), 2, minimum_is_waived=True, known={WEB, SMALL}, rules=rules
    )
    assert membership.creators == {"shop/web-0": WEB, "shop/web-1": WEB, "shop/small-0": SMALL}
    assert membership.below_minimum == {SMALL}


BOOST = {f"{BOOST_PREFIX}app": "{}"}


def boosted(member):
    metadata = msgspec.structs.replace(member.metadata, annotations=BOOST)
    return msgspec.structs.replace(member, metadata=metadata)


@pytest.mark.parametrize("place", [0, 1], ids=["first", "last"])
def test_upstream_waives_the_minimum_for_the_siblings_of_a_boosted_pod(place):
    members = members_of("web")
    members[place] = boosted(members[place])
    upstream = assign_groups(members, 3, minimum_is_waived=False, known={WEB}, rules=Rules.VPA_1_8)
    assert upstream.creators == {"shop/web-0": WEB, "shop/web-1": WEB}
    assert upstream.below_minimum == frozenset()
    ours = assign_groups(members, 3, minimum_is_waived=False, known={WEB}, rules=Rules.TRIMTAB)
    assert ours.creators == {}
