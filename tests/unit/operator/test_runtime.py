"""Components of one process share what they watch, list and discover."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.matrix.test_matrix import ADAPTER, adapter_of
from tests.support.cluster import as_admin
from tests.support.objects import CRDS, NAMESPACES
from tests.support.transport import Line
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.resource import DEPLOYMENTS
from trimtab.cluster.transport import Request
from trimtab.dashboard.dashboard import Dashboard
from trimtab.model.crds import all_crds
from trimtab.operator.horizontal.kinds import OWN_HPAS
from trimtab.operator.operator import Operator
from trimtab.operator.settings.settings import Settings
from trimtab_lab.apiserver.server import Server

VERTICAL = ("recommender", "updater", "admission", "roles")
ALL = ("horizontal", *VERTICAL, "adapter", "dashboard")
WORKLOADS = [
    *(f"/apis/apps/v1/{plural}" for plural in ("deployments", "replicasets", "statefulsets", "daemonsets")),
    *(f"/apis/batch/v1/{plural}" for plural in ("jobs", "cronjobs")),
    "/api/v1/replicationcontrollers",
]
SECONDS = 20.0
"""Longer than the first loop of every component, and shorter than a watch lasts."""

WEB = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "none"}]},
        },
    },
}
HPA = {
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 3,
    },
}


def requests_of(components: tuple[str, ...], folder: Path) -> list[Request]:
    """Run a process with these components on the lab; return every request that it sends."""
    clock = VirtualClock()
    (folder / "adapter.yaml").write_text(ADAPTER)

    async def main() -> list[Request]:
        async with Server(clock, seed=1) as server:
            transport = as_admin(server)
            admin = Client(clock, transport, seed=1)
            for crd in all_crds():
                await admin.create(CRDS, crd)
            for name in ("trimtab", "shop"):
                await admin.create(NAMESPACES, {"metadata": {"name": name}})
            await admin.create(DEPLOYMENTS.untyped(), WEB, "shop")
            await admin.create(OWN_HPAS.untyped(), HPA, "shop")
            line = Line(transport)
            settings = Settings.of(
                components=components,
                port=0,
                dashboard_port=0,
                webhook_port=0,
                adapter_config=str(folder / "adapter.yaml"),
            )
            operator = Operator(
                clock,
                Client(clock, line, seed=2),
                settings,
                beside={"dashboard": Dashboard, "adapter": adapter_of},
            )
            running = asyncio.ensure_future(operator.run())
            await clock.sleep(SECONDS)
            assert not running.done(), running.exception()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return line.sent

    return clock.run(main())


def is_watch(request: Request) -> bool:
    return ("watch", "true") in request.query


@pytest.mark.parametrize(
    "components",
    [
        pytest.param(ALL, id="all components"),
        pytest.param(("horizontal", "recommender"), id="a horizontal and a vertical component"),
        pytest.param(("horizontal",), id="only horizontal"),
        pytest.param(VERTICAL, id="only vertical components"),
        pytest.param(("admission",), id="only admission"),
    ],
)
def test_a_process_reads_each_resource_once(components, tmp_path):
    sent = requests_of(components, tmp_path)
    reads = [request for request in sent if request.method == "GET"]
    lists = Counter(request.path for request in reads if not is_watch(request))
    watches = Counter(request.path for request in reads if is_watch(request))
    assert lists["/api/v1/pods"] == watches["/api/v1/pods"] == 1
    assert max(lists[path] for path in WORKLOADS) == max(watches[path] for path in WORKLOADS) == 1
    assert lists["/api"] == lists["/apis"] <= 1
