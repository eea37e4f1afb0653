"""The webhooks as the API server calls them: pods sized at creation, wrong objects refused, nothing ever blocked."""

from datetime import timedelta
from typing import Any

import pytest

from tests.scenarios.vertical.conftest import Scenario
from tests.scenarios.vertical.stage import FOLLOWER, FOLLOWER_TARGET, LEADER, LEADER_TARGET, Stage
from tests.scenarios.vertical.webhooks import Broken
from tests.support.clock import in_virtual_time
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.resource import LEASES
from trimtab.operator.vertical.admission.registration import (
    MUTATING,
    VALIDATING,
    configuration_name,
    configurations,
)
from trimtab.operator.vertical.kinds import SCOPES, VPAS
from trimtab.operator.vertical.updater.webhook_check import AdmissionProbe, LeaseCheck
from trimtab.operator.vertical.wiring import make_admission

pytestmark = pytest.mark.versions


def test_a_pod_is_created_with_the_size_of_its_role(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.statefulset("hot", 1, labels={"role": "leader"})
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("base", "db")
        await stage.vpa("lead", "hot", scope="leader")
        stage.use(db_0=FOLLOWER, db_1=FOLLOWER, hot_0=LEADER)
        async with stage.running() as actor, stage.admitting(actor):
            await stage.recommend(actor, 2)
            await stage.caught_up(actor)
            await stage.delete_pod("db-1")
            await stage.delete_pod("hot-0")
            await stage.heal("db")
            await stage.heal("hot")
        assert await stage.memory("db-0") == "50Mi"
        assert await stage.memory("db-1") == FOLLOWER_TARGET
        assert await stage.memory("hot-0") == LEADER_TARGET, "the template carries the role's label"
        notes = (await stage.read_pod("db-1"))["metadata"]["annotations"]
        assert (
            notes["vpaUpdates"] == "Pod resources updated by base: container 0: cpu request, memory request"
        )
        assert notes["vpaObservedContainers"] == "app"

    play(scenario)


@pytest.mark.controllers
def test_scp_s1_at_admission_a_daemonset_pod_gets_the_size_of_its_class_of_nodes(play):
    async def scenario(stage: Stage) -> None:
        nodes = [await stage.node("fast", size="large"), await stage.node("slow", size="small")]
        await stage.daemonset("agent", "size")
        old = await stage.pods_on(nodes)
        await stage.scope("large", nodes={"size": "large"})
        await stage.vpa("base", "agent", kind="DaemonSet")
        await stage.vpa("large", "agent", kind="DaemonSet", scope="large")
        stage.use(**dict(zip(old, (LEADER, FOLLOWER), strict=True)))
        async with stage.running() as actor, stage.admitting(actor):
            await stage.recommend(actor, 2)
            await stage.caught_up(actor)
            for pod in old:
                await stage.delete_pod(pod)
            await (
                stage.workloads.settle()
            )  # the controller makes each for a node that it names, but is not bound to yet
        new = await stage.pods_on(nodes)
        assert not set(new) & set(old)
        assert [await stage.memory(pod) for pod in new] == [LEADER_TARGET, FOLLOWER_TARGET]

    play(scenario)


def test_scp_u3_a_vpa_that_names_an_absent_scope_is_refused_and_an_existing_one_stays_editable(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 1)
        async with stage.running() as actor, stage.admitting(actor):
            with pytest.raises(errors.ApiError, match=r"spec\.vpaScope\.name"):
                await stage.vpa("lead", "db", scope="absent")
            await stage.scope("leader", pods={"role": "leader"})
            await stage.vpa("lead", "db", scope="leader")
            await stage.delete_scope("leader")
            await stage.caught_up(actor)
            unrelated = {"spec": {"updatePolicy": {"minReplicas": 3}}}
            await stage.client.patch(VPAS, "lead", stage.namespace, unrelated)
        assert (await stage.read_vpa("lead"))["spec"]["updatePolicy"]["minReplicas"] == 3

    play(scenario)


@pytest.mark.parametrize(
    "requirement",
    [
        pytest.param({"key": "role", "operator": "In", "values": []}, id="In without values"),
        pytest.param({"key": "-bad-", "operator": "Exists"}, id="a key that is none"),
        pytest.param({"key": "role", "operator": "Like", "values": ["x"]}, id="an unknown operator"),
    ],
)
@pytest.mark.parametrize("webhook", [True, False], ids=["by the webhook", "by the definition alone"])
def test_scp_u4_a_malformed_scope_is_refused(play, requirement, webhook):
    body = {
        "apiVersion": SCOPES.api_version,
        "kind": SCOPES.kind,
        "metadata": {"name": "bad"},
        "spec": {"podSelector": {"matchExpressions": [requirement]}},
    }

    async def scenario(stage: Stage) -> None:
        if not webhook:
            with pytest.raises(errors.ApiError):
                await stage.client.create(SCOPES, body, stage.namespace)
            return
        async with stage.running() as actor, stage.admitting(actor):
            with pytest.raises(errors.ApiError, match="podSelector"):
                await stage.client.create(SCOPES, body, stage.namespace)

    play(scenario)


def test_an_absent_update_policy_gets_its_default(play):
    async def scenario(stage: Stage) -> None:
        body = {
            "apiVersion": VPAS.api_version,
            "kind": VPAS.kind,
            "metadata": {"name": "plain"},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
        }
        async with stage.running() as actor, stage.admitting(actor):
            await stage.client.create(VPAS, body, stage.namespace)
        assert (await stage.read_vpa("plain"))["spec"]["updatePolicy"] == {"updateMode": "Recreate"}

    play(scenario)


@pytest.mark.parametrize("how", [Broken.DEAD, Broken.HANGING], ids=lambda how: how.value)
def test_f55_without_the_webhook_pods_are_created_as_they_are_and_nothing_is_evicted(play, how):
    play(_without_the_webhook(how))


def test_f55_a_webhook_of_an_unknown_authority_is_as_good_as_none(play_on_sockets):
    play_on_sockets(_without_the_webhook(Broken.DISTRUSTED))


def _without_the_webhook(how: Broken) -> Scenario:
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 3)
        await stage.vpa("base", "db", mode="Recreate")
        stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=FOLLOWER)
        async with stage.running() as actor:
            probe = AdmissionProbe(stage.clock, actor.site.client, stage.own_namespace)
            actor.prove_by(probe.problem)
            async with stage.admitting(actor) as admission:
                await stage.recommend(actor, 2)
                await stage.break_webhook(admission, how)
                began = stage.clock.monotonic()
                await stage.delete_pod("db-2")
                await stage.heal("db")
                # On a real server the three seconds are real ones, of a machine that may be busy.
                longest = 3.5 if isinstance(stage.clock, VirtualClock) else 9.0
                assert stage.clock.monotonic() - began <= longest, "a broken webhook delays nobody"
                assert await stage.memory("db-2") == "50Mi"
                await stage.update(actor, 3)
                assert not actor.wrote("/eviction")
                assert "came back unchanged" in actor.updater.health()["admission"]
                await stage.mend_webhook(actor, admission)
                await stage.update(actor)
                assert len(actor.wrote("/eviction")) == 1
                await stage.heal("db")
                assert FOLLOWER_TARGET in [await stage.memory(f"db-{index}") for index in range(3)]

    return scenario


