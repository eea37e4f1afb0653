"""Nothing is evicted that would not come back: RV-H2, F2, and what a quota or a missing webhook makes of it."""

import json
from typing import Any

import pytest

from tests.dashboard.asking import EVERYTHING
from tests.scenarios.vertical.conftest import play_on_real
from tests.scenarios.vertical.stage import FOLLOWER, FOLLOWER_TARGET, MINUTE, Actor, Stage
from tests.scenarios.vertical.test_published_settings import publish
from tests.support.clock import in_virtual_time
from tests.support.objects import NAMESPACES
from tests.support.transport import status
from trimtab.cli.explain.sizes import explain_size
from trimtab.cli.operator_settings import Choice
from trimtab.cluster.client import ListOptions
from trimtab.cluster.discovery import Discovery
from trimtab.cluster.resource import LIMIT_RANGES, NODES, PODS, STATEFUL_SETS, Json, Resource
from trimtab.cluster.transport import Request, Response
from trimtab.dashboard import OperatorVertical, RemoteState
from trimtab.dashboard.sources.operator_settings import OperatorSettings
from trimtab.decide.vertical.explain import PodExplanation
from trimtab.model.core.objects import Node
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.times import format_time
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.explain import Explainer
from trimtab.operator.vertical.kinds import VPAS
from trimtab.operator.vertical.updater.templates import Templates

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", Json)
NARROW: dict[str, Any] = {"replacement_check": "dry-run", "node_fit": "free"}
PROVED: dict[str, Any] = {**NARROW, "watch_namespaces": (), "is_narrow": False}
DEFAULT_CHECKS: dict[str, Any] = {
    **PROVED,
    **{name: Settings().value(name) for name in NARROW},
}


def bounds(**item: Json) -> Json:
    return {"metadata": {"name": "bounds"}, "spec": {"limits": [{"type": "Pod", **item}]}}


async def warnings(stage: Stage, actor: Actor, reason: str) -> list[str]:
    return [message for found, _, message in await stage.events(actor) if found == reason]


def _verdict(stage: Stage, actor: Actor) -> str:
    verdict = actor.updater.verdict(f"{stage.namespace}/db-0")
    return verdict.reason if verdict is not None else ""


async def three_replicas(stage: Stage, actor: Actor, **policy: Any) -> None:
    await stage.statefulset("db", 3)
    await stage.vpa("base", "db", mode="Recreate", **policy)
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=FOLLOWER)
    await stage.recommend(actor, 2)
    await stage.caught_up(actor)


def test_rv_h2_a_pod_whose_template_is_refused_by_now_is_not_evicted(play):
    async def scenario(stage: Stage) -> None:
        async with stage.running(**PROVED) as actor, stage.admitting(actor):
            await three_replicas(stage, actor)
            await stage.client.create(LIMIT_RANGES, bounds(max={"memory": "20Mi"}), stage.namespace)
            await stage.caught_up(actor)
            await stage.update(actor, 2)
            assert not actor.wrote("/eviction")
            assert "maximum memory usage per Pod is 20Mi" in _verdict(stage, actor)
            await stage.client.delete(LIMIT_RANGES, "bounds", stage.namespace)
            await stage.caught_up(actor)
            await stage.update(actor)
            assert len(actor.wrote("/eviction")) == 1
            await stage.heal("db")
            assert FOLLOWER_TARGET in [await stage.memory(f"db-{place}") for place in range(3)]

    play(scenario)


async def refusal(stage: Stage) -> dict[str, str]:
    """Return the condition ReplacementRefused of the VPA."""
    conditions = (await stage.read_vpa("base")).get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == "ReplacementRefused"), {})


async def annotated(stage: Stage) -> list[str]:
    """Return the pods that say that their replacement was refused."""
    pods = (await stage.client.list(PODS, ListOptions(stage.namespace))).items
    return sorted(pod.name for pod in pods if "trimtab.dev/replacement-refused" in pod.metadata.annotations)


