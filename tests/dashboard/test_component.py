"""The dashboard as `trimtab run` starts it: alone as an onlooker, or beside an operator that leads or does not."""

import asyncio
import json
import logging
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from tests.dashboard.test_cluster_health import Answers
from tests.plugin_packages import install
from tests.support.objects import external_metric
from tests.support.transport import Line
from trimtab.clock import SystemClock, VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.dashboard import dashboard
from trimtab.dashboard.dashboard import Dashboard, check
from trimtab.dashboard.sources.operator_settings import OperatorSettings
from trimtab.model.crds import all_crds
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.kinds import OWN_HPAS
from trimtab.operator.operator import Operator, Parts
from trimtab.operator.process import make_family
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab.serving.certificates import PairFiles, PairOrigin, ServedTls, issue, make_authority
from trimtab_lab.embedded import EmbeddedCluster

ALONE = Settings.of(components=("dashboard",), dashboard_port=0, dashboard_login="token", port=0)


class Switch:
    """A fence that a test opens and closes."""

    is_open = True

    def may_write(self):
        return self.is_open

    def time_left(self):
        return float("inf") if self.is_open else 0.0


@asynccontextmanager
async def cluster_with_an_hpa():
    async with EmbeddedCluster(SystemClock()) as cluster:
        await cluster.apply(*all_crds())
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "i"}]},
        }
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        meta = {"name": "web", "namespace": "default"}
        scaling = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 20,
            "metrics": [external_metric("load", average="100")],
        }
        await cluster.apply(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec},
            {
                "apiVersion": "autoscaling.trimtab.dev/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": meta,
                "spec": scaling,
            },
        )
        cluster.set_external("load", "600", namespace="default")
        yield cluster


@asynccontextmanager
async def running(*loops):
    tasks = [asyncio.ensure_future(loop) for loop in loops]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def parts(cluster, settings, *, fence=None, horizontal=None):
    return Parts(
        Runtime(cluster.clock, cluster.client, settings, fence=fence or ClosedFence()), horizontal, None, {}
    )


async def overview_when(address, holds):
    """Return the overview as soon as it is as wanted."""
    base, _, token = address.partition("#token=")
    headers = {"authorization": f"Bearer {token}"}
    async with asyncio.timeout(60), aiohttp.ClientSession(headers=headers) as session:
        while True:
            async with session.get(f"{base}api/overview") as answer:
                found = await answer.json()
            if holds(found):
                return found
            await asyncio.sleep(0.05)


async def until(holds):
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.02)


def is_decided(found):
    return any(row["at"] for row in found["horizontal"])


async def test_alone_it_decides_for_the_page_and_writes_nothing():
    async with cluster_with_an_hpa() as cluster:
        announced: asyncio.Queue[str] = asyncio.Queue()
        async with running(Dashboard(parts(cluster, ALONE), announced.put_nowait).run()):
            found = await overview_when(await announced.get(), is_decided)
        (row,) = found["horizontal"]
        assert (row["current"], row["desired"], row["state"], row["isDryRun"]) == (3, 6, "scaling", False)
        assert found["program"]["notices"][0]["text"].startswith("This page only looks.")
        assert await cluster.replicas("web", "default") == 3


async def test_alone_it_goes_by_the_settings_of_the_operator_that_acts():
    """N6 and N12: it decided by its own flags, and told a dry run as if it were carried out."""
    async with cluster_with_an_hpa() as cluster:
        acting = ALONE.replace(components=("horizontal",), dry_run=True, tolerance=0.5)
        elector = make_family(cluster.client, acting, "the-operator")
        await cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trimtab"}})
        await elector.step()
        announced: asyncio.Queue[str] = asyncio.Queue()
        async with running(Dashboard(parts(cluster, ALONE), announced.put_nowait).run()):
            found = await overview_when(await announced.get(), is_decided)
        (row,) = found["horizontal"]
        assert (row["desired"], row["isDryRun"]) == (6, True)
        text = " ".join(found["program"]["notices"][0]["details"])
        assert "HPAs: settings: of the operator that holds Lease trimtab/trimtab-horizontal" in text
        assert "VPAs: settings: assumed" in text


