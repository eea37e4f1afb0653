"""What a decision adds to conditions and events."""

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import NOW, T, cpu, hpa, observe, series, settled
from trimtab.decide.horizontal import EventToRecord, decide
from trimtab.decide.horizontal.memory import EMPTY
from trimtab.decide.horizontal.rules import Rules
from trimtab.decide.horizontal.status.conditions import Conditions, Report
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HpaCondition


@pytest.mark.parametrize(
    ("before", "strategy", "generation", "observed", "want"),
    [
        pytest.param("", "LabelSelector", 1, 0, [], id="labels are nothing new"),
        pytest.param("", "OwnerReference", 2, 1, ["SelectionStrategyActive"], id="new spec"),
        pytest.param("OwnerReference", "OwnerReference", 2, 2, [], id="the same spec again"),
        pytest.param("OwnerReference", "LabelSelector", 3, 2, ["StrategyChanged"], id="back to labels"),
        pytest.param(
            "LabelSelector",
            "OwnerReference",
            0,
            0,
            ["StrategyChanged", "SelectionStrategyActive"],
            id="a native HPA has no generation",
        ),
    ],
)
def test_strategy(before, strategy, generation, observed, want):
    seen = by(strategy, before, generation, observed)
    assert [event.reason for event in decide(seen, NOW).events if "Strategy" in event.reason] == want


def by(strategy, before, generation=1, observed=1, **fields):
    memory = msgspec.structs.replace(settled(3), strategy=before)
    seen = observe(hpa(cpu(50), selection_strategy=strategy), 3, memory=memory, **fields)
    meta = msgspec.structs.replace(seen.hpa.metadata, generation=generation)
    status = msgspec.structs.replace(seen.hpa.status, observed_generation=observed)
    return msgspec.structs.replace(seen, hpa=msgspec.structs.replace(seen.hpa, metadata=meta, status=status))


def test_a_gate_that_is_off_emits_nothing_in_any_sync_and_nothing_when_it_is_on_again():
    """E5: the event StrategyChanged came in every sync of every HPA by owner, and none on the way back."""
    seen = by("OwnerReference", "OwnerReference", gates=FeatureGates(hpa_selection_strategy=False))
    events: list[EventToRecord] = []
    for _ in range(1000):
        decision = decide(seen, NOW)
        events += decision.events
        status = msgspec.structs.replace(seen.hpa, status=decision.status)
        seen = msgspec.structs.replace(seen, hpa=status, memory=decision.memory)
    again = msgspec.structs.replace(seen, gates=FeatureGates(hpa_selection_strategy=True))
    assert [
        event.reason for event in (*events, *decide(again, NOW).events) if "Strategy" in event.reason
    ] == []


@pytest.mark.parametrize(
    ("remembered", "rules", "want"),
    [
        pytest.param(None, Rules.TRIMTAB, [], id="nothing remembered"),
        pytest.param(3, Rules.TRIMTAB, [], id="as we left them"),
        pytest.param(5, Rules.TRIMTAB, ["ReplicasChangedElsewhere"], id="changed elsewhere"),
        pytest.param(5, Rules.KUBERNETES_1_36, [], id="upstream has no such event"),
    ],
)
def test_replicas_changed_elsewhere(remembered, rules, want):
    memory = msgspec.structs.replace(settled(3), replicas=remembered)
    seen = observe(hpa(cpu(50)), 3, series(1), memory=memory, rules=rules)
    assert [event.reason for event in decide(seen, NOW).events if "Elsewhere" in event.reason] == want


def report():
    return Report(observe(hpa(cpu(50)), 3), EMPTY, T)


def test_an_event_that_repeats_is_emitted_once_per_interval():
    told = report()
    for _ in range(2):
        told.warn("Ambiguous", "two", is_limited=True)
    assert [event.reason for event in told.events] == ["Ambiguous"]
    assert told.memory.last_event_times == {"Ambiguous": T}


def test_events_after_the_status_are_counted():
    told = report()
    told.warn("First", "a")
    told.warn("Last", "b", is_late=True)
    assert ([event.reason for event in told.events], told.late_events) == (["First", "Last"], 1)


def test_a_condition_is_set_while_there_is_a_message_and_removed_afterwards():
    told = report()
    told.turn("A", "Because", "a message", "A")
    assert [(condition.type, condition.reason) for condition in told.done()] == [("A", "Because")]
    assert [event.message for event in told.events] == ["a message"]
    status = msgspec.structs.replace(observe().hpa.status, conditions=told.done())
    later = Report(observe(hpa(cpu(50), status=status), 3), EMPTY, T)
    later.turn("A", "", "")
    assert (later.done(), later.events) == ((), ())


def test_conditions_keep_their_place():
    conditions = Conditions(
        (HpaCondition(type="A", status="True"), HpaCondition(type="B", status="True")), NOW
    )
    conditions.set("A", "False", "Because", "")
    conditions.set("C", "True", "Because", "")
    conditions.remove("B")
    conditions.set("C", "False", "Because", "")
    assert [(item.type, item.status) for item in conditions.done()] == [("A", "False"), ("C", "False")]
