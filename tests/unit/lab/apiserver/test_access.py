"""Who may do what: tokens, roles, impersonation, aggregated servers, metrics."""

from datetime import timedelta

import pytest

from tests.unit.lab.api import CONFIG_MAPS, PODS, Api, RefusedError, config_map, pod, running
from trimtab.clock import VirtualClock
from trimtab_lab.apiserver.access import service_account_user
from trimtab_lab.apiserver.request import ApiResponse, RequestUser
from trimtab_lab.metrics.apis import UsageSample

RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def grant(api, user, rules, namespace="default"):
    path = f"{RBAC}/namespaces/{namespace}"
    await api.create(f"{path}/roles", {"metadata": {"name": user}, "rules": rules})
    binding = {
        "metadata": {"name": user},
        "roleRef": {"kind": "Role", "name": user},
        "subjects": [{"kind": "User", "name": user}],
    }
    await api.create(f"{path}/rolebindings", binding)


def as_user(api, name, *groups):
    return Api(api.server, api.server.tokens.issue(RequestUser(name, (*groups, "system:authenticated"))))


async def test_a_wrong_token_is_unauthorized():
    async with running() as api:
        with pytest.raises(RefusedError) as refused:
            await Api(api.server, "wrong").get(CONFIG_MAPS)
        assert (refused.value.status, refused.value.reason) == (401, "Unauthorized")


async def test_a_user_may_do_what_a_role_says_and_nothing_else():
    async with running() as api:
        await grant(api, "eve", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}])
        eve = as_user(api, "eve")
        await eve.get(CONFIG_MAPS)
        with pytest.raises(RefusedError) as refused:
            await eve.create(CONFIG_MAPS, config_map("a"))
        assert refused.value.message == (
            'configmaps is forbidden: User "eve" cannot create resource "configmaps" in API group "" '
            'in the namespace "default"'
        )
        with pytest.raises(RefusedError, match="in the namespace"):
            await eve.get("/api/v1/namespaces/kube-system/configmaps")


async def test_a_right_on_a_resource_is_no_right_on_its_subresources():
    async with running() as api:
        await grant(api, "eve", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}])
        await api.create(PODS, pod("p"))
        with pytest.raises(RefusedError) as refused:
            await as_user(api, "eve").create(f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        assert refused.value.status == 403


async def test_reading_one_kind_of_a_group_does_not_read_another():
    async with running() as api:
        await grant(api, "eve", [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}])
        with pytest.raises(RefusedError, match="cannot list resource"):
            await as_user(api, "eve").get("/apis/apps/v1/namespaces/default/replicasets")


async def test_service_accounts_get_tokens_that_rbac_knows():
    async with running() as api:
        await api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        token = (await api.create("/api/v1/namespaces/default/serviceaccounts/robot/token", {}))["status"][
            "token"
        ]
        review = await api.create("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
        assert review["status"]["user"]["username"] == service_account_user("default", "robot").name
        with pytest.raises(RefusedError, match="system:serviceaccount:default:robot"):
            await Api(api.server, token).get(CONFIG_MAPS)


async def test_everyone_may_discover():
    async with running() as api:
        assert (await as_user(api, "eve").get("/apis"))["kind"] == "APIGroupList"


async def test_an_aggregated_server_answers_for_its_group():
    async with running() as api:
        seen: dict[str, str] = {}

        async def backend(method, path, headers, body):
            seen.update(path=path, user=headers["X-Remote-User"])
            resources = [
                {"name": "pods/rps", "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}
            ]
            return ApiResponse.of({"kind": "APIResourceList", "resources": resources})

        api.server.outbound.register("default", "adapter", backend)
        spec = {
            "group": "custom.metrics.k8s.io",
            "version": "v1beta2",
            "groupPriorityMinimum": 100,
            "versionPriority": 1,
        }
        service = {"namespace": "default", "name": "adapter"}
        await api.create(
            "/apis/apiregistration.k8s.io/v1/apiservices",
            {"metadata": {"name": "v1beta2.custom.metrics.k8s.io"}, "spec": {**spec, "service": service}},
        )
        path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/rps"
        await api.get(path, "labelSelector=a%3Db")
        assert seen == {"path": f"{path}?labelSelector=a%3Db", "user": "admin"}
        groups = [group["name"] for group in (await api.get("/apis"))["groups"]]
        assert "custom.metrics.k8s.io" in groups


async def test_an_aggregated_server_that_is_away_is_503():
    async with running() as api:
        spec = {
            "group": "x.example.com",
            "version": "v1",
            "service": {"namespace": "default", "name": "away"},
        }
        await api.create(
            "/apis/apiregistration.k8s.io/v1/apiservices",
            {"metadata": {"name": "v1.x.example.com"}, "spec": spec},
        )
        with pytest.raises(RefusedError) as refused:
            await api.get("/apis/x.example.com/v1/things")
        assert refused.value.status == 503


class OneMilli:
    """A source that has seen every pod use a little."""

    def pod_usage(self, namespace, name, now):
        return UsageSample({"main": {"cpu": "1m", "memory": "1Mi"}}, now, timedelta(seconds=15))

    def node_usage(self, name, now):
        return None


async def test_metrics_come_from_the_source_and_follow_selectors():
    async with running(VirtualClock()) as api:
        await api.create(PODS, pod("a"))
        await api.create(PODS, pod("b"))
        path = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
        assert (await api.get(path))["items"] == []
        api.server.metrics.source = OneMilli()
        (item,) = (await api.get(path, "labelSelector=app%3Da"))["items"]
        assert item["containers"] == [{"name": "main", "usage": {"cpu": "1m", "memory": "1Mi"}}]
        assert item["window"] == "15s"
        with pytest.raises(RefusedError, match="not found"):
            await api.get("/apis/metrics.k8s.io/v1beta1/nodes/none")
