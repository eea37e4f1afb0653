"""TOL-*: how far usage may stray (KEP-4951), end to end."""

from typing import Any

import pytest

from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.stage import Stage
from tests.support.objects import NO_WINDOW, cpu_metric, external_metric, tolerances
from trimtab.cluster.resource import Json, Resource
from trimtab.model.feature_gates import FeatureGates

pytestmark = pytest.mark.versions

OFF = FeatureGates.of({"HPAConfigurableTolerance": False})
NATIVE_V1 = Resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", Json)


async def with_load(stage: Stage, replicas: int, load: int, **spec: Any) -> None:
    """A workload that holds `replicas` at 100 each, and a load in the same unit."""
    await stage.bare_deployment("web", replicas)
    stage.metrics.set_external(stage.namespace, "load", str(load))
    usual: dict[str, Any] = {"maxReplicas": 200, "metrics": [external_metric("load", average="100")]}
    spec = usual | spec
    await stage.hpa("web", **spec)


async def rounds(stage: Stage, actor, times: int = 1, *, after: float = 15) -> int:
    for _ in range(times):
        await stage.step(actor, after=after)
        await stage.follow("web")
    return await stage.replicas("web")


@pytest.mark.parametrize(
    ("behavior", "load", "replicas"),
    [
        pytest.param(tolerances(up="0.05"), 10400, 100, id="TOL-E1 4% over is within 5%"),
        pytest.param(tolerances(up="0.05"), 10700, 107, id="TOL-E2 7% over is too much for 5%"),
        pytest.param(tolerances(down="0.05"), 9600, 100, id="TOL-E3 4% under is within 5%"),
        pytest.param(tolerances(down="0.05"), 9300, 93, id="TOL-E4 7% under is too little for 5%"),
        pytest.param(None, 10700, 100, id="TOL-E5 the flag's 10% counts where nothing is set"),
        pytest.param(tolerances(up="10", down="0.99"), 100000, 100, id="TOL-E7 1000% never scales up"),
        pytest.param(tolerances(up="0"), 10001, 101, id="none at all follows every change"),
        pytest.param(tolerances(up="0.01"), 9200, 100, id="the other direction keeps the flag's"),
    ],
)
def test_a_load_beside_the_target(play, behavior, load, replicas):
    async def scenario(stage: Stage) -> None:
        await with_load(stage, 100, load, behavior=behavior or NO_WINDOW)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == replicas

    play(scenario)


def test_tol_e4_shrinks_only_after_the_window(play):
    async def scenario(stage: Stage) -> None:
        await with_load(stage, 100, 9300, behavior=tolerances(down="0.05", window=300))
        async with stage.running() as actor:
            assert await rounds(stage, actor, 5, after=60) == 100
            assert await rounds(stage, actor, 2, after=60) == 93

    play(scenario)


def test_tol_e5_the_flag_can_be_set(play):
    async def scenario(stage: Stage) -> None:
        await with_load(stage, 100, 11800)
        async with stage.running(tolerance=0.2) as actor:
            assert await rounds(stage, actor) == 100
        async with stage.running(tolerance=0.1) as actor:
            assert await rounds(stage, actor) == 118

    play(scenario)


def test_tol_e6_small_up_and_large_down(play):
    async def scenario(stage: Stage) -> None:
        await with_load(stage, 10, 1100, behavior=tolerances(up="0.05", down="0.5"))
        async with stage.running() as actor:
            seen = []
            for load in ("1100", "1200", "1000"):
                stage.metrics.set_external(stage.namespace, "load", load)
                seen.append(await rounds(stage, actor, 2))
            assert seen == [11, 12, 12]

    play(scenario)


def test_tol_i1_the_numbers_of_upstreams_integration_test(play):
    async def scenario(stage: Stage) -> None:
        await with_load(stage, 35, 3700, behavior=tolerances(up="0.05", down="0.5"))
        async with stage.running() as actor:
            seen = []
            for load in ("3700", "3800", "1000", "800"):
                stage.metrics.set_external(stage.namespace, "load", load)
                seen.append(await rounds(stage, actor))
            assert seen == [37, 37, 10, 10]

    play(scenario)


def test_edge_16_a_ratio_of_2_percent_over(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 3, cpu="1")
        stage.use_cpu(web="1020m")
        await stage.hpa("web", metrics=[cpu_metric(100)], behavior=tolerances(up="0.01"))
        async with stage.running() as actor:
            await stage.step(actor)
        assert await stage.replicas("web") == 4

    play(scenario)


def test_tol_g1_with_the_operators_gate_off_a_stored_tolerance_is_ignored(play):
    async def scenario(stage: Stage) -> None:
        await with_load(stage, 100, 10700, behavior=tolerances(up="0.05"))
        async with stage.running(feature_gates="HPAConfigurableTolerance=false") as actor:
            assert await rounds(stage, actor) == 100
        hpa = await stage.read_hpa("web")
        assert hpa["spec"]["behavior"]["scaleUp"]["tolerance"] in ("50m", "0.05")
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 107

    play(scenario)


def test_tol_g2_a_server_with_the_gate_off_drops_new_tolerances_and_keeps_the_rest():
    async def scenario(stage: Stage) -> None:
        await with_load(stage, 100, 10700, behavior=tolerances(up="0.05", down="0.05"))
        behavior = (await stage.read_hpa("web"))["spec"]["behavior"]
        assert "tolerance" not in behavior["scaleUp"]
        assert "tolerance" not in behavior["scaleDown"]
        assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 0
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 100

    play_on_lab(scenario, native=True, gates=OFF)


def test_tol_c1_a_v1_client_loses_nothing(play):
    async def scenario(stage: Stage) -> None:
        if not stage.native:
            return  # only the server's own HPAs are served in v1
        await with_load(stage, 100, 10700, behavior=tolerances(up="0.05"))
        old = await stage.client.get(NATIVE_V1, "web", stage.namespace)
        old["metadata"]["labels"] = {"touched": "yes"}
        await stage.client.update(NATIVE_V1, "web", stage.namespace, old)
        async with stage.running() as actor:
            assert await rounds(stage, actor) == 107

    play(scenario)


def test_cross_2_tolerance_applies_to_the_ratio_over_owned_pods(play):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        await stage.pod("foreign", {"app": "web"})
        stage.use_cpu(web="104m", foreign="1")
        await stage.hpa(
            "web",
            metrics=[cpu_metric(100)],
            behavior=tolerances(up="0.05"),
            selectionStrategy="OwnerReference",
        )
        async with stage.running() as actor:
            await stage.step(actor)
            assert await stage.replicas("web") == 2
            stage.use_cpu(web="107m")
            await stage.step(actor)
            assert await stage.replicas("web") == 3

    play(scenario)
