"""SPEC-A1 on the lab: the queue example through the lab's own aggregator, to the lab's own authorisation."""

import base64
from typing import Any

import pytest

from tests.adapter.conftest import running, write_configuration
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.errors import Forbidden
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.resource import Json, Resource
from trimtab_lab.apiserver.request import RequestUser
from trimtab_lab.apiserver.server import Server
from trimtab_lab.serve import ServedLab

SERVICES = Resource("", "v1", "services", "Service", Json)
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", Json, namespaced=False)
QUEUE = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/statefulsets.apps/foo/queue_length"


@pytest.fixture
async def lab():
    server = Server(SystemClock())
    async with ServedLab(server):
        yield server


def client_of(server: Server, token: str) -> Client:
    return Client(SystemClock(), InProcessTransport(server, headers={"authorization": f"Bearer {token}"}))


@pytest.fixture
async def admin(lab, tmp_path):
    client = client_of(lab, lab.tokens.admin)
    config = write_configuration(tmp_path, tls={"names": ["trimtab-adapter.kube-system.svc"]})
    async with running(lab, config, client) as adapter:
        spec: Any = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": adapter.port}]}
        await client.create(SERVICES, {"metadata": {"name": "trimtab-adapter"}, "spec": spec}, "kube-system")
        bundle = base64.b64encode(adapter.tls.pair.authority_pem).decode()
        for group, version in (("custom", "v1beta2"), ("external", "v1beta1")):
            spec = {
                "group": f"{group}.metrics.k8s.io", "version": version, "caBundle": bundle,
                "groupPriorityMinimum": 100, "versionPriority": 100,
                "service": {"name": "trimtab-adapter", "namespace": "kube-system", "port": adapter.port},
            }  # fmt: skip
            name = f"{version}.{group}.metrics.k8s.io"
            await client.create(API_SERVICES, {"metadata": {"name": name}, "spec": spec})
        yield client


async def test_two_series_of_a_statefulset_are_told_apart_by_the_selector(admin):
    for queue, want in (("some-jobs", "3"), ("other-jobs", "70")):
        query = [("metricLabelSelector", f"queue={queue}")]
        answer = await admin.read("reading the queue", QUEUE, Json, query=query)
        assert [item["value"] for item in answer["items"]] == [want]


async def test_a_user_of_the_lab_without_rights_is_refused(lab, admin):
    ann = client_of(lab, lab.tokens.issue(RequestUser("ann", ("system:authenticated",))))
    with pytest.raises(Forbidden):
        await ann.read("reading the queue", QUEUE, Json)
