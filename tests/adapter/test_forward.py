"""Several providers behind one API group; and S12, S13: credentials go to the configured address and nowhere else."""

import pytest

from tests.adapter.conftest import (
    CUSTOM,
    EXTERNAL,
    HPA,
    Caller,
    running,
    source_of,
    write,
    write_configuration,
)
from tests.adapter.fake_cluster import FakeCluster
from tests.adapter.fake_prometheus import FakePrometheus, failing, listening

QUEUE = f"{CUSTOM}/namespaces/default/statefulsets.apps/foo/queue_length"


@pytest.fixture
async def behind(tmp_path, front):
    """Another adapter with values of its own, that knows the first one by a token."""
    cluster = FakeCluster()
    cluster.tokens["front-adapter"] = {"username": "system:serviceaccount:trimtab:adapter"}
    name = "extension-apiserver-authentication"
    await cluster.put("configmaps", name, "kube-system", data=front.config_map())
    (tmp_path / "behind").mkdir()
    async with running(cluster, write_configuration(tmp_path / "behind")) as adapter:
        yield adapter, cluster


@pytest.fixture
async def in_front(behind, cluster, tmp_path, front):
    """The registered adapter: own values first, then whatever the other one has."""
    (tmp_path / "token").write_text("front-adapter")
    (tmp_path / "ca.crt").write_bytes(behind[0].tls.pair.authority_pem)
    own = {"external": [{"metric": "mine", "namespace": "default", "value": "1"}]}
    write(tmp_path / "values.yaml", "MetricValues", own)
    server = {"url": f"https://localhost:{behind[0].port}", "authorityFile": "ca.crt", "tokenFile": "token"}
    sources = (
        {"name": "own", "testing": {"file": "values.yaml"}},
        {"name": "other", "forward": {"server": server, "metrics": ["queue_.*", "sqs_.*"]}},
    )
    async with running(cluster, write_configuration(tmp_path, *sources)) as adapter:
        await source_of(adapter, 1).discover()
        caller = Caller(adapter, front.proxy)
        yield caller
        await caller.close()


async def test_metrics_of_two_providers_come_from_one_group(in_front, behind):
    _, own = await in_front.get(f"{EXTERNAL}/namespaces/default/mine", HPA)
    _, other = await in_front.get(
        f"{EXTERNAL}/namespaces/default/sqs_messages?labelSelector=queue%3Dorders", HPA
    )
    assert (own["items"][0]["value"], other["items"][0]["value"]) == ("1", "40")
    assert behind[1].access_reviews[-1]["user"] == "system:serviceaccount:trimtab:adapter"


async def test_selectors_and_objects_reach_the_other_adapter(in_front):
    _, body = await in_front.get(f"{QUEUE}?metricLabelSelector=queue%3Dsome-jobs", HPA)
    assert [(item["describedObject"]["name"], item["value"]) for item in body["items"]] == [("foo", "3")]


@pytest.mark.parametrize("other", ["default", "*"])
async def test_a_namespace_inside_of_the_authorized_one_reaches_no_other_adapter(
    in_front, behind, cluster, other
):
    cluster.may = lambda spec: spec["resourceAttributes"]["namespace"] == "own"
    before = len(behind[1].access_reviews)
    assert (await in_front.get(f"{CUSTOM}/namespaces/{other}/metrics/queue_length", HPA))[0] == 403
    path = f"{CUSTOM}/namespaces/own/namespaces/{other}/queue_length"
    status, body = await in_front.get(path, HPA)
    assert (status, "cannot be an object of namespace 'own'" in body["message"]) == (422, True)
    assert len(behind[1].access_reviews) == before


async def test_names_that_are_not_handed_on_stay_unknown(in_front, behind):
    before = len(behind[1].access_reviews)
    assert (await in_front.get(f"{EXTERNAL}/namespaces/default/elsewhere", HPA))[0] == 404
    assert (await in_front.get(f"{QUEUE}_x?metricLabelSelector=queue%3Dnone", HPA))[0] == 404
    assert len(behind[1].access_reviews) == before + 1


async def test_discovery_joins_what_both_offer(in_front):
    _, external = await in_front.get(EXTERNAL, HPA)
    assert [resource["name"] for resource in external["resources"]] == ["mine", "sqs_messages"]


async def test_another_adapter_that_refuses_us_is_a_503_and_the_own_values_stay(in_front, behind):
    behind[1].tokens.clear()
    behind[1].may = lambda spec: False
    assert (await in_front.get(QUEUE, HPA))[0] == 503
    assert (await in_front.get(f"{EXTERNAL}/namespaces/default/mine", HPA))[0] == 200
    status, text = await in_front.get("/readyz?verbose")
    assert (status, "[-]source other failing" in text) == (200, True)


async def test_tenants_do_not_get_the_error_text_of_another_adapter(cluster, front, tmp_path, caplog):
    """It may contain what its Prometheus says about other tenants, and its address."""
    behind = FakePrometheus()
    said = {
        "kind": "Status",
        "status": "Failure",
        "code": 500,
        "message": 'duplicate series {pod="ledger-7"}',
    }
    async with listening(behind) as url:
        behind.fault = failing(500, said)
        config = write_configuration(tmp_path, {"name": "other", "forward": {"server": {"url": url}}})
        async with running(cluster, config) as adapter:
            caller = Caller(adapter, front.proxy)
            for path in (f"{EXTERNAL}/namespaces/default/sqs_messages", QUEUE):
                status, body = await caller.get(path, HPA)
                assert (status, body["message"]) == (
                    503,
                    "source other gives no usable answer at the moment; the adapter's log says why",
                )
            await caller.close()
    assert "ledger-7" in caplog.text


@pytest.mark.parametrize("kind", ["prometheus", "forward"])
async def test_S12_a_redirect_is_an_error_and_the_second_host_never_sees_the_token(
    cluster, front, tmp_path, kind
):
    (tmp_path / "token").write_text("source-token")
    write(
        tmp_path / "rules.yaml",
        "MetricRules",
        {"rules": [{"name": "sqs", "type": "external", "series": "sqs_messages"}]},
    )
    redirecting, second = FakePrometheus(), FakePrometheus()
    async with listening(redirecting) as url, listening(second) as elsewhere:
        redirecting.fault = failing(302, b"", [(b"location", f"{elsewhere}/api/v1/query".encode())])
        server = {"url": url, "tokenFile": "token"}
        settings = (
            {"server": server, "rulesFile": "rules.yaml"} if kind == "prometheus" else {"server": server}
        )
        config = write_configuration(tmp_path, {"name": "source", kind: settings})
        async with running(cluster, config) as adapter:
            caller = Caller(adapter, front.proxy)
            assert (await caller.get(f"{EXTERNAL}/namespaces/default/sqs_messages", HPA))[0] == 503
            await caller.close()
    assert all(request["authorization"] == "Bearer source-token" for request in redirecting.requests)
    assert redirecting.requests
    assert second.requests == []


@pytest.mark.parametrize(
    "metric", ["http:%2f%2f169.254.169.254", "file:%2f%2f%2fetc%2fpasswd", "..%2f..%2fx"]
)
async def test_S13_an_address_in_place_of_a_metric_is_refused(in_front, metric):
    assert (await in_front.get(f"{EXTERNAL}/namespaces/default/{metric}", HPA))[0] == 422
