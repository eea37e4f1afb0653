"""Programs work with the rights of their own accounts and no others: every answer is looked at, none is a 403."""

import asyncio
import json
import ssl
from collections import Counter
from contextlib import asynccontextmanager

import aiohttp
import pytest
from yarl import URL

from tests.real.install.conftest import WEBHOOKS
from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.metrics_stub import WithMetrics
from trimtab.adapter.adapter import serve
from trimtab.adapter.config import load_configuration
from trimtab.adapter.files import API_VERSION
from trimtab.cli.explain.hpas import explain_replicas
from trimtab.cli.explain.sizes import explain_size
from trimtab.cli.operator_settings import Choice
from trimtab.cluster import errors
from trimtab.cluster.client import Client, ListOptions, PatchType
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.resource import LEASES, PODS
from trimtab.cluster.transport import Request, Response
from trimtab.dashboard.dashboard import Dashboard
from trimtab.install import manifests, set_values
from trimtab.operator.horizontal.kinds import KUBE_CONTROLLER_MANAGER, RivalControllerError
from trimtab.operator.operator import Operator
from trimtab.operator.process import make_family
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.published import ANNOTATION, SettingsPublisher, parse_annotation
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.registration import MUTATING, VALIDATING, configuration_name
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS
from trimtab.operator.vertical.updater.templates import Templates
from trimtab.operator.vertical.updater.webhook_check import AdmissionProbe
from trimtab.operator.vertical.wiring import (
    VerticalRuntime,
    make_admission,
    make_recommender,
    make_roles,
    make_updater,
)

pytestmark = [pytest.mark.real, pytest.mark.versions]
GATES = "HPASelectionStrategy=true,HPAScaleToZero=true,VPASelectorRefinement=true"


def right_of(request: Request) -> tuple[str, str, str]:
    """Return the verb, group and resource that RBAC judges a request by."""
    parts = request.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    resource = "/".join((rest[0], rest[2]) if len(rest) > 2 else rest[:1])
    verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    reading = "watch" if ("watch", "true") in request.query else "get" if len(rest) > 1 else "list"
    return verbs.get(request.method, reading), group, resource


class Watched:
    """A transport that keeps the status of every answer."""

    def __init__(self, inner):
        self.inner = inner
        self.answers: Counter[int] = Counter()
        self.refused: list[str] = []
        self.used: set[tuple[str, str, str]] = set()

    def _note(self, request: Request, status: int) -> None:
        self.used.add(right_of(request))
        self.answers[status] += 1
        if status in {401, 403}:
            self.refused.append(f"{request.method} {request.path}")

    async def request(self, request: Request) -> Response:
        answer: Response = await self.inner.request(request)
        self._note(request, answer.status)
        return answer

    @asynccontextmanager
    async def stream(self, request: Request):
        async with self.inner.stream(request) as stream:
            self._note(request, stream.status)
            yield stream

    async def close(self) -> None:
        await self.inner.close()


class Place:
    """A stage that the administrator sets up, and a client that holds one account's token."""

    def __init__(self, clock, admin, account, *, is_narrow):
        self.clock = clock
        self.is_narrow = is_narrow
        self.stage = Stage(
            clock, HttpTransport(clock, load_kubeconfig(clock, str(admin), environ={})), prunes=True
        )
        own = HttpTransport(clock, load_kubeconfig(clock, str(account), environ={}))
        self.watched = Watched(own)
        self.client = Client(clock, WithMetrics(self.watched, self.stage.metrics), seed=2)

    @property
    def namespaces(self):
        """What `settings.watch-namespaces` says: the setting is as wide as the rights."""
        return (self.stage.namespace,) if self.is_narrow else ()