async def _bounds_forbid(stage: Stage, actor: Actor) -> None:
    await stage.client.create(LIMIT_RANGES, bounds(max={"memory": "20Mi"}), stage.namespace)


async def _bounds_allow(stage: Stage, actor: Actor) -> None:
    await stage.client.delete(LIMIT_RANGES, "bounds", stage.namespace)


async def _policy_forbids(stage: Stage, actor: Actor) -> None:
    """Refuse new pods, as a policy of others does that no rule of ours knows."""
    path = f"/namespaces/{stage.namespace}/pods"
    actor.line.answer = lambda request: (
        status(403, "Forbidden") if request.method == "POST" and request.path.endswith(path) else None
    )


async def _policy_allows(stage: Stage, actor: Actor) -> None:
    actor.line.answer = lambda _: None


async def _mode_is_initial(stage: Stage, actor: Actor) -> None:
    body = {"spec": {"updatePolicy": {"updateMode": "Initial"}}}
    await stage.client.patch(VPAS, "base", stage.namespace, body)


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        pytest.param(
            _bounds_forbid, _bounds_allow, "maximum memory usage per Pod is 20Mi", id="a LimitRange"
        ),
        pytest.param(_policy_forbids, _policy_allows, "403", id="a policy"),
        pytest.param(_policy_forbids, _mode_is_initial, "403", id="a policy, until nothing is evicted"),
    ],
)
def test_a_vpa_whose_pods_stay_says_why_until_the_cause_is_gone(play, begin, end, words):
    """Only an event told it, which is gone after an hour."""

    async def scenario(stage: Stage) -> None:
        async with stage.running(**PROVED) as actor, stage.admitting(actor):
            await three_replicas(stage, actor)
            assert await refusal(stage) == {}
            await begin(stage, actor)
            await stage.caught_up(actor)
            await stage.update(actor, 2)
            await stage.recommend(actor)
            told = await refusal(stage)
            assert (told["status"], told["reason"]) == ("True", "ReplacementRefused")
            assert "the replacement of pod db-0 would be refused" in told["message"]
            assert words in told["message"]
            assert "the same goes for db-1, db-2" in told["message"]
            lines = await explained(stage, actor)
            assert [line for line in lines if "ReplacementRefused: " in line and words in line]
            await stage.caught_up(actor)
            page = await OperatorVertical(actor.site.view).page(f"vpa/{stage.namespace}/base", EVERYTHING)
            assert page is not None
            assert (page.row.state, page.row.summary) == ("problem", told["message"])
            assert "ReplacementRefused" in [one.type for one in page.conditions]
            await stage.update(actor)
            await stage.recommend(actor)
            assert await refusal(stage) == told, "nothing changed"
            await end(stage, actor)
            await stage.update(actor, 3)
            await stage.recommend(actor)
            assert await refusal(stage) == {}
            assert await annotated(stage) == []

    play(scenario)


async def explained(stage: Stage, actor: Actor) -> list[str]:
    """Return what `explain vpa` prints."""
    explainer = Explainer(stage.client, stage.namespace, actor.site.settings)
    try:
        return list((await explainer.vpa("base")).lines)
    finally:
        await explainer.close()


@in_virtual_time
async def test_the_reason_survives_a_restart_of_the_updater(stage):
    """A fresh updater evicts nothing for a minute, and does not know what was refused."""
    async with stage.running(**PROVED) as actor, stage.admitting(actor):
        await three_replicas(stage, actor)
        await _policy_forbids(stage, actor)
        await stage.update(actor, 2)
        before = await annotated(stage)
        assert before == ["db-0", "db-1", "db-2"]
    async with stage.running(**PROVED) as fresh:
        await stage.caught_up(fresh)
        await stage.update(fresh, after=1)
        assert await annotated(stage) == before


