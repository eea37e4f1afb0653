"""Plug-ins of an HPA: their answers are part of the observation, and a failed answer lowers nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    DEPLOYMENT,
    NO_WINDOW,
    NOW,
    REPLICA_SET,
    average,
    cpu,
    external,
    hpa,
    observe,
    pod,
    samples,
    series,
    settled,
    unreadable,
    value,
)
from trimtab.dashboard.pages.decision import decision_view
from trimtab.decide.horizontal import Code, Owner, Record, decide, explain, owner_key
from trimtab.decide.horizontal.from_status import reason_from_status
from trimtab.decide.horizontal.observation.plugin_answers import NodeSnapshot
from trimtab.decide.horizontal.plugin_calls import answer_again, decide_with_plugins
from trimtab.decide.horizontal.records.compact import pack, unpack
from trimtab.decide.horizontal.records.record import dumps, loads, replay
from trimtab.model.hpa.annotations import REASON_ANNOTATION
from trimtab.model.hpa.replica_policies import ANNOTATION
from trimtab.model.hpa.types import ReplicaPolicySpec
from trimtab.plugins import CannotFilterError, PodFilterInput, ReplicaPolicyInput, ReplicaProposal
from trimtab.plugins.guard import Guards
from trimtab.plugins.kinds import Declaration, PluginKind
from trimtab.plugins.registry import NO_PLUGINS, Plugin, Plugins

FILTER, POLICY = "example.com/Filter", "example.com/Policy"
NONE = Guards(NO_PLUGINS)


def add_answers(seen: Any, guards: Guards, now: Any, last: Any = None) -> Any:
    """Return the observation with the answers of its plug-ins. Deciding about it again gives the same decision."""
    answered, decision = decide_with_plugins(seen, guards, now, last)
    assert decision == decide(answered, now)
    return answered


def guards(
    function: Callable[[Any], Any],
    kind: PluginKind = PluginKind.POD_FILTER,
    version: str = "1.2",
    **needs: Any,
) -> Guards:
    """Return the guard of one plug-in."""
    name = FILTER if kind is PluginKind.POD_FILTER else POLICY
    return Guards(Plugins([Plugin(name, kind, function, version, "", Declaration(**needs))]))


def policy(function: Callable[[ReplicaPolicyInput], Any], version: str = "1.2") -> Guards:
    return guards(function, PluginKind.REPLICA_POLICY, version)


def two_pods(**fields: Any) -> Any:
    """Observe a busy pod and an idle one: both count for 1 replica, the busy one alone for 2."""
    both = (pod("busy", node="n1"), pod("idle", node="n2"))
    seen = samples({"busy": 100, "idle": 0})
    return observe(hpa(cpu(50), selection_strategy=FILTER), 2, seen, pods=both, settings=NO_WINDOW, **fields)


def leave_out_idle(seen: PodFilterInput) -> dict[str, str]:
    return {one.name: "it is idle" for one in seen.pods if one.name == "idle"}


def leave_out_busy(seen: PodFilterInput) -> dict[str, str]:
    return {one.name: "it is busy" for one in seen.pods if one.name == "busy"}


def test_a_filter_leaves_pods_out_with_its_reason():
    seen = add_answers(two_pods(), guards(leave_out_busy), NOW)
    decision = decide(seen, NOW)
    assert (decision.desired, decision.trace.counted_pods) == (1, 1)
    text = str(explain(Record(observation=seen, decision=decision)))
    assert "pods: 1 counted by example.com/Filter, 1 left out (busy: it is busy)" in text


class Bad:
    """Pod filters that answer what they may not."""

    @staticmethod
    def raises(_seen: PodFilterInput) -> Any:
        raise KeyError("zone")

    @staticmethod
    def wrong_pods(_seen: PodFilterInput) -> Any:
        return {"other": "it is not there"}

    @staticmethod
    def a_list(_seen: PodFilterInput) -> Any:
        return ["busy"]

    @staticmethod
    def no_reason(_seen: PodFilterInput) -> Any:
        return {"busy": ""}

    @staticmethod
    def declines(_seen: PodFilterInput) -> Any:
        raise CannotFilterError("no table yet")

    @staticmethod
    def changes_labels(seen: PodFilterInput) -> Any:
        seen.pods[0].labels["app"] = "other"  # type: ignore[index] # that is the test
        return {}

    @staticmethod
    def changes_a_pod(seen: PodFilterInput) -> Any:
        seen.pods[0].name = "other"  # type: ignore[misc] # that is the test
        return {}


@pytest.mark.parametrize(
    ("function", "reason", "words"),
    [
        (Bad.raises, "PluginRaised", "raised KeyError: 'zone'"),
        (Bad.wrong_pods, "PluginWrongAnswer", "'other', which is none of the pods it was given"),
        (Bad.a_list, "PluginWrongAnswer", "list, not a mapping of pod names to reasons"),
        (Bad.no_reason, "PluginWrongAnswer", "no reason why pod busy does not count"),
        (Bad.declines, "PluginDeclined", "cannot answer: no table yet"),
        (Bad.changes_labels, "PluginRaised", "does not support item assignment"),
        (Bad.changes_a_pod, "PluginRaised", "immutable type: 'FilterPod'"),
        (None, "PluginNotLoaded", "is not loaded: install its package and name it in --plugins"),
    ],
)
def test_while_a_filter_fails_all_pods_count_and_nothing_is_lowered(function, reason, words):
    calm = two_pods()
    idle = msgspec.structs.replace(calm, samples=(samples({"busy": 10, "idle": 0}),))
    seen = add_answers(idle, NONE if function is None else guards(function), NOW)
    decision = decide(seen, NOW)
    assert (decision.desired, decision.trace.counted_pods) == (2, 2)
    condition = decision.status.condition("PodSelectionFallback")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", reason)
    assert words in condition.message
    assert [event.reason for event in decision.events] == ["PodSelectionFallback"], (
        "and not that it is active"
    )
    explanation = explain(Record(observation=seen, decision=decision))
    assert explanation.reason == "PluginFailed"
    assert words in explanation.summary
    recovered = msgspec.structs.replace(
        calm, hpa=msgspec.structs.replace(calm.hpa, status=decision.status), memory=decision.memory
    )
    later = NOW + timedelta(seconds=15)
    after = decide(add_answers(recovered, guards(leave_out_busy), later), later)
    assert after.status.condition("PodSelectionFallback") is None
    assert "SelectionStrategyActive" in [event.reason for event in after.events]


def test_a_filter_that_fails_is_not_reported_active():
    """Two events of one sync said that the strategy is active, and that all pods count instead."""
    calm = two_pods()
    changed = msgspec.structs.replace(calm.hpa.metadata, generation=7)
    new = msgspec.structs.replace(calm, hpa=msgspec.structs.replace(calm.hpa, metadata=changed))
    events = {
        function: [event.reason for event in decide(add_answers(new, guards(function), NOW), NOW).events]
        for function in (Bad.raises, leave_out_idle)
    }
    assert "SelectionStrategyActive" not in events[Bad.raises]
    assert "SelectionStrategyActive" in events[leave_out_idle]


def leave_out_all(seen: PodFilterInput) -> dict[str, str]:
    return {one.name: "it is Monday" for one in seen.pods}


@pytest.mark.parametrize(
    ("metric", "reading"),
    [
        pytest.param(cpu(50), samples({"busy": 1, "idle": 1}), id="usage of pods"),
        pytest.param(external(value(100)), series(1), id="a value that ready pods multiply"),
    ],
)
def test_a_filter_that_leaves_out_every_pod_lowers_nothing_and_is_named(metric, reading):
    """The text blamed pods that might be unready, and a metric that could not be read."""
    autoscaler = hpa(metric, selection_strategy=FILTER)
    both = (pod("busy"), pod("idle"))
    seen = observe(autoscaler, 2, reading, pods=both, settings=NO_WINDOW)
    seen = add_answers(seen, guards(leave_out_all), NOW)
    decision = decide(seen, NOW)
    explanation = explain(Record(observation=seen, decision=decision))
    assert (decision.desired, explanation.reason) == (2, "AllPodsLeftOut")
    assert "example.com/Filter leaves out busy: it is Monday" in explanation.summary
    assert "must count at least one pod" in explanation.next_step
    assert "unready" not in f"{explanation} {decision.status} {decision.events}"


@pytest.mark.parametrize(
    ("kind", "answer", "advice"),
    [
        pytest.param(
            PluginKind.POD_FILTER, Bad.raises, "correct the plug-in; the operator's log", id="raises"
        ),
        pytest.param(PluginKind.POD_FILTER, Bad.a_list, "`trimtab plugin check` shows", id="wrong answer"),
        pytest.param(PluginKind.POD_FILTER, Bad.declines, "give the plug-in what it misses", id="declines"),
        pytest.param(PluginKind.ESTIMATOR, Bad.raises, "name a plug-in of the right kind", id="another kind"),
    ],
)
def test_the_advice_fits_the_failure_of_the_plugin(kind, answer, advice):
    """Every failure ended in the advice to install the plug-in and to name it in --plugins."""
    calm = msgspec.structs.replace(two_pods(), samples=(samples({"busy": 10, "idle": 0}),))
    seen = add_answers(calm, Guards(Plugins([Plugin(FILTER, kind, answer, "1.2")])), NOW)
    explanation = explain(Record(observation=seen, decision=decide(seen, NOW)))
    assert advice in explanation.next_step
    assert "--plugins" not in str(explanation)


def test_a_plugin_of_another_kind_says_where_it_belongs():
    """The advice was to install the package of a plug-in that is loaded."""
    loaded = Guards(Plugins([Plugin(POLICY, PluginKind.ESTIMATOR, asks(1), "1.2")]))
    (answer,) = add_answers(planned(series(1)), loaded, NOW).policy_answers
    assert (answer.reason, answer.failure) == (
        "PluginWrongKind",
        f"{POLICY} is an estimator and no replica policy; an estimator is named in spec.recommenders of a VPA",
    )


def test_a_misspelt_name_gets_the_name_that_is_loaded():
    loaded = Guards(Plugins([Plugin("example.com/policies", PluginKind.REPLICA_POLICY, asks(1), "1.2")]))
    (answer,) = add_answers(planned(series(1)), loaded, NOW).policy_answers
    assert "is not loaded: did you mean example.com/policies, which is?" in answer.failure


def test_a_filter_that_needs_nodes_sees_them_or_is_not_called():
    def drained(seen: PodFilterInput) -> dict[str, str]:
        return {one.name: "drained" for one in seen.pods if one.node and one.node.is_unschedulable}

    loaded = guards(drained, needs_nodes=True)
    nodes = {"n1": NodeSnapshot(is_unschedulable=True), "n2": NodeSnapshot()}
    answered = add_answers(two_pods(nodes=nodes), loaded, NOW).filter_answer
    assert answered is not None
    assert answered.left_out == {"busy": "drained"}
    unread = add_answers(two_pods(), loaded, NOW).filter_answer
    assert unread is not None
    assert (unread.reason, unread.left_out) == ("NodesUnreadable", {})


@pytest.mark.parametrize(("needs", "want"), [(False, ["web-7f9"]), (True, ["web-7f9", "web"])])
def test_a_filter_that_needs_owners_sees_the_whole_chain(needs, want):
    found: list[str] = []

    def watch(seen: PodFilterInput) -> dict[str, str]:
        found.extend(owner.name for owner in seen.pods[0].owners)
        return {}

    lookups = {owner_key(REPLICA_SET): Owner(uid=REPLICA_SET.uid, owners=(DEPLOYMENT,))}
    seen = two_pods(owners=lookups)
    seen = msgspec.structs.replace(seen, pods=(pod("busy", owners=(REPLICA_SET,)), pod("idle")))
    add_answers(seen, guards(watch, needs_owners=needs), NOW)
    assert found == want


def test_no_filter_is_called_while_the_gate_is_off():
    seen = two_pods()
    off = msgspec.structs.replace(seen, gates=type(seen.gates)())
    assert add_answers(off, NONE, NOW).filter_answer is None


def planned(
    *readings: Any, memory: Any = None, replicas: int = 4, metrics: Any = (), **parameters: Any
) -> Any:
    """Observe an HPA with a queue of 100 per pod and a replica policy."""
    named = (ReplicaPolicySpec(name=POLICY, parameters=parameters),)
    autoscaler = hpa(*(metrics or (external(average(100)),)), high=20, replica_policies=named)
    seen = observe(autoscaler, replicas, *readings, settings=NO_WINDOW)
    kept = {} if memory is None else {POLICY: memory}
    return msgspec.structs.replace(seen, memory=msgspec.structs.replace(seen.memory, policies=kept))


def asks(replicas: Any, **more: Any) -> Callable[[ReplicaPolicyInput], ReplicaProposal]:
    return lambda _seen: ReplicaProposal(replicas=replicas, reason="by the plan", **more)


@pytest.mark.parametrize(
    ("load", "proposal", "want"),
    [
        pytest.param(400, 6, 6, id="the policy asks for more than the metric"),
        pytest.param(700, 5, 7, id="the metric asks for more than the policy"),
        pytest.param(400, None, 4, id="a policy may ask for nothing"),
        pytest.param(100, 3, 3, id="both ask for less, the larger counts"),
        pytest.param(100, 99, 8, id="the rate of scaling limits a policy"),
        pytest.param(100, 8, 8, id="the metric asks for less, the policy for more"),
        pytest.param(100, 0, 1, id="minReplicas bounds a policy"),
    ],
)
def test_the_largest_proposal_counts(load, proposal, want):
    decision = decide(add_answers(planned(series(load)), policy(asks(proposal)), NOW), NOW)
    assert decision.desired == want


def test_the_reason_of_a_policy_is_in_status_event_and_explanation():
    seen = add_answers(planned(series(400)), policy(asks(9)), NOW)
    decision = decide(seen, NOW)
    assert decision.because == "replica policy example.com/Policy asks for 9: by the plan"
    active = decision.status.condition("ScalingActive")
    assert active is not None
    assert active.message.endswith("from replica policy example.com/Policy: by the plan")
    text = str(explain(Record(observation=seen, decision=decision)))
    assert "scales from 4 to 8: replica policy example.com/Policy asks for 9: by the plan" in text
    assert "policy: example.com/Policy 1.2 asks for 9 (wins): by the plan" in text


def test_a_policy_sees_the_metrics_its_parameters_and_its_memory():
    found: list[ReplicaPolicyInput] = []

    def look(seen: ReplicaPolicyInput) -> ReplicaProposal:
        found.append(seen)
        return ReplicaProposal(replicas=None, reason="nothing", memory={"count": 1})

    seen = planned(series(420), memory={"count": [0]}, steps=[{"above": 1}])
    decision = decide(add_answers(seen, policy(look), NOW), NOW)
    (shown,) = found
    assert (shown.replicas, shown.min_replicas, shown.max_replicas) == (4, 1, 20)
    metric = shown.metric("queue")
    assert metric is not None
    assert (metric.value, metric.target, metric.total, metric.replicas) == (105, 100, 420, 4)
    assert shown.now == NOW.timestamp()
    assert shown.parameters["steps"][0]["above"] == 1
    assert shown.memory["count"] == (0,)
    assert decision.memory.policies == {POLICY: {"count": 1}}
    assert decision.status_changed, "a fail-over must not forget the memory"


@pytest.mark.parametrize(
    ("function", "reason", "words"),
    [
        (lambda _seen: 1 / 0, "PluginRaised", "raised ZeroDivisionError"),
        (lambda _seen: 3, "PluginWrongAnswer", "int, not a ReplicaProposal"),
        (asks(-1), "PluginWrongAnswer", "-1 replicas"),
        (asks(2**31), "PluginWrongAnswer", "2147483648 replicas"),
        (asks(float("nan")), "PluginWrongAnswer", "nan replicas"),
        (asks(float("inf")), "PluginWrongAnswer", "inf replicas"),
        (asks(2.5), "PluginWrongAnswer", "replicas of type float"),
        (asks(True), "PluginWrongAnswer", "replicas of type bool"),
        (lambda _seen: ReplicaProposal(replicas=1, reason=" "), "PluginWrongAnswer", "without a reason"),
        (asks(1, memory="x" * 2000), "PluginWrongAnswer", "a memory of 2002 bytes; 1024 are possible"),
        (asks(1, memory=object()), "PluginWrongAnswer", "a memory that is no JSON"),
        (lambda seen: seen.parameters.update(a=1), "PluginRaised", "no attribute 'update'"),
        (lambda seen: seen.memory.append(1), "PluginRaised", "no attribute 'append'"),
        (None, "PluginNotLoaded", "replica policy example.com/Policy is not loaded"),
    ],
)
def test_while_a_policy_fails_nothing_is_lowered_and_metrics_still_raise(function, reason, words):
    loaded = NONE if function is None else policy(function)
    down = decide(add_answers(planned(series(100), memory=[1]), loaded, NOW), NOW)
    assert down.desired == 4
    condition = down.status.condition("PluginFailed")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", reason)
    assert words in condition.message
    assert down.memory.policies == {POLICY: [1]}, "a failed call forgets nothing"
    up = decide(add_answers(planned(series(700), memory=[1]), loaded, NOW), NOW)
    assert up.desired == 7
    status = msgspec.structs.replace(down.status, observed_generation=1)
    healthy = planned(series(400))
    healthy = msgspec.structs.replace(healthy, hpa=msgspec.structs.replace(healthy.hpa, status=status))
    after = decide(add_answers(healthy, policy(asks(4)), NOW), NOW)
    assert after.status.condition("PluginFailed") is None


def test_a_policy_raises_and_never_lowers_while_a_metric_cannot_be_read():
    up = decide(add_answers(planned(unreadable()), policy(asks(6)), NOW), NOW)
    assert up.desired == 6
    down = decide(add_answers(planned(unreadable()), policy(asks(2)), NOW), NOW)
    assert (down.desired, down.reason.code) == (4, Code.METRICS_FAILED)


@pytest.mark.parametrize("seen", [planned(series(400)), two_pods()], ids=["policy", "filter"])
def test_a_record_is_replayed_to_the_byte_without_the_plugin(seen):
    loaded = Guards(
        Plugins(
            [
                Plugin(FILTER, PluginKind.POD_FILTER, leave_out_idle, "1.2"),
                Plugin(POLICY, PluginKind.REPLICA_POLICY, asks(9, memory={"n": 1}), "1.2"),
            ]
        )
    )
    answered = add_answers(seen, loaded, NOW)
    record = Record(observation=answered, decision=decide(answered, NOW))
    assert dumps(replay(loads(dumps(record)))) == dumps(replay(record))
    assert unpack(pack(record)).observation == answered
    again, notes = answer_again(answered, loaded, NOW)
    assert (again, notes) == (answered, ())
    same, notes = answer_again(answered, NONE, NOW)
    assert same == answered
    assert "the recorded answer counts, because version 1.2 is not loaded" in notes[0]


def test_a_replay_calls_a_plugin_of_the_same_version_only():
    answered = add_answers(planned(series(400)), policy(asks(9)), NOW)
    changed, notes = answer_again(answered, policy(asks(8)), NOW)
    assert (changed.policy_answers[0].replicas, notes) == (8, ())
    kept, notes = answer_again(answered, policy(asks(8), version="2.0"), NOW)
    assert kept == answered
    assert "it is of version 1.2, and version 2.0 is loaded" in notes[0]
    failed = add_answers(planned(series(400)), policy(asks(-1)), NOW)
    kept, notes = answer_again(failed, policy(asks(8)), NOW)
    assert kept == failed
    assert "the plug-in failed then" in notes[0]


def test_a_filter_is_called_again_only_if_what_it_sees_changed():
    calls: list[PodFilterInput] = []

    def count(seen: PodFilterInput) -> dict[str, str]:
        calls.append(seen)
        return leave_out_idle(seen)

    loaded, first = guards(count), two_pods()
    last = add_answers(first, loaded, NOW)
    later = msgspec.structs.replace(first, samples=(samples({"busy": 90, "idle": 0}),))
    assert add_answers(later, loaded, NOW, last).filter_answer == last.filter_answer
    assert len(calls) == 1
    changed = [
        msgspec.structs.replace(first, pods=(*first.pods, pod("new"))),
        msgspec.structs.replace(first, nodes={"n1": NodeSnapshot(is_unschedulable=True)}),
        msgspec.structs.replace(first, owners={"a": Owner(uid="a")}),
        msgspec.structs.replace(first, scale=None),
        msgspec.structs.replace(first, hpa=two_pods().hpa),
    ]
    for number, seen in enumerate(changed, start=2):
        add_answers(seen, loaded, NOW, last)
        assert len(calls) == number


def test_the_dashboard_shows_the_reason_of_a_policy():
    seen = add_answers(planned(series(400)), policy(asks(9)), NOW)
    view = decision_view(Record(observation=seen, decision=decide(seen, NOW)))
    assert view.policies == ("example.com/Policy 1.2 asks for 9 (wins): by the plan",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{", "is no JSON"),
        ('{"name": "example.com/Policy"}', "replicaPolicies"),
        ("[{}]", "replicaPolicies[0].name"),
        ('[{"name": "example.com/Policy"}, {"name": "example.com/Policy"}]', "Duplicate value"),
        ('[{"name": "example.com/Policy", "parametres": {}}]', "parametres"),
        ('[{"name": "example.com/Policy", "parameters": [1]}]', "parameters"),
    ],
)
def test_while_the_annotation_cannot_be_read_nothing_is_lowered(text, words):
    annotated = hpa(cpu(50), metadata={"annotations": {ANNOTATION: text}})
    native = msgspec.structs.replace(annotated, api_version="autoscaling/v2")
    memory = msgspec.structs.replace(settled(2), policies={POLICY: {"count": 2}})
    pods = (pod("a"), pod("b"))
    idle = samples({"a": 1, "b": 1})
    seen = add_answers(observe(native, 2, idle, pods=pods, settings=NO_WINDOW, memory=memory), NONE, NOW)
    decision = decide(seen, NOW)
    assert decision.desired == 2
    assert decision.memory.policies == {POLICY: {"count": 2}}
    condition = decision.status.condition("PluginFailed")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "InvalidReplicaPolicies")
    assert f"replicas are not lowered: annotation {ANNOTATION} cannot be read: " in condition.message
    assert words in condition.message
    assert [event.reason for event in decision.events] == ["PluginFailed"]
    explanation = explain(Record(observation=seen, decision=decision))
    assert explanation.reason == "PluginFailed"
    assert f"policy: annotation {ANNOTATION} cannot be read" in str(explanation)
    assert "next: correct the annotation" in str(explanation)
    assert "ignored:" not in str(explanation)
    told = native.metadata.annotations | {REASON_ANNOTATION: str(decision.reason.code)}
    stored = msgspec.structs.replace(native.metadata, annotations=told)
    after = msgspec.structs.replace(native, metadata=stored, status=decision.status)
    assert reason_from_status(after).word == "PluginFailed"
    corrected = msgspec.structs.replace(hpa(cpu(50)), status=decision.status)
    gone = decide(msgspec.structs.replace(seen, hpa=corrected), NOW)
    assert gone.desired == 1
    assert gone.status.condition("PluginFailed") is None
