"""SEL-*: which pods count (KEP-5625), end to end."""

import pytest

from tests.scenarios.horizontal.stage import Stage, cpu_metric

F1 = {"minReplicas": 1, "maxReplicas": 5, "metrics": [cpu_metric(50)]}


async def f1(stage: Stage) -> None:
    """One pod of the workload at 10m, one pod of a Job with the same labels at 1000m; both ask for 100m."""
    await stage.deployment("web", 1)
    await stage.pod("scrape", {"app": "web"})
    stage.use_cpu(web="10m", scrape="1")


@pytest.mark.parametrize(
    ("strategy", "replicas"),
    [
        pytest.param("OwnerReference", 1, id="SEL-E1 the Job's pod does not count"),
        pytest.param("LabelSelector", 4, id="SEL-E3 the Job's pod counts"),
        pytest.param(None, 4, id="SEL-E5 absent means LabelSelector"),
    ],
)
def test_a_pod_with_the_same_labels(play, strategy, replicas):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1, **({"selectionStrategy": strategy} if strategy else {}))
        async with stage.running() as operator:
            await stage.step(operator)
        assert await stage.replicas("web") == replicas
        hpa = await stage.read_hpa("web")
        assert hpa["spec"].get("selectionStrategy") == strategy

    play(scenario)
