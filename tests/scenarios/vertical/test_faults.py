"""F57 to F60 and the crash points: floods, fruitless evictions, kills for memory, odd checkpoints, death between writes."""

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from tests.scenarios.vertical.stage import FOLLOWER, FOLLOWER_TARGET, MINUTE, Actor, Stage
from tests.support.clock import in_virtual_time
from tests.support.transport import Break, status
from trimtab.cluster.errors import TransportError
from trimtab.cluster.transport import Request
from trimtab.decide.vertical.update.lost_responses import FIRST_CHECK
from trimtab.model.times import format_time
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS


async def moved_recommendations(stage: Stage, workloads: int, replicas: int) -> None:
    """Many workloads, all of whose pods are far from what is recommended."""
    for number in range(workloads):
        name = f"w{number}"
        await stage.statefulset(name, replicas)
        await stage.vpa(name, name, mode="Recreate")
        for index in range(replicas):
            stage.metrics.use(stage.namespace, f"{name}-{index}", cpu="100m", memory=FOLLOWER)


RELEASED: dict[str, Any] = {
    "max_evictions_per_minute": 0,
    "max_evicted_share_per_minute": 0.0,
    "max_missing_pods": 0,
    "fruitless_evictions": 0,
    "refused_eviction_backoff": timedelta(),
}


@in_virtual_time
async def test_f57_a_flood_of_new_recommendations_evicts_ten_pods_a_minute_and_one_per_controller(stage):
    await moved_recommendations(stage, workloads=30, replicas=4)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        for _ in range(3):
            before = len(actor.wrote("/eviction"))
            await stage.update(actor)
            names = [one["metadata"]["name"] for one in actor.wrote("/eviction")[before:]]
            assert len(names) == 10
            assert len({name.split("-")[0] for name in names}) == 10, "one per controller"
            # Nobody makes new pods: controllers that lack one lose no other.


@in_virtual_time
async def test_f57_a_restart_does_not_open_a_second_minute_of_evictions(stage):
    await moved_recommendations(stage, workloads=30, replicas=4)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        await stage.update(actor)
        assert len(actor.wrote("/eviction")) == 10
    async with stage.running() as actor:
        await stage.update(actor, after=1)
        assert not actor.wrote("/eviction")
        await stage.update(actor)
        assert len(actor.wrote("/eviction")) == 10


@in_virtual_time
async def test_f58_pods_that_come_back_unchanged_are_not_evicted_again_after_three_times(stage):
    await stage.statefulset("db", 3)
    await stage.vpa("base", "db", mode="Recreate")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=FOLLOWER)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        for _ in range(12):
            await stage.update(actor, after=2 * MINUTE)
            await stage.heal("db")  # from the template, as if somebody overrode us
        assert len(actor.wrote("/eviction")) == 3
        assert "EvictionFruitless" in [one[0] for one in await stage.events(actor)]
        await stage.update(actor, after=3600)
        assert len(actor.wrote("/eviction")) == 4, "an hour later it is tried again"


@in_virtual_time
async def test_a_disruption_budget_that_says_no_is_asked_less_and_less_often(stage):
    await stage.statefulset("db", 3)
    await stage.vpa("base", "db", mode="Recreate")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=FOLLOWER)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        asked: list[Request] = []
        actor.line.answer = lambda request: _refused(request, asked)
        await stage.update(actor, 10, after=30)
    assert 3 <= len(asked) <= 15, "three pods over five minutes, each with a growing pause"


@pytest.mark.parametrize(
    ("settings", "least", "most"),
    [
        pytest.param({"compat": "vpa-1.8"}, 7, 15, id="as upstream, no brake"),
        pytest.param(RELEASED, 7, 15, id="every brake released by its own setting"),
        pytest.param({}, 0, 6, id="with brakes"),
        pytest.param({"compat": "vpa-1.8", "max_evictions_per_minute": 1}, 1, 3, id="one brake on again"),
    ],
)
@in_virtual_time
async def test_a_budget_that_opens_is_used_within_three_minutes_without_brakes(stage, settings, least, most):
    """Upstream evicts 7 of 10 pods by then. Only one of the brakes could be released, and --compat released none."""
    await stage.statefulset("db", 10)
    await stage.vpa("base", "db", mode="Recreate")
    stage.use(**{f"db_{number}": FOLLOWER for number in range(10)})
    async with stage.running(**settings) as actor:
        await stage.recommend(actor, 2)
        asked: list[Request] = []
        actor.line.answer = lambda request: _refused(request, asked)
        await stage.update(actor, 2)
        assert asked
        actor.line.answer = lambda _: None
        for _ in range(3):
            await stage.update(actor)
            await stage.heal("db")
        assert least <= len(actor.wrote("/eviction")) <= most


