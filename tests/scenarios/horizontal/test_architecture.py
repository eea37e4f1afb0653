"""The path of one HPA decision is the one that docs/architecture.md lists."""

from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.walks import check_path, entered_modules
from tests.support.objects import cpu_metric


def test_one_hpa_decision_takes_the_documented_path():
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        stage.use_cpu(web="50m")
        async with stage.running() as actor:
            with entered_modules() as entered:
                await stage.hpa("web", metrics=[cpu_metric(50)], maxReplicas=9)
                await stage.steps(actor, 3, "web")
                stage.use_cpu(web="100m")
                await stage.step(actor)
            assert await stage.replicas("web") == 4
        check_path("The path of one HPA decision", entered)

    play_on_lab(scenario)
