"""The recommender's model: intake, links between VPAs and aggregates, checkpoints, garbage collection."""

import pytest

from tests.unit.decide.vertical.policy_builders import pod, scope, vpa
from tests.unit.decide.vertical.samples import UsageBatch, add_sample, add_usage
from tests.unit.decide.vertical.usage_builders import (
    DAY_NS,
    HOUR_NS,
    MINUTE_NS,
    START_NS,
    Load,
    Recommender,
    member,
)
from trimtab.decide.vertical.cluster_state.cluster import ClusterState, ContainerId, PodId
from trimtab.decide.vertical.cluster_state.garbage import AggregateCollector, collect_garbage
from trimtab.decide.vertical.input.checkpoints import load_checkpoint, load_history, save_checkpoints
from trimtab.decide.vertical.input.oom import OOM
from trimtab.decide.vertical.input.usage import Capacity, record_oom
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.times import format_ns
from trimtab.model.vpa.types import (
    HistogramCheckpoint,
    VerticalPodAutoscalerCheckpoint,
    VerticalPodAutoscalerCheckpointSpec,
    VerticalPodAutoscalerCheckpointStatus,
)

USUAL = Load(200, 10**9)
NODE = Capacity(millicores=16_000, memory_bytes=64 * 10**9)
APP = ContainerId(PodId("shop", "db-0"), "app")


def settled(rules=Rules.TRIMTAB, minutes=120) -> Recommender:
    recommender = Recommender([vpa("base")], rules=rules)
    recommender.observe([member("db-0")])
    for _ in range(minutes):
        recommender.scrape({"db-0": USUAL})
    return recommender


@pytest.mark.parametrize(
    ("poison", "rules", "is_harmless"),
    [
        pytest.param(Load(10**9, 10**13), Rules.TRIMTAB, True, id="usage no node can hold is refused"),
        pytest.param(Load(10**9, 10**13), Rules.VPA_1_8, False, id="upstream learns from it"),
    ],
)
def test_f60_one_bad_sample_cannot_move_the_target_by_more_than_twice(poison, rules, is_harmless):
    recommender = settled(rules)
    before = [recommender.targets(resource)["base"] or 0 for resource in ("cpu", "memory")]
    recommender.scrape({"db-0": poison}, capacity=NODE)
    after = [recommender.targets(resource)["base"] or 0 for resource in ("cpu", "memory")]
    assert all(new <= 2 * old for old, new in zip(before, after, strict=True)) == is_harmless


def test_a_refused_sample_is_counted_by_its_rule():
    recommender = settled(minutes=1)
    cpu, memory = recommender.scrape({"db-0": Load(17_000, 10**9)}, capacity=NODE)
    assert (cpu.above_capacity, cpu.accepted) == (1, 0)
    assert (memory.above_capacity, memory.accepted) == (0, 1)
    late = add_usage(recommender.state, "cpu", UsageBatch([APP], [1], [START_NS]), recommender.now_ns)
    assert late.discarded == 1


def test_a_sample_from_the_future_does_not_block_the_samples_of_the_present():
    recommender = settled(minutes=1)
    now = recommender.now_ns
    refusal = add_sample(recommender.state, APP, "cpu", 100, now + DAY_NS, now)
    assert refusal == "more than a minute ahead of the clock"
    assert add_sample(recommender.state, APP, "cpu", 100, now + MINUTE_NS, now) is None


def test_upstream_accepts_a_sample_from_the_future_and_then_no_other():
    recommender = settled(Rules.VPA_1_8, minutes=1)
    now = recommender.now_ns
    assert add_sample(recommender.state, APP, "cpu", 100, now + DAY_NS, now) is None
    assert add_sample(recommender.state, APP, "cpu", 100, now + MINUTE_NS, now) is not None


@pytest.mark.parametrize(
    ("pod", "container", "want"),
    [
        pytest.param("nobody", "app", "KeyError: {shop nobody}", id="an OOM kill of an unknown pod"),
        pytest.param("db-0", "side", "KeyError: side", id="an OOM kill of an unknown container"),
    ],
)
def test_f59_a_kill_we_cannot_place_is_refused_by_name(pod, container, want):
    recommender = settled(minutes=1)
    oom = OOM("shop", pod, container, recommender.now_ns, 10**9)
    assert record_oom(recommender.state, oom, recommender.now_ns) == want


