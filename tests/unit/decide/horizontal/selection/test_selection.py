"""Pod selection by owner reference (KEP-5625): edge cases and scenarios that are decisions."""

from itertools import pairwise

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    DEPLOYMENT,
    JOB,
    NO_WINDOW,
    REPLICA_SET,
    TARGET_UID,
    UPSTREAM,
    average,
    condition,
    cpu,
    explained,
    external,
    hpa,
    later,
    marked,
    memory,
    observe,
    pod,
    pods,
    run,
    samples,
    scale,
    select_by,
    series,
    told,
    value,
)
from trimtab.decide.horizontal import (
    Memory,
    Owner,
    OwnerNotFound,
    OwnerUnavailable,
    Target,
    found_owner,
    owners_to_find,
)
from trimtab.decide.horizontal.rules import Rules
from trimtab.decide.horizontal.selection.owners import DEEPEST_CHAIN
from trimtab.model.core.meta import OwnerReference
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus

TARGET = Target(api_version="apps/v1", kind="Deployment", name="web", uid=TARGET_UID)
OWNED = {REPLICA_SET.uid: Owner(uid=REPLICA_SET.uid, kind="ReplicaSet", name="web-7f9", owners=(DEPLOYMENT,))}
BY_OWNER = {"selection_strategy": "OwnerReference"}


def reference(kind, name, uid=None, api_version="apps/v1"):
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid or f"uid-of-{name}")


def kept(*owned, target=TARGET, found=OWNED):
    return [one.name for one in select_by("OwnerReference", owned, target, found).pods]


def why(one, found=OWNED, target=TARGET):
    return select_by("OwnerReference", (one,), target, found).left_out[0].reason


def f1(strategy="OwnerReference", metric=None, **fields):
    """F1: one pod of the Deployment at 10 % and a Job's pod at 1000 %, with the same labels; target 50 %."""
    autoscaler = hpa(metric or cpu(50), high=5, selection_strategy=strategy)
    both = (pod("web-1", owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,)))
    given = {"pods": both, "owners": OWNED | {JOB.uid: OwnerNotFound()}}
    return observe(autoscaler, 1, samples({"web-1": 10, "scrape-1": 1000}), **(given | fields))


