"""The path of one VPA sample is the one that docs/architecture.md lists."""

from tests.scenarios.vertical.conftest import play_on_lab
from tests.scenarios.vertical.stage import Stage
from tests.scenarios.walks import check_path, entered_modules


def test_one_vpa_sample_takes_the_documented_path():
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.vpa("db", "db", mode="Off")
        stage.use("100m", db_0="100Mi", db_1="100Mi")
        async with stage.running() as actor:
            await stage.recommend(actor)
            with entered_modules() as entered:
                await stage.recommend(actor)
        check_path("The path of one VPA sample", entered)

    play_on_lab(scenario)