async def page_when(address, name, holds):
    """Return the page of an HPA as soon as it is as wanted."""
    base, _, token = address.partition("#token=")
    headers = {"authorization": f"Bearer {token}"}
    async with asyncio.timeout(60), aiohttp.ClientSession(headers=headers) as session:
        while True:
            async with session.get(f"{base}api/hpa", params={"id": name}) as answer:
                found = await answer.json()
            if holds(found):
                return found
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("is_loaded", [False, True])
async def test_alone_it_says_why_a_plugin_has_no_answer_here(is_loaded, tmp_path, monkeypatch):
    """The operator's answer is in its memory. The page has one if the plug-in is installed beside it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    code = (
        "from trimtab.plugins import ReplicaProposal\n"
        "def plugin(seen):\n"
        "    return ReplicaProposal(replicas=8, reason='a rule')\n"
    )
    name = install(tmp_path, "page_rule", code, group="trimtab.replica_policies", name="example.com/Rule")
    async with cluster_with_an_hpa() as cluster:
        change = {"spec": {"replicaPolicies": [{"name": name}]}}
        await cluster.client.patch(OWN_HPAS, "web", "default", change)
        settings = ALONE.replace(plugins=(name,)) if is_loaded else ALONE
        announced: asyncio.Queue[str] = asyncio.Queue()
        async with running(Dashboard(parts(cluster, settings), announced.put_nowait).run()):
            page = await page_when(
                await announced.get(), "hpa/default/web", lambda found: found.get("decision")
            )
    text = json.dumps(page)
    assert ("does not have the operator's answer" in text) != is_loaded
    assert ("a rule" in text) == is_loaded


async def lead(cluster, loop="horizontal", **settings):
    """Let an operator take its Lease and publish its settings, as its first step."""
    acting = ALONE.replace(components=(loop,), **settings)
    await cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trimtab"}})
    await make_family(cluster.client, acting, "the-operator").step()
    return acting


@asynccontextmanager
async def leading(cluster, loop="horizontal", **settings):
    """Let an operator hold its Lease, and release it at the end."""
    acting = ALONE.replace(components=(loop,), **settings)
    await cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trimtab"}})
    elector = make_family(cluster.client, acting, "the-operator")
    await elector.step()
    async with running(elector.run()):
        yield


async def native_rival(cluster, namespace="default"):
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 9,
        "metrics": [external_metric("load", average="100")],
    }
    meta = {"name": "rival", "namespace": namespace}
    await cluster.apply(
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}
    )


async def test_alone_it_watches_the_kinds_that_the_operator_acts_on():
    """A native rival was not watched, so the page said Steady where the operator said AmbiguousSelector."""
    async with cluster_with_an_hpa() as cluster:
        await native_rival(cluster)
        await lead(cluster, native_hpas=True)
        announced: asyncio.Queue[str] = asyncio.Queue()
        async with running(Dashboard(parts(cluster, ALONE), announced.put_nowait).run()):
            found = await overview_when(
                await announced.get(),
                lambda found: len(found["horizontal"]) == 2 and all(row["at"] for row in found["horizontal"]),
            )
        assert {row["reason"] for row in found["horizontal"]} == {"Ambiguous"}


async def test_alone_it_leaves_out_what_the_operator_leaves_alone():
    async with cluster_with_an_hpa() as cluster:
        await native_rival(cluster)
        await lead(cluster, native_hpas=True, own_hpas=False, watch_namespaces=("default",))
        announced: asyncio.Queue[str] = asyncio.Queue()
        async with running(Dashboard(parts(cluster, ALONE), announced.put_nowait).run()):
            found = await overview_when(await announced.get(), is_decided)
        assert [row["name"] for row in found["horizontal"]] == ["rival"]
        text = found["program"]["notices"][0]["text"]
        assert "the operator runs with --no-own-hpas" in text
        assert "The operator acts on HPAs in default only." in text


async def vpas_of_two_namespaces(cluster):
    await cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    for namespace in ("default", "shop"):
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        await cluster.apply(
            {
                "apiVersion": "autoscaling.trimtab.dev/v1",
                "kind": "VerticalPodAutoscaler",
                "metadata": {"name": "web", "namespace": namespace},
                "spec": {"targetRef": target},
            }
        )


def names_of_vpas(found):
    return [row["id"] for row in found["vertical"]]


@pytest.mark.parametrize(
    ("own", "recommender", "updater", "want"),
    [
        pytest.param((), ("shop",), ("shop",), ["vpa/shop/web"], id="those that both loops watch"),
        pytest.param(
            (), (), ("shop",), ["vpa/default/web", "vpa/shop/web"], id="all, where one loop watches all"
        ),
        pytest.param((), ("shop",), ("default",), ["vpa/default/web", "vpa/shop/web"], id="those of each"),
        pytest.param(("default",), (), (), ["vpa/default/web"], id="no more than the viewer asked for"),
        pytest.param((), ("shop",), None, ["vpa/shop/web"], id="those of the only loop that runs"),
    ],
)
async def test_alone_it_watches_the_vpas_that_the_operator_acts_on(own, recommender, updater, want):
    """It watched the namespaces of its own flags, so a viewer with rights in the operator's alone saw no VPA."""
    async with cluster_with_an_hpa() as cluster:
        await vpas_of_two_namespaces(cluster)
        for loop, watched in (("recommender", recommender), ("updater", updater)):
            if watched is not None:
                await lead(cluster, loop, watch_namespaces=watched)
        announced: asyncio.Queue[str] = asyncio.Queue()
        page = Dashboard(parts(cluster, ALONE.replace(watch_namespaces=own)), announced.put_nowait)
        async with running(page.run()):
            found = await overview_when(
                await announced.get(), lambda found: len(found["vertical"]) == len(want)
            )
        assert names_of_vpas(found) == want
        is_narrow = want == ["vpa/shop/web"]
        assert (
            "The operator acts on VPAs in shop only." in found["program"]["notices"][0]["text"]
        ) is is_narrow