def test_f59_an_oom_before_the_first_sample_raises_memory_within_the_node():
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    oom = OOM("shop", "db-0", "app", START_NS, 60 * 10**9)
    assert record_oom(recommender.state, oom, START_NS, NODE) is None
    assert recommender.state.pods[APP.pod].containers["app"].history.oom_peak == 64 * 10**9


def test_a_container_without_samples_gets_no_recommendation():
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    found = recommender.recommend()["base"]
    assert found.containers == ()
    assert [(condition.type, condition.status) for condition in found.status.conditions] == [
        ("RecommendationProvided", "False")
    ]


def test_a_vpa_without_pods_says_so_and_keeps_what_it_knew():
    recommender = settled()
    before = recommender.recommend()["base"].status.recommendation
    recommender.state.delete_pod(PodId("shop", "db-0"))
    status = recommender.recommend()["base"].status
    (found,) = [entry for entry in status.conditions if entry.type == "NoPodsMatched"]
    assert found.message == "No pods match this VPA object"
    assert status.recommendation == before


def test_a_status_that_did_not_change_is_not_written_again():
    recommender = settled()
    first = recommender.recommend()["base"]
    state = recommender.state.vpas["shop/base"]
    written = type(state.vpa)(metadata=state.vpa.metadata, spec=state.vpa.spec, status=first.status)
    recommender.state.add_or_update_vpa(written, Selector.parse("app=db"))
    assert first.is_changed
    assert not recommender.recommend()["base"].is_changed


def test_a_vpa_deleted_by_mistake_leaves_its_pods_history():
    recommender = settled()
    before = recommender.targets()
    assert recommender.state.delete_vpa("shop/base") is None
    assert recommender.state.delete_vpa("shop/base") == "KeyError: {shop base}"
    recommender.state.add_or_update_vpa(vpa("base"), Selector.parse("app=db"))
    assert recommender.targets() == before


def test_f60_a_target_gone_for_a_moment_does_not_restart_history():
    recommender = settled()
    before = recommender.targets()
    state = recommender.state
    (checkpoint,) = save_checkpoints(state, [state.vpas["shop/base"]], recommender.now_ns)
    restarted = Recommender([vpa("base")])
    assert load_checkpoint(restarted.state, checkpoint, recommender.now_ns) is None
    restarted.state.add_or_update_vpa(vpa("base"), Selector.parse("app=gone"))
    assert restarted.targets() == {"base": None}
    restarted.state.add_or_update_vpa(vpa("base"), Selector.parse("app=db"))
    assert restarted.targets("cpu")["base"] == settled().targets("cpu")["base"]
    assert before["base"] is not None


def test_the_controlling_vpas_policy_counts_for_the_aggregate():
    policy = {"containerName": "*", "mode": "Off"}
    vpas = [vpa("base", policies=[policy]), vpa("leader", scope="leader")]
    recommender = Recommender(vpas, [scope("leader", pods={"role": "leader"})])
    recommender.observe([member("db-0", "leader"), member("db-1", "follower")])
    modes = {str(aggregate.scaling_mode) for aggregate in recommender.state.aggregates.values()}
    assert modes == {"Auto", "Off"}


def checkpoint(name="base-app", owner="base", container="app", **status) -> VerticalPodAutoscalerCheckpoint:
    return VerticalPodAutoscalerCheckpoint(
        metadata=ObjectMeta(name=name, namespace="shop"),
        spec=VerticalPodAutoscalerCheckpointSpec(vpa_object_name=owner, container_name=container),
        status=VerticalPodAutoscalerCheckpointStatus(**{"version": "v3", **status}),
    )


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        pytest.param(checkpoint(version="v2"), "unsupported checkpoint version v2", id="another version"),
        pytest.param(
            checkpoint(cpu_histogram=HistogramCheckpoint(total_weight=float("nan"))), "not a number", id="NaN"
        ),
        pytest.param(
            checkpoint(memory_histogram=HistogramCheckpoint(bucket_weights={900: 1})),
            "exceeding",
            id="a bad bucket",
        ),
        pytest.param(
            checkpoint(total_samples_count=-4), "negative number of samples", id="fewer samples than none"
        ),
        pytest.param(
            checkpoint(name="a-b-c", owner="a", container="c"), "named 'a-c'", id="another owner's name"
        ),
        pytest.param(checkpoint(name="x-app", owner="x"), "not known", id="a VPA that is gone"),
    ],
)
def test_f60_a_checkpoint_that_cannot_be_trusted_is_refused_and_the_last_good_one_stays(broken, why):
    recommender = settled()
    good = save_checkpoints(recommender.state, [recommender.state.vpas["shop/base"]], recommender.now_ns)[0]
    restarted = Recommender([vpa("base")])
    assert load_checkpoint(restarted.state, good, recommender.now_ns) is None
    before = restarted.targets()
    assert why in (load_checkpoint(restarted.state, broken, recommender.now_ns) or "")
    assert restarted.targets() == before


