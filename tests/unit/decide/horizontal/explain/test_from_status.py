"""`trimtab top` gives the reason that `trimtab explain` gives, for both kinds, also where plug-ins hold the replicas."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import (
    NO_WINDOW,
    average,
    behavior,
    cpu,
    explained,
    external,
    hpa,
    losing,
    object_metric,
    observe,
    pods,
    rules,
    run,
    series,
    unreadable,
    usage_of,
    value,
)
from tests.unit.decide.horizontal.test_properties import observations
from trimtab.dashboard.pages.decision import decision_view
from trimtab.decide.horizontal import Record, explain
from trimtab.decide.horizontal.from_status import reason_from_status
from trimtab.decide.horizontal.observation.plugin_answers import FilterAnswer, PolicyAnswer
from trimtab.model.hpa.annotations import REASON_ANNOTATION
from trimtab.model.hpa.types import ReplicaPolicySpec
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.horizontal.writer import status_patch

FILTER, PLAN, OTHER = "example.com/Filter", "example.com/Plan", "example.com/Other"
POLICY = PolicyAnswer(plugin=PLAN, version="1.2", replicas=4, reason="by the plan: 4 at night")
FAILED: dict[str, Any] = {"failure": "it raised KeyError: 'zone'", "reason": "PluginRaised"}
BROKEN = PolicyAnswer(plugin=OTHER, **FAILED)
UNKNOWN: dict[str, Any] = {"failure": "it is not loaded: install its package", "reason": "PluginNotLoaded"}
READ = FilterAnswer(plugin=FILTER, version="1.2")
ALL = pods(4)

HOLDS = {
    "no plug-in": (None, ()),
    "a filter": (READ, ()),
    "an unknown filter": (FilterAnswer(plugin=FILTER, **UNKNOWN), ()),
    "a failing filter": (FilterAnswer(plugin=FILTER, **FAILED), ()),
    "a filter that leaves out all": (
        FilterAnswer(plugin=FILTER, left_out={pod.name: "it drains" for pod in ALL}),
        (),
    ),
    "a policy": (None, (POLICY,)),
    "a policy that asks for fewer": (None, (msgspec.structs.replace(POLICY, replicas=1),)),
    "a policy that asks for nothing": (None, (msgspec.structs.replace(POLICY, replicas=None),)),
    "an unknown policy": (None, (PolicyAnswer(plugin=PLAN, **UNKNOWN),)),
    "a failing policy": (None, (BROKEN,)),
    "a policy beside a failing one": (None, (POLICY, BROKEN)),
    "a policy beside a failing filter": (FilterAnswer(plugin=FILTER, **FAILED), (POLICY,)),
    "a failing filter and a failing policy": (FilterAnswer(plugin=FILTER, **FAILED), (BROKEN,)),
}
METRICS = {
    "cpu": lambda load: ((cpu(50), usage_of(ALL, int(50 * load))),),
    "a queue": lambda load: ((external(average(100)), series(400 * load)),),
    "a lost metric beside cpu": lambda load: (
        (cpu(50), usage_of(ALL, int(50 * load))),
        (losing(external(value(20)), "Ignore"), unreadable()),
    ),
    "an unreadable metric beside an object": lambda load: (
        (object_metric(average(100)), series(400 * load)),
        (external(value(20)), unreadable()),
    ),
}
CANNOT_DOWN = behavior(down=rules(("Percent", 100, 15), select="Disabled"))


def stored(autoscaler, decision, *, is_native):
    """Return the HPA as the operator stores it after a decision."""
    code = str(decision.reason.code)
    if not is_native:
        status = msgspec.structs.replace(decision.status, reason=code)
        return msgspec.structs.replace(autoscaler, status=status)
    meta = msgspec.structs.replace(autoscaler.metadata, annotations={REASON_ANNOTATION: code})
    return msgspec.structs.replace(autoscaler, metadata=meta, status=decision.status)


@pytest.mark.parametrize("is_native", [False, True], ids=["our own kind", "native"])
@pytest.mark.parametrize("scaling", [None, CANNOT_DOWN], ids=["", "scaling down is disabled"])
@pytest.mark.parametrize("load", [0, 0.2, 0.7, 1.0, 1.05])
@pytest.mark.parametrize("metrics", METRICS)
@pytest.mark.parametrize("hold", HOLDS)
def test_the_status_gives_the_reason_of_the_decision(hold, metrics, load, scaling, is_native):
    answer, policies = HOLDS[hold]
    measured = METRICS[metrics](load)
    named = hpa(
        *(metric for metric, _ in measured),
        low=1,
        high=20,
        behavior=scaling,
        selection_strategy=None if answer is None else FILTER,
        replica_policies=tuple(ReplicaPolicySpec(name=policy.plugin) for policy in policies),
    )
    seen = observe(
        named,
        4,
        *(reading for _, reading in measured),
        pods=ALL,
        filter_answer=answer,
        policy_answers=policies,
        settings=NO_WINDOW,
    )
    decision, story = run(seen), explained(seen)
    if decision.desired != decision.current:
        return
    found = reason_from_status(stored(named, decision, is_native=is_native))
    assert found.word == story.reason
    if found.word == "ReplicaPolicy":
        assert story.summary == f"stays at 4: {found.message}"
    if found.word == "PluginFailed":
        assert (answer.failure if answer and answer.failure else policies[-1].failure) in found.message


@settings(max_examples=1000, deadline=None)
@given(observations(), st.booleans())
def test_all_say_one_word(seen, is_native):
    """H1: `top` and `explain` gave different words for 34 % of random HPAs."""
    decision = run(seen)
    record = Record(observation=seen, decision=decision)
    words = {
        str(explain(record).reason),
        decision_view(record).reason,
        status_patch_reason(seen, decision, is_native=is_native),
        reason_from_status(stored(seen.hpa, decision, is_native=is_native)).word,
    }
    assert words == {str(decision.reason.code)}


def status_patch_reason(seen, decision, *, is_native):
    """Return the reason that the operator stores."""
    state = HpaState(NATIVE_HPAS if is_native else OWN_HPAS, seen.hpa)
    patch = status_patch(state, decision.status, decision, "")
    return patch["metadata"]["annotations"][REASON_ANNOTATION] if is_native else patch["status"]["reason"]