async def test_a_viewer_of_the_operators_namespaces_sees_their_vpas():
    async with cluster_with_an_hpa() as cluster:
        await vpas_of_two_namespaces(cluster)
        for loop in ("horizontal", "recommender", "updater"):
            await lead(cluster, loop, watch_namespaces=("shop",))
        transport = Line(cluster.client.sender.transport, within=("shop", "trimtab"))
        viewer = Client(cluster.clock, transport, seed=7)
        announced: asyncio.Queue[str] = asyncio.Queue()
        made = Parts(Runtime(cluster.clock, viewer, ALONE, fence=ClosedFence()), None, None, {})
        async with running(Dashboard(made, announced.put_nowait).run()):
            found = await overview_when(await announced.get(), lambda found: found["vertical"])
        assert names_of_vpas(found) == ["vpa/shop/web"]
        assert not [one["text"] for one in found["program"]["notices"] if one["isProblem"]]


async def test_alone_it_takes_up_the_namespaces_of_vpas_that_change_while_it_runs(monkeypatch):
    monkeypatch.setattr(dashboard, "REFRESH_SECONDS", 0.1)
    async with cluster_with_an_hpa() as cluster:
        await vpas_of_two_namespaces(cluster)
        announced: asyncio.Queue[str] = asyncio.Queue()
        async with running(Dashboard(parts(cluster, ALONE), announced.put_nowait).run()):
            address = await announced.get()
            await overview_when(address, lambda found: len(found["vertical"]) == 2)
            await lead(cluster, "recommender", watch_namespaces=("shop",))
            await overview_when(address, lambda found: names_of_vpas(found) == ["vpa/shop/web"])


async def test_alone_it_takes_up_settings_that_change_while_it_runs(monkeypatch):
    monkeypatch.setattr(dashboard, "REFRESH_SECONDS", 0.1)
    async with cluster_with_an_hpa() as cluster:
        await native_rival(cluster)
        announced: asyncio.Queue[str] = asyncio.Queue()
        async with running(Dashboard(parts(cluster, ALONE), announced.put_nowait).run()):
            address = await announced.get()
            assert len((await overview_when(address, is_decided))["horizontal"]) == 1
            await lead(cluster, native_hpas=True)
            await overview_when(address, lambda found: len(found["horizontal"]) == 2 and is_decided(found))


