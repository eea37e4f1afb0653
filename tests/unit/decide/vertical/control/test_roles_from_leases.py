"""Who gets the label of a role that a Lease gives away."""

import pytest

from trimtab.decide.vertical.control.role_labels import (
    LABEL_ANNOTATION,
    LEASE_ANNOTATION,
    OTHERS_ANNOTATION,
    InvalidDeclaration,
    RoleDeclaration,
    find_holder,
    parse_declaration,
    plan_roles,
)
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.pod import Pod, PodStatus

ROLE = RoleDeclaration("shop", "db", "role", "leader")
WITH_OTHERS = RoleDeclaration("shop", "db", "role", "leader", "follower")


def pod(name: str, role: str | None = None, phase: str = "Running", **notes: str) -> Pod:
    labels = {"app": "db", **({"role": role} if role else {})}
    meta = ObjectMeta(name=name, namespace="shop", uid=name, labels=labels, annotations=notes)
    return Pod(metadata=meta, status=PodStatus(phase=phase))


LONG = "database-" + "x" * 60


@pytest.mark.parametrize(
    ("names", "identity", "want"),
    [
        pytest.param([f"{LONG}-0"], f"{LONG[:63]}_5e1c", f"{LONG}-0", id="the kubelet cuts host names"),
        pytest.param([f"{LONG}-0"], f"{LONG}-0", f"{LONG}-0", id="a whole name of that length"),
        pytest.param(["a" * 62 + "-b"], "a" * 62, "a" * 62 + "-b", id="without what may not be at the end"),
        pytest.param([f"{LONG}-0", f"{LONG}-1"], LONG[:63], None, id="two that cannot be told apart"),
        pytest.param([LONG[:63], f"{LONG}-1"], LONG[:63], LONG[:63], id="a whole name comes first"),
    ],
)
def test_rl6_pods_with_long_names_hold_leases_by_their_host_names(names, identity, want):
    found = find_holder([pod(name) for name in names], identity)
    assert (found.name if found else None) == want


@pytest.mark.parametrize(
    ("declaration", "roles", "identity", "changes"),
    [
        pytest.param(ROLE, [None, None], "db-1", [("db-1", "leader")], id="the holder gets the label"),
        pytest.param(ROLE, [None, "leader"], "db-1", [], id="what is right stays"),
        pytest.param(
            ROLE,
            ["leader", None],
            "db-1",
            [("db-0", None), ("db-1", "leader")],
            id="the old leader loses it first, then the new one gets it",
        ),
        pytest.param(ROLE, ["leader", "leader"], "db-1", [("db-0", None)], id="two that claim it become one"),
        pytest.param(
            ROLE, ["leader", None], "", [("db-0", None)], id="nobody holds the Lease: nobody has the role"
        ),
        pytest.param(
            ROLE, ["leader", None], "db-7", [("db-0", None)], id="the holder is no pod that we know"
        ),
        pytest.param(
            ROLE, [None, None], "db-1_5e1c", [("db-1", "leader")], id="client-go's identity with a suffix"
        ),
        pytest.param(ROLE, [None, None], "db", [], id="half a name is no name"),
        pytest.param(
            ROLE, ["arbiter", None], "db-1", [("db-1", "leader")], id="another value of the label stays"
        ),
        pytest.param(
            WITH_OTHERS,
            ["leader", None],
            "db-1",
            [("db-0", "follower"), ("db-1", "leader")],
            id="the others get a value of their own if one is declared",
        ),
    ],
)
def test_exactly_the_holder_carries_the_role(declaration, roles, identity, changes):
    pods = [pod(f"db-{index}", role) for index, role in enumerate(roles)]
    plan = plan_roles(declaration, pods, identity)
    assert not isinstance(plan, InvalidDeclaration)
    assert [(change.pod.name, change.value) for change in plan] == changes


def test_a_holder_that_has_finished_holds_nothing():
    plan = plan_roles(ROLE, [pod("db-0", phase="Failed")], "db-0")
    assert plan == ()


def test_a_label_that_a_selector_needs_is_never_touched():
    plan = plan_roles(ROLE, [pod("db-0")], "db-0", {"app", "role"})
    assert isinstance(plan, InvalidDeclaration)
    assert "orphan" in plan.message


@pytest.mark.parametrize(
    ("notes", "found"),
    [
        pytest.param({}, None, id="no annotation, no role"),
        pytest.param({LEASE_ANNOTATION: "db"}, ROLE, id="role=leader is the default"),
        pytest.param(
            {LEASE_ANNOTATION: "db", LABEL_ANNOTATION: "x/part=hot", OTHERS_ANNOTATION: "cold"},
            RoleDeclaration("shop", "db", "x/part", "hot", "cold"),
            id="label and the others' value can be chosen",
        ),
    ],
)
def test_what_a_pod_declares(notes, found):
    assert parse_declaration(pod("db-0", **notes)) == found


@pytest.mark.parametrize(
    "notes",
    [
        pytest.param({LABEL_ANNOTATION: "leader"}, id="no value"),
        pytest.param({LABEL_ANNOTATION: "-x-=leader"}, id="not a label key"),
        pytest.param({LABEL_ANNOTATION: "role=a b"}, id="not a label value"),
        pytest.param({OTHERS_ANNOTATION: "leader"}, id="the others would have the role too"),
    ],
)
def test_a_declaration_that_cannot_be_followed_says_why(notes):
    found = parse_declaration(pod("db-0", **{LEASE_ANNOTATION: "db"}, **notes))
    assert isinstance(found, InvalidDeclaration)
    assert "shop/db-0" in found.message
