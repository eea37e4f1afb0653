"""Gates and versions, in the API server and in the operator, in every order (1.6, 2.6, 3.6 of the specification).

The lab has the fields natively and behind gates, as an API server would; our own HPAs always have them, so there only
the operator's gates count.
"""

import pytest

from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.horizontal.test_selection import F1, average, f1
from tests.scenarios.horizontal.test_tolerance import NATIVE_V1
from tests.support.objects import NO_WINDOW, external_metric, tolerances
from trimtab.cluster import errors
from trimtab.cluster.resource import Json
from trimtab.model.feature_gates import FeatureGates
from trimtab_lab.apiserver.server import LAB_GATES

pytestmark = pytest.mark.versions

ALL_OFF = FeatureGates.of({"HPAConfigurableTolerance": False, "HPAScaleToZero": False})
OWNER, LABEL = 10, 505
ON, OFF = "HPASelectionStrategy=true", ""


async def decided(stage: Stage, gates: str) -> int:
    """Return the utilization that an operator with these gates sees."""
    async with stage.running(feature_gates=gates) as actor:
        await stage.step(actor)
        seen = await average(stage)
        if gates == OFF:
            assert not [one for one in actor.line.sent if "replicasets" in one.path]
    return seen


async def strategy(stage: Stage) -> str | None:
    stored: str | None = (await stage.read_hpa("web"))["spec"].get("selectionStrategy")
    return stored


@pytest.mark.parametrize("value", [None, "OwnerReference", "LabelSelector"])
@pytest.mark.parametrize("gates", [ON, OFF], ids=["operator on", "operator off"])
def test_sel_g1_created_while_the_server_has_the_gate_off(value, gates):
    async def scenario(stage: Stage) -> None:
        stage.restart_server_with(ALL_OFF)
        await f1(stage)
        await stage.hpa("web", **F1, **({"selectionStrategy": value} if value else {}))
        assert await strategy(stage) is None
        assert await decided(stage, gates) == LABEL

    play_on_lab(scenario, native=True)


@pytest.mark.parametrize("native", [True, False], ids=["native", "own"])
@pytest.mark.parametrize("value", ["OwnerReferences", "ownerreference", ""])
def test_sel_g1_an_invalid_value_is_refused_with_the_list_of_valid_ones(value, native):
    async def scenario(stage: Stage) -> None:
        with pytest.raises(errors.Invalid) as refused:
            await stage.hpa("web", **F1, selectionStrategy=value)
        told = str(refused.value)
        assert "spec.selectionStrategy" in told
        assert '"LabelSelector", "OwnerReference"' in told

    play_on_lab(scenario, native=native)


def test_sel_g1_an_update_keeps_what_is_stored_and_drops_what_is_new():
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1, selectionStrategy="OwnerReference")
        await stage.hpa("plain", target="web", **F1)
        stage.restart_server_with(ALL_OFF)
        await stage.edit_hpa("web", maxReplicas=6)
        await stage.edit_hpa("plain", selectionStrategy="OwnerReference")
        assert await strategy(stage) == "OwnerReference"
        assert "selectionStrategy" not in (await stage.read_hpa("plain"))["spec"]

    play_on_lab(scenario, native=True)


def test_sel_g2_on_off_on_needs_no_edit(play):
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1 | {"maxReplicas": 1}, selectionStrategy="OwnerReference")
        assert [await decided(stage, gates) for gates in (ON, OFF, ON)] == [OWNER, LABEL, OWNER]
        if not (stage.native and stage.prunes):
            assert await strategy(stage) == "OwnerReference"
        assert await stage.event_count("StrategyChanged") <= 2

    play(scenario)


def test_a_v1_client_keeps_the_strategy():
    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1, selectionStrategy="OwnerReference")
        old = await stage.client.get(NATIVE_V1, "web", stage.namespace)
        old["metadata"]["labels"] = {"touched": "yes"}
        await stage.client.update(NATIVE_V1, "web", stage.namespace, old)
        assert await decided(stage, ON) == OWNER

    play_on_lab(scenario, native=True)


