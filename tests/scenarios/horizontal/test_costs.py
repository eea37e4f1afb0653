"""What a cycle with a write costs: one request for the usage of all, and one write for each status that changed."""

from collections import Counter
from datetime import timedelta

import pytest

from tests.scenarios.horizontal.test_economy import EVERYWHERE, WORKLOADS, decided, three_namespaces
from tests.support.clock import in_virtual_time
from tests.support.objects import NO_WINDOW, cpu_metric
from trimtab.operator.horizontal.records import explain_page

ROUNDS = 6


EVERY_SYNC = [{"status_max_age": timedelta(0)}, {"compat": "kubernetes-1.37"}]


@pytest.mark.parametrize("settings", EVERY_SYNC)
@in_virtual_time
async def test_usage_that_moves_costs_one_list_and_one_patch_per_hpa(stage, settings):
    """Every answer is decoded once, so this bounds decodings per cycle as well; events and scales are not due here."""
    async with three_namespaces(stage, **settings) as (actor, _):
        await stage.steps(actor, 2)
        sent, (total, _) = len(actor.line.sent), decided(actor)
        for number in range(ROUNDS):
            stage.use_cpu(**dict.fromkeys(WORKLOADS, f"{51 + number % 2}m"))  # 2 and 4 % above the target
            await stage.step(actor)
        asked = [one for one in actor.line.sent[sent:] if ("watch", "true") not in one.query]
        counts = Counter((one.method, one.path.rpartition("/")[2]) for one in asked)
        assert counts == {
            ("GET", EVERYWHERE.rpartition("/")[2]): ROUNDS,
            ("PATCH", "status"): ROUNDS * len(WORKLOADS),
        }
        assert decided(actor)[0] - total == ROUNDS * len(WORKLOADS)


@in_virtual_time
async def test_small_moves_are_written_once_a_minute_and_shown_at_once(stage):
    """`kubectl` shows values that are at most 60 s old. `explain` and `top` ask the operator, and show the newest."""
    await stage.deployment("web", 2)
    stage.use_cpu(web="50m")
    await stage.hpa("web", metrics=[cpu_metric(50)], behavior=NO_WINDOW)
    async with stage.running() as actor:
        await stage.steps(actor, 2)
        hpas = actor.operator.hpas
        used, stored = [50], []
        for number in range(40):
            used.append(51 + number % 2)  # 2 and 4 % above the target
            stage.use_cpu(web=f"{used[-1]}m")
            await stage.step(actor)
            text = explain_page(hpas, f"{stage.namespace}/web")
            assert text is not None
            assert f"{used[-1]} %" in text.decode()
            metric = next(iter(hpas)).hpa.status.current_metrics[0].resource
            assert metric is not None
            stored.append(metric.current.average_utilization)
        assert all(value in used[max(number - 3, 0) : number + 2] for number, value in enumerate(stored))
        written = [request for request in actor.line.sent if request.path.endswith("/status")]
        assert len(written) <= 2 + 1 + 40 / 4


@in_virtual_time
async def test_a_change_of_replicas_or_of_a_condition_is_written_in_its_sync(stage):
    await stage.deployment("web", 2)
    stage.use_cpu(web="50m")
    await stage.hpa("web", metrics=[cpu_metric(50)], maxReplicas=3, behavior=NO_WINDOW)
    async with stage.running() as actor:
        await stage.steps(actor, 3)
        stage.use_cpu(web="100m")
        await stage.step(actor)
        status = (await stage.read_hpa("web"))["status"]
        assert (status["desiredReplicas"], status["currentReplicas"]) == (3, 2)
        assert (await stage.conditions("web"))["ScalingLimited"] == ("True", "TooManyReplicas")