_OTHER_KINDS = {
    *(
        f"{verb} {kind}"
        for verb in ("list", "watch")
        for kind in ("replicationcontrollers", "daemonsets.apps")
    ),
    *(f"{verb} {kind}" for verb in ("list", "watch") for kind in ("statefulsets.apps", "jobs.batch")),
    *(f"{verb} {kind}/scale" for verb in ("get", "patch") for kind in ("replicationcontrollers",)),
    *(f"{verb} {kind}/scale.apps" for verb in ("get", "patch") for kind in ("replicasets", "statefulsets")),
    "get cronjobs.batch",
}
_OWNERS_NOT_WATCHED_YET = {
    *(f"get {kind}.apps" for kind in ("deployments", "replicasets", "statefulsets", "daemonsets")),
    *("get replicationcontrollers", "get jobs.batch"),
}
"""Of each kind of owner, one that the watch does not show."""
_ELECTION = {f"{verb} leases.coordination.k8s.io" for verb in ("create", "list", "get", "update")}
_WITHOUT_ELECTION = {"patch leases.coordination.k8s.io"}
_EVENTS = {"create events.events.k8s.io", "patch events.events.k8s.io"}
_AFTER_A_CONFLICT = {
    *("get deployments/scale.apps", "get horizontalpodautoscalers.autoscaling.trimtab.dev"),
    "get leases.coordination.k8s.io",
}
NOT_MET_HERE = {
    "dashboard": {one for one in _OTHER_KINDS if not one.startswith("patch")}
    | {"get deployments/scale.apps", "get pods"}
    | {f"{verb} cronjobs.batch" for verb in ("list", "watch")}
    | _OWNERS_NOT_WATCHED_YET,
    "horizontal": _OTHER_KINDS
    | _AFTER_A_CONFLICT
    | _WITHOUT_ELECTION
    | _OWNERS_NOT_WATCHED_YET
    | {"patch events.events.k8s.io"},
    "recommender": _ELECTION
    | _WITHOUT_ELECTION
    | _EVENTS
    | {f"{verb} verticalpodautoscalercheckpoints.autoscaling.trimtab.dev" for verb in ("get", "delete")}
    | {"list events", "watch events", "get verticalpodautoscalers.autoscaling.trimtab.dev"},
    "updater": _ELECTION
    | _WITHOUT_ELECTION
    | _EVENTS
    | {"list leases.coordination.k8s.io", "watch leases.coordination.k8s.io", "patch pods/resize"}
    | {"get pods", "get replicationcontrollers", "get jobs.batch"}
    | {f"get {kind}.apps" for kind in ("statefulsets", "daemonsets")},
    "adapter": set(),
    "admission": {"get vpascopes.autoscaling.trimtab.dev"},
}
"""Rights that a small scenario has no occasion to use: other kinds, elections, failures. Any other must be used (S3)."""


def unused(account, used):
    # A watch follows its list by a moment; a short run may end in between.
    used = used | {("watch", group, resource) for verb, group, resource in used if verb == "list"}
    rights = {right for right in granted_to(account) - used if not right[1].endswith("metrics.k8s.io")}
    return {f"{verb} {resource}{'.' + group if group else ''}" for verb, group, resource in rights}


