"""Whoever only looks decides by the settings of the operator that acts (N6, N12, N14), or says what it assumed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from tests.scenarios.horizontal.stage import Stage
from tests.support.clock import in_virtual_time
from tests.support.objects import NAMESPACES, cpu_metric
from tests.support.transport import Line
from trimtab.cli.explain.hpas import DecisionToExplain, explain_replicas
from trimtab.cli.operator_settings import Choice
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.leases.fence import ClosedFence, NoFence
from trimtab.cluster.resource import LEASES
from trimtab.decide.horizontal import Record, explain
from trimtab.decide.horizontal.reasons import Code
from trimtab.operator.health import HeldByAnotherReplica
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.kinds import NATIVE_HPAS
from trimtab.operator.horizontal.records import record_pages
from trimtab.operator.operator import Operator
from trimtab.operator.ownership import Ownership
from trimtab.operator.process import make_family
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.published import ANNOTATION, SettingsPublisher, parse_annotation
from trimtab.operator.settings.settings import Settings

HOME = "trimtab"
CHOICE = Choice(HOME)


async def lead(stage: Stage, identity: str = "one", **settings: Any) -> None:
    """Let an operator take its Lease, as its first step."""
    with suppress(errors.AlreadyExists):
        await stage.client.create(NAMESPACES, {"metadata": {"name": HOME}})
    chosen = Settings.of(**settings)
    elector = make_family(stage.client, chosen, identity)
    await elector.step()
    while not elector.may_write():
        await stage.pass_time(2)
        await elector.step()


async def busy(stage: Stage) -> None:
    """Two pods at 150 % of their target: four by default."""
    await stage.deployment("web", 2)
    stage.use_cpu(web="75m")
    await stage.hpa("web", metrics=[cpu_metric(50)])


async def explained(
    stage: Stage, choice: Choice = CHOICE, client: Client | None = None
) -> tuple[Record, str]:
    found = await told(stage, choice, client)
    return found.record, "\n".join(found.notes)


async def told(stage: Stage, choice: Choice = CHOICE, client: Client | None = None) -> DecisionToExplain:
    found = await explain_replicas(client or stage.client, stage.namespace, "web", choice)
    assert found is not None
    return found


@in_virtual_time
async def test_explain_decides_by_the_operators_numbers(stage):
    """N6: an operator with a tolerance of 200 % stays; explain said that it scales to 3."""
    await busy(stage)
    await lead(stage, tolerance=2.0, native_hpas=stage.native, feature_gates="HPAScaleToZero=true")
    record, notes = await explained(stage)
    assert record.decision.desired == 2
    assert record.observation.settings.tolerance == 2.0
    assert record.observation.gates.hpa_scale_to_zero
    assert not record.observation.gates.hpa_selection_strategy
    assert notes == f"settings: of the operator that holds Lease {HOME}/trimtab-horizontal-0"


@in_virtual_time
async def test_explain_says_what_it_assumed_where_nothing_is_published(stage):
    await busy(stage)
    record, notes = await explained(stage)
    assert record.decision.desired == 3
    assert (
        "settings: assumed, because no operator in namespace trimtab has published settings for horizontal"
        in notes
    )
    assert "Assumed: tolerance 0.1, downscale stabilization 5m," in notes
    assert "gates HPASelectionStrategy=true" in notes


@in_virtual_time
async def test_explain_says_which_right_is_missing(stage):
    await busy(stage)
    await lead(stage, tolerance=2.0)
    viewer = Client(stage.clock, Line(stage.transport, within=(stage.namespace,)), seed=5)
    record, notes = await explained(stage, client=viewer)
    assert record.decision.desired == 3
    assert "settings: assumed, because the operator's Leases in namespace trimtab cannot be read" in notes
    assert "Forbidden" in notes


@in_virtual_time
async def test_rules_of_the_command_line_replace_the_operators_and_are_named(stage):
    await busy(stage)
    await lead(stage, tolerance=2.0, native_hpas=stage.native)
    record, notes = await explained(stage, replace(CHOICE, compat="kubernetes-1.36"))
    assert record.observation.settings.tolerance == 2.0
    assert "with --compat=kubernetes-1.36 instead" in notes
    with pytest.raises(ValueError, match="nonsense"):
        await explained(stage, replace(CHOICE, compat="nonsense"))


@in_virtual_time
async def test_an_operators_dry_run_and_its_namespaces_are_told(stage):
    await busy(stage)
    await lead(stage, dry_run=True, native_hpas=stage.native, watch_namespaces=("elsewhere",))
    _, notes = await explained(stage)
    assert "dry run: the operator runs with --dry-run and changes nothing" in notes
    assert f"not acted on: the operator watches elsewhere and not {stage.namespace}" in notes


@in_virtual_time
async def test_an_operators_dry_run_is_told_in_the_first_line(stage):
    await busy(stage)
    assert not (await told(stage)).is_dry_run
    await lead(stage, dry_run=True, native_hpas=stage.native)
    found = await told(stage)
    first = str(explain(found.record, dry_run=found.is_dry_run)).splitlines()[0]
    assert first.endswith("(dry run: nothing is scaled)")


@in_virtual_time
async def test_native_hpas_are_rivals_where_the_operator_acts_on_them(stage):
    """N14: own and native HPAs were explained apart, so that neither knew of the other."""
    if stage.native:
        return
    await busy(stage)
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 3,
    }
    rival = {"metadata": {"name": "rival"}, "spec": spec}
    await stage.client.create(NATIVE_HPAS.untyped(), rival, stage.namespace)
    record, _ = await explained(stage)
    assert record.decision.reason.code is Code.BESIDE_NATIVE
    await lead(stage, native_hpas=True)
    record, _ = await explained(stage)
    assert record.decision.desired == 2
    assert [one.reason for one in record.decision.status.conditions if one.type == "ScalingActive"] == [
        "AmbiguousSelector"
    ]


@in_virtual_time
async def test_an_hpa_that_the_operator_leaves_alone_is_marked(stage):
    await busy(stage)
    await lead(stage, own_hpas=stage.native, native_hpas=not stage.native)
    record, notes = await explained(stage)
    assert record.decision.desired == 3
    flag = "no --native-hpas" if stage.native else "--no-own-hpas"
    assert f"not acted on: the operator runs with {flag}" in notes


@pytest.mark.parametrize("dry_run", [False, True])
@in_virtual_time
async def test_an_operator_without_election_publishes_too(stage, dry_run):
    """It published nothing, and explain assumed gates and numbers that it did not have."""
    await stage.client.create(NAMESPACES, {"metadata": {"name": HOME}})
    settings = Settings.of(
        leader_elect=False, tolerance=2.0, native_hpas=stage.native, dry_run=dry_run, port=0
    )
    await busy(stage)
    async with running(Operator(stage.clock, stage.client, settings).run()):
        await stage.pass_time(25)
        record, notes = await explained(stage)
    assert record.observation.settings.tolerance == 2.0
    assert not record.observation.gates.hpa_selection_strategy
    name = "trimtab-horizontal-dry-run-settings" if dry_run else "trimtab-horizontal-settings"
    assert notes.endswith(f"settings: of the operator that holds Lease {HOME}/{name}")


@in_virtual_time
async def test_a_program_that_nobody_explains_publishes_nothing(stage, caplog):
    """The chart runs admission without election; its account may not write that Lease, and nobody reads it."""
    caplog.set_level("INFO")
    await stage.client.create(NAMESPACES, {"metadata": {"name": HOME}})
    settings = Settings.of(components=("roles",), leader_elect=False, port=0)
    async with running(Operator(stage.clock, stage.client, settings).run()):
        await stage.pass_time(25)
    assert not (await stage.client.list(LEASES, ListOptions(HOME))).items


def test_an_operator_that_may_not_publish_works_on_and_says_so_once(play_lab, caplog):
    caplog.set_level("INFO")

    async def scenario(stage: Stage) -> None:
        client = Client(stage.clock, Line(stage.transport, within=(stage.namespace,)), seed=5)
        publisher = SettingsPublisher(client, Settings.of(leader_elect=False), "one")
        await publisher.step()
        await publisher.step()

    play_lab(scenario)
    assert caplog.text.count("settings are not published") == 1


@in_virtual_time
async def test_settings_change_hands_with_the_lease(stage):
    await lead(stage, "one", tolerance=0.3)
    await lead(stage, "two", tolerance=0.4)
    lease = await stage.client.get(LEASES, "trimtab-horizontal-0", HOME)
    assert lease.spec.holder_identity == "two/1"
    assert parse_annotation(lease.metadata.annotations[ANNOTATION])[0].horizontal.tolerance == 0.4


@in_virtual_time
async def test_copies_that_share_publish_on_the_leases_of_their_shards(stage):
    await stage.client.create(NAMESPACES, {"metadata": {"name": HOME}})
    shards = make_family(stage.client, Settings.of(shards=2, tolerance=2.0, native_hpas=stage.native), "one")
    async with running(shards.run()):
        await stage.wait_for(lambda: _is_true(shards.may_write()))
        await busy(stage)
        record, notes = await explained(stage)
    assert record.decision.desired == 2
    assert "Lease trimtab/trimtab-horizontal-" in notes


async def _is_true(value: bool) -> bool:
    return value


@asynccontextmanager
async def running(work: Any) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("dry_run", [False, True])
@in_virtual_time
async def test_one_who_looks_on_tells_a_dry_run_of_the_operator(stage, dry_run):
    """N12: what the dashboard showed of an operator with --dry-run was told as if it acted."""
    await busy(stage)
    settings = stage.settings().replace(dry_run=dry_run, tolerance=0.3)
    runtime = Runtime(stage.clock, stage.client, settings, fence=ClosedFence())
    looking = HpaController(runtime, config=decision_config(settings))
    try:
        await looking.start()
        (record,) = [record async for _, record in looking.dry_run_all()]
    finally:
        await looking.close()
        await runtime.close()
    assert record.observation.settings.tolerance == 0.3
    assert record.decision.desired == 3
    assert record.is_dry_run is dry_run
    able = {one.type: one.reason for one in record.decision.status.conditions}["AbleToScale"]
    assert (able == "DryRun") is dry_run


@in_virtual_time
async def test_a_copy_that_stands_by_names_the_leader(stage):
    """N8: it answered that there is no such HPA."""
    await busy(stage)
    await lead(stage, "the-leader")
    async with stage.running() as actor:
        elector = make_family(stage.client, Settings(), "me")
        await elector.step()
        pages = record_pages(actor.operator.hpas, Ownership(stage.client, elector))
        for page in ("/explain", "/records"):
            with pytest.raises(HeldByAnotherReplica, match="the-leader/1, and this replica stands by"):
                pages[page](f"{stage.namespace}/web")
        assert b"the-leader" in (pages["/autoscalers"]("") or b"")
        assert pages["/explain"](f"{stage.namespace}/none") is None


@in_virtual_time
async def test_the_page_of_an_operator_shows_the_kinds_that_it_acts_on_and_its_dry_run(stage):
    await busy(stage)
    for dry_run in (True, False):
        async with stage.running(dry_run=dry_run) as actor:
            await stage.step(actor)
            pages = record_pages(actor.operator.hpas, Ownership(stage.client, NoFence()))
            page = pages["/explain"](f"{stage.namespace}/web") or b""
        assert b"scales from 2 to 3" in page
        assert (b"(dry run: nothing is scaled)" in page) is dry_run
    async with stage.running(own_hpas=stage.native, native_hpas=not stage.native) as actor:
        pages = record_pages(actor.operator.hpas, Ownership(stage.client, NoFence()))
        assert pages["/explain"](f"{stage.namespace}/web") is None
