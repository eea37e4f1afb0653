"""The status of our own HPAs has desired replicas only when they are known."""

from tests.scenarios.horizontal.stage import Stage
from tests.support.objects import external_metric


def test_desired_replicas_are_left_out_of_the_status_until_they_are_known(play_own):
    """`kubectl get thpa` printed DESIRED 0 for a target that is missing, and for one whose metric is."""

    async def scenario(stage: Stage) -> None:
        await stage.hpa("web", metrics=[external_metric("queue", average="100")])
        async with stage.running() as actor:
            await stage.step(actor)
            assert (await stage.conditions("web"))["AbleToScale"][:2] == ("False", "FailedGetScale")
            assert "desiredReplicas" not in (await stage.read_hpa("web"))["status"]
            await stage.bare_deployment("web", 2)
            await stage.step(actor)
            assert (await stage.conditions("web"))["ScalingActive"][0] == "False"
            status = (await stage.read_hpa("web"))["status"]
            assert status["currentReplicas"] == 2
            assert "desiredReplicas" not in status
            stage.metrics.set_external(stage.namespace, "queue", "200")
            await stage.step(actor)
            assert (await stage.read_hpa("web"))["status"]["desiredReplicas"] == 2

    play_own(scenario)


def test_desired_replicas_of_a_paused_workload_are_zero(play_own):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 0)
        await stage.hpa("web", metrics=[external_metric("queue", average="100")])
        async with stage.running() as actor:
            await stage.step(actor)
            assert (await stage.read_hpa("web"))["status"]["desiredReplicas"] == 0

    play_own(scenario)
