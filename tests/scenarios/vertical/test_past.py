"""What was learnt before counts once: across kills, deletions, take-overs, crashes and sources that lost their past."""

from datetime import timedelta

import pytest

from tests.scenarios.vertical.stage import FOLLOWER, FOLLOWER_TARGET, LEADER, LEADER_TARGET, Actor, Stage
from tests.scenarios.vertical.test_history import BYTES, HOUR, Prometheus, loader
from tests.support.clock import in_virtual_time
from trimtab.cluster.client import ListOptions
from trimtab.cluster.resource import Json
from trimtab.decide.vertical.cluster_state.cluster import (
    ContainerId,
    PodId,
    TrackedContainer,
)
from trimtab.model.times import format_time
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS

EACH_LOOP = timedelta(0)
BIG = {"cpu": "100m", "memory": "4000000000"}
DAY = 24 * HOUR


async def _database(stage: Stage, replicas: int = 2, requests: Json | None = None) -> None:
    await stage.statefulset("db", replicas, requests=requests)
    await stage.vpa("base", "db", mode="Off")
    stage.use(**{f"db_{index}": FOLLOWER for index in range(replicas)})


async def _kill(stage: Stage, pod: str) -> None:
    """Let a pod run out of memory, and let the watches hear of it."""
    await stage.run_pod(pod, restarts=1, oom_at=format_time(stage.clock.now()))
    await stage.clock.sleep(1)


async def _samples(stage: Stage, name: str = "base-app") -> int:
    return int((await stage.checkpoints())[name].get("status", {}).get("totalSamplesCount", 0))


@in_virtual_time
async def test_rm4_the_kill_of_a_pod_that_is_gone_before_the_loop_counts(stage):
    await _database(stage, requests=BIG)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        assert await stage.target("base") == FOLLOWER_TARGET
        await _kill(stage, "db-0")
        await stage.delete_pod("db-0")
        await stage.recommend(actor)
        assert int(await stage.target("base") or 0) > 4 * FOLLOWER_TARGET
        model = actor.recommender.model_of(f"{stage.namespace}/base")
        assert model is not None
        assert {pod.name for pod in model.pods} == {"db-1"}, "the pod itself is forgotten"


@in_virtual_time
async def test_rm4_so_does_the_kill_of_a_pod_that_came_and_went_between_two_loops(stage):
    await _database(stage, requests=BIG)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        await stage.scale("db", 3)
        await stage.heal("db")
        await stage.clock.sleep(1)
        await _kill(stage, "db-2")
        await stage.delete_pod("db-2")
        await stage.recommend(actor)
        assert int(await stage.target("base") or 0) > 4 * FOLLOWER_TARGET


@in_virtual_time
async def test_rl2_a_stand_by_that_takes_over_does_not_count_the_kills_of_another_day_again(stage):
    await _database(stage, requests=BIG)
    async with stage.running(checkpoints_interval=EACH_LOOP) as leader, stage.running() as stand_by:
        await stage.recommend(leader, 20, after=HOUR)
        await stage.caught_up(stand_by)
        await _kill(stage, "db-0")
        await stage.caught_up(stand_by)
        await stage.recommend(leader, 7, after=HOUR)
        await stage.caught_up(stand_by)
        await stand_by.recommender.step()
        assert _oom_peak(stage, leader) == 0, "the day of the kill is over"
        assert _oom_peak(stage, stand_by) == 0
        assert await _taken(stage, stand_by) == await _taken(stage, leader) + 2


def _oom_peak(stage: Stage, actor: Actor) -> int:
    model = actor.recommender.model_of(f"{stage.namespace}/base")
    assert model is not None
    tracked = model.find_container(ContainerId(PodId(stage.namespace, "db-0"), "app"))
    assert isinstance(tracked, TrackedContainer)
    return int(tracked.history.oom_peak)


async def _taken(stage: Stage, actor: Actor) -> int:
    """Return how many samples an actor's own model holds."""
    key = f"{stage.namespace}/base"
    model = actor.recommender.model_of(key)
    assert model is not None
    vpa = model.vpas[key]
    return sum(one.sample_count for one in (*vpa.aggregates.values(), *vpa.initial.values()))


@in_virtual_time
async def test_rl1_a_vpa_made_again_has_its_history_once(stage):
    await _database(stage)
    async with stage.running(checkpoints_interval=EACH_LOOP) as actor:
        await stage.recommend(actor, 10)
    async with stage.running(checkpoints_interval=EACH_LOOP) as actor:
        await stage.recommend(actor, 5)
        for again in range(1, 4):
            await stage.client.delete(VPAS, "base", stage.namespace)
            await stage.recommend(actor)
            await stage.vpa("base", "db", mode="Off")
            await stage.recommend(actor)
            # Two pods, a sample in each loop that finds a VPA.
            assert await _samples(stage) == 2 * (15 + again)