@in_virtual_time
async def test_the_reason_goes_with_the_last_vpa(stage):
    async with stage.running(**PROVED) as actor, stage.admitting(actor):
        await three_replicas(stage, actor)
        await _policy_forbids(stage, actor)
        await stage.update(actor, 2)
        assert await annotated(stage)
        await stage.client.delete(VPAS, "base", stage.namespace)
        await stage.update(actor)
        assert await annotated(stage) == []


@pytest.mark.parametrize(
    "settings", [{"compat": "vpa-1.8"}, {"dry_run": True}], ids=["as upstream", "in a dry run"]
)
@in_virtual_time
async def test_no_such_condition_is_written(stage, settings):
    async with stage.running(**PROVED) as actor, stage.admitting(actor):
        await three_replicas(stage, actor)
        await stage.client.create(LIMIT_RANGES, bounds(max={"memory": "20Mi"}), stage.namespace)
    async with stage.running(**PROVED, **settings) as actor:
        await stage.caught_up(actor)
        await stage.update(actor, 2)
        assert await annotated(stage) == []
        note = {"metadata": {"annotations": {"trimtab.dev/replacement-refused": "as it was"}}}
        (one, *_) = (await stage.client.list(PODS, ListOptions(stage.namespace))).items
        await stage.client.patch(PODS, one.name, stage.namespace, note)
        await stage.caught_up(actor)
        await stage.recommend(actor)
        assert await refusal(stage) == {}


@pytest.mark.real
@pytest.mark.parametrize(
    ("room", "is_evicted"),
    [
        pytest.param("4Gi", True, id="a quota that has room in the place of the pod"),
        pytest.param("400Mi", False, id="a quota that has none"),
    ],
)
def test_a_replacement_has_to_meet_the_quota_in_the_place_of_its_pod(real_cluster, room, is_evicted):
    """On the real server only: the lab knows no quotas."""

    async def scenario(stage: Stage) -> None:
        # Pods made by hand run on a node that nobody calls ready, so only admission is asked about.
        async with stage.running(replacement_check="dry-run") as actor, stage.admitting(actor):
            await three_replicas(stage, actor)
            hard = {"pods": "3", "requests.memory": room}
            body = {"metadata": {"name": "narrow"}, "spec": {"hard": hard}}
            await stage.client.create(QUOTAS, body, stage.namespace)
            used = {"pods": "3", "requests.memory": "150Mi"}
            # No controller counts here; the admission plugin believes the status.
            status = {"status": {"hard": hard, "used": used}}
            await stage.client.patch(QUOTAS, "narrow", stage.namespace, status, subresource="status")
            await stage.update(actor)
            assert bool(actor.wrote("/eviction")) is is_evicted, _verdict(stage, actor)
            assert bool(await warnings(stage, actor, "ReplacementRefused")) is not is_evicted
            if not is_evicted:
                assert "exceeded quota: narrow" in _verdict(stage, actor)

    play_on_real(real_cluster, scenario)


@pytest.mark.real
@pytest.mark.parametrize(
    ("room", "is_evicted"),
    [
        pytest.param("1230Mi", True, id="a quota that has room in the place of the pod"),
        pytest.param("1200Mi", False, id="a quota that has none"),
    ],
)
def test_every_quota_has_to_be_met_and_the_server_names_the_first_only(real_cluster, room, is_evicted):
    """As `object-counts` and `compute-resources` in the documentation of Kubernetes: the first is full of pods."""

    async def scenario(stage: Stage) -> None:
        async with stage.running(replacement_check="dry-run") as actor, stage.admitting(actor):
            await three_replicas(stage, actor)
            for name, hard, used in (
                ("object-counts", {"pods": "3"}, {"pods": "3"}),
                ("compute-resources", {"requests.memory": room}, {"requests.memory": "150Mi"}),
            ):
                body = {"metadata": {"name": name}, "spec": {"hard": hard}}
                await stage.client.create(QUOTAS, body, stage.namespace)
                status = {"status": {"hard": hard, "used": used}}
                await stage.client.patch(QUOTAS, name, stage.namespace, status, subresource="status")
            await stage.update(actor)
            assert bool(actor.wrote("/eviction")) is is_evicted, _verdict(stage, actor)
            if not is_evicted:
                assert "exceeded quota: compute-resources" in _verdict(stage, actor)

    play_on_real(real_cluster, scenario)


