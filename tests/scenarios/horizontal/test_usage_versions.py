"""HPAs scale on usage in whichever version of metrics.k8s.io is served, also while versions come and go."""

import pytest

from tests.scenarios.horizontal.stage import Stage
from tests.support.clock import in_virtual_time
from tests.support.objects import NO_WINDOW, cpu_metric


def versions_read(stage: Stage) -> set[str]:
    """Return the versions in which usage was read since the last call."""
    paths = [path for path in stage.metrics.asked if path.startswith("/apis/metrics.k8s.io/")]
    stage.metrics.asked.clear()
    return {path.split("/")[3] for path in paths}


@pytest.mark.parametrize(
    ("served", "want"), [(("v1",), "v1"), (("v1beta1",), "v1beta1"), (("v1beta1", "v1"), "v1")]
)
@in_virtual_time
async def test_an_hpa_scales_on_usage_in_any_version(stage, served, want):
    stage.metrics.usage_versions = served
    await stage.deployment("web", 2)
    stage.use_cpu(web="100m")
    await stage.hpa("web", metrics=[cpu_metric(50)])
    async with stage.running() as actor:
        await stage.step(actor)
        assert await stage.replicas("web") == 4
        assert versions_read(stage) == {want}


@in_virtual_time
async def test_no_sync_is_lost_while_versions_come_and_go(stage):
    """Each change meets the first query after it: the HPA is decided on usage, and its condition stays."""
    await stage.deployment("web", 2)
    stage.use_cpu(web="50m")
    await stage.hpa("web", metrics=[cpu_metric(50)], behavior=NO_WINDOW)
    async with stage.running() as actor:
        for served in (("v1", "v1beta1"), ("v1beta1",), ("v1",), ("v1beta1",)):
            stage.metrics.usage_versions = served
            for _ in range(2):
                await stage.step(actor)
                conditions = (await stage.read_hpa("web"))["status"]["conditions"]
                active = next(found for found in conditions if found["type"] == "ScalingActive")
                assert (active["status"], active["reason"]) == ("True", "ValidMetricFound")