def test_a_running_windows_peak_is_not_in_the_checkpoint():
    recommender = settled(minutes=10)
    (saved,) = save_checkpoints(recommender.state, [recommender.state.vpas["shop/base"]], recommender.now_ns)
    assert saved.status.memory_histogram.bucket_weights == {}
    assert saved.status.total_samples_count == 10


def nothing_exists(_vpa):
    return False


def test_garbage_is_what_nobody_feeds_and_what_has_expired():
    recommender = settled(minutes=5)
    state = recommender.state
    recommender.observe([member("db-1")])
    state.delete_pod(PodId("shop", "db-1"))
    assert len(state.aggregates) == 2
    assert len(collect_garbage(state, recommender.now_ns, nothing_exists)) == 1
    assert len(collect_garbage(state, recommender.now_ns + 8 * DAY_NS, nothing_exists)) == 1
    assert len(state.table) == 0


def test_rl10_label_sets_that_nobody_has_any_more_are_forgotten():
    recommender = Recommender([vpa("base")])
    for run in range(100):
        recommender.observe([pod(f"job-{run}", labels={"app": "db", "run": str(run)})])
        recommender.state.delete_pod(PodId("shop", f"job-{run}"))
    recommender.observe([pod("db-0", labels={"app": "db"})])
    collect_garbage(recommender.state, recommender.now_ns, nothing_exists)
    assert set(recommender.state.labels) == {"app=db"}


def loaded_with(container: str, days_ago: int, rules: Rules = Rules.TRIMTAB) -> Recommender:
    recommender = Recommender([vpa("base")], rules=rules)
    last = format_ns(recommender.now_ns - days_ago * DAY_NS)
    histogram = {"referenceTimestamp": last, "bucketWeights": {"9": 10000}, "totalWeight": 1.0}
    status = {
        "version": "v3",
        "cpuHistogram": histogram,
        "memoryHistogram": histogram,
        "firstSampleStart": last,
        "lastSampleStart": last,
        "totalSamplesCount": 9,
    }
    saved = wire.convert(status, VerticalPodAutoscalerCheckpointStatus)
    assert (
        load_history(
            recommender.state, recommender.state.vpas["shop/base"], container, saved, recommender.now_ns
        )
        is None
    )
    return recommender


@pytest.mark.parametrize(
    ("container", "days", "has_pods", "rules", "is_kept"),
    [
        pytest.param(
            "old", 9, True, Rules.TRIMTAB, False, id="a container that was renamed more than a window ago"
        ),
        pytest.param("old", 7, True, Rules.TRIMTAB, True, id="one that was renamed a week ago may come back"),
        pytest.param("app", 9, True, Rules.TRIMTAB, True, id="a container that the pods have"),
        pytest.param(
            "old", 90, False, Rules.TRIMTAB, True, id="a workload at zero has all its history when it is back"
        ),
        pytest.param("old", 90, True, Rules.VPA_1_8, True, id="upstream keeps it for ever"),
    ],
)
def test_rm11_loaded_history_of_a_container_that_is_gone_ends(container, days, has_pods, rules, is_kept):
    recommender = loaded_with(container, days, rules)
    if has_pods:
        recommender.observe([pod("db-0", labels={"app": "db"})])
    collect_garbage(recommender.state, recommender.now_ns, nothing_exists)
    assert (container in recommender.state.vpas["shop/base"].initial) is is_kept


