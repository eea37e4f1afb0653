"""Generations of HPAs: our own kind always has one, a native HPA where the server is of Kubernetes 1.37."""

from typing import Any

import pytest

from tests.faults.horizontal.scene import working
from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.horizontal.workloads import Controllers
from tests.support.objects import external_metric
from trimtab.cluster.resource import Json
from trimtab.model.core.server_rules import KUBERNETES_1_36, KUBERNETES_1_37, ServerRules

QUEUE = [external_metric("queue", average="100")]
SERVERS = pytest.mark.parametrize("rules", [KUBERNETES_1_36, KUBERNETES_1_37], ids=["1.36", "1.37"])


async def set_up(stage: Stage, **spec: Any) -> None:
    await stage.deployment("web", 4)
    stage.metrics.set_external(stage.namespace, "queue", "400")
    await stage.hpa("web", metrics=QUEUE, **spec)


def described(hpa: Json) -> tuple[int | None, int | None, set[int | None]]:
    """Return the generation of an HPA, that of its status, and those of its conditions."""
    status = hpa["status"]
    conditions = {condition.get("observedGeneration") for condition in status["conditions"]}
    return hpa["metadata"].get("generation"), status.get("observedGeneration"), conditions


async def follows_the_spec(stage: Stage) -> None:
    """Change the spec three times; status and conditions name each generation, and no event is false."""
    await set_up(stage, selectionStrategy="OwnerReference")
    async with stage.running() as actor:
        await stage.steps(actor, 2, "web")
        for most in (9, 3, 8):
            await stage.edit_hpa("web", maxReplicas=most)
            await stage.steps(actor, 2, "web")
            generation, observed, conditions = described(await stage.read_hpa("web"))
            assert observed == generation
            assert conditions == {generation}
        settled = len(actor.line.writes)
        await stage.steps(actor, 4, "web")
        assert len(actor.line.writes) == settled
    announced = 4 if generation else 1
    assert generation in (4, None)
    assert await stage.event_count("StrategyChanged") == 0
    assert await stage.event_count("SelectionStrategyActive") <= announced


def test_status_and_conditions_name_the_generation_of_the_spec(play):
    play(follows_the_spec)


@SERVERS
def test_a_native_hpa_follows_its_spec_on_servers_with_and_without_generations(rules: ServerRules):
    async def scenario(stage: Stage) -> None:
        await follows_the_spec(stage)
        generation, *_ = described(await stage.read_hpa("web"))
        assert generation == (4 if rules.hpa_generations else None)

    play_on_lab(scenario, native=True, rules=rules, by=Controllers.LAB)


def test_a_restored_hpa_with_a_generation_follows_its_spec(play):
    """A server before 1.37 keeps the generation of a restored HPA for good; each change of its spec has to count."""

    async def scenario(stage: Stage) -> None:
        await set_up(stage)
        saved = await stage.read_hpa("web")
        await stage.client.delete(stage.resource, "web", stage.namespace)
        restored = {**saved, "metadata": {"name": "web", "generation": 7}}
        await stage.client.create(stage.resource.untyped(), restored, stage.namespace)
        async with stage.running() as actor:
            for most in (3, 2):
                await stage.edit_hpa("web", maxReplicas=most)
                await stage.steps(actor, 2, "web")
                assert await stage.replicas("web") == most
            generation, observed, _ = described(await stage.read_hpa("web"))
            assert observed == generation

    play(scenario)


@SERVERS
def test_a_changed_spec_of_a_native_hpa_acts_before_the_next_sync(rules: ServerRules):
    async def scenario(stage: Stage) -> None:
        await set_up(stage)
        async with working(stage, period=300, compat="kubernetes-1.37"):
            await stage.pass_time(5)
            await stage.edit_hpa("web", maxReplicas=3)
            await stage.pass_time(1)
            assert await stage.replicas("web") == 3

    play_on_lab(scenario, native=True, rules=rules)


@SERVERS
def test_under_1_37_the_status_names_the_generation_and_no_condition_does(rules: ServerRules):
    async def scenario(stage: Stage) -> None:
        await set_up(stage)
        async with stage.running(compat="kubernetes-1.37", feature_gates="") as actor:
            await stage.steps(actor, 2)
        generation, observed, conditions = described(await stage.read_hpa("web"))
        assert (observed, conditions) == (generation or 0, {None})

    play_on_lab(scenario, native=True, rules=rules)
