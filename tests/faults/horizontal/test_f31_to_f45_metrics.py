"""Faults of metric answers: what cannot be believed scales nothing, and delays nobody who did not ask for it."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise

import pytest
from aiohttp import web

from tests.faults.horizontal.scene import EXTERNAL, becomes, held, load, queue, working
from tests.scenarios.horizontal.stage import Actor, Stage
from tests.support.clock import in_virtual_time
from tests.support.objects import NO_WINDOW, cpu_metric, external_metric, object_metric, pods_metric
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import Connection
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.leases.family import Family
from trimtab.cluster.resource import Json
from trimtab.cluster.transport import Request
from trimtab.metrics.queries import MetricsError, PodUsage
from trimtab.metrics.reader import MetricsReader
from trimtab.model.hpa.metric_annotations import MAX_AGE
from trimtab.model.times import format_time

ENDLESS = 10_000
SENT: web.AppKey[list[int]] = web.AppKey("sent", list)


def external_path(stage: Stage, metric: str = "queue-web") -> str:
    return f"/apis/{EXTERNAL}/v1beta1/namespaces/{stage.namespace}/{metric}"


def said(stage: Stage, *values: object, age: float = 0.0, name: str = "queue-web") -> Json:
    """An answer of the external metrics API as a broken adapter may give it."""
    moment = format_time(stage.clock.now() - timedelta(seconds=age))
    return {
        "items": [
            {"metricName": name, "metricLabels": {}, "timestamp": moment, "value": one} for one in values
        ]
    }


async def rounds(stage: Stage, times: int = 2) -> int:
    async with stage.running() as actor:
        await stage.steps(actor, times)
    return await stage.replicas("web")


async def is_held(stage: Stage, reason: str = "FailedGetExternalMetric") -> bool:
    return (await stage.conditions("web"))["ScalingActive"] == ("False", reason)


@pytest.mark.parametrize("outage", ["500", "empty list", "refused"])
@in_virtual_time
async def test_f31_ten_minutes_without_metrics_hold_and_the_first_good_sample_acts(stage, outage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(30)
        if outage == "500":
            stage.metrics.fail[EXTERNAL] = 500
        elif outage == "refused":
            stage.metrics.fail[EXTERNAL] = 503
        else:
            stage.metrics.raw[external_path(stage)] = {"items": []}
        before = len(actor.line.sent)
        await stage.pass_time(600)
        assert await stage.replicas("web") == 5
        assert await is_held(stage)
        assert len(actor.line.sent) - before < 2.5 * 40 + 60
        stage.metrics.fail.clear()
        stage.metrics.raw.clear()
        load(stage, 600)
        assert await becomes(stage, 6) <= 15


@pytest.mark.parametrize(
    ("policy", "replicas"),
    [
        ({"policy": "LastGood", "maxAgeSeconds": 120}, {5}),
        ({"policy": "Ignore"}, {5}),
        ({"policy": "Replicas", "replicas": 7}, {7}),
    ],
    ids=["LastGood", "Ignore", "Replicas"],
)
@pytest.mark.parametrize("outage", ["F31 500", "F34 NaN", "F35 negative", "F38 five minutes old"])
@in_virtual_time
async def test_a_loss_policy_through_ten_minutes_of_any_fault(stage, policy, replicas, outage):
    """Whatever the fault, the policy decides the size, nothing passes it by on the way, and the first answer ends it."""
    await held(stage, metrics=[queue() | {"onLoss": policy}])
    async with working(stage):
        await stage.pass_time(30)
        answers = {"F34 NaN": said(stage, "NaN"), "F35 negative": said(stage, "-9")}
        if outage == "F31 500":
            stage.metrics.fail[EXTERNAL] = 500
        else:
            stage.metrics.raw[external_path(stage)] = answers.get(outage) or said(stage, "9", age=300)
        await stage.pass_time(16)
        for _ in range(39):
            assert await stage.replicas("web") in replicas
            await stage.pass_time(15)
        stage.metrics.fail.clear()
        stage.metrics.raw.clear()
        load(stage, 600)
        assert await becomes(stage, 6) <= 15


@pytest.mark.parametrize("missing", [1, 2, 3], ids=["one", "half", "all but one"])
@pytest.mark.parametrize(
    ("cpu", "allowed"), [("10m", {1, 2, 3, 4}), ("90m", {4, 5, 6, 7, 8})], ids=["low", "high"]
)
@in_virtual_time
async def test_f32_pods_without_samples_never_turn_the_direction(stage, missing, cpu, allowed):
    await stage.deployment("web", 4)
    await stage.hpa("web", metrics=[cpu_metric(50)], behavior=NO_WINDOW, maxReplicas=50)
    for index in range(4 - missing):
        stage.metrics.use(stage.namespace, f"web-rs-{index}", cpu=cpu)
    assert await rounds(stage, 1) in allowed


@pytest.mark.parametrize(
    ("other", "replicas"), [(100, 5), (900, 9)], ids=["the other says down", "the other says up"]
)
@in_virtual_time
async def test_f33_one_of_two_metrics_fails(stage, other, replicas):
    await held(stage, metrics=[queue(), external_metric("other", average="100")])
    stage.metrics.set_external(stage.namespace, "other", str(other))
    stage.metrics.raw[external_path(stage)] = {"items": []}
    assert await rounds(stage) == replicas


@pytest.mark.parametrize(
    "value", ["NaN", "+Inf", "-Inf", "1e400", None, "", "null", "ten", "1e1000000000", True]
)
@in_virtual_time
async def test_f34_what_is_no_number_is_no_sample(stage, value):
    await held(stage)
    stage.metrics.raw[external_path(stage)] = said(stage, value)
    assert await rounds(stage) == 5


@pytest.mark.parametrize("target", ["average", "value"])
@pytest.mark.parametrize("value", ["-1", "-500", "-9e18"])
def test_f35_a_negative_value_holds(both, value, target):
    async def scenario(stage: Stage) -> None:
        await held(stage, metrics=[external_metric("queue-web", **{target: "100"})])
        stage.metrics.raw[external_path(stage)] = said(stage, value)
        assert await rounds(stage) == 5
        assert await is_held(stage)

    both(scenario)


def absurd(kind: str) -> Json:
    return {
        "External": external_metric("absurd", average="1"),
        "Object": object_metric("absurd", average="1"),
        "Pods": pods_metric("absurd", "1"),
    }[kind]


@pytest.mark.parametrize("kind", ["External", "Object", "Pods"])
@pytest.mark.parametrize("value", ["9e15", "9e18", "9e21"])
def test_f36_an_absurdly_large_value_saturates_upwards_by_steps(both, value, kind):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 3)
        stage.metrics.set_external(stage.namespace, "absurd", value)
        stage.metrics.set_object(stage.namespace, "services", "front", "absurd", value)
        for index in range(8):
            stage.metrics.set_object(stage.namespace, "pods", f"web-rs-{index}", "absurd", value)
        await stage.hpa("web", maxReplicas=8, metrics=[absurd(kind)])
        async with stage.running() as actor:
            await stage.step(actor)
            assert await stage.replicas("web") in {6, 7}
            await stage.follow("web")
            await stage.steps(actor, 1)
            assert await stage.replicas("web") == 8

    both(scenario)


def test_f37_a_sum_beyond_64_bits_is_exact(both):
    async def scenario(stage: Stage) -> None:
        await held(stage, maxReplicas=10)
        stage.metrics.raw[external_path(stage)] = said(stage, "9e18", "9e18")
        assert await rounds(stage, 3) == 10
        current = (await stage.read_hpa("web"))["status"]["currentMetrics"][0]["external"]["current"]
        assert not current["averageValue"].startswith("-")

    both(scenario)


@pytest.mark.parametrize("age", [365 * 86400, 300], ids=["a year old", "five minutes old"])
def test_f38_samples_of_another_time_are_refused(both, age):
    async def scenario(stage: Stage) -> None:
        await held(stage)
        async with stage.running() as actor:
            stage.metrics.raw[external_path(stage)] = said(stage, "0", age=age)
            for _ in range(2):
                await stage.step(actor)
            assert await stage.replicas("web") == 5
            assert await is_held(stage)

    both(scenario)


@pytest.mark.parametrize(
    ("field", "settings", "replicas"),
    [
        pytest.param(None, {}, 5, id="refused by default"),
        pytest.param(600, {}, 10, id="its metric says how old it may be"),
        pytest.param(
            100, {"stale_after": timedelta(minutes=10)}, 5, id="which counts for more than the flag"
        ),
        pytest.param(None, {"stale_after": timedelta(minutes=10)}, 10, id="the flag allows it"),
    ],
)
@pytest.mark.parametrize("native", [False, True], ids=["own", "native"])
def test_f38_a_source_that_is_minutes_behind_can_be_allowed(both, field, settings, replicas, native):
    """RH-M7: sources of clouds were refused for good, and only --compat helped, which switches off all else."""

    async def scenario(stage: Stage) -> None:
        metric, annotations = queue(), {}
        if native:
            stage.use_native_hpas()
        if field is not None and native:
            annotations = {MAX_AGE.name: json.dumps({"queue-web": field})}
        elif field is not None:
            metric = {**metric, "maxAgeSeconds": field}
        await held(stage, metrics=[metric], annotations=annotations)
        async with stage.running(**settings) as actor:
            stage.metrics.raw[external_path(stage)] = said(stage, "1000", age=180)
            await stage.step(actor)
        assert await stage.replicas("web") == replicas

    both(scenario)


@pytest.mark.parametrize("moves", [False, True], ids=["a stopped exporter", "a source that stays behind"])
def test_f38_a_refused_metric_costs_one_status_write_and_one_event_of_each_reason(both, moves):
    """RH-M8: with the age in its words, each of 20 syncs wrote a status and made new Events until none was told."""

    async def scenario(stage: Stage) -> None:
        await held(stage, metrics=[queue(), external_metric("fine", average="100")])
        stage.metrics.set_external(stage.namespace, "fine", "500")
        path = external_path(stage)
        stage.metrics.raw[path] = said(stage, "0", age=180)
        async with stage.running() as actor:
            for sync in range(20):
                if moves:
                    stage.metrics.raw[path] = said(stage, "0", age=180)
                # A number that moves beside it makes a new version of the object in every sync.
                stage.metrics.set_external(stage.namespace, "fine", str(500 + sync))
                await stage.step(actor)
                if not sync:
                    first = (await stage.read_hpa("web"))["status"]["conditions"]
            assert (await stage.read_hpa("web"))["status"]["conditions"] == first
            stage.metrics.set_external(stage.namespace, "fine", "800")
            await stage.step(actor)
            await stage.pass_time(1)
            reasons = [reason for reason, _ in await stage.events()]
            assert reasons.count("FailedGetExternalMetric") == 1
            assert reasons.count("SuccessfulRescale") == 1

    both(scenario)


def test_f40_an_answer_about_another_metric_is_refused(both):
    async def scenario(stage: Stage) -> None:
        await held(stage)
        stage.metrics.raw[external_path(stage)] = said(stage, "0", name="another")
        assert await rounds(stage) == 5
        assert await is_held(stage)

    both(scenario)


def test_f40_samples_of_pods_that_are_not_the_targets_do_not_count(both):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        for pod, value in (("web-rs-0", "10"), ("web-rs-1", "10"), ("stranger", "9000")):
            stage.metrics.set_object(stage.namespace, "pods", pod, "rate", value)
        await stage.hpa("web", metrics=[pods_metric("rate", "10")])
        assert await rounds(stage) == 2

    both(scenario)


@pytest.mark.parametrize("about", [{"name": "back"}, {"namespace": "elsewhere"}], ids=["object", "namespace"])
def test_f40_an_answer_about_another_object_is_refused(both, about):
    async def scenario(stage: Stage) -> None:
        await stage.bare_deployment("web", 5)
        described = {"kind": "Service", "namespace": stage.namespace, "name": "front"} | about
        item = {
            "describedObject": described,
            "metric": {"name": "hits"},
            "timestamp": stage.metrics.now(),
            "value": "0",
        }
        path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{stage.namespace}/services/front/hits"
        stage.metrics.raw[path] = {"items": [item]}
        await stage.hpa("web", metrics=[object_metric("hits", average="100")], behavior=NO_WINDOW)
        assert await rounds(stage) == 5
        assert await is_held(stage, "FailedGetObjectMetric")

    both(scenario)


def test_f40_usage_of_a_pod_of_the_same_name_in_another_namespace_does_not_count(both):
    async def scenario(stage: Stage) -> None:
        await stage.deployment("web", 2)
        stage.use_cpu(web="50m")
        await stage.metrics._share()
        answer = stage.metrics._pods(stage.namespace)
        for item in stage.metrics._pods(stage.namespace)["items"]:
            item["metadata"]["namespace"] = "elsewhere"
            item["containers"] = [{"name": "app", "usage": {"cpu": "5", "memory": "0"}}]
            answer["items"].append(item)
        stage.metrics.raw[f"/apis/metrics.k8s.io/v1/namespaces/{stage.namespace}/pods"] = answer
        await stage.hpa("web", metrics=[cpu_metric(50)])
        assert await rounds(stage) == 2

    both(scenario)


@in_virtual_time
async def test_f41_a_pod_that_is_told_twice_counts_once(stage):
    await stage.deployment("web", 2)
    stage.use_cpu(web="50m")
    answer = stage.metrics._pods(stage.namespace)
    answer["items"] += answer["items"]
    stage.metrics.raw[f"/apis/metrics.k8s.io/v1/namespaces/{stage.namespace}/pods"] = answer
    await stage.hpa("web", metrics=[cpu_metric(50)])
    assert await rounds(stage) == 2


MANY = 200
"""More HPAs on a broken source than a process has turns for requests."""


async def break_sources(stage: Stage, how: str) -> None:
    """Make many HPAs whose external metrics hang, or fail after 5 s."""
    for index in range(MANY):
        await held(stage, f"broken{index}", 2)
        if how == "hangs":
            stage.metrics.hang.add(external_path(stage, f"queue-broken{index}"))
        else:
            stage.metrics.delay[f"queue-broken{index}"] = 5.0
            stage.metrics.fail[external_path(stage, f"queue-broken{index}")] = 503


@asynccontextmanager
async def leading(stage: Stage, actor: Actor) -> AsyncIterator[list[float]]:
    """Hold a Lease with the client of an operator, and yield the times of its writes."""
    times: list[float] = []

    def note(request: Request) -> None:
        if "/leases/" in request.path and request.method == "PUT":
            times.append(stage.clock.monotonic())

    actor.line.answer = note
    task = asyncio.ensure_future(Family(actor.client, stage.namespace, "leader", "me").run())
    try:
        yield times
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("how", ["hangs", "503 after 5 s"])
@in_virtual_time
async def test_f42_two_hundred_hpas_on_a_broken_source_delay_nobody_else(stage, how):
    """With 5 of them and a transport without turns, this test did not see that 32 took every turn of the process."""
    await stage.deployment("cpu", 2)
    stage.use_cpu(cpu="50m")
    await stage.hpa("cpu", metrics=[cpu_metric(50)], behavior=NO_WINDOW)
    await held(stage)
    await break_sources(stage, how)
    async with working(stage, period=1) as actor, leading(stage, actor) as renewals:
        await stage.clock.sleep(6)
        for replicas, by_cpu in ((6, 3), (7, 5), (8, 8)):
            load(stage, replicas * 100)
            assert await becomes(stage, replicas) <= 2  # another metric of the same source
            stage.use_cpu(cpu="75m")
            assert await becomes(stage, by_cpu, "cpu") <= 2
            stage.use_cpu(cpu="50m")
            await stage.follow("web")
            await stage.follow("cpu")
            await stage.clock.sleep(16)  # the default policy allows 4 pods in 15 s
        assert max(after - before for before, after in pairwise(renewals)) < 3


async def flood(request: web.Request) -> web.StreamResponse:
    """Answer with a list that does not end."""
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b'{"items":[')
    item = json.dumps({"metadata": {"name": "p" * 200}}).encode() + b","
    try:
        for _ in range(ENDLESS):
            await response.write(item * 200)
            request.app[SENT].append(len(item) * 200)
    except ConnectionError:
        pass
    return response


async def bomb(request: web.Request) -> web.Response:
    return web.Response(body=gzip.compress(b" " * 100_000_000), headers={"Content-Encoding": "gzip"})


@pytest.mark.parametrize("answer", [flood, bomb], ids=["endless", "gzip bomb"])
async def test_f43_an_answer_beyond_all_measure_is_dropped_on_the_way(answer):
    app = web.Application()
    app[SENT] = []
    app.router.add_get("/{tail:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    clock = SystemClock()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    client = Client(clock, HttpTransport(clock, Connection(url)))
    try:
        with pytest.raises(MetricsError):
            await MetricsReader(clock, client, max_bytes=16 * 1024 * 1024).pod_usage(PodUsage("shop"))
        sent: list[int] = app[SENT]
        assert sum(sent) < 2 * 40 * 1024 * 1024  # a list in each version
    finally:
        await client.close()
        await runner.cleanup()


@in_virtual_time
async def test_f44_a_square_wave_turns_the_direction_twice_per_window_at_most(stage):
    await held(stage, replicas=10, behavior={"scaleDown": {"stabilizationWindowSeconds": 300}})
    async with working(stage):
        seen = [10]
        for turn in range(30):
            load(stage, 1300 if turn % 2 else 700)
            await stage.pass_time(20)
            await stage.follow("web")
            seen.append(await stage.replicas("web"))
        changes = [after - before for before, after in pairwise(seen) if after != before]
        turns = sum((one > 0) != (other > 0) for one, other in pairwise(changes))
        assert turns <= 2
        load(stage, 1200)
        await stage.pass_time(400)
        await stage.follow("web")
        steady = await stage.replicas("web")
        for turn in range(20):
            load(stage, steady * (109 if turn % 2 else 91))
            await stage.pass_time(20)
        assert await stage.replicas("web") == steady


@in_virtual_time
async def test_f45_zeros_after_a_healthy_hour_wait_for_the_window(stage):
    await held(stage, behavior={"scaleDown": {"stabilizationWindowSeconds": 300}})
    async with working(stage):
        await stage.pass_time(3600)
        load(stage, 0)
        await stage.pass_time(280)
        assert await stage.replicas("web") == 5
        load(stage, 500)
        await stage.pass_time(600)
        assert await stage.replicas("web") == 5
