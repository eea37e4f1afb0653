"""The official Python client and kubernetes_asyncio believe the lab."""

# mypy: disable-error-code="arg-type,operator,union-attr"
# The clients take plain dicts for models; their annotations do not say so.

import kubernetes
import kubernetes_asyncio
import pytest


@pytest.fixture
def official(lab):
    with kubernetes.config.new_client_from_config(str(lab.kubeconfig)) as client:
        yield client


def deployment(name):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


def test_the_official_client_reads_and_writes(official):
    apps = kubernetes.client.AppsV1Api(official)
    made = apps.create_namespaced_deployment("default", deployment("official"))
    assert made.spec.strategy.rolling_update.max_surge == "25%"
    apps.patch_namespaced_deployment_scale("official", "default", {"spec": {"replicas": 3}})
    assert apps.read_namespaced_deployment("official", "default").spec.replicas == 3
    apps.delete_namespaced_deployment("official", "default")
    assert not apps.list_namespaced_deployment("default", field_selector="metadata.name=official").items


def test_the_official_client_reads_every_workload_kind(official):
    apps = kubernetes.client.AppsV1Api(official)
    body = deployment("kinds")
    apps.create_namespaced_replica_set("default", {**body, "kind": "ReplicaSet"})
    apps.create_namespaced_stateful_set("default", {**body, "spec": {**body["spec"], "serviceName": "s"}})
    apps.create_namespaced_daemon_set("default", body)
    assert apps.read_namespaced_replica_set("kinds", "default").status.replicas == 0
    assert apps.read_namespaced_stateful_set("kinds", "default").spec.pod_management_policy == "OrderedReady"
    assert apps.read_namespaced_daemon_set("kinds", "default").status.number_ready == 0


def test_the_official_client_watches(official):
    core = kubernetes.client.CoreV1Api(official)
    core.create_namespaced_config_map("default", {"metadata": {"name": "watched"}})
    events = kubernetes.watch.Watch().stream(
        core.list_namespaced_config_map, "default", field_selector="metadata.name=watched", timeout_seconds=5
    )
    assert next(events)["object"].metadata.name == "watched"


def test_the_official_client_reads_autoscalers_in_both_versions(official):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    v2 = kubernetes.client.AutoscalingV2Api(official)
    v2.create_namespaced_horizontal_pod_autoscaler(
        "default", {"metadata": {"name": "both"}, "spec": {"scaleTargetRef": target, "maxReplicas": 4}}
    )
    v1 = kubernetes.client.AutoscalingV1Api(official)
    read = v1.read_namespaced_horizontal_pod_autoscaler("both", "default")
    assert read.spec.target_cpu_utilization_percentage == 80


def test_the_official_client_gets_the_reason_of_a_refusal(official):
    core = kubernetes.client.CoreV1Api(official)
    with pytest.raises(kubernetes.client.ApiException) as refused:
        core.create_namespaced_config_map("default", {"metadata": {"name": "Bad_Name"}})
    assert refused.value.status == 422
    assert "FieldValueInvalid" in refused.value.body


async def test_the_asyncio_client_reads_writes_and_watches(lab):
    configuration = kubernetes_asyncio.client.Configuration()
    await kubernetes_asyncio.config.load_kube_config(str(lab.kubeconfig), client_configuration=configuration)
    async with kubernetes_asyncio.client.ApiClient(configuration) as client:
        core = kubernetes_asyncio.client.CoreV1Api(client)
        await core.create_namespaced_secret(
            "default", {"metadata": {"name": "quiet"}, "stringData": {"a": "b"}}
        )
        assert (await core.read_namespaced_secret("quiet", "default")).data == {"a": "Yg=="}
        async with kubernetes_asyncio.watch.Watch() as watch:
            async for event in watch.stream(core.list_namespaced_secret, "default", timeout_seconds=5):
                assert event["type"] == "ADDED"
                break