@pytest.mark.parametrize(
    ("status", "tolerance"),
    [
        pytest.param(401, 0.05, id="a cluster that does not let us in keeps the last settings"),
        pytest.param(403, 0.1, id="a missing right is an answer"),
    ],
)
async def test_alone_it_keeps_the_settings_of_an_operator_that_cannot_be_asked(status, tolerance):
    async with cluster_with_an_hpa() as cluster:
        await lead(cluster, tolerance=0.05)
        settings = OperatorSettings(cluster.client, ALONE, ())
        await settings.refresh()
        assert settings.for_hpas().horizontal.tolerance == 0.05
        settings._client = Client(cluster.clock, Answers(status))
        await settings.refresh()
        assert settings.for_hpas().horizontal.tolerance == tolerance


async def test_alone_it_shows_the_conditions_that_the_operator_stored():
    """It showed the conditions of its own decision, which nobody ever stored."""
    async with cluster_with_an_hpa() as cluster:
        acting = await lead(cluster)
        operator = HpaController(
            Runtime(cluster.clock, cluster.client, acting), config=decision_config(acting)
        )
        await operator.start()
        await operator.step()
        await operator.close()
        await operator.runtime.close()
        cluster.set_external("load", "10000", namespace="default")  # by now the page decides otherwise
        announced: asyncio.Queue[str] = asyncio.Queue()
        async with running(Dashboard(parts(cluster, ALONE), announced.put_nowait).run()):
            address = await announced.get()
            await overview_when(address, is_decided)
            shown = await page_when(address, "hpa/default/web", lambda page: page["decision"])
        stored = await cluster.client.get(OWN_HPAS, "web", "default")
        assert [(one["type"], one["reason"]) for one in shown["conditions"]] == [
            (one.type, one.reason) for one in stored.status.conditions
        ]
        assert "TooManyReplicas" not in {one["reason"] for one in shown["conditions"]}


async def test_beside_an_operator_it_says_who_decides():
    async with cluster_with_an_hpa() as cluster:
        settings = ALONE.replace(components=("horizontal", "dashboard"), sync_period=timedelta(seconds=1))
        fence = Switch()
        runtime = Runtime(cluster.clock, cluster.client, settings, fence=fence)
        horizontal = HpaController(runtime, config=decision_config(settings))
        announced: asyncio.Queue[str] = asyncio.Queue()
        page = Dashboard(parts(cluster, settings, fence=fence, horizontal=horizontal), announced.put_nowait)
        async with running(horizontal.run(), page.run()):
            address = await announced.get()
            acting = await overview_when(
                address, lambda found: is_decided(found) and not found["program"]["notices"]
            )
            assert acting["horizontal"][0]["desired"] == 6
            fence.is_open = False
            before = acting["horizontal"][0]["at"]
            looking = await overview_when(
                address, lambda found: found["program"]["notices"] and found["horizontal"][0]["at"] > before
            )
            assert looking["program"]["notices"][0]["text"].startswith("Another copy of this program leads.")


async def test_where_no_hpas_are_served_the_page_says_what_to_install():
    async with EmbeddedCluster(SystemClock()) as cluster:
        announced: asyncio.Queue[str] = asyncio.Queue()
        page = Dashboard(parts(cluster, ALONE), announced.put_nowait)
        async with running(page.run()):
            found = await overview_when(
                await announced.get(),
                lambda found: any(
                    "trimtab install --only=crds" in one["text"] for one in found["program"]["notices"]
                ),
            )
        assert found["horizontal"] == found["vertical"] == []