def _answer_is_lost(actor: Actor, verb: str) -> None:
    actor.line.loses_answer = lambda request: request.path.endswith(verb)


def _server_fails(actor: Actor, verb: str) -> None:
    actor.line.answer = lambda request: status(500) if request.path.endswith(verb) else None


def _never_answered(actor: Actor, verb: str) -> None:
    actor.line.is_hanging = lambda request: request.path.endswith(verb)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(_answer_is_lost, id="the answer is lost"),
        pytest.param(_server_fails, id="the server fails"),
        pytest.param(_never_answered, id="no answer in time"),
    ],
)
@pytest.mark.parametrize(
    ("mode", "verb", "most"),
    [pytest.param("Recreate", "/eviction", 1), pytest.param("InPlaceOrRecreate", "/resize", 2)],
)
@in_virtual_time
async def test_what_may_have_been_done_uses_budget_and_brakes(stage, fault, mode, verb, most):
    """Three workloads of four pods; a tenth of them a minute may be evicted, half of each may be resized at once."""
    names = ("a", "b", "c")
    for name in names:
        await stage.statefulset(name, 4)
        await stage.vpa(name, name, mode=mode)
        for place in range(4):
            stage.metrics.use(stage.namespace, f"{name}-{place}", cpu="100m", memory=FOLLOWER)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        fault(actor, verb)
        await stage.update(actor, after=3 * MINUTE)
        asked = [request.path.split("/")[-2] for request in actor.line.sent if verb in request.path]
        sent = Counter(pod.split("-")[0] for pod in set(asked))
        assert sent
        assert max(sent.values()) <= most
        if verb == "/eviction":
            assert sent.total() == 1, "the brake on the cluster"
        assert not {reason for reason, _, _ in await stage.events(actor)} & SAID_DONE
        assert _counted_as_done(actor) == 0
        before = len(asked)
        await stage.update(actor, after=FIRST_CHECK.total_seconds())
        # Where no answer comes in time a loop takes minutes, so only the last request is fresh.
        assert asked[-1] not in _asked_again(actor, verb, before), "it may still be carried out"
        await stage.update(actor, 3)
        was_carried_out = fault is _answer_is_lost
        again = _asked_again(actor, verb, before) & set(asked)
        assert bool(again) is not was_carried_out, "it held its place for an hour"


def _asked_again(actor: Actor, verb: str, before: int) -> set[str]:
    asked = [request.path.split("/")[-2] for request in actor.line.sent if verb in request.path]
    return set(asked[before:])


def _counted_as_done(actor: Actor) -> float:
    samples = [sample for metric in actor.registry.collect() for sample in metric.samples]
    found = [sample.value for sample in samples if sample.name in COUNTED_AS_DONE]
    assert found, "counters begin at 0"
    return sum(found)


COUNTED_AS_DONE = {"vpa_updater_evicted_pods_total", "vpa_updater_in_place_updated_pods_total"}
SAID_DONE = {"EvictedByVPA", "EvictedPod", "InPlaceResizedByVPA", "InPlaceResizeRequested"}


def _refused(request: Request, asked: list[Request]) -> Any:
    if not request.path.endswith("/eviction"):
        return None
    asked.append(request)
    return status(429, "TooManyRequests")


@in_virtual_time
async def test_f59_each_kill_for_memory_raises_the_target_until_the_node_is_full(stage):
    await stage.statefulset("db", 2, requests={"cpu": "100m", "memory": "1000000000"})
    await stage.vpa("base", "db", mode="Off")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        assert await stage.target("base") == FOLLOWER_TARGET
        targets: list[int] = []
        for number in range(1, 4):
            died = format_time(stage.clock.now())
            await stage.run_pod("db-0", restarts=number, oom_at=died)
            await stage.recommend(actor)
            targets.append(int(str(await stage.target("base"))))
        assert targets == sorted(targets)
        assert FOLLOWER_TARGET < targets[0] < 1.5 * FOLLOWER_TARGET, "x1.2 or +100Mi, one bucket, margin"
        assert not actor.wrote("/eviction")