def granted_to(account):
    roles = [
        one
        for one in manifests(
            set_values(["dashboard.enabled=true", "adapter.enabled=true", "adapter.caBundle=Q0E="])
        )
        if one["kind"] in {"Role", "ClusterRole"} and one["metadata"]["name"].startswith(f"trimtab-{account}")
    ]
    return {
        (verb, rule["apiGroups"][0], resource)
        for role in roles
        for rule in role["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


@pytest.fixture(params=["everywhere", "watchNamespaces"])
def act(request, installed, kubeconfig_of):
    """Play a scenario with one account, with rights in the whole cluster and in the stage's namespace only."""
    is_narrow = request.param == "watchNamespaces"

    def play(account, scenario, *values):
        async def main():
            place = Place(
                ShiftedClock(), installed.cluster.kubeconfig, kubeconfig_of(account), is_narrow=is_narrow
            )
            await place.stage.open()
            try:
                if is_narrow:
                    with installed.narrowed_to(place.stage.namespace, *values):
                        await scenario(place)
                else:
                    await scenario(place)
            finally:
                await place.client.close()
                await place.stage.close()
            assert place.watched.refused == []
            if not is_narrow:
                # The rules are the same; what the first run made is not made again.
                assert unused(account, place.watched.used) <= NOT_MET_HERE[account]
            assert place.watched.answers[200] > 0

        asyncio.run(main())

    return play


CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


GONE = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "gone",
    "uid": "00000000-0000-4000-8000-000000000000",
    "controller": True,
}


def test_the_horizontal_account_scales_a_deployment(act):
    """With a pod whose owner is gone: an account that may only watch owners took it for one it may not read."""

    async def scenario(place):
        stage = place.stage
        await stage.deployment("web", 2)
        await stage.pod("left-over", {"app": "web"}, owners=[GONE])
        stage.use_cpu(web="90m", left_over="1m")
        await stage.hpa("web", metrics=[CPU], selectionStrategy="OwnerReference")
        settings = Settings.of(feature_gates=GATES, watch_namespaces=place.namespaces, port=0)
        running = asyncio.ensure_future(Operator(place.clock, place.client, settings).run())

        async def told():
            assert not running.done(), running.result()
            return await stage.replicas("web") == 4 and await stage.event_count("SuccessfulRescale") == 1

        try:
            await stage.wait_for(told, seconds=60)
            assert "PodSelectionFallback" not in await stage.conditions("web")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    act("horizontal", scenario)


@pytest.mark.parametrize("act", ["watchNamespaces"], indirect=True)
def test_the_guard_against_the_clusters_own_controller_works_with_these_rights(act):
    """N2: native HPAs of the watched namespaces, and of no others, say who wrote to them."""

    async def scenario(place):
        stage = place.stage
        stage.use_native_hpas()
        await stage.deployment("web", 2)
        await stage.hpa("web", metrics=[CPU])
        path = f"{stage.resource.path(stage.namespace, 'web')}/status"
        headers = {"Content-Type": "application/merge-patch+json"}
        body = b'{"status":{"desiredReplicas":2}}'
        await stage.send("PATCH", path, [("fieldManager", KUBE_CONTROLLER_MANAGER)], headers, body)
        settings = Settings.of(watch_namespaces=place.namespaces, native_hpas=True, port=0)
        with pytest.raises(RivalControllerError, match=f"wrote to {stage.namespace}/web"):
            await Operator(place.clock, place.client, settings).run()

    act("horizontal", scenario, "settings.native-hpas=true")


@pytest.mark.parametrize("act", ["watchNamespaces"], indirect=True)
@pytest.mark.parametrize("account", ["horizontal", "recommender", "updater"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_an_account_publishes_the_settings_of_a_program_without_election(act, account, dry_run):
    """extraArgs may turn the election off; the Lease of the settings was then forbidden, and nobody could read them."""

    async def scenario(place):
        settings = Settings.of(
            components=(account,), leader_elect=False, watch_namespaces=place.namespaces, dry_run=dry_run
        )
        publisher = SettingsPublisher(place.client, settings, "one")
        for _ in range(2):  # the first creates it, the second renews it
            await publisher.step()
        name = f"{settings.lease_name}-settings"
        lease = await place.stage.client.get(LEASES, name, "trimtab")
        await place.stage.client.delete(LEASES, name, "trimtab")
        assert parse_annotation(lease.metadata.annotations[ANNOTATION])[0].components == (account,)

    act(account, scenario, f"settings.dry-run={str(dry_run).lower()}")


@pytest.mark.parametrize("act", ["watchNamespaces"], indirect=True)
def test_the_dashboard_account_shows_native_hpas_where_the_operator_acts_on_them(act, installed):
    """With the value that lets the operator act on them, the page follows them with its own account."""

    async def scenario(place):
        stage = place.stage
        stage.use_native_hpas()
        await stage.deployment("web", 2)
        stage.use_cpu(web="90m")
        await stage.hpa("web", metrics=[CPU])
        acting = Settings.of(watch_namespaces=place.namespaces, native_hpas=True)
        elector = make_family(stage.client, acting, "one")
        await elector.step()
        settings = Settings.of(
            components=("dashboard",), watch_namespaces=place.namespaces, port=0, dashboard_port=0
        )
        told: asyncio.Queue[str] = asyncio.Queue()
        beside = {"dashboard": lambda parts: Dashboard(parts, told.put_nowait)}
        running = asyncio.ensure_future(Operator(place.clock, place.client, settings, beside=beside).run())
        headers = {"authorization": f"Bearer {viewer_of(installed, stage.namespace)}"}
        try:
            async with aiohttp.ClientSession(headers=headers) as session:
                base = await told.get()

                async def get(path):
                    async with session.get(base + path) as answer:
                        assert answer.status == 200
                        return await answer.json()

                async def shown():
                    assert not running.done(), running.result()
                    return any(row["at"] for row in (await get("api/overview"))["horizontal"])

                await stage.wait_for(shown, seconds=60)
                (row,) = (await get("api/overview"))["horizontal"]
                assert (row["name"], row["desired"]) == ("web", 4)
                assert (await get(f"api/hpa?id={row['id']}"))["decision"]
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await stage.client.delete(LEASES, f"{acting.lease_name}-0", "trimtab")

    act("dashboard", scenario, "settings.native-hpas=true")


RULES = {
    "apiVersion": API_VERSION,
    "kind": "AdapterConfiguration",
    "listen": {"port": 0},
    "sources": [{"name": "by-hand", "testing": {"file": "values.json"}}],
}


def values_of(namespace):
    sample = {"metric": "rps", "resource": "pods", "namespace": namespace, "name": "web-rs-0", "value": "5"}
    return {"apiVersion": API_VERSION, "kind": "MetricValues", "custom": [sample]}


def test_the_adapter_account_answers_for_pods(act, installed, tmp_path):
    """N3: it follows pods where it may, and asks the server who asks."""

    async def scenario(place):
        stage = place.stage
        await stage.deployment("web", 1)
        file = tmp_path / "adapter.json"
        file.write_text(json.dumps(RULES))
        (tmp_path / "values.json").write_text(json.dumps(values_of(stage.namespace)))
        token = installed.kubectl("create", "token", "trimtab-horizontal", "-n", "trimtab").stdout.strip()
        settings = load_configuration(file)
        async with serve(place.clock, place.client, settings, tmp_path, place.namespaces) as adapter:
            tls = ssl.create_default_context(cadata=adapter.tls.pair.authority_pem.decode())
            url = f"https://localhost:{adapter.port}/apis/custom.metrics.k8s.io/v1beta2"
            path = f"/namespaces/{stage.namespace}/pods/*/rps?labelSelector=app%3Dweb"
            async with aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}) as session:

                async def answered():
                    async with session.get(URL(url + path, encoded=True), ssl=tls) as answer:
                        body = await answer.json()
                        names = [item["describedObject"]["name"] for item in body.get("items", [])]
                        return (answer.status, names) == (200, ["web-rs-0"])

                await stage.wait_for(answered, seconds=30)

    act("adapter", scenario)


def vpa(name):
    return {
        "apiVersion": VPAS.api_version,
        "kind": VPAS.kind,
        "metadata": {"name": name},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}},
    }


