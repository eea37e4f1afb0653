"""A write of a workload's scale is checked as the API server checks it."""

import pytest

from tests.lab.scripts.builders import deployment
from tests.unit.lab.api import DEPLOYMENTS, RefusedError, running
from trimtab.model.core.server_rules import KUBERNETES_1_36


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"spec": {"replicas": -1}}, "spec.replicas: Invalid value: -1: must be", id="replicas"),
        pytest.param(
            {"metadata": {"labels": {"a b": "c"}}},
            "metadata.labels: Invalid value: ",
            id="labels, until 1.36",
        ),
    ],
)
async def test_an_invalid_scale_is_refused(change, message):
    async with running(rules=KUBERNETES_1_36) as api:
        await api.create(DEPLOYMENTS, deployment("web"))
        with pytest.raises(RefusedError, match=f'Scale.autoscaling "web" is invalid: {message}'):
            await api.merge(f"{DEPLOYMENTS}/web/scale", change)


async def test_a_scale_sets_the_replicas():
    async with running() as api:
        await api.create(DEPLOYMENTS, deployment("web"))
        scale = await api.get(f"{DEPLOYMENTS}/web/scale")
        await api.update(f"{DEPLOYMENTS}/web/scale", {**scale, "spec": {"replicas": 3}})
        assert (await api.get(f"{DEPLOYMENTS}/web"))["spec"]["replicas"] == 3