def test_s5_the_configurations_are_narrow_and_come_back_when_somebody_breaks_them(play):
    async def scenario(stage: Stage) -> None:
        async with stage.running() as actor, stage.admitting(actor) as admission:
            name = configuration_name(stage.own_namespace)
            pods = (await stage.client.get(MUTATING, name))["webhooks"][0]
            watched = pods["namespaceSelector"]["matchExpressions"][0]
            assert (watched["operator"], watched["values"]) == ("In", [stage.namespace])
            for resource in (MUTATING, VALIDATING):
                for hook in (await stage.client.get(resource, name))["webhooks"]:
                    assert hook["timeoutSeconds"] <= 3
                    assert hook["failurePolicy"] == "Ignore"
                    assert hook["sideEffects"] == "None"
            assert pods["matchConditions"][0]["name"] == "has-a-controller"
            broken = [{"op": "remove", "path": "/webhooks/0"}]
            await stage.patch_json(MUTATING, name, broken)
            await admission.refresh()
            assert len((await stage.client.get(MUTATING, name))["webhooks"]) == 3
            await stage.client.delete(VALIDATING, name)
            await admission.refresh()
            assert len((await stage.client.get(VALIDATING, name))["webhooks"]) == 2
            writes = len(actor.line.writes)
            await admission.refresh()
            assert len(actor.line.writes) == writes, "what is right already is not written"

    play(scenario)


