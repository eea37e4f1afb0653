"""`explain` from the live cluster: who controls a pod, who lost, what comes next, and where numbers come from."""

from datetime import timedelta
from typing import Any

import pytest

from tests.scenarios.vertical.stage import FOLLOWER, LEADER, LEADER_TARGET, Stage
from tests.support.clock import in_virtual_time
from trimtab.cluster.resource import Json
from trimtab.decide.vertical.explain import PodExplanation, VPAExplanation
from trimtab.model.times import format_time
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.explain import Explainer, NotFoundError
from trimtab.operator.vertical.kinds import CHECKPOINTS


def test_a_pod_and_a_vpa_are_explained(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("base", "db")
        await stage.vpa("lead", "db", scope="leader")
        await stage.label("db-0", role="leader")
        stage.use(db_0=LEADER, db_1=FOLLOWER)
        async with stage.running() as actor:
            await stage.recommend(actor, 3)
            await stage.pass_time(25 * 3600)
            await stage.recommend(actor, 1)
        settings = Settings.of(feature_gates="VPASelectorRefinement=true")
        explainer = Explainer(stage.client, stage.namespace, settings)
        try:
            pod = await explainer.pod("db-0")
            vpa = await explainer.vpa("lead")
            with pytest.raises(NotFoundError, match="no pod"):
                await explainer.pod("nobody")
        finally:
            await explainer.close()
        ns = stage.namespace
        text = "\n".join(pod.lines)
        assert isinstance(pod.data, PodExplanation)
        assert isinstance(vpa.data, VPAExplanation)
        assert pod.data.controlled_by == f"{ns}/lead"
        assert f"{ns}/base does not control it: VPA {ns}/lead speaks for a part of the workload" in text
        assert "would get cpu 126m, memory 8.96 GiB" in text
        assert "next update: resized: its requests are outside the recommended range" in text
        assert vpa.data.fed_by == (f"{ns}/db-0",)
        assert "labels do not match podSelector role=leader" in vpa.data.not_fed_by[f"{ns}/db-1"]
        target = [one for one in vpa.data.amounts if (one.bound, one.resource) == ("target", "memory")]
        assert target[0].amount == LEADER_TARGET
        assert "  recommends for app: cpu 126m, memory 8.96 GiB" in vpa.lines
        saved = (await stage.checkpoints())["lead-app"]["status"]["lastUpdateTime"]
        assert vpa.data.saved_at == saved
        assert any(f"by its history as saved at {saved}:" in line for line in vpa.lines)

    play(scenario)


def test_a_vpa_is_explained_by_the_settings_of_the_operator(play):
    """Margins and minimums were always the defaults, and the numbers not those of the status."""

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.vpa("base", "db")
        stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
        changed: dict[str, Any] = {
            "recommendation_margin_fraction": 0.5,
            "target_memory_percentile": 0.6,
            "pod_min_cpu_millicores": 900.0,
        }
        async with stage.running(checkpoints_interval=timedelta(), **changed) as actor:
            await stage.recommend(actor, 3)
        settings = Settings.of(**changed)
        explainer = Explainer(stage.client, stage.namespace, settings)
        try:
            found = await explainer.vpa("base")
        finally:
            await explainer.close()
        assert isinstance(found.data, VPAExplanation)
        amounts = {one.resource: one.amount for one in found.data.amounts if one.bound == "target"}
        assert amounts["memory"] == await stage.target("base")
        assert amounts["cpu"] == 900

    play(scenario)


@in_virtual_time
async def test_a_vpa_is_explained_as_of_its_newest_checkpoint(stage):
    """Each container has a checkpoint. One that is no longer written, or never was, hides no newer one."""
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
    async with stage.running(checkpoints_interval=timedelta()) as actor:
        await stage.recommend(actor, 2)
    saved = (await stage.checkpoints())["base-app"]["status"]["lastUpdateTime"]
    dates = {"gone": format_time(stage.clock.now() - timedelta(days=1)), "new": None}
    for container, date in dates.items():
        body: Json = {
            "apiVersion": CHECKPOINTS.api_version,
            "kind": CHECKPOINTS.kind,
            "metadata": {"name": f"base-{container}"},
            "spec": {"vpaObjectName": "base", "containerName": container},
            "status": {"version": "v3"} | ({"lastUpdateTime": date} if date else {}),
        }
        await stage.client.create(CHECKPOINTS.untyped(), body, stage.namespace)
    explainer = Explainer(stage.client, stage.namespace, Settings())
    try:
        found = await explainer.vpa("base")
    finally:
        await explainer.close()
    assert isinstance(found.data, VPAExplanation)
    assert found.data.saved_at == saved


def test_a_resize_that_waits_is_explained_in_the_kubelets_words(play_by_hand):
    """F4. By hand, because our nodes have room for it."""

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.vpa("base", "db")
        stage.use(db_0=LEADER, db_1=LEADER)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            await stage.pass_time(60)
            await stage.caught_up(actor)
            await actor.updater.step()
            (asked,) = [name for name in ("db-0", "db-1") if await stage.memory(name) == LEADER_TARGET]
            words = "Node didn't have enough resource: memory"
            condition = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": words}
            pod = await stage.read_pod(asked)
            condition["observedGeneration"] = pod["metadata"]["generation"]
            condition["lastTransitionTime"] = format_time(stage.clock.now().replace(microsecond=0))
            await stage.set_status(asked, conditions=[*pod["status"]["conditions"], condition])
            await stage.caught_up(actor)
            await actor.updater.step()
            told = {reason: message for reason, name, message in await stage.events(actor) if name == asked}
            assert words in told["InPlaceResizeDeferred"]
            assert "InPlaceResizedByVPA" not in told
        explainer = Explainer(stage.client, stage.namespace, Settings())
        try:
            lines = (await explainer.pod(asked)).lines
        finally:
            await explainer.close()
        assert any(f"its resize waits: Deferred: {words}" in line for line in lines), lines

    play_by_hand(scenario)
