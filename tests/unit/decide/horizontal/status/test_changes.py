"""What each step of a decision adds to conditions and events, as values."""

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import NOW, cpu, hpa, observe
from trimtab.decide.horizontal.memory import Memory
from trimtab.decide.horizontal.metrics.combine import LossFallback, MetricsResult
from trimtab.decide.horizontal.metrics.kinds import Failure
from trimtab.decide.horizontal.rules import Rules
from trimtab.decide.horizontal.selection.selector_check import AMBIGUOUS, MISSING, SelectorProblem
from trimtab.decide.horizontal.status.builder import DecisionBuilder
from trimtab.decide.horizontal.status.conditions import (
    METRIC_LOST,
    Conditions,
    EmitEvent,
    RemoveCondition,
    SetCondition,
)
from trimtab.decide.horizontal.status.metrics_status import metrics_changes
from trimtab.decide.horizontal.status.scale_status import scale_read_changes, strategy_changes
from trimtab.decide.horizontal.status.selection_status import (
    extra_pods_changes,
    fallback_changes,
    selector_changes,
)
from trimtab.model.hpa.types import HpaCondition

FAILURE = Failure(type="Resource", reason="FailedGetResourceMetric", message="no answer", error="no answer")
FALLBACK = LossFallback(type="Resource", label="cpu", policy="Ignore", failure=FAILURE)


def short(changes):
    """Return each change as its kind and its reason, or its type where it has no reason."""
    return [f"{type(change).__name__} {getattr(change, 'reason', change.type)}" for change in changes]


@pytest.mark.parametrize(
    ("before", "strategy", "generation", "observed", "want"),
    [
        pytest.param("", "LabelSelector", 1, 0, [], id="labels are nothing new"),
        pytest.param("", "OwnerReference", 2, 1, ["EmitEvent SelectionStrategyActive"], id="new spec"),
        pytest.param("OwnerReference", "OwnerReference", 2, 2, [], id="the same spec again"),
        pytest.param(
            "OwnerReference", "LabelSelector", 3, 2, ["EmitEvent StrategyChanged"], id="back to labels"
        ),
        pytest.param(
            "LabelSelector",
            "OwnerReference",
            0,
            0,
            ["EmitEvent StrategyChanged", "EmitEvent SelectionStrategyActive"],
            id="a native HPA has no generation",
        ),
    ],
)
def test_strategy(before, strategy, generation, observed, want):
    observation = observe(hpa(cpu(50)), 3)
    found = msgspec.structs.replace(
        observation.hpa,
        metadata=msgspec.structs.replace(observation.hpa.metadata, generation=generation),
        status=msgspec.structs.replace(observation.hpa.status, observed_generation=observed),
    )
    observation = msgspec.structs.replace(observation, hpa=found)
    assert short(strategy_changes(observation, before, strategy)) == want


@pytest.mark.parametrize(
    ("remembered", "compat", "want"),
    [
        pytest.param(None, Rules.TRIMTAB, 1, id="nothing remembered"),
        pytest.param(3, Rules.TRIMTAB, 1, id="as we left them"),
        pytest.param(5, Rules.TRIMTAB, 2, id="changed elsewhere"),
        pytest.param(5, Rules.KUBERNETES_1_36, 1, id="upstream has no such event"),
    ],
)
def test_replicas_changed_elsewhere(remembered, compat, want):
    observation = msgspec.structs.replace(observe(hpa(cpu(50)), 3), rules=compat)
    changes = scale_read_changes(observation, Memory(replicas=remembered), 3)
    assert short(changes)[0] == "SetCondition SucceededGetScale"
    assert len(changes) == want
    assert all(isinstance(change, EmitEvent) and change.is_limited for change in changes[1:])


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        (extra_pods_changes(0, 3, {}), []),
        (
            extra_pods_changes(0, 3, {"SelectorMatchesExtraPods": "True"}),
            ["RemoveCondition SelectorMatchesExtraPods"],
        ),
        (extra_pods_changes(2, 3, {}), ["SetCondition SelectorOverlap"]),
        (fallback_changes(observe(), "OwnerReference", "", {}), []),
        (
            fallback_changes(observe(), "OwnerReference", "owner x", {}),
            ["SetCondition OwnersUnreadable", "EmitEvent PodSelectionFallback"],
        ),
        (selector_changes(MISSING), ["EmitEvent SelectorRequired", "SetCondition InvalidSelector"]),
    ],
)
def test_selection(changes, want):
    assert short(changes) == want


def test_only_the_event_of_an_ambiguous_selector_is_limited():
    ambiguous = SelectorProblem(AMBIGUOUS, AMBIGUOUS, "two", "two")
    events = [selector_changes(problem)[0] for problem in (MISSING, ambiguous)]
    assert [isinstance(event, EmitEvent) and event.is_limited for event in events] == [False, True]


@pytest.mark.parametrize(
    ("result", "before", "want"),
    [
        pytest.param(
            MetricsResult(replicas=3, name="cpu"), {}, ["SetCondition ValidMetricFound"], id="all were read"
        ),
        pytest.param(
            MetricsResult(failures=(FAILURE,), blocked_by=FAILURE),
            {},
            ["EmitEvent FailedGetResourceMetric", "SetCondition FailedGetResourceMetric"],
            id="one failed",
        ),
        pytest.param(
            MetricsResult(replicas=3, failures=(FAILURE,), fallbacks=(FALLBACK,)),
            {},
            [
                "EmitEvent FailedGetResourceMetric",
                "SetCondition MetricIgnored",
                "EmitEvent MetricLost",
                "SetCondition ValidMetricFound",
            ],
            id="one is lost",
        ),
        pytest.param(
            MetricsResult(replicas=3),
            {METRIC_LOST: "False"},
            [f"RemoveCondition {METRIC_LOST}", "SetCondition ValidMetricFound"],
            id="no metric has a loss policy any more",
        ),
    ],
)
def test_metrics(result, before, want):
    assert short(metrics_changes(hpa(cpu(50)), result, before)) == want


class TestBuilder:
    """The builder applies changes in their order, and limits events that repeat."""

    def test_an_event_that_repeats_is_emitted_once_per_interval(self):
        builder = DecisionBuilder(observe(hpa(cpu(50)), 3), NOW)
        event = EmitEvent("Warning", "Ambiguous", "two", is_limited=True)
        builder.apply((event, event))
        assert [event.reason for event in builder.settled(3).events] == ["Ambiguous"]

    def test_events_after_the_status_are_counted(self):
        builder = DecisionBuilder(observe(hpa(cpu(50)), 3), NOW)
        builder.apply((EmitEvent("Warning", "First", "a"), EmitEvent("Warning", "Last", "b", is_last=True)))
        decision = builder.failed("no")
        assert ([event.reason for event in decision.events], decision.events_after_status) == (
            ["First", "Last"],
            1,
        )

    def test_conditions_keep_their_place(self):
        conditions = Conditions(
            (HpaCondition(type="A", status="True"), HpaCondition(type="B", status="True")), NOW
        )
        conditions.set("A", "False", "Because", "")
        conditions.set("C", "True", "Because", "")
        conditions.remove("B")
        conditions.set("C", "False", "Because", "")
        assert [(item.type, item.status) for item in conditions.done()] == [("A", "False"), ("C", "False")]

    def test_changes_are_applied(self):
        builder = DecisionBuilder(observe(hpa(cpu(50)), 3), NOW)
        builder.apply((SetCondition("A", "True", "Why", ""), SetCondition("B", "True", "Why", "")))
        builder.apply((RemoveCondition("A"),))
        assert [condition.type for condition in builder.settled(3).status.conditions][-1] == "B"