def _exceeded(quota: str, amounts: str) -> Response:
    text = f'pods "db-0" is forbidden: exceeded quota: {quota}, {amounts}'
    body = {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": text}
    return Response(403, {"content-type": "application/json"}, json.dumps(body).encode())


FULL_OF_PODS = _exceeded("object-counts", "requested: pods=1, used: pods=3, limited: pods=3")
FULL = "requested: requests.memory=1Mi, used: requests.memory=3, limited: requests.memory=3"
LARGE, SMALL = "4Gi", "50Mi"


@pytest.mark.parametrize(
    ("resize", "memory", "words"),
    [
        pytest.param(None, SMALL, "", id="a resize is admitted, so all quotas have room"),
        pytest.param(
            _exceeded("compute", FULL), SMALL, "exceeded quota: compute,", id="another quota has none"
        ),
        pytest.param(status(404, "NotFound"), SMALL, "may be refused", id="a server that cannot resize"),
        pytest.param(status(403, "Forbidden"), SMALL, "may be refused", id="a resize that is not allowed"),
        pytest.param(
            status(403, "Forbidden"), LARGE, "", id="a replacement that is no larger needs no proof"
        ),
    ],
)
@in_virtual_time
async def test_a_larger_replacement_is_held_unless_all_quotas_are_known_to_have_room(
    stage, resize, memory, words
):
    async with stage.running(replacement_check="dry-run") as actor, stage.admitting(actor):
        await stage.statefulset("db", 3, requests={"cpu": "2", "memory": memory})
        most = {"containerName": "*", "maxAllowed": {"cpu": "2", "memory": "1Gi"}}
        await stage.vpa("base", "db", mode="Recreate", resourcePolicy={"containerPolicies": [most]})
        stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=FOLLOWER)
        await stage.recommend(actor, 2)
        await stage.caught_up(actor)

        def answer(request: Request) -> Response | None:
            if request.method == "POST" and request.path.endswith(f"/{stage.namespace}/pods"):
                return FULL_OF_PODS
            return resize if request.path.endswith("/resize") else None

        actor.line.answer = answer
        await stage.update(actor)
        assert bool(actor.wrote("/eviction")) is not bool(words), _verdict(stage, actor)
        assert words in _verdict(stage, actor)
        for size in [await stage.memory(f"db-{place}") for place in (1, 2)]:
            assert size == memory, "a dry run changes nothing"


def test_f2_a_pod_whose_replacement_fits_on_no_node_is_not_evicted(play):
    async def scenario(stage: Stage) -> None:
        policies = {"containerPolicies": [{"containerName": "*", "minAllowed": {"cpu": "900"}}]}
        async with stage.running(**PROVED) as actor, stage.admitting(actor):
            await three_replicas(stage, actor, resourcePolicy=policies)
            await stage.update(actor, 2)
            assert not actor.wrote("/eviction")
            (first, *_) = await warnings(stage, actor, "NoNodeFits")
            assert "no node has room for cpu 900" in first
            conditions = (await stage.read_vpa("base"))["status"]["conditions"]
            (told,) = [one for one in conditions if one["type"] == "NoNodeFits"]
            largest = max([node.status.allocatable["cpu"] for node in await _nodes(stage)])
            assert f"the largest size that would fit is cpu {largest}" in told["message"]

    play(scenario)


