"""What a newcomer finds when `trimtab up` says that it is up, in virtual time."""

import json
from contextlib import AsyncExitStack, contextmanager

import pytest

from tests.plugin_packages import install
from trimtab.cli.stories import STORIES
from trimtab.cli.stories import stage as stages
from trimtab.cli.stories.changes import ReplicaChanges
from trimtab.cli.stories.examples import ManyWorkloads, UserFiles
from trimtab.cli.stories.stage import PAST_SECONDS, Stage
from trimtab.cli.top.rows import rows_of
from trimtab.clock import VirtualClock
from trimtab.cluster.resource import CORE_EVENTS
from trimtab.model.hpa.types import ConditionType
from trimtab.operator.horizontal.kinds import OWN_HPAS
from trimtab.operator.vertical.explain import Explainer
from trimtab_lab.embedded import EmbeddedCluster

APP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: web, resources: {requests: {cpu: 100m, memory: 64Mi}}}]}
---
apiVersion: autoscaling.trimtab.dev/v1
kind: VerticalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: "Off"}
  recommenders: [{name: ESTIMATOR}]
"""


def watch(seconds, look, period=1.0):
    """Open all stories, and return what `look` sees every second from then on."""
    clock = VirtualClock()

    async def main():
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(EmbeddedCluster(clock, seed=1))
            began = clock.monotonic()
            stage = Stage(clock, cluster)
            await stage.open(STORIES, stack)
            opened = clock.monotonic() - began
            seen = [await look(stage, cluster)]
            for _ in range(int(seconds / period)):
                await clock.sleep(period)
                seen.append(await look(stage, cluster))
            return opened, seen

    return clock.run(main())


def test_every_autoscaler_has_decided_when_it_is_up_and_never_fails_to():
    """The first screen said `no metric can be read`, and both VPAs had no pods for a minute."""

    async def look(stage, _cluster):
        return {
            (row["namespace"], row["name"]): (row.get("active"), row["reason"]) for row in await stage.rows()
        }

    _, seen = watch(120, look)
    assert len(seen[0]) == 9
    for states in seen:
        assert {active for active, _ in states.values()} == {"True", None}
        assert {reason for active, reason in states.values() if active is None} == {"RecommendationProvided"}


def test_the_start_leaves_no_warning_behind():
    async def look(_stage, cluster):
        events = (await cluster.client.list(CORE_EVENTS)).items
        assert events
        return [(event["reason"], event["message"]) for event in events if event["type"] == "Warning"]

    assert watch(300, look, period=60)[1] == [[]] * 6


def test_the_past_of_the_clock_is_long_enough_for_the_start():
    """What does not fit into the past of the clock is waited for in real time."""

    async def look(_stage, cluster):
        hpas = (await cluster.client.list(OWN_HPAS)).items
        return [hpa.status.condition(ConditionType.SCALING_ACTIVE).status for hpa in hpas]

    opened, (statuses,) = watch(0, look)
    assert set(statuses) == {"True"}
    assert opened <= PAST_SECONDS


def test_the_number_of_decided_hpas_is_shown(monkeypatch):
    """With many workloads the terminal was silent after "starting Trimtab"."""

    @contextmanager
    def reporting(report):
        report()
        yield
        report()
        report()

    monkeypatch.setattr(stages, "reporting", reporting)
    clock, steps = VirtualClock(), list[str]()

    async def main():
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(EmbeddedCluster(clock, seed=1))
            await Stage(clock, cluster, steps.append).open([ManyWorkloads(3)], stack)

    clock.run(main())
    assert steps[-2:] == ["starting Trimtab", "  3 of 3 HPAs decided"]


ESTIMATOR = """
from trimtab.plugins import Amounts, Estimate

def plugin(seen):
    return Estimate(amounts={"cpu": Amounts(lower=0.2, target=0.3, upper=0.4)}, reason="by the plan")