class TestEdgeCases:
    """Section 1.3, by number."""

    def test_a_jobs_pod_with_the_same_labels_does_not_count(self):
        """1.3-1."""
        assert run(f1()).desired == 1

    def test_a_bare_pod_is_left_out_without_an_error(self):
        """1.3-2."""
        assert kept(pod("bare")) == []
        assert why(pod("bare")) == "it has no owner"

    def test_a_deployments_pod_needs_one_owner_to_be_read(self):
        """1.3-3."""
        one = pod(owners=(REPLICA_SET,))
        assert list(owners_to_find((one,), TARGET, {})) == [f"apps/ReplicaSet/web-7f9/{REPLICA_SET.uid}"]
        assert owners_to_find((one,), TARGET, OWNED) == {}
        assert kept(one) == ["web-1"]

    @pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet", "ReplicationController"])
    def test_a_direct_owner_needs_no_reading(self, kind):
        """1.3-4."""
        target = Target(api_version="apps/v1", kind=kind, name="db", uid="uid-of-db")
        one = pod(owners=(reference(kind, "db"),))
        assert owners_to_find((one,), target, {}) == {}
        assert kept(one, target=target, found={}) == ["web-1"]

    def test_a_pod_owned_by_the_deployment_itself_counts(self):
        """1.3-5."""
        assert kept(pod(owners=(DEPLOYMENT,)), found={}) == ["web-1"]

    def test_a_rollout_is_reached_and_never_read(self):
        """1.3-6."""
        rollout = reference("Rollout", "web", api_version="argoproj.io/v1alpha1")
        found = {REPLICA_SET.uid: Owner(uid=REPLICA_SET.uid, owners=(rollout,))}
        target = Target(api_version="argoproj.io/v1alpha1", kind="Rollout", name="web", uid=rollout.uid)
        one = pod(owners=(REPLICA_SET,))
        assert kept(one, target=target, found=found) == ["web-1"]
        assert owners_to_find((one,), target, found) == {}

    def test_pods_of_old_replica_sets_count(self):
        """1.3-7."""
        old = reference("ReplicaSet", "web-old")
        found = OWNED | {old.uid: Owner(uid=old.uid, owners=(DEPLOYMENT,))}
        assert kept(pod("new", owners=(REPLICA_SET,)), pod("old", owners=(old,)), found=found) == [
            "new",
            "old",
        ]

    def test_of_two_deployments_with_the_same_labels_only_the_targets_pods_count(self):
        """1.3-8."""
        other = reference("ReplicaSet", "other-1")
        found = OWNED | {other.uid: Owner(uid=other.uid, owners=(reference("Deployment", "other"),))}
        assert kept(pod("mine", owners=(REPLICA_SET,)), pod("theirs", owners=(other,)), found=found) == [
            "mine"
        ]

    @pytest.mark.parametrize("owners", [(JOB, REPLICA_SET), (REPLICA_SET, JOB)])
    def test_one_of_several_owners_is_enough_in_any_order(self, owners):
        """1.3-9, SEL-U5."""
        assert kept(pod(owners=owners), found=OWNED | {JOB.uid: OwnerNotFound()}) == ["web-1"]

    def test_a_broken_chain_is_not_owned_and_no_error(self):
        """1.3-10, SEL-U4."""
        selection = select_by(
            "OwnerReference", (pod(owners=(REPLICA_SET,)),), TARGET, {REPLICA_SET.uid: OwnerNotFound()}
        )
        assert (selection.pods, selection.fallback) == ((), "")
        assert selection.left_out[0].reason == "its owner ReplicaSet/web-7f9 is gone: it no longer exists"

    def test_an_unreadable_owner_makes_all_pods_count(self):
        """1.3-11, SEL-R1: the event says so, and the error label stays none."""
        decision = run(
            f1(owners={REPLICA_SET.uid: OwnerUnavailable(error="403 Forbidden"), JOB.uid: OwnerNotFound()})
        )
        assert decision.trace.counted_pods == 2
        assert decision.error_label == "none"
        assert told(decision)[0] == "PodSelectionFallback"
        assert "ReplicaSet/web-7f9: 403 Forbidden" in decision.events[0].message

    def test_the_fallback_is_told_by_event_condition_and_explanation(self):
        """All three say that labels count instead of owners, why, and which right is missing."""
        unread = OwnerUnavailable(error="403 Forbidden", permission="get replicasets.apps")
        seen = f1(owners={REPLICA_SET.uid: unread, JOB.uid: OwnerNotFound()})
        decision = run(seen)
        why = "owner ReplicaSet/web-7f9: 403 Forbidden; the right to get replicasets.apps is missing"
        found = decision.status.condition("PodSelectionFallback")
        assert found is not None
        assert (found.status, found.reason) == ("True", "OwnersUnreadable")
        story = explained(seen)
        assert story.selection_fallback.endswith(why)
        pods_line = next(line for line in str(story).splitlines() if line.startswith("pods: "))
        assert pods_line.startswith("pods: 2 counted by labels, because OwnerReference cannot be applied: ")
        for text in (decision.events[0].message, found.message, pods_line):
            assert why in text
        assert "counted by OwnerReference" not in str(story)

    @pytest.mark.parametrize("early", [{"scale": None}, {"scale": scale(0)}, {"scale": scale(500)}])
    def test_a_decision_that_looks_at_no_pod_counts_none(self, early):
        story = explained(f1(**early))
        assert (story.strategy, story.pods_counted) == ("OwnerReference", None)
        assert "pods: " not in str(story)

    def test_the_condition_goes_when_owners_can_be_read_and_when_nothing_is_averaged(self):
        unread = {REPLICA_SET.uid: OwnerUnavailable(error="timeout"), JOB.uid: OwnerNotFound()}
        told_so = run(f1(owners=unread)).status
        for seen in (f1(), f1("LabelSelector"), f1(scale=scale(0))):
            autoscaler = msgspec.structs.replace(seen.hpa, status=told_so)
            decision = run(msgspec.structs.replace(seen, hpa=autoscaler))
            assert decision.status.condition("PodSelectionFallback") is None

    def test_one_unreadable_owner_spoils_the_whole_filter(self):
        """1.3-12."""
        other = reference("ReplicaSet", "other-1")
        selection = select_by(
            "OwnerReference",
            (pod("a", owners=(REPLICA_SET,)), pod("b", owners=(other,)), pod("c")),
            TARGET,
            OWNED | {other.uid: OwnerUnavailable(error="timeout")},
        )
        assert [one.name for one in selection.pods] == ["a", "b", "c"]
        assert selection.left_out == ()

    def test_an_owner_whose_name_was_taken_by_another_object_does_not_count(self):
        """1.3-13."""
        recreated = Owner(uid="another", kind="ReplicaSet", name="web-7f9", owners=(DEPLOYMENT,))
        found = {REPLICA_SET.uid: found_owner(REPLICA_SET, recreated)}
        assert why(pod(owners=(REPLICA_SET,)), found).endswith("another object has taken its name")

    def test_pods_of_a_recreated_target_are_left_out_until_adopted(self):
        """1.3-14."""
        target = msgspec.structs.replace(TARGET, uid="uid-of-the-new-web")
        assert kept(pod(owners=(REPLICA_SET,)), target=target) == []

    def test_a_cycle_of_owners_ends(self):
        """1.3-15."""
        a, b = reference("Widget", "a"), reference("Widget", "b")
        found = {a.uid: Owner(uid=a.uid, owners=(b,)), b.uid: Owner(uid=b.uid, owners=(a,))}
        assert why(pod(owners=(a,)), found) == "it belongs to Widget/a"

    def test_owners_of_the_same_name_but_another_kind_do_not_collide(self):
        """1.3-15."""
        namesake = reference("ReplicaSet", "web", uid="uid-of-rs-web")
        found = {namesake.uid: Owner(uid=namesake.uid, kind="ReplicaSet", name="web", owners=(DEPLOYMENT,))}
        assert kept(pod(owners=(namesake,)), found=found) == ["web-1"]

    def test_a_chain_that_is_too_deep_is_not_owned(self):
        """1.3-16, F49."""
        links = [reference("Widget", f"w{number}") for number in range(1000)]
        found = {one.uid: Owner(uid=one.uid, owners=(above,)) for one, above in pairwise(links)}
        assert f"more than {DEEPEST_CHAIN} levels" in why(pod(owners=(links[0],)), found)
        assert owners_to_find((pod(owners=(links[0],)),), TARGET, found) == {}

    def test_a_node_is_never_read(self):
        """1.3-17."""
        node = reference("Node", "node-1", api_version="v1")
        assert owners_to_find((pod(owners=(node,)),), TARGET, {}) == {}
        assert why(pod(owners=(node,)), {}) == "it belongs to Node/node-1"

    def test_an_owner_of_an_unknown_kind_is_a_broken_chain(self):
        """1.3-18."""
        widget = reference("Widget", "w", api_version="example.com/v1")
        found = {widget.uid: OwnerNotFound(reason="its kind is not known")}
        assert why(pod(owners=(widget,)), found) == "its owner Widget/w is gone: its kind is not known"

    @pytest.mark.parametrize("api_version", ["apps/v1", "apps/v1beta2", ""])
    def test_another_version_of_the_api_still_matches(self, api_version):
        """1.3-19, where no uid is known on the target's side."""
        target = Target(api_version=api_version, kind="Deployment", name="web")
        assert kept(pod(owners=(DEPLOYMENT,)), target=target, found={}) == ["web-1"]

    def test_with_every_pod_left_out_the_metric_is_invalid(self):
        """1.3-20; the proposal's sentence blames the pods, so ours names the strategy."""
        seen = f1(pods=(pod("scrape-1", owners=(JOB,)),))
        decision = run(seen)
        message = condition(decision, "ScalingActive").message
        ours = "did not receive metrics for targeted pods: OwnerReference leaves out every pod that matches the selector"
        assert message.endswith(ours)
        assert (decision.desired, decision.reason.code) == (1, "AllPodsLeftOut")
        theirs = run(msgspec.structs.replace(seen, rules=Rules.KUBERNETES_1_37))
        proposed = "did not receive metrics for targeted pods (pods might be unready)"
        assert condition(theirs, "ScalingActive").message.endswith(proposed)

    def test_a_foreign_pod_without_a_request_breaks_nothing(self):
        """1.3-21."""
        both = (pod("web-1", owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,), cpu=None))
        assert run(f1(pods=both)).error == ""
        assert "missing request for cpu" in run(f1("LabelSelector", pods=both)).error

    def test_a_sample_of_a_pod_that_is_gone_is_dropped(self):
        """1.3-22."""
        only = (pod("web-1", owners=(REPLICA_SET,)),)
        assert run(f1(pods=only)).trace.proposals[0].value == 10

    @pytest.mark.parametrize(
        "state", [{"phase": "Pending"}, {"phase": "Failed"}, {"is_deleted": True}, {"ready": "False"}]
    )
    def test_foreign_pods_in_any_state_are_invisible(self, state):
        """1.3-23."""
        both = (pod("web-1", owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,), **state))
        counts = run(f1(pods=both)).trace.proposals[0].counts
        assert (counts.ready, counts.unready, counts.missing, counts.ignored) == (1, 0, 0, 0)

    def test_a_value_metric_multiplies_owned_ready_pods_only(self):
        """1.3-25."""
        chosen = (*pods(2, owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,)))
        autoscaler = hpa(external(value(100)), **BY_OWNER)
        seen = observe(autoscaler, 2, series(200), pods=chosen, owners=OWNED | {JOB.uid: OwnerNotFound()})
        assert run(seen).desired == 4

    def test_an_average_value_divides_by_the_replicas_of_the_scale(self):
        """1.2-9."""
        chosen = (*pods(2, owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,)))
        autoscaler = hpa(external(average(100)), **BY_OWNER)
        seen = observe(autoscaler, 2, series(400), pods=chosen, owners=OWNED | {JOB.uid: OwnerNotFound()})
        assert str(run(seen).status.current_metrics[0].external.current.average_value) == "200"

    def test_at_zero_foreign_pods_do_not_matter(self):
        """1.3-26."""
        autoscaler = hpa(external(average(100)), low=0, status=marked(), **BY_OWNER)
        seen = observe(
            autoscaler,
            0,
            series(200),
            pods=(pod("scrape-1", owners=(JOB,)),),
            owners={JOB.uid: OwnerNotFound()},
        )
        assert run(seen).desired == 2

    def test_a_thousand_pods_of_three_replica_sets_need_three_owners(self):
        """1.3-29, SEL-P1."""
        sets = [reference("ReplicaSet", f"web-{number}") for number in range(3)]
        many = tuple(pod(f"p{number}", owners=(sets[number % 3],)) for number in range(1000))
        assert len(owners_to_find(many, TARGET, {})) == 3