@asynccontextmanager
async def site_of(place, **settings):
    chosen = Settings.of(
        feature_gates=GATES, watch_namespaces=place.namespaces, leader_elect=False, **settings
    )
    site = VerticalRuntime(Runtime(place.clock, place.client, chosen))
    try:
        await site.view.wait_synced()
        yield site
    finally:
        await site.runtime.close()


def test_the_recommender_account_recommends_and_keeps_history(act):
    async def scenario(place):
        stage = place.stage
        await stage.deployment("web", 2)
        stage.use_cpu(web="90m")
        stage.use_memory(web="200Mi")
        await stage.client.create(VPAS.untyped(), vpa("web"), stage.namespace)
        async with site_of(place, components=("recommender",)) as site:
            recommender = make_recommender(site)
            # A history is written at once where there is none, and again when it is due.
            for seconds in (60, 60, 360):
                await stage.pass_time(seconds)
                await recommender.step()
        found = await stage.client.get(VPAS.untyped(), "web", stage.namespace)
        assert found["status"]["recommendation"]["containerRecommendations"]
        assert (await stage.client.list(CHECKPOINTS, ListOptions(stage.namespace))).items

    act("recommender", scenario)


def test_the_updater_account_evicts_labels_and_probes_but_changes_no_image(act):
    async def scenario(place):
        stage, client = place.stage, place.client
        await stage.deployment("web", 2)
        async with site_of(place) as site:
            await make_updater(site).step()
            await make_roles(site).step()
        problem = await AdmissionProbe(place.clock, client, "trimtab").problem()
        assert problem is not None
        assert "came back unchanged" in problem
        await client.patch(PODS, "web-rs-0", stage.namespace, {"metadata": {"labels": {"role": "leader"}}})
        await client.evict("web-rs-1", stage.namespace)
        image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil:1"}]
        with pytest.raises(errors.ApiError, match="may change a pod's size, labels and annotations only"):
            await client.patch(PODS, "web-rs-0", stage.namespace, image, how=PatchType.JSON)
        # That one refusal was asked for.
        place.watched.refused.remove(f"PATCH /api/v1/namespaces/{stage.namespace}/pods/web-rs-0")
        await creates_pods_in_dry_runs_only(place)

    act("updater", scenario)


