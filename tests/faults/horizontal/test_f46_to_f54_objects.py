"""Faults of objects, ownership and other actors: one bad object stops no other, and nobody is fought."""

import json

import pytest

from tests.faults.horizontal.scene import becomes, held, load, queue, working
from tests.scenarios.horizontal.stage import Stage
from tests.support.clock import in_virtual_time
from tests.support.objects import NO_WINDOW, cpu_metric, external_metric, owner_of
from tests.support.transport import status
from trimtab.cluster import errors
from trimtab.cluster.resource import DEPLOYMENTS, Json, Resource

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", Json)
BY_OWNER: Json = {"selectionStrategy": "OwnerReference"}


def test_f46_a_recreated_hpa_starts_without_the_old_ones_memory(both):
    async def scenario(stage: Stage) -> None:
        await held(stage, behavior={"scaleDown": {"stabilizationWindowSeconds": 300}})
        await stage.bare_deployment("other", 2)
        load(stage, 1000)
        async with stage.running() as actor:
            await stage.steps(actor, 2)
            assert await stage.replicas("web") == 10
            await stage.client.delete(stage.resource, "web", stage.namespace)
            load(stage, 200)
            await stage.hpa("web", target="other", metrics=[queue()])
            await stage.steps(actor, 3)
            assert await stage.replicas("other") == 2
            assert await stage.replicas("web") == 10

    both(scenario)


@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
def test_f47_the_largest_policy_value_never_freezes(both, direction):
    async def scenario(stage: Stage) -> None:
        policy = {"policies": [{"type": "Pods", "value": 2**31 - 1, "periodSeconds": 60}]}
        await held(stage, behavior=NO_WINDOW | {direction: policy | {"stabilizationWindowSeconds": 0}})
        load(stage, 2000 if direction == "scaleUp" else 100)
        async with stage.running() as actor:
            await stage.steps(actor, 2)
        assert await stage.replicas("web") == (20 if direction == "scaleUp" else 1)

    both(scenario)


@pytest.mark.parametrize("what", ["tolerance", "target"])
def test_f47_absurd_quantities_are_refused_or_harmless(both, what):
    async def scenario(stage: Stage) -> None:
        await held(stage)
        absurd = (
            {"behavior": {"scaleUp": {"tolerance": "1e400"}}, "metrics": [queue("odd")]}
            if what == "tolerance"
            else {"metrics": [external_metric("queue-odd", average="1e1000000000")]}
        )
        await stage.bare_deployment("odd", 3)
        load(stage, 900, "odd")
        try:
            await stage.hpa("odd", **absurd)
        except errors.ApiError:
            return
        load(stage, 900)
        async with stage.running() as actor:
            await stage.steps(actor, 2)
        assert await stage.replicas("web") == 9
        assert await stage.replicas("odd") in {3, 1}

    both(scenario)


@in_virtual_time
async def test_f48_two_on_one_target_hold_and_say_so_once_per_five_minutes(stage):
    await stage.deployment("web", 3)
    stage.use_cpu(web="500m")
    for name in ("one", "other"):
        await stage.hpa(name, target="web", metrics=[cpu_metric(50)])
    async with working(stage):
        await stage.pass_time(290)
        assert await stage.replicas("web") == 3
        assert await stage.event_count("AmbiguousSelector") == 2
        await stage.client.delete(stage.resource, "other", stage.namespace)
        assert await becomes(stage, 6) <= 16


@in_virtual_time
async def test_f48_a_thousand_on_one_label_take_no_square_of_the_time(stage):
    await stage.deployment("web", 3)
    stage.use_cpu(web="500m")
    for index in range(300):
        await stage.hpa(f"h{index}", target="web", metrics=[cpu_metric(50)])
    async with stage.running() as actor:
        await stage.steps(actor, 2)
        sent = len(actor.line.sent)
        await stage.steps(actor, 1)
        assert len(actor.line.sent) - sent < 20
    assert await stage.replicas("web") == 3