async def test_the_token_goes_to_a_private_file_and_not_to_the_log(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "own/address"
    async with cluster_with_an_hpa() as cluster:
        settings = ALONE.replace(dashboard_address_file=str(file))
        async with running(Dashboard(parts(cluster, settings)).run()):
            await until(file.exists)
            await overview_when(file.read_text().strip(), is_decided)
    assert file.stat().st_mode & 0o777 == 0o600
    token = file.read_text().strip().partition("#token=")[2]
    assert len(token) >= 32
    assert token not in caplog.text
    facts = [getattr(record, "facts", {}) for record in caplog.records]
    assert not any(token in str(one) for one in facts)
    assert any(str(file) == one.get("addressWithToken") for one in facts)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        pytest.param("", {"host": "evil.example"}, 421, id="a name that was pointed at us"),
        pytest.param("api/overview", {}, 401, id="nobody"),
        pytest.param("api/overview", {"authorization": "Bearer guessed-guessed-guessed"}, 401, id="a guess"),
        pytest.param("metrics", {}, 401, id="metrics without a login"),
        pytest.param("debug", {}, 401, id="debug pages without a login"),
        pytest.param("", {"origin": "http://evil.example"}, 403, id="another site's page"),
    ],
)
async def test_strangers_get_nothing_from_its_socket(path, headers, status):
    async with EmbeddedCluster(SystemClock()) as cluster:
        announced: asyncio.Queue[str] = asyncio.Queue()
        async with running(Dashboard(parts(cluster, ALONE), announced.put_nowait).run()):
            base = (await announced.get()).partition("#")[0]
            assert base.startswith("http://127.0.0.1:")
            async with (
                aiohttp.ClientSession() as session,
                session.get(base + path, headers=headers) as answer,
            ):
                assert answer.status == status
                assert answer.headers["content-security-policy"].startswith("default-src 'self'")


async def test_a_taken_port_is_told_with_the_flag_to_change():
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    async with server, cluster_with_an_hpa() as cluster:
        port = server.sockets[0].getsockname()[1]
        page = Dashboard(parts(cluster, ALONE.replace(dashboard_port=port)))
        with pytest.raises(ValueError, match=r"cannot listen on .*; choose another --dashboard-port"):
            await page.run()


async def test_a_process_that_only_shows_takes_no_lease():
    async with cluster_with_an_hpa() as cluster:
        made: list[Parts] = []

        def keep(found):
            made.append(found)
            return Dashboard(found, lambda _address: None)

        operator = Operator(
            cluster.clock, cluster.client, ALONE.replace(native_hpas=True), beside={"dashboard": keep}
        )
        async with running(operator.run()):
            await until(lambda: made)
        assert isinstance(made[0].fence, ClosedFence)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"dashboard_login": "open"}, "use cluster or token", id="an unknown login"),
        pytest.param({"dashboard_cert_file": "a"}, "belong together", id="a certificate without its key"),
        pytest.param(
            {"dashboard_address": "0.0.0.0"}, "for loopback only", id="one token for everybody on the network"
        ),
        pytest.param(
            {"dashboard_address": "0.0.0.0", "dashboard_login": "cluster"},
            "in the clear",
            id="logins without encryption",
        ),
    ],
)
def test_settings_that_would_expose_the_page_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        check(ALONE.replace(**changes).dashboard)


def _pair(folder: Path, name: str) -> tuple[Path, Path]:
    now = datetime.now(UTC)
    authority = make_authority("test", now, timedelta(days=1))
    made = issue(authority, name, [name], now, timedelta(days=1))
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(made.certificate_pem)
    key.write_bytes(made.key_pem)
    return certificate, key


def test_a_renewed_certificate_is_taken_up_and_a_broken_one_is_not(tmp_path, caplog):
    origin = PairOrigin("the dashboard", *_pair(tmp_path, "one.example"))
    tls, clock = ServedTls(origin, PairFiles(origin)), VirtualClock()

    async def main() -> None:
        following = asyncio.ensure_future(tls.run(clock))
        assert _presented(tls.base) == "one.example"
        _pair(tmp_path, "two.example")
        await clock.sleep(21)
        assert _presented(tls.base) == "two.example"
        (tmp_path / "tls.crt").write_text("no certificate")
        await clock.sleep(20)
        assert "the dashboard keeps its last certificate" in caplog.text
        assert _presented(tls.base) == "two.example"
        _pair(tmp_path, "three.example")
        await clock.sleep(20)
        assert _presented(tls.base) == "three.example"
        following.cancel()

    clock.run(main())


def _presented(server: ssl.SSLContext) -> str:
    """Shake hands in memory and return the name that the server shows."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    near, far = client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)
    for side in (near, far, near, far):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    shown = near.getpeercert(binary_form=True)
    assert shown is not None
    from cryptography import x509

    return str(x509.load_der_x509_certificate(shown).subject.rfc4514_string()).removeprefix("CN=")
