"""`trimtab top`: one row per autoscaler, ours and the cluster's own told apart."""

from trimtab.cli.top import rows_of
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.inprocess import InProcessTransport
from trimtab.cluster.resource import Json, Resource
from trimtab.lab.server import Server
from trimtab.model.crds import all_crds
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS

CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", Json, False
)
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def rows(*kinds, crds=True):
    """Return the rows of a cluster that has an HPA named web of each of these kinds."""
    clock = VirtualClock()

    async def main():
        async with Server(clock, seed=1) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            client = Client(clock, InProcessTransport(server, headers=headers), seed=1)
            for crd in all_crds() if crds else ():
                await client.create(CRDS, crd)
            for kind in kinds:
                body = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3}}
                body |= {"apiVersion": kind.api_version, "kind": kind.kind}
                await client.create(kind.untyped(), body, "default")
            return await rows_of(client, "")

    return clock.run(main())


def test_two_of_one_name_are_told_apart_by_the_word_that_kubectl_takes():
    """While a workload moves over there is one of each, and both rows looked the same."""
    assert [(one["kind"], one["name"], one["target"]) for one in rows(OWN_HPAS, NATIVE_HPAS)] == [
        ("thpa", "web", "Deployment/web"),
        ("hpa", "web", "Deployment/web"),
    ]


def test_a_cluster_without_our_definitions_shows_its_own():
    assert [one["kind"] for one in rows(NATIVE_HPAS, crds=False)] == ["hpa"]


def test_one_that_nobody_decided_about_says_so():
    assert [(one["active"], one["reason"]) for one in rows(OWN_HPAS)] == [("Unknown", "not decided yet")]
