"""Walks up owner references: every kind of reference before and after the one that decides."""

import pytest

from tests.unit.decide.horizontal.builders import DEPLOYMENT, JOB, REPLICA_SET, TARGET_UID, pod, select_by
from trimtab.decide.horizontal import Owner, OwnerNotFound, OwnerUnavailable, Target, owners_to_find
from trimtab.decide.horizontal.observation.owners import OwnerLookup, owner_key
from trimtab.decide.horizontal.selection.owners import DEEPEST_CHAIN, OwnerChains, OwnerError
from trimtab.model.core.meta import OwnerReference

TARGET = Target(api_version="apps/v1", kind="Deployment", name="web", uid=TARGET_UID)


def reference(name, kind="Widget"):
    return OwnerReference(api_version="example.com/v1", kind=kind, name=name, uid=f"uid-of-{name}")


GONE, HIDDEN, OTHER = reference("gone"), reference("hidden"), reference("other")
NODE = OwnerReference(api_version="v1", kind="Node", name="n1", uid="uid-of-n1")
LOOKUPS: dict[str, OwnerLookup] = {
    owner_key(REPLICA_SET): Owner(
        uid=REPLICA_SET.uid, kind="ReplicaSet", name="web-7f9", owners=(DEPLOYMENT,)
    ),
    owner_key(GONE): OwnerNotFound(),
    owner_key(HIDDEN): OwnerUnavailable(error="forbidden"),
    owner_key(OTHER): Owner(uid=OTHER.uid, kind="Widget", name="other"),
}


def reason(*owners, lookups=LOOKUPS):
    return OwnerChains(TARGET, lookups).reason_not_owned(pod("web-1", owners=owners))


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(
    "odd", [GONE, HIDDEN, OTHER, NODE], ids=["gone", "unreadable", "another's", "a node"]
)
@pytest.mark.parametrize("ours", [REPLICA_SET, DEPLOYMENT], ids=["through its ReplicaSet", "directly"])
def test_one_reference_to_the_target_is_enough(ours, odd, order):
    assert reason(*[ours, odd][::order]) == ""


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize("odd", [GONE, OTHER, NODE], ids=["gone", "another's", "a node"])
def test_an_owner_that_cannot_be_read_leaves_it_open(odd, order):
    with pytest.raises(OwnerError, match="forbidden"):
        reason(*[HIDDEN, odd][::order])


def test_the_first_reason_is_given():
    assert reason() == "it has no owner"
    assert reason(OTHER, GONE) == "it belongs to Widget/other"
    assert "gone" in reason(GONE, OTHER)
    assert reason(NODE) == "it belongs to Node/n1"


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize("odd", [GONE, OTHER, NODE], ids=["gone", "another's", "a node"])
def test_an_owner_may_have_several_owners(odd, order):
    middle = reference("middle")
    lookups = {**LOOKUPS, owner_key(middle): Owner(uid=middle.uid, owners=tuple([REPLICA_SET, odd][::order]))}
    assert reason(middle, lookups=lookups) == ""
    assert (
        "Widget/middle" in reason(middle, lookups={**lookups, owner_key(REPLICA_SET): Owner(uid="x")})
        or odd is GONE
    )


def chain(length):
    names = [reference(f"level-{level}") for level in range(length)]
    ends = [*names[1:], DEPLOYMENT]
    return names[0], {
        owner_key(name): Owner(uid=name.uid, owners=(above,)) for name, above in zip(names, ends, strict=True)
    }


def test_a_chain_may_have_as_many_levels_as_are_followed():
    first, lookups = chain(DEEPEST_CHAIN - 1)
    assert reason(first, lookups=lookups) == ""
    first, lookups = chain(DEEPEST_CHAIN)
    assert "more than 10 levels up from Widget/level-0" in reason(first, lookups=lookups)
    assert DEEPEST_CHAIN == 10


def test_owners_in_a_circle_end_the_walk():
    one, two = reference("one"), reference("two")
    lookups = {
        owner_key(one): Owner(uid=one.uid, owners=(two,)),
        owner_key(two): Owner(uid=two.uid, owners=(one,)),
    }
    assert reason(one, lookups=lookups) == "it belongs to Widget/one"
    assert owners_to_find([pod("web-1", owners=(one,))], TARGET, lookups) == {}


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize("odd", [DEPLOYMENT, NODE, GONE], ids=["owned directly", "a node", "looked up"])
def test_pods_that_need_no_lookup_do_not_hide_those_that_do(odd, order):
    pods = [pod("web-1", owners=(JOB,)), pod("web-2", owners=(odd,)), pod("web-3")][::order]
    assert owners_to_find(pods, TARGET, LOOKUPS) == {owner_key(JOB): JOB}
    both = [pod("web-1", owners=tuple([JOB, odd][::order]))]
    needed = {} if odd is DEPLOYMENT else {owner_key(JOB): JOB}
    assert owners_to_find(both, TARGET, LOOKUPS) == needed


def test_the_next_level_is_looked_up_after_the_first():
    assert owners_to_find([pod(owners=(REPLICA_SET,))], TARGET, {}) == {owner_key(REPLICA_SET): REPLICA_SET}
    above = {owner_key(REPLICA_SET): Owner(uid=REPLICA_SET.uid, owners=(OTHER,))}
    assert owners_to_find([pod(owners=(REPLICA_SET,))], TARGET, above) == {owner_key(OTHER): OTHER}
    old_record = {REPLICA_SET.uid: Owner(uid=REPLICA_SET.uid, owners=(DEPLOYMENT,))}
    assert owners_to_find([pod(owners=(REPLICA_SET,))], TARGET, old_record) == {}


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
def test_a_pod_that_is_left_out_does_not_hide_one_that_counts(order):
    pods = (pod("web-1", owners=(REPLICA_SET,)), pod("scrape-1", owners=(OTHER,)), pod("lone"))[::order]
    kept = select_by("OwnerReference", pods, TARGET, LOOKUPS)
    assert [member.name for member in kept.pods] == ["web-1"]
    assert {entry.pod: entry.reason for entry in kept.left_out} == {
        "scrape-1": "it belongs to Widget/other",
        "lone": "it has no owner",
    }


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "reversed"])
def test_while_owners_cannot_be_read_every_pod_counts_and_the_first_by_name_is_named(order):
    hidden = {f"{name}": reference(name) for name in ("a", "b")}
    lookups = {owner_key(entry): OwnerUnavailable(error="forbidden") for entry in hidden.values()}
    pods = tuple(pod(f"web-{name}", owners=(entry,)) for name, entry in hidden.items())[::order]
    kept = select_by("OwnerReference", (*pods, pod("lone")), TARGET, lookups)
    assert (kept.pods, kept.left_out) == ((*pods, pod("lone")), ())
    assert kept.fallback == "owner Widget/a: forbidden"
