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
    observed,
    pod,
    raw_pod,
    recommended,
    run,
    scope,
    vpa,
    why,
    world,
)
from trimtab.decide.vertical.admission.admit import AdmissionContext, admit_pod
from trimtab.decide.vertical.control.claims import Trust, VpaClaim
from trimtab.decide.vertical.control.scope import Scope
from trimtab.decide.vertical.update.loop_state import UpdaterSettings
from trimtab.model.labels.selector import LabelSelector, LabelSelectorRequirement, Selector

LEADERS, FOLLOWERS = scope("role", pods=LEADER), scope("role", pods=FOLLOWER)
SKIPS_BUDGET = UpdaterSettings(skips_budget_in_place=True)
PODS = tuple(pod(f"db-{place}", LEADER if place == 0 else FOLLOWER) for place in range(3))
BIG = recommended("9Gi", "2")


def the_claim(seen) -> VpaClaim:
    (claims,) = index(seen).by_target.values()
    return claims[0]


def edited(seen, change=None, scopes=None):
    """Return the same observation after a user edited the VPA, or its scope."""
    (entry,) = seen.vpas
    if change:
        status = entry.vpa.status
        found = msgspec.structs.replace(change, status=status)
        seen = msgspec.structs.replace(seen, vpas=(msgspec.structs.replace(entry, vpa=found),))
    return seen if scopes is None else msgspec.structs.replace(seen, scopes=tuple(scopes))


def a_vpa(**more):
    return vpa("role", BIG, **{"mode": "InPlaceOrRecreate", "min_replicas": 1, "scope": "role", **more})


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
    before = world([a_vpa()], PODS, [LEADERS])
    after = edited(before, **edit)
    context = AdmissionContext(index(after), after.owners(), gates=ALL_GATES)
    answers = [admit_pod(raw_pod("db-9", labels), "shop", context) for labels in (LEADER, FOLLOWER)]
    sized = [answer for answer in answers if answer.operations]
    assert bool(sized) is applies
    assert (the_claim(after).trust is Trust.ALL) is applies


@pytest.mark.parametrize(("edit", "applies"), EDITS)
def test_the_updater_gives_no_role_the_size_of_another(edit, applies):
    before = world([a_vpa()], PODS, [LEADERS])
    asked, _ = run(edited(before, **edit), settings=SKIPS_BUDGET)
    assert bool(asked) is applies
    assert {name for _, name in asked} <= {"db-0"}, "no follower gets the leader's size"


def test_a_recommendation_of_another_target_is_not_applied():
    before = world([vpa("base", BIG)], PODS)
    moved = edited(before, vpa("base", BIG, target="StatefulSet/web", generation=2))
    assert the_claim(moved).trust is Trust.NOTHING


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
def test_what_amounts_are_for_is_the_same_in_every_program(target, pods, nodes):
    """Recommender and admission have the selector itself, the updater has read it from text."""
    one = vpa("base", BIG)
    direct = VpaClaim(one, target, Scope("a", pods, nodes))
    recorded = VpaClaim(one, Selector.parse(str(target)), Scope("b", pods, nodes))
    assert direct.computed_for == recorded.computed_for


@pytest.mark.parametrize(
    ("before", "after", "trust"),
    [
        pytest.param(
            [vpa("base", BIG)], [vpa("base", BIG), a_vpa()], Trust.NEW_PODS, id="a role is split off"
        ),
        pytest.param(
            [vpa("base", BIG), a_vpa()], [vpa("base", BIG)], Trust.NEW_PODS, id="a role is given up"
        ),
        pytest.param(
            [vpa("base", BIG), a_vpa()],
            [vpa("base", BIG), a_vpa(mode="Off")],
            Trust.NEW_PODS,
            id="a role's VPA turns Off",
        ),
        pytest.param(
            [vpa("base", BIG)], [vpa("base", BIG), a_vpa(mode="Off")], Trust.ALL, id="a preview takes no pods"
        ),
        pytest.param(
            [vpa("base", BIG)],
            [vpa("base", BIG), vpa("twin", BIG, age_days=9)],
            Trust.ALL,
            id="an older twin",
        ),
        pytest.param(
            [vpa("base", BIG), a_vpa()],
            [vpa("base", BIG), msgspec.structs.replace(a_vpa(), metadata=vpa("renamed").metadata)],
            Trust.ALL,
            id="a role's VPA is renamed",
        ),
    ],
)
def test_the_share_of_a_vpa_follows_those_above_it(before, after, trust):
    written = world(before, PODS, [LEADERS]).vpas[0].vpa
    seen = observed([written, *after[1:]], PODS, [LEADERS])
    (claims,) = index(seen).by_target.values()
    (base,) = [claim for claim in claims if claim.key == "shop/base"]
    assert base.trust is trust


def test_running_pods_wait_for_amounts_of_the_present_share_and_new_pods_do_not():
    """Amounts that were learnt beside a role may lack what that role needs."""
    written = world([vpa("base", BIG)], PODS).vpas[0].vpa
    seen = observed([written, a_vpa()], PODS, [LEADERS])
    asked, result = run(seen, settings=SKIPS_BUDGET)
    assert asked == []
    assert "came or went" in why(result, "db-1")
    context = AdmissionContext(index(seen), seen.owners(), gates=ALL_GATES)
    assert admit_pod(raw_pod("db-9", FOLLOWER), "shop", context).operations


def test_a_new_pod_gets_the_size_of_the_first_vpa_that_can_be_trusted():
    written = world([vpa("base", BIG)], PODS).vpas[0].vpa
    seen = observed([written, a_vpa()], PODS, [LEADERS])
    context = AdmissionContext(index(seen), seen.owners(), gates=ALL_GATES)
    answer = admit_pod(raw_pod("db-9", LEADER), "shop", context)
    assert answer.operations
    assert answer.control.key == "shop/base", "the leader's VPA has learnt nothing for its scope yet"
    alone = observed([a_vpa()], PODS, [LEADERS])
    context = AdmissionContext(index(alone), alone.owners(), gates=ALL_GATES)
    answer = admit_pod(raw_pod("db-9", LEADER), "shop", context)
    assert (answer.operations, answer.reason) == (
        (),
        "VPA shop/role: its recommendation was learnt for another target or scope",
    )