async def owner_chain(stage: Stage, length: int, *, cycle: bool = False) -> Json:
    """Return the reference to the last of a chain of owners that begins at the workload."""
    owner = owner_of(
        "apps/v1", "Deployment", await stage.client.get(DEPLOYMENTS.untyped(), "web", stage.namespace)
    )
    first: Json = {}
    for index in range(length):
        body = {
            "metadata": {"name": f"link{index}", "ownerReferences": [] if cycle and not index else [owner]}
        }
        made = await stage.client.create(CONFIG_MAPS, body, stage.namespace)
        owner = owner_of("v1", "ConfigMap", made)
        first = first or made
    if cycle:
        body = {"metadata": {"ownerReferences": [owner]}}
        await stage.client.patch(CONFIG_MAPS, first["metadata"]["name"], stage.namespace, body)
    return owner


@pytest.mark.parametrize(
    ("length", "cycle", "counts"),
    [
        pytest.param(3, False, True, id="F49 a short chain"),
        pytest.param(40, False, False, id="F49 a chain too long"),
        pytest.param(3, True, False, id="F49 a cycle"),
    ],
)
@in_virtual_time
async def test_owners_that_lead_far_or_nowhere(stage, length, cycle, counts):
    await stage.deployment("web", 2)
    await stage.pod("far", {"app": "web"}, owners=[await owner_chain(stage, length, cycle=cycle)])
    stage.use_cpu(web="20m", far="80m")
    await stage.hpa("web", metrics=[cpu_metric(20)], **BY_OWNER)
    async with stage.running() as actor:
        await stage.steps(actor, 2, after=5)
        assert actor.reads("/configmaps/") <= min(length, 10)
    hpa = await stage.read_hpa("web")
    current = hpa["status"]["currentMetrics"][0]["resource"]["current"]["averageUtilization"]
    assert current == (40 if counts else 20)
    assert await stage.event_count("PodSelectionFallback") == 0


@in_virtual_time
async def test_f49_an_unreadable_owner_means_all_pods_and_no_scale_down(stage):
    await stage.deployment("web", 3)
    await stage.pod("far", {"app": "web"}, owners=[await owner_chain(stage, 1)])
    stage.use_cpu(web="1m", far="1m")
    await stage.hpa("web", metrics=[cpu_metric(50)], behavior=NO_WINDOW, **BY_OWNER)
    async with stage.running() as actor:
        actor.line.answer = lambda request: status(500, "no") if "/configmaps/" in request.path else None
        await stage.steps(actor, 3)
    assert await stage.replicas("web") == 3
    assert await stage.event_count("PodSelectionFallback") == 1


@pytest.mark.parametrize(
    "reference",
    [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gone"},
        {"apiVersion": "no.such/v1", "kind": "Thing", "name": "gone"},
        {"apiVersion": "batch/v1", "kind": "Job", "name": "gone"},
        {"apiVersion": "apps/v1/v2", "kind": "Deployment", "name": "web"},
    ],
    ids=["no such object", "no such kind", "no scale", "no such version"],
)
@in_virtual_time
async def test_f50_a_target_that_cannot_be_scaled_is_told_and_stops_nobody_else(stage, reference):
    await held(stage)
    try:
        await stage.hpa("bad", scaleTargetRef=reference, metrics=[queue("bad")])
    except errors.ApiError:
        return  # an API version of three parts is refused by the server
    load(stage, 900)
    async with working(stage) as actor:
        await becomes(stage, 9)
        assert (await stage.conditions("bad"))["AbleToScale"] == ("False", "FailedGetScale")
        before = len(actor.line.sent)
        await stage.pass_time(150)
        mine = [one for one in actor.line.sent[before:] if "watch" not in dict(one.query)]
        assert len(mine) <= 10 * 6


@in_virtual_time
async def test_f51_pods_of_a_surge_are_not_fed_back(stage):
    await held(stage, replicas=10)
    async with stage.running() as actor:
        for running in (13, 15, 18):
            await stage.set_status("web", running)
            await stage.step(actor)
            assert await stage.replicas("web") <= 10


