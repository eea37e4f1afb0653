"""Rules over a real Prometheus that scrapes an exporter; an HPA of the real controller follows; Prometheus dies, returns."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.real.adapter.registered import RegisteredAdapter, apply, until, write
from tests.real.adapter.workloads import deployment, hpa, queue_metric, replicas, report, settles
from tools.peers import prometheus
from tools.peers.cluster import HPA_CONTROLLER, RealCluster, free_port

pytestmark = pytest.mark.real

NS = "adapter-scraped"
RULES = {
    "rules": [
        {
            "name": "queues",
            "series": "queue_length",
            "resources": {"statefulsets.apps": "statefulset"},
            "maxAge": "10s",
        },
        {
            "name": "served",
            "seriesPattern": "^(.+)_total$",
            "metric": "${1}_per_second",
            "resources": {"pods": "pod"},
            "matchers": {"job": "exporter"},
            "query": "sum by (<<groupBy>>) (rate(<<series>>{<<matchers>>}[10s]))",
            "window": "10s",
        },
        {"name": "broken", "series": "queue_length", "metric": "broken", "resources": {"pods": "pod"},
         "query": "sum by (<<groupBy>> (<<series>>{<<matchers>>}))"},
        {"name": "not-a-number", "type": "external", "series": "queue_length", "metric": "nan",
         "query": "<<series>>{<<matchers>>} * NaN"},
        {"name": "backlog", "type": "external", "series": "queue_length", "metric": "backlog"},
    ]
}  # fmt: skip


class Exporter(ThreadingHTTPServer):
    """Serves the queues of the seed on /metrics."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.queues = {"some-jobs": 3, "other-jobs": 70}
        self.served = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def text(self) -> str:
        self.served += 10
        where = f'namespace="{NS}",statefulset="foo",pod="foo-1"'
        lines = [f'queue_length{{{where},queue="{queue}"}} {length}' for queue, length in self.queues.items()]
        return "\n".join([*lines, f"jobs_total{{{where}}} {self.served}", ""])


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = self.server.text().encode()  # type: ignore[attr-defined]  # the server is an Exporter
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def exporter():
    with Exporter() as exporter:
        yield exporter
        exporter.shutdown()


@pytest.fixture(scope="module")
def scraping(exporter, tmp_path_factory):
    targets = {"exporter": f"127.0.0.1:{exporter.server_address[1]}"}
    try:
        real = prometheus.RealPrometheus(Path(tmp_path_factory.mktemp("prometheus")), free_port(), targets)
    except prometheus.NoPrometheusError as error:
        pytest.skip(f"no real Prometheus: {error}")
    with real:
        yield real


@pytest.fixture(scope="module")
def adapter(real_cluster: RealCluster, scraping, tmp_path_factory):
    directory = Path(tmp_path_factory.mktemp("adapter"))
    write(directory / "rules.yaml", "MetricRules", RULES)
    apply(real_cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    settings = {"server": {"url": scraping.url}, "rulesFile": "rules.yaml", "discoveryInterval": "1s"}
    with RegisteredAdapter(real_cluster, directory, {"name": "prom", "prometheus": settings}) as running:
        until("the first scrapes are there", lambda: len(_external(running, "backlog")) == 2)
        yield running


def _external(adapter, metric):
    text = adapter.cluster.kubectl(
        "get", "--raw", f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{NS}/{metric}", check=False
    )
    return json.loads(text)["items"] if text.startswith("{") else []


def _queue(adapter, selector=""):
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NS}/statefulsets.apps/foo/queue_length"
    return adapter.cluster.kubectl("get", "--raw", f"{path}?metricLabelSelector={selector}", check=False)


def test_selectors_tell_the_scraped_queues_apart(adapter):
    assert json.loads(_queue(adapter, "queue%3Dsome-jobs"))["items"][0]["value"] == "3"
    assert json.loads(_queue(adapter, "queue%20notin%20(some-jobs)"))["items"][0]["value"] == "70"
    assert json.loads(_queue(adapter))["items"][0]["value"] == "73"


def test_a_pattern_finds_the_series_and_the_rate_has_its_window(adapter):
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NS}/pods/*/jobs_per_second"
    text = until(
        "a rate over two scrapes",
        lambda: (
            text
            if (text := adapter.cluster.kubectl("get", "--raw", path, check=False)).startswith("{")
            else ""
        ),
    )
    item = json.loads(text)["items"][0]
    assert (item["describedObject"]["name"], item["windowSeconds"]) == ("foo-1", 10)
    names = {one["name"] for one in adapter.raw("/apis/custom.metrics.k8s.io/v1beta2")["resources"]}
    assert {"pods/jobs_per_second", "statefulsets.apps/queue_length"} <= names


def test_the_rule_tester_shows_the_values_and_the_rule_that_prometheus_refuses(adapter, scraping):
    program = str(Path(sys.executable).with_name("trimtab"))
    command = [program, "adapter", "test", "rules.yaml", f"--prometheus={scraping.url}", f"--namespace={NS}"]
    run = subprocess.run(
        command, cwd=adapter.directory, capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 1
    assert "{statefulset=foo} 73\n" in run.stdout
    assert "pods/jobs_per_second" in run.stdout
    assert "refused: the value is NaN" in run.stdout
    assert "problem: Prometheus answered 400" in run.stdout


def test_a_rule_that_prometheus_refuses_disables_itself_alone(adapter):
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NS}/pods/*/broken"
    assert "ServiceUnavailable" in adapter.cluster.kubectl("get", "--raw", path, check=False)
    assert json.loads(_queue(adapter, "queue%3Dsome-jobs"))["items"][0]["value"] == "3"
    assert "rule prom/broken is disabled" in (adapter.directory / "adapter.log").read_text()


def test_not_a_number_is_refused(adapter):
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{NS}/nan"
    assert "gives no usable value" in adapter.cluster.kubectl("get", "--raw", path, check=False)


def test_the_real_hpa_controller_follows_holds_through_an_outage_and_recovers(
    real_cluster, adapter, exporter, scraping
):
    real_cluster.stop("kube-controller-manager")
    real_cluster.start_controllers(HPA_CONTROLLER, "--horizontal-pod-autoscaler-sync-period=1s")

    def condition():
        conditions = json.loads(real_cluster.kubectl("get", "hpa/scraped", "-n", NS, "-o", "json"))[
            "status"
        ].get("conditions", [])
        return next((one["status"] for one in conditions if one["type"] == "ScalingActive"), "")

    metric = queue_metric("some-jobs", {"type": "AverageValue", "averageValue": "1"})
    apply(real_cluster, deployment(NS, "scraped", 1), hpa(NS, "scraped", metric))
    report(real_cluster, NS, "scraped", 1)
    assert settles(real_cluster, NS, "scraped", 3)
    exporter.queues["some-jobs"] = 8
    assert settles(real_cluster, NS, "scraped", 8)

    scraping.kill()
    exporter.queues["some-jobs"] = 2
    until("the outage is told", lambda: condition() == "False")
    assert replicas(real_cluster, NS, "scraped") == 8
    assert "source prom fails" in (adapter.directory / "adapter.log").read_text()

    scraping.start()
    assert settles(real_cluster, NS, "scraped", 2)
    assert condition() == "True"
    real_cluster.stop("kube-controller-manager")
