"""History is saved at once when it is new, then now and then, and at the end: never twice the same."""

import asyncio
import json
from datetime import timedelta

import msgspec

from tests.scenarios.vertical.stage import FOLLOWER, Stage
from tests.support.clock import in_virtual_time
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.input.memory_windows import WINDOWS_ANNOTATION
from trimtab.model.core.meta import NamespacedName
from trimtab.operator.vertical.kinds import CHECKPOINTS
from trimtab.operator.vertical.recommender.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates


async def _database(stage: Stage) -> None:
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER)


def saves(actor) -> int:
    return len(actor.wrote("/verticalpodautoscalercheckpoints"))


async def samples(stage: Stage) -> int:
    return int((await stage.checkpoints())["base-app"]["status"]["totalSamplesCount"])


@in_virtual_time
async def test_a_new_history_is_saved_at_once_and_then_once_per_interval(stage):
    await _database(stage)
    async with stage.running(checkpoints_interval=timedelta(minutes=10)) as actor:
        await stage.recommend(actor)
        assert (saves(actor), await samples(stage)) == (1, 2)
        await stage.recommend(actor, 30)
        assert 3 <= saves(actor) <= 5


@in_virtual_time
async def test_an_interval_of_zero_saves_in_every_loop_as_upstream(stage):
    await _database(stage)
    async with stage.running(checkpoints_interval=timedelta(0)) as actor:
        await stage.recommend(actor, 5)
        assert saves(actor) == 5


@in_virtual_time
async def test_a_history_that_did_not_change_is_not_written_again(stage):
    await _database(stage)
    async with stage.running(checkpoints_interval=timedelta(0)) as actor:
        await stage.recommend(actor, 2)
        stage.metrics.usage.clear()
        await stage.recommend(actor, 5)
        assert saves(actor) == 2


@in_virtual_time
async def test_a_process_that_is_stopped_saves_what_it_learnt_since(stage):
    await _database(stage)
    async with stage.running(checkpoints_interval=timedelta(hours=1)) as actor:
        running = asyncio.ensure_future(actor.recommender.run())
        await stage.clock.sleep(250)
        assert await samples(stage) == 2
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await samples(stage) == 10


def test_rv_l7_what_another_writes_on_a_checkpoint_after_it_was_read_survives(play):
    """It had no annotations when it was read, so that the whole map was written."""

    async def scenario(stage: Stage) -> None:
        body = {
            "apiVersion": CHECKPOINTS.api_version,
            "kind": CHECKPOINTS.kind,
            "metadata": {"name": "base-app"},
            "spec": {"vpaObjectName": "base", "containerName": "app"},
        }
        await stage.client.create(CHECKPOINTS.untyped(), body, stage.namespace)
        async with stage.running() as actor:
            store = CheckpointStore(stage.client, ShardedClusterStates(ClusterState, actor.site.ownership))
            vpa = NamespacedName(stage.namespace, "base")
            (found,) = (await store.read([vpa]))[vpa]
            mark = {"metadata": {"annotations": {"who": "me"}}}
            await stage.client.patch(CHECKPOINTS.untyped(), "base-app", stage.namespace, mark)
            metadata = msgspec.structs.replace(found.metadata, annotations={WINDOWS_ANNOTATION: "{}"})
            status = msgspec.structs.replace(found.status, total_samples_count=1)
            changed = msgspec.structs.replace(found, metadata=metadata, status=status)
            report = await store.write([changed], 10)
        assert report.failed == {}
        annotations = (await stage.checkpoints())["base-app"]["metadata"]["annotations"]
        assert annotations == {"who": "me", WINDOWS_ANNOTATION: "{}"}

    play(scenario)


def test_running_windows_are_saved_beside_what_others_wrote_on_a_checkpoint(play):
    """One that upstream made has no annotations at all; one that a person marked keeps the mark."""

    async def scenario(stage: Stage) -> None:
        await _database(stage)
        spec = {"vpaObjectName": "base", "containerName": "app"}
        body = {
            "apiVersion": CHECKPOINTS.api_version,
            "kind": CHECKPOINTS.kind,
            "metadata": {"name": "base-app"},
            "spec": spec,
        }
        await stage.client.create(CHECKPOINTS.untyped(), body, stage.namespace)
        async with stage.running(checkpoints_interval=timedelta(0)) as actor:
            for mark in ({}, {"who": "me"}, {"who": "me"}):
                notes = {"metadata": {"annotations": mark}}
                await stage.client.patch(CHECKPOINTS.untyped(), "base-app", stage.namespace, notes)
                await stage.recommend(actor)
                found = (await stage.checkpoints())["base-app"]["metadata"]["annotations"]
                assert {**mark, WINDOWS_ANNOTATION: found[WINDOWS_ANNOTATION]} == found
                assert set(json.loads(found[WINDOWS_ANNOTATION])["windows"]) == {"db-0", "db-1"}
            gone = {"metadata": {"annotations": None}}
            await stage.client.patch(CHECKPOINTS.untyped(), "base-app", stage.namespace, gone)
            await stage.recommend(actor, 2)
            found = (await stage.checkpoints())["base-app"]["metadata"]["annotations"]
            assert set(found) == {WINDOWS_ANNOTATION}

    play(scenario)