@in_virtual_time
async def test_f60_one_absurd_sample_moves_nothing(stage):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
    async with stage.running() as actor:
        await stage.recommend(actor, 3)
        before = await stage.target("base"), await stage.target("base", "cpu")
        for odd in ("1e15", "-5", "999999999999999999999", "NaN", ""):
            stage.metrics.use(stage.namespace, "db-0", cpu=odd, memory=odd)
            await stage.recommend(actor)
        assert (await stage.target("base"), await stage.target("base", "cpu")) == before
        refused = actor.count(
            "trimtab_recommender_refused_samples_total", resource="memory", rule="above capacity"
        )
        assert refused == 2


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param({"version": "v4"}, id="another version"),
        pytest.param(
            {"memoryHistogram": {"totalWeight": -5, "bucketWeights": {"3": 7}}}, id="a negative weight"
        ),
        pytest.param(
            {"cpuHistogram": {"totalWeight": 1, "bucketWeights": {"9999": 7}}}, id="a bucket beyond the last"
        ),
    ],
)
@in_virtual_time
async def test_f60_a_checkpoint_that_cannot_be_true_is_not_loaded_and_harms_nobody_else(stage, spoil):
    for name in ("db", "web"):
        await stage.statefulset(name, 1)
        await stage.vpa(name, name)
    stage.use(db_0=FOLLOWER, web_0=FOLLOWER)
    async with stage.running() as actor:
        await stage.recommend(actor, 3)
        await stage.pass_time(25 * 3600)
        await stage.recommend(actor, 2)
    await stage.client.patch(CHECKPOINTS, "db-app", stage.namespace, {"status": spoil})
    stage.metrics.usage.clear()
    async with stage.running() as actor:
        await stage.recommend(actor)
        assert await stage.target("web") == FOLLOWER_TARGET


def test_f60_two_containers_with_one_checkpoint_name_do_not_overwrite_each_other(play):
    async def scenario(stage: Stage) -> None:
        body = {
            "metadata": {"name": "db-app"},
            "apiVersion": CHECKPOINTS.api_version,
            "kind": CHECKPOINTS.kind,
            "spec": {"vpaObjectName": "db-a", "containerName": "pp"},
            "status": {"version": "v3", "totalSamplesCount": 7},
        }
        await stage.client.create(CHECKPOINTS, body, stage.namespace)
        await stage.statefulset("db", 1)
        await stage.vpa("db", "db")
        stage.use(db_0=FOLLOWER)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            assert "CheckpointCollision" in [one[0] for one in await stage.events(actor)]
        kept = (await stage.checkpoints())["db-app"]
        assert kept["spec"]["vpaObjectName"] == "db-a"
        assert kept["status"]["totalSamplesCount"] == 7

    play(scenario)


@in_virtual_time
async def test_f60_orphaned_checkpoints_go_after_two_looks_and_never_while_no_vpa_is_known(stage):
    await stage.statefulset("db", 1)
    await stage.vpa("db", "db")
    await stage.vpa("gone", "db", mode="Off")
    stage.use(db_0=FOLLOWER)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        assert set(await stage.checkpoints()) == {"db-app", "gone-app"}
        await stage.client.delete(VPAS, "gone", stage.namespace)
        await stage.recommend(actor, 6, after=100)
        assert "gone-app" in await stage.checkpoints(), "once is not enough"
        await stage.recommend(actor, 8, after=100)
        assert set(await stage.checkpoints()) == {"db-app"}
        await stage.client.delete(VPAS, "db", stage.namespace)
        await stage.recommend(actor, 20, after=100)
        assert set(await stage.checkpoints()) == {"db-app"}
    async with stage.running(compat="vpa-1.8", checkpoints_gc_interval=timedelta(seconds=1)) as actor:
        await stage.recommend(actor, 3)
        assert await stage.checkpoints() == {}, "upstream collects also when the last VPA is gone"


@in_virtual_time
async def test_f60_a_target_that_is_gone_for_a_moment_costs_no_history(stage):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
    async with stage.running(checkpoints_interval=timedelta(0)) as actor:
        await stage.recommend(actor, 5)
        before = (await stage.checkpoints())["base-app"]["status"]
        await stage.delete_workload("db")
        await stage.recommend(actor, after=8)
        assert (await stage.conditions("base"))["ConfigUnsupported"] == "True"
        await stage.statefulset("db", 2)
        await stage.recommend(actor, 2)
        after = (await stage.checkpoints())["base-app"]["status"]
        assert after["firstSampleStart"] == before["firstSampleStart"]
        assert after["totalSamplesCount"] > before["totalSamplesCount"]
        assert await stage.target("base") == FOLLOWER_TARGET


