"""Plug-ins end to end: decision, explanation, record, replay with and without the plug-in, fail-over."""

import json
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.plugin_packages import install, install_example
from tests.scenarios.horizontal.stage import NO_WINDOW, Actor, Stage
from tests.support.clock import in_virtual_time
from tests.support.objects import cpu_metric, external_metric, pod_spec
from trimtab.cluster.resource import NODES, Json
from trimtab.decide.horizontal.records.record import Record, dumps
from trimtab.model.hpa.replica_policies import ANNOTATION

STEPS = {
    "metric": "requests",
    "steps": [{"above": 0, "pods": 1, "per": 100}, {"above": 200, "pods": 3, "per": 100}],
}

COUNTER = """
from trimtab.plugins import ReplicaProposal

def plugin(seen):
    count = (seen.memory or {"count": 0})["count"] + 1
    return ReplicaProposal(replicas=min(count, 3), reason="one more each time", memory={"count": count})
"""

RAISES = "def plugin(seen):\n    raise KeyError('zone')\n"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which packages are found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def record_of(stage: Stage, actor: Actor, name: str = "web") -> Record:
    state = actor.operator.hpas.named(stage.namespace, name)
    assert state is not None
    return state.records[-1]


async def with_policies(stage: Stage, *policies: Json, name: str = "web", **spec: Any) -> None:
    """Create an HPA with replica policies, in the annotation of a native one."""
    if stage.native:
        await stage.hpa(name, annotations={ANNOTATION: json.dumps(policies)}, **spec)
    else:
        await stage.hpa(name, replicaPolicies=list(policies), **spec)


def check_replay(record: Record, plugin: str) -> None:
    """Replay a record with the plug-in installed and without it."""
    called = trimtab.replay(dumps(record), plugins=[plugin])
    assert (called.is_same, called.notes) == (True, ())
    recorded = trimtab.replay(dumps(record))
    assert recorded.is_same
    (note,) = recorded.notes
    assert "the recorded answer counts, because version 1.0.0 is not loaded" in note


def test_pods_on_a_drained_node_do_not_count(play_by_hand, packages):
    """By hand, because no controller leaves a pod on a node that is drained."""
    plugin = install_example(packages, "not-draining")

    async def scenario(stage: Stage) -> None:
        node = f"node-of-{stage.namespace}"
        await stage.client.create(
            NODES.untyped(), {"metadata": {"name": node}, "spec": {"unschedulable": True}}
        )
        await stage.deployment("web", 1)
        await stage.pod("hot", {"app": "web"}, pod_spec() | {"nodeName": node})
        stage.use_cpu(web="50m", hot="1")
        await stage.hpa("web", metrics=[cpu_metric(50)], selectionStrategy=plugin)
        async with stage.running(plugins=(plugin,)) as actor:
            await stage.step(actor)
            assert await stage.replicas("web") == 1
            record = record_of(stage, actor)
            text = str(trimtab.explain(record))
            assert f"1 counted by example.com/NotDraining, 1 left out (hot: node {node} is drained)" in text
            check_replay(record, plugin)
            await stage.client.patch(NODES.untyped(), node, "", {"spec": {"unschedulable": False}})
            await stage.step(actor)
            assert await stage.replicas("web") > 1
        await stage.client.delete(NODES, node)

    play_by_hand(scenario)


def test_a_policy_adds_pods_by_its_table(play, packages):
    plugin = install_example(packages, "step-plan")

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 1)
        stage.metrics.set_external(stage.namespace, "requests", "350")
        await with_policies(
            stage,
            {"name": plugin, "parameters": STEPS},
            metrics=[external_metric("requests", average="1k")],
        )
        async with stage.running(plugins=(plugin,)) as actor:
            await stage.step(actor)
            assert await stage.replicas("web") == 4  # the table asks for 8, the rate allows 4
            record = record_of(stage, actor)
            assert (
                "policy: example.com/StepPlan 1.0.0 asks for 8 (wins): 3 pods per 100 requests above 200"
                in str(trimtab.explain(record))
            )
            check_replay(record, plugin)
            events = await stage.events()
            assert any("replica policy example.com/StepPlan asks for 8" in message for _, message in events)

    play(scenario)


def test_an_object_says_that_its_plugin_fails_and_the_others_go_on(play, packages):
    plugin = install(
        packages, "raising_policy", RAISES, group="trimtab.replica_policies", name="example.com/Raises"
    )

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        await stage.deployment("api", 2)
        stage.use_cpu(web="1m", api="1m")
        await with_policies(stage, {"name": plugin}, metrics=[cpu_metric(50)], behavior=NO_WINDOW)
        await stage.hpa("api", metrics=[cpu_metric(50)], behavior=NO_WINDOW)
        async with stage.running(plugins=(plugin,)) as actor:
            await stage.step(actor)
            assert (await stage.replicas("web"), await stage.replicas("api")) == (2, 1)
            assert (await stage.conditions("web"))["PluginFailed"] == ("True", "PluginRaised")
            assert "PluginFailed" not in await stage.conditions("api")
            assert await stage.event_count("PluginFailed") == 1
            labels = {
                "plugin": plugin,
                "kind": "replica policy",
                "version": "1.2.0",
                "reason": "PluginRaised",
            }
            assert actor.count("trimtab_plugin_failures_total", **labels) >= 1
        async with stage.running() as actor:
            await stage.step(actor)
            assert (await stage.conditions("web"))["PluginFailed"] == ("True", "PluginNotLoaded")

    play(scenario)


@in_virtual_time
async def test_a_fail_over_does_not_forget_what_a_policy_remembers(stage, packages):
    plugin = install(
        packages, "counting_policy", COUNTER, group="trimtab.replica_policies", name="example.com/Counts"
    )
    await stage.deployment("web", 1)
    stage.use_cpu(web="50m")
    await with_policies(stage, {"name": plugin}, metrics=[cpu_metric(50)])
    for count in (1, 2, 3):
        async with stage.running(plugins=(plugin,)) as actor:
            await stage.step(actor)
            memory = record_of(stage, actor).decision.memory
            assert memory.policies == {plugin: {"count": count}}


@in_virtual_time
async def test_a_policy_that_pauses_names_the_hpa_for_which_it_failed(stage, packages):
    plugin = install(
        packages, "pausing_policy", RAISES, group="trimtab.replica_policies", name="example.com/Pauses"
    )
    for name in ("api", "web"):
        await stage.deployment(name, 2)
        await with_policies(stage, {"name": plugin}, name=name, metrics=[cpu_metric(50)])
    stage.use_cpu(api="100m", web="100m")
    async with stage.running(plugins=(plugin,)) as actor:
        await stage.steps(actor, 3)
        for name in ("api", "web"):
            (message,) = [
                condition["message"]
                for condition in (await stage.read_hpa(name))["status"]["conditions"]
                if condition["reason"] == "PluginPaused"
            ]
            assert f"'zone' for {stage.namespace}/" in message
            assert message.endswith("; it pauses for 5 minutes after 3 failures")