def test_where_the_installation_contains_the_configurations_only_the_authority_is_written(play):
    """The account may then change nothing else, and a configuration that is missing is reported."""

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.vpa("base", "db")
        stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
        async with stage.running(webhook_registration="ca-bundle") as actor:
            admission = make_admission(actor.site)
            await admission.refresh()
            assert "is missing; apply the installation again" in admission.warnings()["certificate"]
            foreign = {**configurations(actor.site.settings, b"")[0][1], "webhooks": []}
            await stage.client.create(MUTATING, foreign)
            await admission.refresh()
            assert "has no webhook that calls this server" in admission.warnings()["certificate"]
            await stage.client.delete(MUTATING, foreign["metadata"]["name"])
        async with stage.running(webhook_registration="ca-bundle") as actor:
            installed = configurations(actor.site.settings, b"")
            for resource, wanted in installed:
                for hook in wanted["webhooks"]:
                    del hook["clientConfig"]["caBundle"]
                await stage.client.create(resource, wanted)
            async with stage.admitting(actor) as admission:
                await stage.recommend(actor, 2)
                await stage.caught_up(actor)
                await stage.delete_pod("db-1")
                await stage.heal("db")
                assert await stage.memory("db-1") == FOLLOWER_TARGET
                assert admission.warnings() == {}
                for resource, body in installed:
                    found = await stage.client.get(resource, body["metadata"]["name"])
                    assert all(hook["clientConfig"]["caBundle"] for hook in found["webhooks"])
                await admission.refresh()
                writes = [one for one in actor.line.writes if "webhookconfigurations" in one.request.path]
                assert len(writes) == 2, "what is right already is not written"
                changes: list[Any] = [change for one in writes for change in one.body]
                assert {
                    change["path"].rpartition("/")[2] for change in changes if change["op"] != "test"
                } == {"caBundle"}

    play(scenario)


@pytest.mark.parametrize(
    ("name", "namespace", "seconds"),
    [
        pytest.param("vpa-admission-controller", "", 60, id="upstream's Lease"),
        pytest.param("ours", "kube-system", 30, id="another one"),
    ],
)
def test_an_updater_that_reads_the_lease_finds_it(play, name, namespace, seconds):
    """Name, namespace and patience were fixed."""
    settings: dict[str, Any] = {
        "status_lease_name": name,
        "status_lease_namespace": namespace,
        "admission_lease_name": name,
        "admission_lease_namespace": namespace,
        "admission_lease_timeout": timedelta(seconds=seconds),
    }

    async def scenario(stage: Stage) -> None:
        async with stage.running(**settings) as actor:
            check = LeaseCheck(stage.clock, actor.site.client, actor.site.settings.updater)
            async with stage.admitting(actor):
                # The webhook registers first and renews its Lease then: on the real server it may admit already.
                await stage.wait_for(lambda: _is_fresh(check))
                lease = await stage.client.get(LEASES, name, namespace or "kube-system")
                assert lease.spec.renew_time is not None
            # Only now: on the real server the webhook serves, and renews its Lease, as long as it is entered.
            await stage.pass_time(seconds + 1)
            assert "last renewed" in (await check.problem() or "")

    play(scenario)


async def _is_fresh(check: LeaseCheck) -> bool:
    return await check.problem() is None