@in_virtual_time
async def test_f51_pods_that_crash_do_not_raise_the_replicas(stage):
    await stage.deployment("web", 4)
    stage.use_cpu(web="50m")
    await stage.hpa("web", metrics=[cpu_metric(50)], maxReplicas=50)
    body = {
        "status": {
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2025-01-01T00:00:00Z"}]
        }
    }
    for index in (2, 3):
        path = f"/api/v1/namespaces/{stage.namespace}/pods/web-rs-{index}/status"
        headers = {"Content-Type": "application/strategic-merge-patch+json"}
        await stage.send("PATCH", path, [], headers, json.dumps(body).encode())
        stage.use_cpu(**{f"web_rs_{index}": "900m"})
    async with stage.running() as actor:
        await stage.steps(actor, 3)
    assert await stage.replicas("web") == 4


HOLES = [
    pytest.param({"behavior": {"scaleUp": None, "scaleDown": {}}}, id="F52 behavior with holes"),
    pytest.param({"metrics": [{"type": "Resource"}]}, id="F52 a type without its source"),
    pytest.param({"metrics": [{"type": "CheddarCheese"}]}, id="F52 an unknown type"),
    pytest.param(
        {
            "metrics": [
                {
                    "type": "External",
                    "external": {"metric": {"name": "queue-bad"}, "target": {"type": "Value"}},
                }
            ]
        },
        id="F52 a target without a value",
    ),
    pytest.param({"metrics": None, "minReplicas": -4}, id="F52 a negative minimum"),
    pytest.param({"maxReplicas": 0}, id="F52 no maximum"),
    pytest.param({"scaleTargetRef": {}}, id="F52 no target"),
]


@pytest.mark.parametrize("holes", HOLES)
@in_virtual_time
async def test_a_stored_object_with_holes_stops_no_other(stage, holes):
    await held(stage)
    await held(stage, "bad", 3)
    stage.store_raw("bad", lambda spec: spec | holes)
    load(stage, 900)
    async with working(stage) as actor:
        assert await becomes(stage, 9) <= 16
        load(stage, 600)
        await stage.follow("web")
        assert await becomes(stage, 6) <= 16
        assert await stage.replicas("bad") in range(1, 11)
        assert actor.operator.hpas is not None


def test_f53_a_selector_of_ten_thousand_requirements_is_refused(both):
    async def scenario(stage: Stage) -> None:
        labels = {f"key{index}": "x" for index in range(10_000)}
        with pytest.raises(errors.Invalid, match="selector"):
            await stage.hpa("web", metrics=[external_metric("queue", average="1", **labels)])

    both(scenario)


@in_virtual_time
async def test_f54_another_hand_is_told_of_and_not_fought_faster_than_by_period(stage):
    await held(stage)
    load(stage, 800)
    async with working(stage) as actor:
        await becomes(stage, 8)
        before = len(actor.line.writes)
        for _ in range(10):
            await stage.scale("web", 3)
            await stage.pass_time(30)
        scales = sum(one.is_scale for one in actor.line.writes[before:])
        assert scales <= 20
        assert await stage.event_count("ReplicasChangedElsewhere") >= 1


@pytest.mark.parametrize("amount", ["1e1000000000", "1" + "0" * 5000], ids=["an exponent", "5,000 digits"])
@in_virtual_time
async def test_an_hpa_that_cannot_be_read_says_so_and_costs_one_write_and_one_line(stage, caplog, amount):
    """Such HPAs got no condition at all."""

    def spoil(spec):
        target = {"type": "AverageValue", "averageValue": amount}
        source = {**spec["metrics"][0]["external"], "target": target}
        return {**spec, "metrics": [{"type": "External", "external": source}]}

    await held(stage)
    await held(stage, "odd")
    stage.store_raw("odd", spoil)
    async with working(stage) as actor:
        await stage.pass_time(300)
        assert (await stage.conditions("odd"))["ScalingActive"] == ("False", "SpecUnreadable")
        assert sum("/odd/" in one.request.path for one in actor.line.writes) == 1
        load(stage, 900)
        await becomes(stage, 9)
        await stage.edit_hpa("odd", metrics=[queue("odd")])
        load(stage, 900, "odd")
        await becomes(stage, 9, "odd")
        assert (await stage.conditions("odd"))["ScalingActive"] == ("True", "ValidMetricFound")
    said = [record.message for record in caplog.records if "odd" in record.message]
    assert sum("left out of the cache" in message for message in said) == 1