class TestEvents:
    """Section 1.4 and 1.6: what is told, and the gate."""

    def test_an_active_strategy_is_told_once_per_generation(self):
        """SEL-V1."""
        new = HorizontalPodAutoscalerStatus()
        fresh = msgspec.structs.replace(f1().hpa, status=new)
        seen = msgspec.structs.replace(f1(memory=Memory()), hpa=fresh)
        first = run(seen)
        assert [(one.reason, one.message) for one in first.events] == [
            ("SelectionStrategyActive", "Pod selection strategy 'OwnerReference' is active")
        ]
        again, now = later(seen, first, pods=seen.pods)
        assert told(run(again, now)) == []

    @pytest.mark.parametrize(("before", "after"), [(None, "OwnerReference"), ("OwnerReference", None)])
    def test_a_change_of_strategy_is_told_once(self, before, after):
        """SEL-V2, 1.3-27."""
        seen = f1(before)
        first = run(seen)
        changed = hpa(cpu(50), high=5, selection_strategy=after, metadata={"generation": 2})
        seen, now = later(seen, first, hpa=changed, pods=seen.pods, replicas=first.desired)
        second = run(seen, now)
        old, new = before or "LabelSelector", after or "LabelSelector"
        assert second.events[0].reason == "StrategyChanged"
        assert second.events[0].message == f"Pod selection strategy changed from '{old}' to '{new}'"
        seen, now = later(seen, second, hpa=changed, pods=seen.pods, replicas=second.desired)
        assert "StrategyChanged" not in told(run(seen, now))

    def test_a_restart_tells_no_change(self):
        """1.3-28: and the strategy is in force at once."""
        decision = run(f1(memory=Memory()))
        assert (told(decision), decision.desired) == ([], 1)

    def test_a_fallback_is_told_once_per_interval(self):
        seen = f1(owners={REPLICA_SET.uid: OwnerUnavailable(error="timeout"), JOB.uid: OwnerNotFound()})
        first = run(seen)
        again, now = later(seen, first, pods=seen.pods, replicas=1)
        assert "PodSelectionFallback" not in told(run(again, now))

    def test_the_gate_off_means_labels_and_silence(self):
        """SEL-G2, matrix 1.6."""
        decision = run(f1(gates=FeatureGates(), memory=Memory()))
        assert decision.trace.strategy == "LabelSelector"
        assert decision.trace.counted_pods == 2
        assert not {"SelectionStrategyActive", "StrategyChanged"} & set(told(decision))


