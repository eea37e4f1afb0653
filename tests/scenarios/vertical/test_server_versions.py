"""Updater and webhook follow the version of the API server, which `/version` names."""

import pytest

from tests.scenarios.vertical.conftest import play_on_lab
from tests.scenarios.vertical.stage import FOLLOWER, Stage
from trimtab.cluster.resource import PODS, STATEFUL_SETS, Json
from trimtab.model.core.server_rules import KUBERNETES_1_36, KUBERNETES_1_37, ServerRules
from trimtab.model.quantity import Quantity

BOTH = pytest.mark.parametrize("rules", [KUBERNETES_1_36, KUBERNETES_1_37], ids=lambda rules: rules.version)
SMALL = {"requests": {"memory": "10Mi"}}


async def three_of(stage: Stage, spec: Json) -> None:
    body = {
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "replicas": 3,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": spec},
        },
    }
    await stage.client.create(STATEFUL_SETS.untyped(), body, stage.namespace)
    await stage.heal("db")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=FOLLOWER)


@BOTH
def test_a_pod_with_claims_is_resized_where_the_server_allows_it(rules: ServerRules):
    resources = {**SMALL, "claims": [{"name": "device"}]}
    spec = {
        "containers": [{"name": "app", "image": "b", "resources": resources}],
        "resourceClaims": [{"name": "device", "resourceClaimTemplateName": "any"}],
    }

    async def scenario(stage: Stage) -> None:
        async with stage.running() as actor, stage.admitting(actor):
            await three_of(stage, spec)
            await stage.vpa("base", "db", mode="InPlaceOrRecreate")
            await stage.recommend(actor, 2)
            await stage.caught_up(actor)
            await stage.update(actor, 2)
            assert bool(actor.wrote("/resize")) is rules.resizes_claims
            assert bool(actor.wrote("/eviction")) is not rules.resizes_claims

    play_on_lab(scenario, rules=rules)


@BOTH
def test_a_pod_is_created_although_its_recommendation_exceeds_its_pod_level_limit(rules: ServerRules):
    limit = "500Mi"
    spec = {
        "containers": [{"name": "app", "image": "b", "resources": SMALL}],
        "resources": {"limits": {"memory": limit}},
    }

    async def scenario(stage: Stage) -> None:
        async with stage.running() as actor, stage.admitting(actor):
            await three_of(stage, spec)
            await stage.vpa("base", "db", mode="Initial")
            await stage.recommend(actor, 2)
            await stage.caught_up(actor)
            await stage.client.delete(PODS, "db-0", stage.namespace)
            await stage.heal("db")
            pod = await stage.client.get(PODS, "db-0", stage.namespace)
            own, most = pod.spec.containers[0].resources.requests["memory"], pod.spec.resources
            assert most is not None
            # Before 1.37 the pod-level request is filled in before the webhook, by what the container asks for.
            low, high = ("10Mi", "10Mi") if rules is KUBERNETES_1_36 else ("499Mi", limit)
            assert Quantity.parse(low) <= own <= Quantity.parse(high)
            assert most.requests["memory"] == own

    play_on_lab(scenario, rules=rules)