"""


def test_the_port_of_up_has_the_answers_of_estimators(tmp_path, monkeypatch):
    """`explain -o record` said that the operator had asked no estimator."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = install(tmp_path, "planned", ESTIMATOR, group="trimtab.estimators", name="example.com/planned")
    file = tmp_path / "app.yaml"
    file.write_text(APP.replace("ESTIMATOR", name))
    clock = VirtualClock()
    steps: list[str] = []

    async def main():
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(EmbeddedCluster(clock, seed=1))
            stage = Stage(clock, cluster, steps.append, plugins=(name,))
            programs = await stage.open([UserFiles([file])], stack)
            explainer = Explainer(cluster.client, "shop", stage.settings)
            stack.push_async_callback(explainer.close)
            lines = (await explainer.vpa("web")).lines
            page = programs.health._pages["/estimates"]
            return page("shop/web"), lines

    page, lines = clock.run(main())
    assert f"starting Trimtab with plug-ins {name}" in steps  # an import may take 30 s
    assert b'"reason":"by the plan"' in page
    text = "\n".join(lines)
    assert "200m" in text
    assert "300m" in text
    assert "400m" in text


HELD_APP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: web, resources: {requests: {cpu: 100m, memory: 64Mi}}}]}
---
apiVersion: autoscaling.trimtab.dev/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop, annotations: {ANNOTATION}}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 8
  PLUGIN
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: TARGET}}}]
"""
RAISES = "def plugin(seen):\n    raise ValueError('boom')\n"


def follow(tmp_path, plugin="", annotation="", target=200, plugins=()):
    """Return the rows of an HPA on the lab, with and without the operator's reasons, its explanation, and printed lines."""
    file = tmp_path / "app.yaml"
    text = HELD_APP.replace("ANNOTATION", annotation).replace("PLUGIN", plugin or "minReplicas: 1")
    file.write_text(text.replace("TARGET", str(target)))
    clock = VirtualClock()

    async def main():
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(EmbeddedCluster(clock, seed=1))
            stage = Stage(clock, cluster, plugins=plugins)
            programs = await stage.open([UserFiles([file])], stack)
            changes, lines = ReplicaChanges(), []
            for _ in range(8):
                lines += changes.lines(await stage.rows())
                await clock.sleep(5)
            (row,) = await stage.rows()
            (stored,) = await rows_of(cluster.client, "", stage.settings)
            page = programs.health._pages["/explain"]("shop/web")
            explained = json.loads(page or b"")["explanation"]
            return row, stored, explained, lines

    return clock.run(main())


@pytest.mark.parametrize(
    ("target", "word"), [(50, "WithinTolerance"), (70, "AsManyAsNeeded")], ids=["within", "below"]
)
def test_top_and_explain_give_the_same_reason(target, word, tmp_path):
    """`top` said ReadyForNewScale, which is the word of a condition."""
    row, stored, explained, lines = follow(tmp_path, target=target)
    assert (row["reason"], stored["reason"], explained["reason"]) == (word, word, word)
    assert row["message"] == explained["summary"]
    assert lines == []


@pytest.mark.parametrize(
    ("group", "field"),
    [
        ("trimtab.pod_filters", "selectionStrategy: example.com/boom"),
        ("trimtab.replica_policies", "replicaPolicies: [{name: example.com/boom}]"),
    ],
)
def test_a_plug_in_that_fails_is_the_reason_that_is_shown(group, field, tmp_path, monkeypatch):
    """`top` said ReadyForNewScale, and `up` printed nothing of it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = install(tmp_path, "boom", RAISES, group=group, name="example.com/boom")
    row, stored, explained, lines = follow(tmp_path, plugin=field, plugins=(name,))
    assert {row["reason"], stored["reason"], explained["reason"]} == {"PluginFailed"}
    assert row["message"] == explained["summary"]
    assert "example.com/boom 1.2.0 raised ValueError: boom" in stored["message"]
    (line,) = lines
    assert line.startswith("shop/web: held at 2, PluginFailed: stays at 2: a plug-in gave no answer")


def test_up_prints_no_change_of_a_dry_run(tmp_path):
    """It printed `2 -> 1`, which never happened."""
    *_, lines = follow(tmp_path, annotation="autoscaling.trimtab.dev/mode: DryRun")
    assert lines == ["shop/web: held at 2, DryRun: 1 is wanted"]


def test_up_prints_a_change_at_once(tmp_path):
    *_, lines = follow(tmp_path)
    assert lines == ["shop/web: 2 -> 1"]
