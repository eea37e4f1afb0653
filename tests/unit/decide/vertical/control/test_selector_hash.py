"""A recommendation is applied while target, selector and scope are those it was learnt under (RV-M1, RV-M2)."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import (
    ALL_GATES,
    FOLLOWER,
    LEADER,
    index,
    pod,
    raw_pod,
    recommended,
    run,
    scope,
    vpa,
    world,
)
from trimtab.decide.vertical.admission.admit import AdmissionContext, admit_pod
from trimtab.decide.vertical.control.control import VpaClaim
from trimtab.decide.vertical.control.scope import Scope
from trimtab.decide.vertical.control.selector_hash import is_recommendation_current, selector_hash
from trimtab.decide.vertical.update.loop_state import UpdaterSettings
from trimtab.model.labels.selector import LabelSelector, LabelSelectorRequirement, Selector

LEADERS, FOLLOWERS = scope("role", pods=LEADER), scope("role", pods=FOLLOWER)
SKIPS_BUDGET = UpdaterSettings(skips_budget_in_place=True)
PODS = tuple(pod(f"db-{place}", LEADER if place == 0 else FOLLOWER) for place in range(3))
BIG = recommended("9Gi", "2")


def the_claim(seen) -> VpaClaim:
    (claims,) = index(seen).by_target.values()
    return claims[0]


def learnt(seen):
    """Return the same observation after the recommender wrote its status."""
    (entry,) = seen.vpas
    status = msgspec.structs.replace(
        entry.vpa.status,
        observed_selector_hash=selector_hash(the_claim(seen)),
        observed_generation=entry.vpa.metadata.generation,
    )
    written = msgspec.structs.replace(entry.vpa, status=status)
    return msgspec.structs.replace(seen, vpas=(msgspec.structs.replace(entry, vpa=written),))


def edited(seen, change=None, scopes=None):
    """Return the same observation after a user edited the VPA, or its scope."""
    (entry,) = seen.vpas
    if change:
        status = entry.vpa.status
        found = msgspec.structs.replace(change, status=status)
        seen = msgspec.structs.replace(seen, vpas=(msgspec.structs.replace(entry, vpa=found),))
    return seen if scopes is None else msgspec.structs.replace(seen, scopes=tuple(scopes))


def a_vpa(**more):
    return vpa("role", BIG, mode="InPlaceOrRecreate", **{"min_replicas": 1, "scope": "role", **more})


EDITS = [
    pytest.param({}, True, id="nothing"),
    pytest.param({"change": a_vpa(generation=2, min_replicas=3)}, True, id="minReplicas"),
    pytest.param(
        {"change": a_vpa(generation=2, policies=[{"containerName": "app", "maxAllowed": {"memory": "4Gi"}}])},
        True,
        id="the policy",
    ),
    pytest.param({"scopes": [FOLLOWERS]}, False, id="the scope"),
    pytest.param(
        {"change": a_vpa(generation=2, scope="other"), "scopes": [scope("other", pods=LEADER)]},
        True,
        id="the scope's name alone",
    ),
    pytest.param({"change": a_vpa(generation=2, scope=None)}, False, id="no scope any more"),
]


@pytest.mark.parametrize(("edit", "applies"), EDITS)
def test_admission_applies_what_was_learnt_under_the_same_scope(edit, applies):
    before = learnt(world([a_vpa()], PODS, [LEADERS]))
    after = edited(before, **edit)
    context = AdmissionContext(index(after), after.owners(), gates=ALL_GATES)
    answers = [admit_pod(raw_pod("db-9", labels), "shop", context) for labels in (LEADER, FOLLOWER)]
    sized = [answer for answer in answers if answer.operations]
    assert bool(sized) is applies
    assert is_recommendation_current(the_claim(after)) is applies


@pytest.mark.parametrize(("edit", "applies"), EDITS)
def test_the_updater_gives_no_role_the_size_of_another(edit, applies):
    before = learnt(world([a_vpa()], PODS, [LEADERS]))
    asked, _ = run(edited(before, **edit), settings=SKIPS_BUDGET)
    assert bool(asked) is applies
    assert {name for _, name in asked} <= {"db-0"}, "no follower gets the leader's size"


def test_a_recommendation_of_another_target_is_not_applied():
    before = learnt(world([vpa("base", BIG)], PODS))
    moved = edited(before, vpa("base", BIG, target="StatefulSet/web", generation=2))
    assert not is_recommendation_current(the_claim(moved))


_NAMES = st.sampled_from(["app", "role", "tier", "shop.example/zone"])
_VALUES = st.sampled_from(["", "a", "b", "c-d"])
_EXPRESSIONS = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        key=_NAMES,
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(_VALUES, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(LabelSelectorRequirement, key=_NAMES, operator=st.sampled_from(["Exists", "DoesNotExist"])),
)
_SELECTORS = st.builds(
    LabelSelector,
    match_labels=st.dictionaries(_NAMES, _VALUES, max_size=2),
    match_expressions=st.lists(_EXPRESSIONS, max_size=2).map(tuple),
).map(Selector.from_label_selector)


@given(_SELECTORS, st.none() | _SELECTORS, st.none() | _SELECTORS)
def test_the_hash_is_the_same_in_every_program(target, pods, nodes):
    """Recommender and admission have the selector itself, the updater has read it from text."""
    one = vpa("base", BIG)
    direct = VpaClaim(one, target, Scope("a", pods, nodes))
    recorded = VpaClaim(one, Selector.parse(str(target)), Scope("b", pods, nodes))
    assert selector_hash(direct) == selector_hash(recorded)