async def creates_pods_in_dry_runs_only(place):
    stage, client = place.stage, place.client
    async with site_of(place) as site:
        await site.view.wait_synced()
        pod = site.view.pods.get("web-rs-0", stage.namespace)
        body = await Templates(client, site.view.discovery).replacement(pod)
    await client.create(PODS, body, stage.namespace, query=[("dryRun", "All")])
    with pytest.raises(errors.ApiError, match="may create pods in dry runs only"):
        await client.create(PODS, body, stage.namespace)
    place.watched.refused.remove(f"POST /api/v1/namespaces/{stage.namespace}/pods")


def test_the_admission_account_makes_its_certificate_and_publishes_its_authority(act, installed):
    async def scenario(place):
        done = installed.apply([one for one in installed.objects if one["kind"] in WEBHOOKS])
        assert done.returncode == 0, done.stderr
        try:
            async with site_of(
                place, namespace="trimtab", webhook_registration="ca-bundle", status_lease_namespace="trimtab"
            ) as site:
                admission = make_admission(site)
                for _ in range(2):  # the first issues and publishes, the second finds both
                    await admission.refresh()
                    assert (admission.health(), admission.warnings()) == ({}, {})
            for resource in (MUTATING, VALIDATING):
                found = await place.stage.client.get(resource, configuration_name("trimtab"))
                assert all(hook["clientConfig"]["caBundle"] for hook in found["webhooks"])
        finally:
            # Nobody answers behind it: other tests' pods must not wait for that.
            for resource in (MUTATING, VALIDATING):
                await place.stage.client.delete(resource, configuration_name("trimtab"))

    act("admission", scenario)


READER = "autoscaler-reader"


def test_a_viewer_of_one_namespace_explains_by_the_operators_settings(installed, kubeconfig_of, tmp_path):
    """N6 and N9: with what `view` and `trimtab-view` give in that namespace, and no right over nodes."""

    async def main():
        clock = ShiftedClock()
        place = Place(clock, installed.cluster.kubeconfig, kubeconfig_of("horizontal"), is_narrow=False)
        stage = place.stage
        await stage.open()
        try:
            await stage.deployment("web", 2)
            stage.use_cpu(web="90m")
            await stage.hpa("web", metrics=[CPU])
            await stage.client.create(VPAS.untyped(), vpa("web"), stage.namespace)
            elector = make_family(place.client, Settings.of(tolerance=5.0), "one")
            while not elector.may_write():
                await elector.step()
                await stage.pass_time(2)
            config = json.loads(installed.cluster.kubeconfig.read_text())
            config["users"][0]["user"] = {"token": viewer_of(installed, stage.namespace)}
            path = tmp_path / "viewer.kubeconfig"
            path.touch(mode=0o600)
            path.write_text(json.dumps(config))
            own = HttpTransport(clock, load_kubeconfig(clock, str(path), environ={}))
            viewer = Client(clock, WithMetrics(own, stage.metrics), seed=3)
            try:
                choice = Choice("trimtab")
                found = await explain_replicas(viewer, stage.namespace, "web", choice)
                assert found is not None
                record, notes = found.record, found.notes
                assert record.decision.desired == 2, record.decision.because
                assert notes[-1] == "settings: of the operator that holds Lease trimtab/trimtab-horizontal-0"
                for kind, name in (("vpa", "web"), ("pod", "web-rs-0")):
                    explained, _ = await explain_size(viewer, kind, stage.namespace, name, choice)
                    assert explained.lines
            finally:
                await viewer.close()
                # The dashboard of another test would go by these settings, too.
                await stage.client.delete(LEASES, "trimtab-horizontal-0", "trimtab")
        finally:
            await place.client.close()
            await stage.close()

    asyncio.run(main())