async def tolerance_of(stage: Stage) -> tuple[str | None, str | None]:
    behavior = (await stage.read_hpa("web"))["spec"]["behavior"]
    return behavior["scaleUp"].get("tolerance"), behavior["scaleDown"].get("tolerance")


def test_tol_g2_an_update_while_the_server_has_the_gate_off():
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 10)
        metric = [external_metric("load", average="100")]
        await stage.hpa("web", metrics=metric, behavior=tolerances(up="0.05"))
        stage.restart_server_with(ALL_OFF)
        await stage.edit_hpa("web", behavior=tolerances(up="0.05", down="0.2"))
        assert await tolerance_of(stage) == ("50m", "200m")
        await stage.edit_hpa("web", behavior=tolerances() | {"scaleUp": {"tolerance": None}})
        await stage.edit_hpa("web", behavior={"scaleDown": {"tolerance": None}})
        assert await tolerance_of(stage) == (None, None)
        await stage.edit_hpa("web", behavior=tolerances(up="0.05"))
        assert await tolerance_of(stage) == (None, None)

    play_on_lab(scenario, native=True)


def test_tol_g1_off_and_on_again_in_the_operator(play):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 100)
        stage.metrics.set_external(stage.namespace, "load", "10700")
        metric = [external_metric("load", average="100")]
        await stage.hpa("web", maxReplicas=200, metrics=metric, behavior=tolerances(up="0.05"))
        seen = []
        for gates in ("HPAConfigurableTolerance=false", ""):
            async with stage.running(feature_gates=gates) as actor:
                await stage.step(actor)
                seen.append(await stage.replicas("web"))
        assert seen == [100, 107]

    play(scenario)


NO_ZERO = "HPAScaleToZero=false"
ZERO: Json = {"minReplicas": 0, "metrics": [external_metric("queue", average="100")], "behavior": NO_WINDOW}


def test_edge_29_a_stored_zero_stays_editable_with_the_gate_off_and_is_not_regained():
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 1)
        await stage.hpa("web", **ZERO)
        stage.restart_server_with(ALL_OFF)
        await stage.edit_hpa("web", maxReplicas=7)
        await stage.edit_hpa("web", minReplicas=1)
        with pytest.raises(errors.Invalid):
            await stage.edit_hpa("web", minReplicas=0)

    play_on_lab(scenario, native=True)


def test_skew_a_the_operator_without_the_gate_does_not_go_to_a_zero_it_cannot_leave(play):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 2)
        stage.metrics.set_external(stage.namespace, "queue", "0")
        await stage.hpa("web", **ZERO)
        for gates, wanted in ((NO_ZERO, 1), ("", 0), (NO_ZERO, 0), ("", 0)):
            async with stage.running(feature_gates=gates) as actor:
                await stage.steps(actor, 2)
                await stage.follow("web")
                assert await stage.replicas("web") == wanted
        stage.metrics.set_external(stage.namespace, "queue", "200")
        async with stage.running(feature_gates="") as actor:
            await stage.step(actor)
        assert await stage.replicas("web") == 2

    play(scenario)


def test_up_switching_the_gate_on_changes_nothing_until_somebody_sets_zero():
    async def scenario(stage: Stage) -> None:
        stage.restart_server_with(ALL_OFF)
        await stage.bare_deployment("web", 2)
        stage.metrics.set_external(stage.namespace, "queue", "0")
        await stage.hpa("web", **ZERO | {"minReplicas": 1})
        stage.restart_server_with(LAB_GATES)
        async with stage.running() as actor:
            await stage.steps(actor, 3)
            assert await stage.replicas("web") == 1
            await stage.edit_hpa("web", minReplicas=0)
            await stage.steps(actor, 2)
            assert await stage.replicas("web") == 0

    play_on_lab(scenario, native=True)