@in_virtual_time
async def test_f60_while_checkpoints_cannot_be_read_nothing_is_recommended_or_saved(stage):
    await stage.statefulset("db", 1)
    await stage.vpa("db", "db")
    stage.use(db_0=FOLLOWER)
    async with stage.running() as actor:
        await stage.recommend(actor, 3)
    saved = (await stage.checkpoints())["db-app"]["status"]
    async with stage.running() as actor:
        actor.line.answer = lambda request: (
            TransportError("down") if CHECKPOINTS.plural in request.path and request.method == "GET" else None
        )
        for _ in range(2):
            await stage.pass_time(MINUTE)
            await actor.recommender.step_safely()
        assert not actor.line.writes
        assert "down" in actor.recommender.health()["recommender"]
        actor.line.answer = lambda _: None
        await stage.recommend(actor)
    again = (await stage.checkpoints())["db-app"]["status"]
    assert again["firstSampleStart"] == saved["firstSampleStart"]
    assert again["totalSamplesCount"] == saved["totalSamplesCount"] + 1


def test_without_metrics_the_last_recommendation_stays(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 1)
        await stage.vpa("db", "db")
        stage.use(db_0=FOLLOWER)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            stage.metrics.fail["metrics.k8s.io"] = 503
            await stage.recommend(actor, 2)
            assert await stage.target("db") == FOLLOWER_TARGET
            assert f"usage of {stage.namespace}" in actor.recommender.health()

    play(scenario)


@pytest.mark.parametrize(
    "kind", [Break.CRASH_BEFORE, Break.CRASH_AFTER, Break.LOSE_ANSWER, Break.UNAVAILABLE]
)
@pytest.mark.parametrize("number", range(8))
@in_virtual_time
async def test_death_at_any_write_leaves_what_the_next_process_puts_right(stage, kind, number):
    """The whole of a first recommendation and update, broken at each of its writes in turn."""
    await stage.statefulset("db", 3)
    await stage.scope("leader", pods={"role": "leader"})
    await stage.vpa("base", "db")
    await stage.vpa("lead", "db", scope="leader")
    await stage.label("db-0", role="leader")
    stage.use(db_0="8e9", db_1=FOLLOWER, db_2=FOLLOWER)
    async with stage.running() as actor:
        actor.line.break_write = lambda count, _: kind if count == number else None
        await _as_far_as_it_gets(stage, actor)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        await stage.update(actor, 4)
    assert [await stage.memory(f"db-{index}") for index in range(3)] == [
        9616998332,
        FOLLOWER_TARGET,
        FOLLOWER_TARGET,
    ]
    saved = await stage.checkpoints()
    assert set(saved) == {"base-app", "lead-app"}
    assert all(one["status"]["totalSamplesCount"] > 0 for one in saved.values())


async def _as_far_as_it_gets(stage: Stage, actor: Actor) -> None:
    for _ in range(2):
        await stage.pass_time(MINUTE)
        if not actor.line.crashed.is_set():
            await stage.caught_up(actor)
        await actor.recommender.step_safely()
    for _ in range(3):
        await stage.pass_time(MINUTE)
        if not actor.line.crashed.is_set():
            await stage.caught_up(actor)
        await actor.updater.step_safely()
        await stage.actuate_resizes()


def test_a_status_that_does_not_change_is_not_written_again(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 1)
        await stage.vpa("db", "db", resourcePolicy={"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "1m", "memory": "1Mi"}, "minAllowed": {"cpu": "1m", "memory": "1Mi"}}]})  # fmt: skip
        stage.use(db_0=FOLLOWER)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            stage.metrics.usage.clear()
            before = len(actor.wrote("/status"))
            await stage.recommend(actor, 3)
            assert len(actor.wrote("/status")) == before
            assert (
                json.dumps(await stage.conditions("db"))
                == '{"ComputedFor": "True", "RecommendationProvided": "True"}'
            )

    play(scenario)


@in_virtual_time
async def test_usage_that_cannot_be_read_is_logged_once_not_per_pod_and_step(stage, caplog):
    """NaN was a warning per pod and step."""

    def lines() -> list[str]:
        return [line for line in caplog.messages if line.startswith("usage cannot be read")]

    await stage.statefulset("db", 3)
    await stage.vpa("base", "db")
    async with stage.running() as actor:
        stage.use(cpu="NaN", db_0="1Gi", db_1="1Gi", db_2="1Gi")
        await stage.recommend(actor, 3)
        assert len(lines()) == 1
        assert "3 in all" in lines()[0]
        assert (
            actor.count("trimtab_recommender_refused_samples_total", resource="any", rule="unreadable") == 9
        )
        stage.use(db_0="1Gi", db_1="1Gi", db_2="1Gi")
        await stage.recommend(actor)
        stage.use(cpu="NaN", db_0="1Gi")
        await stage.recommend(actor, 2)
        assert len(lines()) == 2