def viewer_of(installed, namespace):
    """Return the token of somebody who may read in one namespace only, as `kubectl create token` makes it.

    Where the cluster's own controllers run, `view` includes `trimtab-view`; here nobody joins roles.
    """
    installed.kubectl("create", "serviceaccount", READER, "-n", namespace)
    account = f"--serviceaccount={namespace}:{READER}"
    for role in ("trimtab-view", "system:aggregate-to-view"):
        name = f"{READER}-{role.rpartition(':')[2]}"
        installed.kubectl("create", "rolebinding", name, f"--clusterrole={role}", account, "-n", namespace)
    return installed.kubectl("create", "token", READER, "-n", namespace, "--duration=1h").stdout.strip()


def test_the_dashboard_account_shows_each_viewer_their_own_namespace_and_writes_nothing(act, installed):
    async def scenario(place):
        stage = place.stage
        await stage.deployment("web", 2)
        stage.use_cpu(web="90m")
        await stage.hpa("web", metrics=[CPU], selectionStrategy="OwnerReference")
        await stage.client.create(VPAS.untyped(), vpa("web"), stage.namespace)
        settings = Settings.of(
            components=("dashboard",),
            feature_gates=GATES,
            watch_namespaces=place.namespaces,
            port=0,
            dashboard_port=0,
        )
        told: asyncio.Queue[str] = asyncio.Queue()
        operator = Operator(
            place.clock,
            place.client,
            settings,
            beside={"dashboard": lambda parts: Dashboard(parts, told.put_nowait)},
        )
        running = asyncio.ensure_future(operator.run())
        mine, theirs = viewer_of(installed, stage.namespace), viewer_of(installed, "shop")

        async with aiohttp.ClientSession() as session:
            base = await told.get()

            async def get(token, path):
                async with session.get(base + path, headers={"authorization": f"Bearer {token}"}) as answer:
                    return answer.status, await answer.json()

            async def shown():
                assert not running.done(), running.result()
                _, found = await get(mine, "api/overview")
                rows = {row["id"]: row for row in found["horizontal"] + found["vertical"]}
                return f"vpa/{stage.namespace}/web" in rows and any(row.get("at") for row in rows.values())

            try:
                await stage.wait_for(shown, seconds=60)
                _, found = await get(mine, "api/overview")
                assert {row["namespace"] for row in found["horizontal"]} == {stage.namespace}
                assert found["horizontal"][0]["desired"] == 4
                assert (await get(mine, f"api/hpa?id=hpa/{stage.namespace}/web"))[0] == 200
                assert (await get(mine, f"api/vpa?id=vpa/{stage.namespace}/web"))[0] == 200
                assert (await get(theirs, "api/overview"))[1]["horizontal"] == []
                assert (await get(theirs, f"api/hpa?id=hpa/{stage.namespace}/web"))[0] == 404
                assert (await get("nobody", "api/overview"))[0] == 401
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        assert await stage.replicas("web") == 2
        written = {
            right for right in place.watched.used if right[0] in {"create", "update", "patch", "delete"}
        }
        reviews = {"tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"}
        assert {resource for _, _, resource in written} <= reviews

    act("dashboard", scenario)