def test_f2_a_full_cluster_is_not_asked_for_more(play_by_hand):
    """By hand, because the node has to be as small as the pods that are on it."""

    async def scenario(stage: Stage) -> None:
        async with stage.running(**PROVED) as actor, stage.admitting(actor):
            await three_replicas(stage, actor)
            small = {"status": {"allocatable": {"cpu": "64", "memory": "200Mi", "pods": "500"}}}
            for node in await _nodes(stage):
                await stage.client.patch(NODES, node.metadata.name, None, small, subresource="status")
            await stage.caught_up(actor)
            await stage.update(actor, 2)
            assert not actor.wrote("/eviction")
            assert await warnings(stage, actor, "NoNodeFits")

    play_by_hand(scenario)


def test_a_recommendation_may_be_capped_to_the_largest_node(play):
    async def scenario(stage: Stage) -> None:
        policies = {"containerPolicies": [{"containerName": "*", "minAllowed": {"cpu": "900"}}]}
        async with stage.running(cap_to_largest_node=True) as actor:
            await three_replicas(stage, actor, resourcePolicy=policies)
            status = (await stage.read_vpa("base"))["status"]
            (container,) = status["recommendation"]["containerRecommendations"]
            largest = max([node.status.allocatable["cpu"] for node in await _nodes(stage)])
            assert container["target"]["cpu"] == str(largest)
            assert not [one for one in status["conditions"] if one["type"] == "NoNodeFits"]

    play(scenario)


def test_a_pod_whose_replacement_would_be_no_different_is_not_evicted(play):
    """Without the webhook the replacement is what the template says, whatever a stale proof claims."""

    async def scenario(stage: Stage) -> None:
        async with stage.running(**PROVED) as actor:
            await three_replicas(stage, actor)
            await stage.update(actor, 2)
            assert not actor.wrote("/eviction")
            assert await warnings(stage, actor, "ReplacementUnchanged")

    play(scenario)


def test_what_is_admitted_and_placed_is_evicted(play):
    async def scenario(stage: Stage) -> None:
        async with stage.running(**PROVED) as actor, stage.admitting(actor):
            await three_replicas(stage, actor)
            await stage.update(actor)
            assert len(actor.wrote("/eviction")) == 1
            for vpa in (await stage.client.list(VPAS, ListOptions(stage.namespace))).items:
                assert not [one for one in vpa.status.conditions if one.type == "NoNodeFits"]

    play(scenario)


@pytest.mark.parametrize(
    ("reason", "minutes"),
    [pytest.param("Deferred", 6, id="deferred for more than five minutes"), pytest.param("Infeasible", 1)],
)
@in_virtual_time
async def test_a_resize_that_waits_falls_back_to_eviction_with_the_default_checks(stage, reason, minutes):
    """While it waits the spec has the wanted size already, as the replacement has; the container has not."""
    async with stage.running(**DEFAULT_CHECKS) as actor, stage.admitting(actor):
        await stage.statefulset("db", 5)
        await stage.vpa("base", "db")
        stage.use(**{f"db_{place}": FOLLOWER for place in range(5)})
        await stage.recommend(actor, 2)
        stage.workloads.settle = _nothing
        await stage.update(actor)
        assert actor.wrote("/resize")
        for _ in range(20):
            for place in range(5):
                await _wait(stage, f"db-{place}", reason)
            await stage.update(actor, after=minutes * MINUTE)
            await stage.heal("db")
        sizes = [await stage.memory(f"db-{place}") for place in range(5)]
        assert sizes == [FOLLOWER_TARGET] * 5
        assert len(actor.wrote("/eviction")) == 5
        told = {reason for reason, _, _ in await stage.events(actor)}
        assert not told & {"ReplacementUnchanged", "EvictionFruitless"}


async def _nothing() -> None:
    return None


