"""What holds for every observation, generated."""

import dataclasses

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import (
    JOB,
    NO_WINDOW,
    OWNER,
    REPLICA_SET,
    T,
    average,
    behavior,
    cpu,
    explained,
    external,
    hpa,
    marked,
    observe,
    pod,
    rules,
    run,
    samples,
    select_by,
    series,
    unreadable,
    value,
)
from trimtab.decide.horizontal import (
    Memory,
    Owner,
    OwnerNotFound,
    OwnerUnavailable,
    Record,
    Series,
    Target,
    replay,
)
from trimtab.decide.horizontal.memory import Recommendation, ScaleEvent
from trimtab.decide.horizontal.records import record
from trimtab.decide.horizontal.rules import Rules
from trimtab.model.core.meta import OwnerReference
from trimtab.model.feature_gates import FeatureGates

TARGET = Target(api_version="apps/v1", kind="Deployment", name="web", uid="uid-of-web")
DEPLOYMENT = OwnerReference(api_version="apps/v1", kind="Deployment", name="web", uid="uid-of-web")
OWNED: dict[str, Owner | OwnerNotFound | OwnerUnavailable] = {
    REPLICA_SET.uid: Owner(uid=REPLICA_SET.uid, owners=(DEPLOYMENT,)),
    JOB.uid: OwnerNotFound(),
}
few = settings(max_examples=100, deadline=None)


@st.composite
def some_pod(draw, name):
    return pod(
        name,
        phase=draw(st.sampled_from(["Running", "Running", "Running", "Pending", "Failed", "Succeeded"])),
        ready=draw(st.sampled_from(["True", "True", "False", "Unknown", ""])),
        age=draw(st.sampled_from([5.0, 100.0, 400.0, 3600.0])),
        is_deleted=draw(st.booleans()) and draw(st.booleans()),
        owners=draw(st.sampled_from([(REPLICA_SET,), (REPLICA_SET,), (JOB,), ()])),
        cpu=draw(st.sampled_from([100, 100, 100, 250, 250, 0, None])),
    )


@st.composite
def observations(draw):
    number = draw(st.integers(0, 6))
    chosen = tuple(draw(some_pod(f"web-{index}")) for index in range(number))
    sampled = {one.name: draw(st.integers(-5, 2000)) for one in chosen if draw(st.booleans())}
    total = draw(st.sampled_from([0.0, 1.0, 50.0, 333.0, 1e16, -4.0]))
    kinds = [
        (cpu(draw(st.integers(1, 200))), samples(sampled)),
        (external(average(draw(st.integers(1, 300)))), series(total)),
        (external(value(draw(st.integers(1, 300)))), series(total, 3.0)),
        (external(value(7), name="down"), unreadable()),
    ]
    metrics = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))
    low = draw(st.integers(0, 4))
    autoscaler = hpa(
        *(one for one, _ in metrics),
        low=low,
        high=draw(st.integers(max(low, 1), 40)),
        behavior=draw(st.sampled_from([None, behavior(), behavior(rules(("Percent", 50, 60), window=30))])),
        status=marked(draw(st.sampled_from(["True", "False", None]))),
        selection_strategy=draw(st.sampled_from([None, "OwnerReference"])),
    )
    memory = Memory(
        owner=OWNER,
        recommendations=draw(
            st.none()
            | st.lists(st.builds(Recommendation, st.integers(0, 40), st.just(T - 40)), max_size=3).map(tuple)
        ),
        scale_up=draw(
            st.lists(st.builds(ScaleEvent, st.integers(1, 9), st.just(T - 5)), max_size=2).map(tuple)
        ),
    )
    return observe(
        autoscaler,
        draw(st.integers(0, 45)),
        *(reading for _, reading in metrics),
        pods=chosen,
        owners=draw(st.sampled_from([OWNED, OWNED | {JOB.uid: OwnerUnavailable(error="timeout")}])),
        memory=memory,
        gates=draw(
            st.sampled_from(
                [FeatureGates.of({}, "kubernetes-1.36"), FeatureGates(), FeatureGates.of({"AllAlpha": True})]
            )
        ),
        rules=draw(st.sampled_from([Rules.TRIMTAB, Rules.KUBERNETES_1_36, Rules.KUBERNETES_1_37])),
    )


