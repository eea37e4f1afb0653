"""Whose template a replacement is made from."""

import asyncio
from typing import Any

import pytest

from trimtab.cluster.resource import PODS
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.operator.vertical.updater.templates import Templates

RAW: dict[str, Any] = {
    "metadata": {
        "name": "db-0",
        "namespace": "shop",
        "labels": {"app": "db"},
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "app", "image": "of the pod"}]},
}
TEMPLATE = {"spec": {"containers": [{"name": "app", "image": "of the template"}]}}


class Cluster:
    """A client and a discovery in one, which know one controller; its spec is as its group has it."""

    def __init__(self, spec):
        self._spec = spec

    async def get(self, resource, name, namespace):
        if resource == PODS.untyped():
            return RAW
        return {"metadata": {"name": name, "namespace": namespace}, "spec": self._spec}

    async def find_kind(self, api_version, kind):
        return self

    def resource(self):
        return None


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "image"),
    [
        ("batch/v1", "Job", {"template": TEMPLATE}, "of the template"),
        ("v1", "ReplicationController", {"template": TEMPLATE}, "of the template"),
        ("apps/v1", "StatefulSet", {"template": TEMPLATE}, "of the template"),
        ("batch.volcano.sh/v1alpha1", "Job", {"tasks": [{"template": TEMPLATE}]}, "of the pod"),
        ("apps.kruise.io/v1beta1", "StatefulSet", {"template": TEMPLATE}, "of the pod"),
    ],
)
def test_a_kind_of_another_group_is_not_the_one_of_kubernetes(api_version, kind, spec, image):
    """The Job of Volcano has no `spec.template`: the loop ended at it."""
    owner = {"apiVersion": api_version, "kind": kind, "name": "db", "uid": "u", "controller": True}
    pod = wire.convert({**RAW, "metadata": {**RAW["metadata"], "ownerReferences": [owner]}}, Pod)
    cluster: Any = Cluster(spec)
    made = asyncio.run(Templates(cluster, cluster).replacement(pod))
    assert made["spec"]["containers"][0]["image"] == image