async def _wait(stage: Stage, name: str, reason: str) -> None:
    """Play kubelet: put off or refuse a resize that was requested."""
    pod = await stage.read_pod(name)
    given = pod["status"]["containerStatuses"][0]["resources"]
    conditions = pod["status"]["conditions"]
    is_told = any(one["type"] == "PodResizePending" for one in conditions)
    if is_told or given == pod["spec"]["containers"][0]["resources"]:
        return
    condition = {
        "type": "PodResizePending",
        "status": "True",
        "reason": reason,
        "message": "node full",
        "observedGeneration": pod["metadata"]["generation"],
        "lastTransitionTime": format_time(stage.clock.now()),
    }
    await stage.set_status(name, conditions=[*conditions, condition])


def test_the_replacement_of_a_pod_with_claimed_volumes_is_admitted_as_its_controller_makes_it(play_by_hand):
    """By hand, because no volume is ever bound here."""

    async def scenario(stage: Stage) -> None:
        mounts = [{"name": "data", "mountPath": "/data"}]
        template = {
            "metadata": {"labels": {"app": "db"}, "annotations": {"note": "mine"}},
            "spec": {"containers": [{"name": "app", "image": "none", "volumeMounts": mounts}]},
        }
        claim = {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        body = {
            "metadata": {"name": "db"},
            "spec": {
                "serviceName": "db",
                "selector": {"matchLabels": {"app": "db"}},
                "template": template,
                "volumeClaimTemplates": [claim],
            },
        }
        made = await stage.client.create(STATEFUL_SETS.untyped(), body, stage.namespace)
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True}
        labels = {"app": "db", "apps.kubernetes.io/pod-index": "0", "role": "leader"}
        pod = wire.convert(
            {
                "metadata": {
                    "name": "db-0",
                    "namespace": stage.namespace,
                    "labels": labels,
                    "ownerReferences": [{**owner, "uid": made["metadata"]["uid"]}],
                }
            },
            Pod,
        )
        wanted = await Templates(stage.client, Discovery(stage.client)).replacement(pod)
        answer = await stage.client.create(PODS.untyped(), wanted, stage.namespace, query=[("dryRun", "All")])
        assert answer["metadata"]["labels"] == {"app": "db", "apps.kubernetes.io/pod-index": "0"}
        assert answer["metadata"]["annotations"] == {"note": "mine"}
        assert answer["spec"]["hostname"] == "db-0"
        (volume,) = answer["spec"]["volumes"]
        assert volume["persistentVolumeClaim"]["claimName"] == "data-db-0"

    play_by_hand(scenario)


async def _hog(stage: Stage) -> None:
    """A pod of another namespace that takes nearly all of the node."""
    other = f"{stage.namespace}-other"
    await stage.client.create(NAMESPACES, {"metadata": {"name": other}})
    (node,) = await _nodes(stage)
    resources = {"requests": {"cpu": "1", "memory": "255500Mi"}}
    container = {"name": "app", "image": "none", "resources": resources}
    spec = {"nodeName": node.metadata.name, "containers": [container]}
    await stage.client.create(PODS.untyped(), {"metadata": {"name": "hog"}, "spec": spec}, other)
    room = {"status": {"allocatable": {"cpu": "64", "memory": "256000Mi", "pods": "500"}}}
    await stage.client.patch(NODES, node.metadata.name, None, room, subresource="status")


async def _settled(stage: Stage) -> None:
    """Wait for the watch of nodes and of the other namespace, which `caught_up` does not look at."""
    await stage.clock.sleep(8)