def test_a_checkpoint_whose_histogram_is_null_is_an_empty_one_as_upstream_reads_it():
    """Go reads null into the zero value: no weights, and a count that stays."""
    text = b'{"version": "v3", "cpuHistogram": null, "memoryHistogram": null, "totalSamplesCount": 60}'
    saved = wire.decode(text, VerticalPodAutoscalerCheckpointStatus)
    recommender = Recommender([vpa("base")])
    base = recommender.state.vpas["shop/base"]
    assert load_history(recommender.state, base, "app", saved, recommender.now_ns) is None
    assert (base.initial["app"].sample_count, base.initial["app"].cpu.is_empty) == (60, True)
    recommender.observe([pod("db-0", labels={"app": "db"})])
    recommender.scrape({"db-0": Load(300, 10**9)})
    alone = Recommender([vpa("base")])
    alone.observe([pod("db-0", labels={"app": "db"})])
    alone.scrape({"db-0": Load(300, 10**9)})
    assert recommender.targets() == alone.targets()


def test_a_relabelled_pod_whose_aggregate_was_collected_gets_a_new_one():
    recommender = settled(minutes=5)
    recommender.observe([member("db-0", "leader")])
    recommender.now_ns += 9 * DAY_NS
    collect_garbage(recommender.state, recommender.now_ns, nothing_exists)
    assert not recommender.state.aggregates
    recommender.scrape({"db-0": USUAL})
    assert [aggregate.sample_count for aggregate in recommender.state.aggregates.values()] == [1]


def test_upstream_loses_the_samples_of_such_a_pod():
    recommender = settled(Rules.VPA_1_8, minutes=5)
    recommender.observe([member("db-0", "leader")])
    recommender.now_ns += 9 * DAY_NS
    collect_garbage(recommender.state, recommender.now_ns, nothing_exists)
    cpu, _ = recommender.scrape({"db-0": USUAL})
    assert cpu.accepted == 1
    assert not recommender.state.aggregates


def test_garbage_is_collected_once_per_interval():
    state = ClusterState(block_columns=4)
    pod = PodId("shop", "db-0")
    collector = AggregateCollector(HOUR_NS)
    collected = []
    for now in (START_NS, START_NS + HOUR_NS - 1, START_NS + HOUR_NS):
        state.add_or_update_pod(pod, {"at": str(now)}, "Running", now)
        state.add_or_update_container(ContainerId(pod, "app"), 1, 1, now)
        state.delete_pod(pod)
        collected.append(len(collector.collect(state, now, nothing_exists)))
    assert collected == [1, 0, 2]


def test_a_history_that_is_loaded_again_replaces_the_one_before():
    recommender = settled()
    state = recommender.state
    base = state.vpas["shop/base"]
    (saved,) = save_checkpoints(state, [base], recommender.now_ns)
    for _ in range(3):
        assert load_history(state, base, "app", saved.status, recommender.now_ns) is None
    assert base.initial["app"].sample_count == saved.status.total_samples_count
    assert len(state.table) == 2


@pytest.mark.parametrize(
    ("load", "want"),
    [
        pytest.param(Load(1_920_000, 32 * 2**40), (0, 0), id="the largest machine that can be rented"),
        pytest.param(Load(10**9, 2**30), (1, 0), id="a million cores"),
        pytest.param(Load(100, 10**18), (0, 1), id="an exabyte"),
    ],
)
def test_samples_that_no_node_can_have_are_refused_where_no_node_is_known(load, want):
    recommender = settled()
    before = recommender.targets("cpu"), recommender.targets("memory")
    cpu, memory = recommender.scrape({"db-0": load})
    assert (cpu.above_capacity, memory.above_capacity) == want
    if any(want):
        after = recommender.targets("cpu"), recommender.targets("memory")
        assert [new == old for new, old in zip(after, before, strict=True)][want.index(1)]


def test_upstreams_rules_accept_every_sample():
    cpu, _ = settled(Rules.VPA_1_8).scrape({"db-0": Load(10**9, 2**30)})
    assert (cpu.above_capacity, cpu.accepted) == (0, 1)


@pytest.mark.parametrize("content", ["vpas", "pods", "keys"])
def test_only_a_namespace_without_vpas_pods_and_aggregates_is_deleted(content):
    """A pod that is deleted later is looked up in the state of its namespace."""
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0")])
    recommender.scrape({"db-0": USUAL})
    state = recommender.state
    kept, empty = state.namespace("shop"), state.namespace("gone")
    assert kept.vpas
    assert kept.pods
    assert kept.keys
    for other in {"vpas", "pods", "keys"} - {content}:
        getattr(kept, other).clear()
    state.delete_empty_namespaces()
    assert state.namespace("shop") is kept
    assert state.namespace("gone") is not empty