class TestScenarios:
    """Section 1.7."""

    MIXED = (pod("owned", owners=(REPLICA_SET,)), pod("bare"), pod("scrape-1", owners=(JOB,)))

    def test_the_label_filter_keeps_everything(self):
        """SEL-U1."""
        selection = select_by("LabelSelector", self.MIXED, TARGET, {})
        assert (selection.pods, selection.left_out, selection.fallback) == (self.MIXED, (), "")

    def test_the_owner_filter_keeps_the_targets_pods_and_names_the_others(self):
        """SEL-U2."""
        selection = select_by("OwnerReference", self.MIXED, TARGET, OWNED | {JOB.uid: OwnerNotFound()})
        assert [one.name for one in selection.pods] == ["owned"]
        assert [one.pod for one in selection.left_out] == ["bare", "scrape-1"]

    def test_a_pod_without_owners_needs_no_reading(self):
        """SEL-U3."""
        assert owners_to_find((pod("bare"),), TARGET, {}) == {}

    def test_f1_by_owner(self):
        """SEL-C2."""
        decision = run(f1())
        assert (decision.trace.proposals[0].value, decision.desired) == (10, 1)

    def test_owned_and_foreign_pods_in_every_state(self):
        """SEL-C3."""
        chosen = (
            pod("ready", owners=(REPLICA_SET,)),
            pod("unready", owners=(REPLICA_SET,), phase="Pending"),
            pod("missing", owners=(REPLICA_SET,)),
            pod("foreign", owners=(JOB,)),
            pod("foreign-unready", owners=(JOB,), phase="Pending"),
            pod("foreign-unasking", owners=(JOB,), cpu=None),
        )
        reading = samples({"ready": 80, "foreign": 1000, "foreign-unready": 1000})
        autoscaler = hpa(cpu(50), **BY_OWNER)
        seen = observe(autoscaler, 3, reading, pods=chosen, owners=OWNED | {JOB.uid: OwnerNotFound()})
        proposal = run(seen).trace.proposals[0]
        assert (proposal.value, proposal.counts.ready, proposal.counts.unready, proposal.counts.missing) == (
            80,
            1,
            1,
            1,
        )

    @pytest.mark.parametrize("metric", [cpu(50), memory(50)])
    def test_f1_by_owner_never_scales_up(self, metric):
        """SEL-E1."""
        assert run(f1(metric=metric)).desired == 1

    def test_a_hot_bare_pod_does_not_enter_the_average(self):
        """SEL-E2."""
        both = (pod("web-1", owners=(REPLICA_SET,)), pod("bare"))
        seen = msgspec.structs.replace(f1(pods=both), samples=(samples({"web-1": 10, "bare": 1000}),))
        assert str(run(seen).status.current_metrics[0].resource.current.average_value) == "10m"

    @pytest.mark.parametrize("strategy", ["LabelSelector", None])
    def test_f1_by_label_scales_up_in_two_syncs(self, strategy):
        """SEL-E3, SEL-E4, SEL-E5: 505 %, 4 replicas on the first sync, 5 later."""
        seen = f1(strategy)
        first = run(seen)
        assert (first.trace.proposals[0].value, first.desired) == (505, 4)
        assert str(first.status.current_metrics[0].resource.current.average_value) == "505m"
        seen, now = later(seen, first, pods=seen.pods)
        assert run(seen, now).desired == 5

    def test_switching_the_gate_off_and_on_needs_no_edit(self):
        """SEL-G2."""
        on, off = f1(), f1(gates=FeatureGates())
        assert [run(one).trace.counted_pods for one in (on, off, on)] == [1, 2, 1]