@pytest.mark.parametrize(
    ("settings", "evicted", "why"),
    [
        pytest.param(PROVED, 0, "no node has room for", id="seeing all pods"),
        pytest.param(NARROW, 0, "free room of nodes is not known", id="seeing its own namespace"),
        pytest.param({**NARROW, "node_fit": "allocatable"}, 1, "", id="not asking for free room"),
        pytest.param({**PROVED, "dry_run": True}, 0, "no node has room for", id="dry run"),
    ],
)
@in_virtual_time
async def test_room_that_pods_of_other_namespaces_take_is_not_free(stage, settings, evicted, why):
    """With `watchNamespaces` they cannot be listed, so nobody knows what is free."""
    async with stage.running(**NARROW) as live, stage.admitting(live):
        await _hog(stage)
        await three_replicas(stage, live)
        async with stage.running(**settings) as actor:
            await _settled(stage)
            await stage.update(actor)
            verdict = actor.updater.verdict(f"{stage.namespace}/db-0")
            assert verdict is not None
            assert len(actor.wrote("/eviction")) == evicted
            assert verdict.action == ("evicted" if evicted else "none")
            assert why in verdict.reason


@pytest.mark.parametrize(
    ("updater", "want"),
    [
        pytest.param(
            NARROW, "none: pod db-0 is not evicted: its replacement requests more", id="seeing its own"
        ),
        pytest.param({**NARROW, "node_fit": "allocatable"}, "evicted", id="not asking for free room"),
        pytest.param({**NARROW, "watch_namespaces": ()}, "evicted", id="seeing all pods"),
    ],
)
@in_virtual_time
async def test_page_and_explain_foresee_what_an_updater_does_that_does_not_know_the_free_room(
    stage, updater, want
):
    """The page foresaw evictions that such an updater never makes; --node-fit was not published."""
    async with stage.running(**NARROW) as actor, stage.admitting(actor):
        await three_replicas(stage, actor)
        # The recommender watches more than the updater, so its namespaces say nothing about free room.
        await publish(stage, "recommender")
        await publish(stage, "updater", **{"watch_namespaces": (stage.namespace,), **updater})
        settings = OperatorSettings(stage.client, Settings(), ())
        await settings.refresh()
        remote = RemoteState(stage.clock, stage.client, actor.site.view, lambda: settings.vertical)
        page = await OperatorVertical(actor.site.view, remote=remote).page(
            f"vpa/{stage.namespace}/base", EVERYTHING
        )
        assert page is not None
        assert page.pods[0].update.startswith(want)
        explained, _ = await explain_size(stage.client, "pod", stage.namespace, "db-0", Choice("trimtab"))
        assert isinstance(explained.data, PodExplanation)
        assert explained.data.update.startswith(want)


@in_virtual_time
async def test_without_knowing_the_free_room_a_pod_may_still_be_replaced_by_a_smaller_one(stage):
    async with stage.running(**NARROW) as actor, stage.admitting(actor):
        await stage.statefulset("db", 3, requests={"cpu": "2", "memory": "8Gi"})
        await stage.vpa("base", "db", mode="Recreate")
        stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=FOLLOWER)
        for _ in range(30):
            await stage.recommend(actor, after=3600)
        await stage.update(actor)
        assert len(actor.wrote("/eviction")) == 1, _verdict(stage, actor)


@in_virtual_time
async def test_what_is_told_of_a_pod_that_cannot_be_replaced_stays_true(stage):
    """Between two tries the verdict said that the API refused the eviction, and explain that it comes next."""
    policies = {"containerPolicies": [{"containerName": "*", "minAllowed": {"cpu": "900"}}]}
    async with stage.running(**PROVED) as actor, stage.admitting(actor):
        await three_replicas(stage, actor, resourcePolicy=policies)
        for _ in range(6):
            await stage.update(actor)
            assert "no node has room for cpu 900" in _verdict(stage, actor)
        settings = stage.settings(**NARROW)
        explainer = Explainer(stage.client, stage.namespace, settings)
        pod, vpa = await explainer.pod("db-0"), await explainer.vpa("base")
        await explainer.close()
        assert [line for line in pod.lines if "next update: none: pod db-0 is not evicted: no node" in line]
        assert [line for line in vpa.lines if "NoNodeFits: no node has room for cpu 900" in line]


async def _nodes(stage: Stage) -> list[Node]:
    return list((await stage.client.list(NODES)).items)
