"""The testing source: values set over HTTP, from a file, and pods chosen by their labels."""

import json
from io import BytesIO

import aiohttp
import pytest
from yarl import URL

from tests.adapter.conftest import CUSTOM, EXTERNAL, HPA, source_of, write


class Hand:
    """The admin port."""

    def __init__(self, adapter, directory):
        self.url = f"http://127.0.0.1:{adapter.admin_ports['by-hand']}"
        self.token_file = directory / "adapter-admin.token"

    async def send(self, method, path, body="", **headers):
        headers = {"Authorization": f"Bearer {self.token_file.read_text().strip()}", **headers}
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                method, URL(self.url + path, encoded=True), data=BytesIO(body.encode()), headers=headers
            ) as answer,
        ):
            return answer.status, await answer.json()


@pytest.fixture
def hand(adapter, tmp_path):
    return Hand(adapter, tmp_path)


async def value(proxy, path):
    status, body = await proxy.get(path, HPA)
    return [item["value"] for item in body["items"]] if status == 200 else status


async def test_a_value_set_over_http_is_served_at_once(hand, proxy):
    path = "/namespaces/default/statefulsets.apps/foo/queue_length?queue=some-jobs"
    assert (await hand.send("PUT", f"/custom{path}", "12"))[0] == 200
    asked = f"{CUSTOM}/namespaces/default/statefulsets.apps/foo/queue_length?metricLabelSelector=queue%3Dsome-jobs"
    assert await value(proxy, asked) == ["12"]
    assert (await hand.send("DELETE", f"/custom{path}"))[0] == 200
    assert await value(proxy, asked) == 404
    assert (await hand.send("DELETE", f"/custom{path}"))[0] == 404


async def test_cluster_scoped_namespace_and_external_values_can_be_set(hand, proxy):
    await hand.send("PUT", "/custom/nodes/n1/temperature", "41500m")
    await hand.send("PUT", "/custom/namespaces/default/queued", "7")
    await hand.send("PUT", "/external/namespaces/default/orders?shop=a", "5")
    assert await value(proxy, f"{CUSTOM}/nodes/n1/temperature") == ["41500m"]
    assert await value(proxy, f"{CUSTOM}/namespaces/default/metrics/queued") == ["7"]
    assert await value(proxy, f"{EXTERNAL}/namespaces/default/orders?labelSelector=shop%3Da") == ["5"]


@pytest.mark.parametrize(
    "path", ["/external/namespaces/default/jobs", "/custom/namespaces/default/pods/web/jobs"]
)
async def test_a_metric_is_gone_with_its_last_series(hand, proxy, path):
    """An external metric without series was still served, and hid the same metric of the next source."""
    group = EXTERNAL if path.startswith("/external") else CUSTOM
    asked = group + path.removeprefix("/external").removeprefix("/custom")
    for queue in ("a", "b"):
        await hand.send("PUT", f"{path}?queue={queue}", "1")
    await hand.send("DELETE", f"{path}?queue=a")
    assert await value(proxy, asked) == ["1"]
    await hand.send("DELETE", f"{path}?queue=b")
    assert await value(proxy, asked) == 404
    assert (await hand.send("DELETE", f"{path}?queue=b"))[0] == 404


async def test_many_values_go_in_one_body_and_come_back_in_the_form_of_the_file(hand, proxy):
    pods = [
        {
            "metric": "rps",
            "namespace": "default",
            "name": f"web-{n}",
            "value": n,
            "objectLabels": {"app": "web"},
        }
        for n in range(3)
    ]
    idle = {
        "metric": "rps",
        "namespace": "default",
        "name": "other",
        "value": 9,
        "objectLabels": {"app": "other"},
    }
    assert (await hand.send("POST", "/values", json.dumps({"custom": [*pods, idle]})))[0] == 200
    assert await value(proxy, f"{CUSTOM}/namespaces/default/pods/*/rps?labelSelector=app%3Dweb") == [
        "0",
        "1",
        "2",
    ]
    assert await value(proxy, f"{CUSTOM}/namespaces/default/pods/*/rps") == ["9", "0", "1", "2"]
    _, everything = await hand.send("GET", "/values")
    assert everything["kind"] == "MetricValues"
    assert len(everything["custom"]) == 6
    await hand.send("DELETE", "/values")
    assert await value(proxy, f"{CUSTOM}/namespaces/default/pods/*/rps") == 404


async def test_pods_without_labels_of_their_own_are_chosen_by_those_that_the_cluster_knows(
    hand, proxy, cluster
):
    await cluster.put("pods", "web-1", "default", labels={"app": "web"})
    await cluster.put("pods", "job-1", "default", labels={"app": "job"})
    for pod in ("web-1", "job-1", "gone-1"):
        await hand.send("PUT", f"/custom/namespaces/default/pods/{pod}/rps", "5")
    _, body = await proxy.get(f"{CUSTOM}/namespaces/default/pods/*/rps?labelSelector=app%3Dweb", HPA)
    assert [item["describedObject"]["name"] for item in body["items"]] == ["web-1"]


async def test_the_file_is_read_again_when_it_changes_and_kept_when_it_is_spoilt(adapter, proxy, tmp_path):
    source = source_of(adapter)
    data = {"external": [{"metric": "fresh", "namespace": "default", "value": "1"}]}
    write(tmp_path / "values.yaml", "MetricValues", data)
    source.refresh()
    assert await value(proxy, f"{EXTERNAL}/namespaces/default/fresh") == ["1"]
    (tmp_path / "values.yaml").write_text("external: [")
    source.refresh()
    assert await value(proxy, f"{EXTERNAL}/namespaces/default/fresh") == ["1"]
    status, text = await proxy.get("/readyz?verbose")
    assert (status, "[-]source by-hand failing" in text) == (200, True)


async def test_the_admin_port_needs_its_token_and_its_own_name(hand):
    assert (await hand.send("GET", "/values", Authorization="Bearer wrong"))[0] == 401
    assert (await hand.send("GET", "/values", Authorization=""))[0] == 401
    assert (await hand.send("GET", "/values", Host="evil.example"))[0] == 421
    assert hand.token_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("method", "path", "body", "want"),
    [
        ("PUT", "/custom/namespaces/default/pods/x/rps", "many", 422),
        ("PUT", "/custom/namespaces/default/pods/x/rps", "NaN", 422),
        ("PUT", "/elsewhere", "1", 404),
        ("POST", "/custom/namespaces/default/pods/x/rps", "1", 405),
        ("PATCH", "/values", "{}", 405),
        ("POST", "/values", '{"custom": [{"metric": "x"}]}', 422),
        ("POST", "/values", '{"custom": [], "colour": 1}', 422),
        ("POST", "/values", "x" * (3 * 1024 * 1024 + 1), 413),
        ("PUT", "/custom/namespaces/default/pods/%2e%2e/rps", "1", 422),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_reason(hand, method, path, body, want):
    status, answer = await hand.send(method, path, body)
    assert status == want
    assert answer["message"]