@few
@given(observations())
def test_a_scale_that_is_written_is_within_the_bounds(seen):
    decision = run(seen)
    lowest = decision.trace.min_replicas
    if decision.desired != decision.current:
        assert min(lowest, decision.current) <= decision.desired <= max(seen.hpa.spec.max_replicas, 0)
    if 0 < decision.current <= seen.hpa.spec.max_replicas and decision.current >= lowest:
        assert lowest <= decision.desired <= seen.hpa.spec.max_replicas


@few
@given(observations())
def test_by_labels_all_numbers_are_those_of_a_decision_that_knows_no_strategy(seen):
    """SEL-C1."""

    def decided(strategy, gate):
        asked = msgspec.structs.replace(seen.hpa.spec, selection_strategy=strategy)
        gates = dataclasses.replace(seen.gates, hpa_selection_strategy=gate)
        autoscaler = msgspec.structs.replace(seen.hpa, spec=asked)
        decision = run(msgspec.structs.replace(seen, hpa=autoscaler, gates=gates))
        return decision.desired, decision.status, decision.trace.proposals

    assert decided("LabelSelector", True) == decided(None, True) == decided(None, False)


@few
@given(observations())
def test_deciding_recording_and_deciding_again_is_the_identity(seen):
    written = record.dumps(Record(observation=seen, decision=run(seen)))
    assert record.dumps(replay(record.loads(written))) == written


@few
@given(observations())
def test_every_decision_can_be_explained(seen):
    assert str(explained(seen))


@few
@given(st.lists(st.integers(0, 300), min_size=1, max_size=8), st.integers(0, 7), st.integers(1, 300))
def test_with_all_pods_ready_more_usage_never_means_fewer_replicas(usage, index, more):
    """I22."""
    index %= len(usage)
    fewer = usage_decision(usage)
    usage = [*usage[:index], usage[index] + more, *usage[index + 1 :]]
    assert usage_decision(usage) >= fewer


def usage_decision(usage):
    chosen = tuple(pod(f"web-{index}") for index in range(len(usage)))
    reading = samples({one.name: used for one, used in zip(chosen, usage, strict=True)})
    return run(observe(hpa(cpu(50), high=100), len(usage), reading, pods=chosen, settings=NO_WINDOW)).desired