def test_while_owners_cannot_be_read_replicas_never_fall():
    """Ruling 9-2, F49: foreign idle pods would shrink a busy workload."""
    chosen = (*pods(4, owners=(REPLICA_SET,)), pod("idle-1", owners=(JOB,)), pod("idle-2", owners=(JOB,)))
    reading = samples({one.name: 20 if one.name.startswith("web") else 0 for one in chosen})
    unread = {REPLICA_SET.uid: OwnerUnavailable(error="timeout"), JOB.uid: OwnerNotFound()}
    seen = observe(hpa(cpu(50), **BY_OWNER), 4, reading, pods=chosen, owners=unread, settings=NO_WINDOW)
    assert run(seen).desired == 4
    seed_only = msgspec.structs.replace(seen, rules=UPSTREAM)
    assert run(seed_only).desired == 2


@pytest.mark.parametrize(
    ("metrics", "desired", "reason"),
    [
        pytest.param([external(average(10))], 1, "ScalesDown", id="a share of each replica"),
        pytest.param([external(value(10))], 4, "OwnersUnread", id="a value multiplies the ready pods"),
        pytest.param([external(average(10)), cpu(50)], 4, "OwnersUnread", id="beside a metric of pods"),
    ],
)
def test_e3_owners_that_cannot_be_read_bind_only_metrics_that_count_pods(metrics, desired, reason):
    chosen = pods(4, owners=(REPLICA_SET,))
    readings = [
        samples({one.name: 1 for one in chosen}) if metric.resource else series(1) for metric in metrics
    ]
    unread = {REPLICA_SET.uid: OwnerUnavailable(error="timeout")}
    seen = observe(hpa(*metrics, **BY_OWNER), 4, *readings, pods=chosen, owners=unread, settings=NO_WINDOW)
    found = run(seen)
    assert (found.desired, found.reason.code) == (desired, reason)
    (event,) = [event for event in found.events if event.reason == "PodSelectionFallback"]
    assert ("replicas are not lowered" in event.message) is (desired == 4)


def test_tolerance_applies_to_the_ratio_over_the_kept_pods():
    """6-2."""
    both = (pod("web-1", owners=(REPLICA_SET,)), pod("scrape-1", owners=(JOB,)))
    seen = msgspec.structs.replace(f1(pods=both), samples=(samples({"web-1": 54, "scrape-1": 1000}),))
    assert run(seen).trace.proposals[0].outcome == "WithinTolerance"
