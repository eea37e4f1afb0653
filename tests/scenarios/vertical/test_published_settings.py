"""VPAs and pods are explained by the settings of their recommender and updater (N6), with a namespace's rights (N9)."""

from contextlib import suppress
from typing import Any

import pytest

from tests.scenarios.vertical.stage import FOLLOWER, LEADER, Stage
from tests.support.clock import in_virtual_time
from tests.support.objects import NAMESPACES
from tests.support.transport import Line, status
from trimtab.cli.explain.sizes import explain_size
from trimtab.cli.operator_settings import Choice
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.decide.vertical.explain import PodExplanation, VPAExplanation
from trimtab.model.quantity import Quantity
from trimtab.operator.process import make_family
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.explain import CannotLookError, Explained
from trimtab.operator.vertical.kinds import VPAS

CHOICE = Choice("trimtab")


async def publish(stage: Stage, *loops: str, **settings: Any) -> None:
    """Let an operator with these loops take its Lease."""
    with suppress(errors.AlreadyExists):
        await stage.client.create(NAMESPACES, {"metadata": {"name": "trimtab"}})
    await make_family(stage.client, Settings.of(components=loops, **settings), "one").step()


async def learned(stage: Stage, **settings: Any) -> None:
    """A VPA whose recommender has saved some history."""
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db", mode="Recreate", min_replicas=None)
    stage.use(db_0=LEADER, db_1=FOLLOWER)
    async with stage.running(**settings) as actor:
        await stage.recommend(actor, 3)
        await stage.pass_time(25 * 3600)
        await stage.recommend(actor, 1)


def targets(found: Explained) -> dict[str, int]:
    """Return the targets that an explanation derives, by resource."""
    assert isinstance(found.data, VPAExplanation)
    return {one.resource: one.amount for one in found.data.amounts if one.bound == "target"}


def viewer_of(stage: Stage, *more: str) -> Client:
    """A client with rights in the stage's namespace, and over nodes in none."""
    line = Line(stage.transport, within=(stage.namespace, *more))
    line.answer = lambda request: status(403, "Forbidden") if request.path == "/api/v1/nodes" else None
    return Client(stage.clock, line, seed=5)


@in_virtual_time
async def test_a_vpa_is_derived_by_its_recommenders_numbers(stage):
    """N6: with a margin of 1.0 explain recommended 318m, and derived 182m in the next line."""
    chosen = {"recommendation_margin_fraction": 1.0, "pod_min_cpu_millicores": 250.0}
    await learned(stage, **chosen)
    assumed, notes = await explain_size(stage.client, "vpa", stage.namespace, "base", CHOICE)
    assert "settings: assumed" in notes[-1]
    await publish(stage, "recommender", **chosen)
    await publish(stage, "updater")
    found, notes = await explain_size(stage.client, "vpa", stage.namespace, "base", CHOICE)
    assert "Lease trimtab/trimtab-recommender" in notes[-1]
    stored = (await stage.read_vpa("base"))["status"]["recommendation"]["containerRecommendations"][0]
    recommended = {
        "cpu": Quantity.parse(stored["target"]["cpu"]).milli_value(),
        "memory": Quantity.parse(stored["target"]["memory"]).value(),
    }
    assert targets(found) == recommended
    assert targets(assumed) != recommended


@in_virtual_time
async def test_nothing_is_derived_for_the_vpa_of_another_recommender(stage):
    await learned(stage)
    body = {"spec": {"recommenders": [{"name": "hot"}]}}
    await stage.client.patch(VPAS.untyped(), "base", stage.namespace, body)
    found, notes = await explain_size(stage.client, "vpa", stage.namespace, "base", CHOICE)
    assert targets(found) == {}
    assert "recommender hot" in notes[-1]


@in_virtual_time
async def test_a_pod_waits_for_as_many_replicas_as_the_updater_wants(stage):
    """N6: what the updater would do was foreseen with its default flags."""
    await learned(stage)
    assumed, _ = await explain_size(stage.client, "pod", stage.namespace, "db-0", CHOICE)
    await publish(stage, "recommender")
    await publish(stage, "updater", min_replicas=9)
    found, _ = await explain_size(stage.client, "pod", stage.namespace, "db-0", CHOICE)
    assert isinstance(found.data, PodExplanation)
    assert isinstance(assumed.data, PodExplanation)
    assert assumed.data.update.startswith("evicted")
    assert found.data.update == "none: its group is unknown or below the minimum of replicas"


@pytest.mark.parametrize("kind", ["vpa", "pod"])
@in_virtual_time
async def test_a_viewer_of_one_namespace_gets_an_explanation(stage, kind):
    """N9: it waited for the list of nodes for ever."""
    await learned(stage)
    name = "base" if kind == "vpa" else "db-0"
    viewer = viewer_of(stage, "trimtab")
    whole, _ = await explain_size(stage.client, kind, stage.namespace, name, CHOICE)
    found, _ = await explain_size(viewer, kind, stage.namespace, name, CHOICE)
    assert found.lines == whole.lines


@in_virtual_time
async def test_a_scope_by_node_is_named_where_nodes_cannot_be_listed(stage):
    await learned(stage)
    await stage.scope("big", nodes={"size": "big"})
    choice = Choice("trimtab", feature_gates="VPASelectorRefinement=true")
    found, _ = await explain_size(viewer_of(stage), "vpa", stage.namespace, "base", choice)
    assert "nodes cannot be listed" in found.lines[-1]
    assert "in big of this namespace" in found.lines[-1]
    whole, _ = await explain_size(stage.client, "vpa", stage.namespace, "base", choice)
    assert "nodes cannot be listed" not in "".join(whole.lines)


@in_virtual_time
async def test_without_rights_over_pods_it_ends_and_says_so(stage):
    await learned(stage)
    nobody = Client(stage.clock, Line(stage.transport, within=()), seed=5)
    with pytest.raises(CannotLookError, match=r"cannot be listed: .*Forbidden"):
        await explain_size(nobody, "pod", stage.namespace, "db-0", CHOICE)


@in_virtual_time
async def test_a_pod_of_an_ignored_namespace_is_left_alone(stage):
    """N22: explain foresaw an eviction that the updater never makes there."""
    await learned(stage)
    await publish(stage, "recommender")
    await publish(stage, "updater", ignored_namespaces=(stage.namespace,))
    found, _ = await explain_size(stage.client, "pod", stage.namespace, "db-0", CHOICE)
    assert isinstance(found.data, PodExplanation)
    assert "evicted" not in found.data.update
