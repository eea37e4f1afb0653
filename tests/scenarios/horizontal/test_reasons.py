"""The reason that a user reads is the right one: status, log and explanation, on the lab and on a real API server."""

import logging
from datetime import timedelta

import pytest

from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.horizontal.test_selection import F1, f1
from tests.support.clock import in_virtual_time
from tests.support.objects import NO_WINDOW, cpu_metric, external_metric
from tests.support.transport import Line, status
from trimtab.cli.explain.hpas import explain_replicas
from trimtab.cli.operator_settings import Choice
from trimtab.cluster.client import Client
from trimtab.decide.horizontal import Code, explain
from trimtab.decide.horizontal.from_status import explain_from_status, forbidden_metric

DEFERRED = "trimtab_deferred_status_writes_total"


def test_a_field_that_a_gate_ignores_has_a_condition_one_log_line_and_a_line_in_explain(play, caplog):
    """W9: minReplicas 0 with the gate off stayed at 1, and nothing named the gate."""

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 1)
        await stage.hpa(
            "web",
            minReplicas=0,
            maxReplicas=3,
            metrics=[external_metric("queue", average="10")],
            behavior=NO_WINDOW,
        )
        async with stage.running(feature_gates="HPAScaleToZero=false") as actor:
            await stage.steps(actor, 3)
            assert (await stage.conditions("web"))["FieldsIgnored"] == ("True", "FeatureGateDisabled")
            lines = [record for record in caplog.records if record.getMessage() == "fields ignored"]
            assert len(lines) == 1
            assert "HPAScaleToZero" in lines[0].facts["fields"]
            record = await actor.operator.dry_run(stage.namespace, "web")
            assert record is not None
            told = explain(record).ignored_fields
            assert len(told) == 1
            assert told[0].startswith(
                "spec.minReplicas: 0 has no effect while the feature gate HPAScaleToZero is off"
            )

    with caplog.at_level(logging.WARNING):
        play(scenario)


@pytest.mark.parametrize("max_age", [timedelta(minutes=1), timedelta(0)])
def test_the_stored_reason_follows_one_that_changes_alone(play_own, max_age):
    """A pod without usage changes neither values nor conditions. The column REASON showed the old reason for ever."""

    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 3)
        stage.use_cpu(web="44m")
        await stage.hpa("web", metrics=[cpu_metric(50)])
        async with stage.running(status_max_age=max_age) as actor:
            await stage.steps(actor, 6)
            before = (await stage.read_hpa("web"))["status"]
            assert before["reason"] == Code.ENOUGH
            writes, deferred = len(actor.line.writes), actor.count(DEFERRED)
            *measured, _ = [(stage.namespace, pod) for pod in await stage.pods_of("web")]

            async def others() -> list[tuple[str, str]]:
                return measured

            stage.metrics.pods = others
            await stage.steps(actor, 8)
            record = await actor.operator.dry_run(stage.namespace, "web")
            assert record is not None
            after = (await stage.read_hpa("web"))["status"]
            assert after["reason"] == explain(record).reason == Code.DIRECTION_UNSURE
            assert after["currentMetrics"] == before["currentMetrics"]
            assert len(actor.line.writes) == writes + 1
            assert actor.count(DEFERRED) == deferred, "it is written at once"

    play_own(scenario)


def test_a_foreign_pod_is_named_to_a_person_who_looks_and_costs_the_operator_nothing(play):
    """W5: the advice to raise maxReplicas came first, and nobody said whose the pod was."""

    async def scenario(stage: Stage) -> None:
        await f1(stage)
        await stage.hpa("web", **F1)
        async with stage.running() as actor:
            await stage.steps(actor, 3, "web")
            assert not [one for one in actor.line.sent if "replicasets" in one.path]
            record = await actor.operator.dry_run(stage.namespace, "web")
            assert record is not None
            story = explain(record)
            assert story.reason == Code.AT_MAXIMUM
            assert list(story.pods_foreign.values()) == ["it belongs to Job/scrape"]
            assert story.next_step.startswith("set selectionStrategy to OwnerReference")

    play(scenario)


@in_virtual_time
async def test_a_viewer_without_metric_rights_reads_that_they_lack_them_and_what_the_operator_decided(stage):
    """A healthy HPA was called MetricsFailed, because whoever looked may not read the metrics API."""
    await stage.deployment("web", 2)
    stage.use_cpu(web="25m")
    await stage.hpa("web", metrics=[cpu_metric(50)], behavior={"scaleUp": {"tolerance": "0.2"}})
    async with stage.running(feature_gates="HPAConfigurableTolerance=false") as actor:
        await stage.step(actor)
    line = Line(stage.transport)
    line.answer = lambda request: status(403, "Forbidden") if "metrics.k8s.io" in request.path else None
    viewer = Client(stage.clock, line, seed=3)
    found = await explain_replicas(viewer, stage.namespace, "web", Choice("trimtab"))
    assert found is not None
    seen = found[0].observation
    why = forbidden_metric(seen)
    assert why
    text = str(explain_from_status(seen.hpa, why)).splitlines()
    assert text[0].startswith("NotAllowed: you may not read a metric of this HPA")
    assert text[1] == "operator: 2 replicas, 2 desired"
    assert any(told.startswith("operator: ScalingActive True, ValidMetricFound") for told in text)
    assert any(told.startswith("operator: FieldsIgnored True, FeatureGateDisabled") for told in text), text
