"""When two autoscalers count the same pods, neither scales: what counts is what each really counts."""

import msgspec

from tests.unit.decide.horizontal.builders import (
    DEPLOYMENT,
    REPLICA_SET,
    TARGET_UID,
    UPSTREAM,
    condition,
    cpu,
    hpa,
    later,
    observe,
    pod,
    run,
    samples,
    told,
)
from trimtab.decide.horizontal import ConflictingHpa, Owner, OwnerUnavailable, Target
from trimtab.model.core.meta import OwnerReference

TARGET = Target(api_version="apps/v1", kind="Deployment", name="web", uid=TARGET_UID)
OWNED = {REPLICA_SET.uid: Owner(uid=REPLICA_SET.uid, kind="ReplicaSet", name="web-7f9", owners=(DEPLOYMENT,))}
BY_OWNER = {"selection_strategy": "OwnerReference"}


def reference(kind, name):
    return OwnerReference(api_version="apps/v1", kind=kind, name=name, uid=f"uid-of-{name}")


class TestAmbiguity:
    """1.3-24: two autoscalers are ambiguous when the pods that both count overlap."""

    RIVAL = ConflictingHpa(
        key="shop/other",
        selector="app=web",
        strategy="OwnerReference",
        target=Target(api_version="apps/v1", kind="Deployment", name="other", uid="uid-of-other"),
    )
    THEIRS = reference("ReplicaSet", "other-1")
    FOUND = OWNED | {THEIRS.uid: Owner(uid=THEIRS.uid, owners=(reference("Deployment", "other"),))}

    def decided(self, rival, strategy="OwnerReference", **fields):
        chosen = (pod("web-1", owners=(REPLICA_SET,)), pod("other-1", owners=(self.THEIRS,)))
        given = {"pods": chosen, "owners": self.FOUND, "conflicting_hpas": (rival,)}
        autoscaler = hpa(cpu(50), selection_strategy=strategy)
        return run(observe(autoscaler, 1, samples({"web-1": 50, "other-1": 50}), **(given | fields)))

    def test_both_by_owner_are_both_active(self):
        """SEL-E6."""
        assert condition(self.decided(self.RIVAL), "ScalingActive").status == "True"

    def test_a_rival_by_labels_makes_both_ambiguous(self):
        by_label = msgspec.structs.replace(self.RIVAL, strategy="LabelSelector")
        assert condition(self.decided(by_label), "ScalingActive").reason == "AmbiguousSelector"
        assert (
            condition(self.decided(self.RIVAL, "LabelSelector"), "ScalingActive").reason
            == "AmbiguousSelector"
        )

    def test_two_on_one_target_are_always_ambiguous(self):
        same = msgspec.structs.replace(self.RIVAL, target=TARGET)
        decision = self.decided(same)
        assert condition(decision, "ScalingActive").message == (
            "pods by selector app=web are controlled by multiple HPAs: [shop/other shop/web]"
        )

    def test_labels_alone_decide_in_the_kubernetes_setting(self):
        decision = self.decided(self.RIVAL, rules=UPSTREAM)
        assert condition(decision, "ScalingActive").reason == "AmbiguousSelector"

    def test_without_pods_nothing_is_ambiguous(self):
        """6-6."""
        decision = self.decided(self.RIVAL, pods=())
        assert condition(decision, "ScalingActive").reason != "AmbiguousSelector"

    def test_a_rival_whose_owners_cannot_be_read_counts_every_pod(self):
        found = self.FOUND | {REPLICA_SET.uid: OwnerUnavailable(error="timeout")}
        assert (
            condition(self.decided(self.RIVAL, owners=found), "ScalingActive").reason == "AmbiguousSelector"
        )

    def test_the_event_is_told_once_per_interval(self):
        """F48."""
        same = msgspec.structs.replace(self.RIVAL, target=TARGET)
        chosen = (pod("web-1", owners=(REPLICA_SET,)),)
        seen = observe(
            hpa(cpu(50), **BY_OWNER),
            1,
            samples({"web-1": 50}),
            pods=chosen,
            owners=OWNED,
            conflicting_hpas=(same,),
        )
        first = run(seen)
        assert told(first) == ["AmbiguousSelector", "FailedComputeMetricsReplicas"]
        seen, now = later(seen, first, pods=chosen)
        assert told(run(seen, now)) == []
        seen, now = later(seen, first, 300, pods=chosen)
        assert told(run(seen, now)) == ["AmbiguousSelector", "FailedComputeMetricsReplicas"]

    def test_a_thousand_rivals_are_counted_and_not_all_named(self):
        """F48."""
        many = tuple(ConflictingHpa(key=f"shop/r{number:04}", selector="app=web") for number in range(1000))
        decision = run(observe(hpa(cpu(50)), 1, samples({"web-1": 50}), conflicting_hpas=many))
        message = condition(decision, "ScalingActive").message
        assert message.endswith("shop/r0009 and 991 more]")
