"""`explain` from the live cluster: who controls a pod, who lost, what comes next, and where numbers come from."""

import pytest

from tests.scenarios.vertical.stage import FOLLOWER, LEADER, LEADER_TARGET, Stage
from trimtab.decide.vertical.explain import PodExplanation, VPAExplanation
from trimtab.model.gates import FeatureGates
from trimtab.operator.settings import Settings
from trimtab.operator.vertical.explaining import Explainer, NotFoundError


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
        gates = FeatureGates.of({"VPASelectorRefinement": True})
        explainer = Explainer(stage.clock, stage.client, stage.namespace, gates=gates, settings=Settings())
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
        assert f"would get cpu 126m, memory {LEADER_TARGET}" in text
        assert "next update: resized: its requests are outside the recommended range" in text
        assert vpa.data.fed_by == (f"{ns}/db-0",)
        assert "labels do not match podSelector role=leader" in vpa.data.not_fed_by[f"{ns}/db-1"]
        target = [one for one in vpa.data.amounts if (one.bound, one.resource) == ("target", "memory")]
        assert target[0].amount == LEADER_TARGET
        assert f"  recommends for app: cpu 126m, memory {LEADER_TARGET}" in vpa.lines
        saved = (await stage.checkpoints())["lead-app"]["status"]["lastUpdateTime"]
        assert vpa.data.saved_at == saved
        assert any(f"by its history as saved at {saved}:" in line for line in vpa.lines)

    play(scenario)