class Young(Prometheus):
    """A Prometheus that was started anew: it tells of the last hours only."""

    since = 0.0

    def _series(self, form):
        for series in super()._series(form):
            values = [pair for pair in series["values"] if pair[0] >= self.since]
            if values:
                yield {**series, "values": values}


@in_virtual_time
async def test_rm5_a_prometheus_that_lost_its_past_does_not_replace_the_checkpoints(stage):
    await _database(stage)
    stage.use(db_0=LEADER, db_1=LEADER)
    async with stage.running(checkpoints_interval=EACH_LOOP) as actor:
        for _ in range(6 * 24):
            await stage.recommend(actor, after=HOUR)
        assert await stage.target("base") == LEADER_TARGET
    before = await _samples(stage)
    prometheus = Young({"db-0": BYTES[FOLLOWER], "db-1": BYTES[FOLLOWER]}, {})
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
    await stage.pass_time(4 * HOUR)
    prometheus.since = stage.clock.now().timestamp() - 2 * HOUR
    async with stage.running(history=loader(stage, prometheus), checkpoints_interval=EACH_LOOP) as actor:
        await stage.caught_up(actor)
        await actor.recommender.step()
        await stage.clock.sleep(1)
        await actor.recommender.step()
        assert await stage.target("base") == LEADER_TARGET
        after = await _samples(stage)
        assert before < after <= before + 10, "what Prometheus tells of the time since is added"


@pytest.mark.parametrize(("base", "preview"), [(6, 2), (2, 6)])
@in_virtual_time
async def test_of_two_vpas_that_share_samples_none_has_a_sample_twice(stage, base, preview):
    """A preview in mode Off receives the samples of the VPA beside it. One of the two was saved later."""
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db")
    await stage.vpa("preview", "db", mode="Off")
    await _save(stage, "app", ago=timedelta(hours=base))
    await _save(stage, "app", ago=timedelta(hours=preview), vpa="preview")
    prometheus = Young({"db-0": BYTES[FOLLOWER], "db-1": BYTES[FOLLOWER]}, {})
    prometheus.since = stage.clock.now().timestamp() - 8 * HOUR
    async with stage.running(history=loader(stage, prometheus)) as actor:
        await stage.caught_up(actor)
        await actor.recommender.step()
        await stage.clock.sleep(1)
        await actor.recommender.step()
        replayed = actor.count("trimtab_recommender_history_samples_total")
    # CPU and memory of two pods, hour by hour since the later of the two times.
    assert replayed in {2 * 2 * 2, 2 * 2 * 3}


@in_virtual_time
async def test_d7_the_first_saved_history_of_a_role_holds_what_is_recommended(stage):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db", mode="Off")
    async with stage.running(checkpoints_interval=timedelta(hours=1)) as actor:
        await stage.recommend(actor)
        stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
        await stage.recommend(actor)
        assert await stage.target("base") == FOLLOWER_TARGET
        assert await _samples(stage) == 2
    async with stage.running() as actor:  # the first one crashed: nothing was saved at its end
        stage.metrics.usage.clear()
        await stage.recommend(actor)
        assert await stage.target("base") == FOLLOWER_TARGET


@in_virtual_time
async def test_rm11_the_history_of_a_renamed_container_ends_with_its_window(stage):
    await _database(stage)
    await _save(stage, "old", ago=timedelta(days=9))
    await _save(stage, "newer", ago=timedelta(days=7))
    async with stage.running(checkpoints_gc_interval=timedelta(minutes=1)) as actor:
        await stage.recommend(actor, 6)
        found = (await stage.read_vpa("base"))["status"]["recommendation"]["containerRecommendations"]
        assert [one["containerName"] for one in found] == ["app", "newer"]
    names = (await stage.client.list(CHECKPOINTS, ListOptions(stage.namespace))).items
    assert {one.spec.container_name for one in names} == {"app", "newer"}


async def _save(stage: Stage, container: str, *, ago: timedelta, vpa: str = "base") -> None:
    last = format_time(stage.clock.now() - ago)
    first = format_time(stage.clock.now() - ago - timedelta(days=5))
    histogram = {"referenceTimestamp": last, "bucketWeights": {"10": 10000}, "totalWeight": 5.0}
    body: Json = {
        "apiVersion": CHECKPOINTS.api_version,
        "kind": CHECKPOINTS.kind,
        "metadata": {"name": f"{vpa}-{container}"},
        "spec": {"vpaObjectName": vpa, "containerName": container},
        "status": {
            "version": "v3",
            "cpuHistogram": histogram,
            "memoryHistogram": histogram,
            "firstSampleStart": first,
            "lastSampleStart": last,
            "lastUpdateTime": last,
            "totalSamplesCount": 100,
        },
    }
    await stage.client.create(CHECKPOINTS.untyped(), body, stage.namespace)