class TestMetamorphic:
    """I22, I17: how a decision changes when what it is made from changes."""

    @few
    @given(st.lists(st.integers(0, 300), min_size=1, max_size=8))
    def test_doubling_usage_never_lowers_the_replicas(self, usage):
        assert usage_decision([2 * used for used in usage]) >= usage_decision(usage)

    @few
    @given(st.lists(st.integers(0, 300), min_size=1, max_size=8), st.integers(1, 9))
    def test_an_idle_owned_pod_never_raises_the_replicas(self, usage, replicas):
        chosen = tuple(pod(f"web-{index}", owners=(REPLICA_SET,)) for index in range(len(usage)))
        idle = pod("idle", owners=(REPLICA_SET,))
        reading = samples({one.name: used for one, used in zip(chosen, usage, strict=True)} | {"idle": 0})
        autoscaler = hpa(cpu(50), high=100, selection_strategy="OwnerReference")
        without = observe(autoscaler, replicas, reading, pods=chosen, owners=OWNED, settings=NO_WINDOW)
        beside = msgspec.structs.replace(without, pods=(*chosen, idle))
        ratios = [run(one).trace.proposals[0].ratio for one in (beside, without)]
        assert ratios[0] <= ratios[1]

    @few
    @given(
        st.integers(0, 500_000), st.integers(1, 500), st.integers(1, 9), st.sampled_from(["value", "average"])
    )
    def test_units_change_nothing(self, load, target, replicas, kind):
        make = value if kind == "value" else average
        small = observe(
            hpa(external(make(target)), high=50), replicas, series(load / 1000), settings=NO_WINDOW
        )
        large = observe(
            hpa(external(make(f"{target}k")), high=50), replicas, series(load), settings=NO_WINDOW
        )
        assert run(small).desired == run(large).desired

    @few
    @given(st.integers(0, 400), st.integers(1, 9), st.integers(0, 50), st.integers(0, 50))
    def test_a_wider_tolerance_never_adds_a_change(self, load, replicas, narrow, more):
        def decided(percent):
            wide = behavior(
                rules(("Pods", 100, 15), window=0, tolerance=percent / 100),
                rules(("Pods", 100, 15), window=0, tolerance=percent / 100),
            )
            return run(observe(hpa(external(average(10)), high=50, behavior=wide), replicas, series(load)))

        if decided(narrow).desired == replicas:
            assert decided(narrow + more).desired == replicas

    @few
    @given(observations(), st.randoms(use_true_random=False))
    def test_the_order_of_pods_and_series_does_not_matter(self, seen, random):
        """I17, in the default setting; upstream names whichever pod comes first."""
        seen = msgspec.structs.replace(seen, rules=Rules.TRIMTAB)
        shuffled = list(seen.pods)
        random.shuffle(shuffled)
        readings = tuple(
            one
            if not isinstance(one, Series)
            else msgspec.structs.replace(one, samples=tuple(reversed(one.samples)))
            for one in seen.samples
        )
        other = run(msgspec.structs.replace(seen, pods=tuple(shuffled), samples=readings))
        first = run(seen)
        assert (other.desired, other.status, other.events) == (first.desired, first.status, first.events)
        assert other.memory == first.memory


@few
@given(st.lists(st.sampled_from([(REPLICA_SET,), (JOB,), (), (JOB, REPLICA_SET)]), max_size=8))
def test_filtering_twice_changes_nothing(owners):
    chosen = tuple(pod(f"web-{index}", owners=one) for index, one in enumerate(owners))
    once = select_by("OwnerReference", chosen, TARGET, OWNED)
    assert select_by("OwnerReference", once.pods, TARGET, OWNED).pods == once.pods


@few
@given(observations(), some_pod("stranger"), st.integers(0, 5000))
def test_a_pod_that_is_not_owned_never_changes_a_decision_by_owner(seen, stranger, used):
    stranger = msgspec.structs.replace(stranger, owners=())
    by_owner = msgspec.structs.replace(
        seen,
        hpa=msgspec.structs.replace(
            seen.hpa, spec=msgspec.structs.replace(seen.hpa.spec, selection_strategy="OwnerReference")
        ),
        owners=OWNED,
        gates=FeatureGates.of({"AllAlpha": True}),
        rules=Rules.TRIMTAB,
        pods=seen.pods or (pod("web-0", owners=(REPLICA_SET,)),),
    )
    readings = tuple(
        msgspec.structs.replace(one, samples=one.samples | samples({"stranger": used}).samples)
        if hasattr(one, "timestamp")
        else one
        for one in by_owner.samples
    )
    crowded = msgspec.structs.replace(by_owner, pods=(*by_owner.pods, stranger), samples=readings)
    assert run(crowded).status == run(by_owner).status


@few
@given(st.lists(st.integers(0, 300), min_size=2, max_size=8), st.sets(st.integers(0, 7), min_size=1))
def test_missing_samples_never_turn_the_direction_round(usage, missing):
    """F32: with some samples gone, the decision stays on the side of the ones that are left."""
    chosen = tuple(pod(f"web-{index}") for index in range(len(usage)))
    left = {f"web-{index}": used for index, used in enumerate(usage) if index not in missing}
    if not left:
        return
    decision = run(
        observe(hpa(cpu(50), high=100), len(usage), samples(left), pods=chosen, settings=NO_WINDOW)
    )
    ratio = decision.trace.proposals[0].ratio
    assert (decision.desired - len(usage)) * (ratio - 1.0) >= 0