@in_virtual_time
async def test_a_check_of_the_webhook_that_does_not_exist_is_refused_at_the_start(stage):
    with pytest.raises(ValueError, match="--admission-check=guess is not known; use probe, lease or none"):
        async with stage.running(admission_check="guess"):
            pytest.fail("an updater was made")


@pytest.mark.parametrize(
    ("seconds", "renewals"),
    [pytest.param(30, 3), pytest.param(25, 4, id="early rather than late: after 20 s, not 30 s")],
)
def test_the_lease_is_renewed_as_often_as_asked(play, seconds, renewals):
    async def scenario(stage: Stage) -> None:
        async with stage.running(status_lease_update_interval=timedelta(seconds=seconds)) as actor:
            admission = make_admission(actor.site)
            moments = set()
            for _ in range(7):
                await admission.refresh()
                lease = await stage.client.get(LEASES, "vpa-admission-controller", "kube-system")
                moments.add(lease.spec.renew_time)
                await stage.pass_time(10)
            assert len(moments) == renewals

    play(scenario)


@pytest.mark.parametrize(("most", "want"), [("", "800m"), ("150m", "150m")])
def test_a_startup_boost_has_a_most(play, most, want):
    """--max-allowed-cpu-boost was no option."""

    async def scenario(stage: Stage) -> None:
        boost = {"cpu": {"type": "Factor", "factor": 8}}
        await stage.statefulset("db", 1, requests={"cpu": "100m"})
        await stage.vpa("base", "db", mode="Off", startupBoost=boost)
        settings: dict[str, Any] = {"feature_gates": "CPUStartupBoost=true", "max_allowed_cpu_boost": most}
        async with stage.running(**settings) as actor, stage.admitting(actor):
            await stage.caught_up(actor)
            await stage.delete_pod("db-0")
            await stage.heal("db")
        resources = (await stage.read_pod("db-0"))["spec"]["containers"][0]["resources"]
        assert resources["requests"]["cpu"] == want

    play(scenario)


UPSTREAM: dict[str, Any] = {"webhook_naming": "upstream", "webhook_timeout_seconds": 30}


def test_with_upstreams_naming_tools_find_the_webhook_and_its_refusals(play):
    """They look for vpa-webhook-config and expect refusals by vpa.k8s.io."""

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.vpa("base", "db")
        stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
        async with stage.running(**UPSTREAM) as actor, stage.admitting(actor):
            await stage.recommend(actor, 2)
            await stage.caught_up(actor)
            await stage.delete_pod("db-1")
            await stage.heal("db")
            assert await stage.memory("db-1") == FOLLOWER_TARGET
            found = await stage.client.get(MUTATING, "vpa-webhook-config")
            assert found["webhooks"][0]["name"] == "vpa.k8s.io"
            assert found["webhooks"][0]["timeoutSeconds"] == 30
            with pytest.raises(errors.ApiError, match=r'admission webhook "vpa\.k8s\.io" denied the request'):
                await stage.vpa("wrong", "db", min_replicas=0)

    play(scenario)


def test_a_change_of_naming_leaves_one_registration(play):
    """Two would size each pod twice."""

    async def scenario(stage: Stage) -> None:
        async with stage.running() as actor, stage.admitting(actor):
            pass
        async with stage.running(**UPSTREAM) as actor:
            await make_admission(actor.site).refresh()
            assert not (await stage.client.get(MUTATING, configuration_name(stage.own_namespace))).get(
                "webhooks"
            )
            assert not (await stage.client.get(VALIDATING, configuration_name(stage.own_namespace))).get(
                "webhooks"
            )

    play(scenario)


def test_a_pod_without_a_controller_is_not_even_asked_about(play):
    async def scenario(stage: Stage) -> None:
        async with stage.running() as actor, stage.admitting(actor):
            await stage.pod("alone", {"app": "db"})
            total = actor.count("vpa_admission_controller_admission_pods_total", applied="false")
            assert total == 0

    play(scenario)
