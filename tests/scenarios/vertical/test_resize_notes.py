"""The notes of a resize: what the user wrote is kept first, and annotations of others survive (RV-L7)."""

import json

import pytest

from tests.scenarios.vertical.stage import Stage
from trimtab.cluster.resource import PODS
from trimtab.decide.vertical.admission.pod_annotations import ORIGINALS_ANNOTATION
from trimtab.decide.vertical.resources.container_resources import ContainerResources
from trimtab.decide.vertical.update.actions import ActionResult, Resize
from trimtab.decide.vertical.update.resize.plan import plan_resize
from trimtab.model.quantity import Quantity
from trimtab.operator.vertical.kinds import VPAS
from trimtab.operator.vertical.updater.actuator import ActionRateLimiter, UpdateActuator

pytestmark = pytest.mark.versions


async def _proved() -> str | None:
    return None


def test_rv_l7_annotations_that_the_cache_has_not_seen_survive_a_resize(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 1)
        await stage.vpa("base", "db")
        vpa = await stage.client.get(VPAS, "base", stage.namespace)
        cached = await stage.client.get(PODS, "db-0", stage.namespace)
        assert not cached.metadata.annotations
        late = {"metadata": {"annotations": {"cni.example/podIP": "10.0.0.7"}}}
        await stage.client.patch(PODS, "db-0", stage.namespace, late)
        sizes = [ContainerResources({"memory": Quantity.parse("60Mi")}, {})]
        plan = plan_resize(cached, vpa, sizes, stage.clock.now())
        rate = ActionRateLimiter(stage.clock, 0, 1)
        performer = UpdateActuator(stage.client, rate, rate, _proved, stage.clock.monotonic() + 60)
        assert await performer.perform(Resize(cached, vpa, plan, "as asked")) is ActionResult.DONE
        after = await stage.read_pod("db-0")
        annotations = after["metadata"]["annotations"]
        assert annotations["cni.example/podIP"] == "10.0.0.7"
        assert annotations["vpaInPlaceUpdated"] == "true"
        kept = json.loads(annotations[ORIGINALS_ANNOTATION])["app"]["before"]
        assert kept["requests"]["memory"] == "50Mi"

    play(scenario)
