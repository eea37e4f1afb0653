"""A real Prometheus and names of series that look like PromQL: no name reads another namespace or breaks a query."""

import asyncio
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from tests.real.adapter.registered import until
from tools.peers import prometheus
from tools.peers.cluster import free_port
from trimtab.adapter.api.requests import CustomMetricQuery
from trimtab.adapter.files import API_VERSION
from trimtab.adapter.sources.objects import ClusterObjects
from trimtab.adapter.sources.prometheus.source import PrometheusSource
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config.connection import Connection, StaticCredentials, TlsSettings
from trimtab.cluster.http import HttpTransport
from trimtab.metrics.prometheus import PrometheusClient

pytestmark = pytest.mark.real

ATTACK = 'x_total{namespace="victim"}) or sum by (pod) (y_total'
DOTTED = "http.server.requests"
NAMES = [
    ATTACK,
    DOTTED,
    'x_total{namespace="victim"} #',
    'x_total",namespace="victim"',
    "x_total\\",
    "a<<matchers>>",
    "{}",
    "é ü",
    "`",
    "'",
    "x_total[5m]",
]
LINES = [
    'x_total{namespace="victim",pod="victim-pod"} 7',
    'y_total{namespace="a",pod="mine"} 1',
]


class _Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        escaped = ATTACK.replace('"', '\\"')
        utf8 = "escaping=allow-utf-8" in self.headers.get("Accept", "")
        named = [f'{{"{name}",namespace="a",pod="mine"}} 3' for name in (escaped, DOTTED)] if utf8 else []
        body = "\n".join([*LINES, *named, ""]).encode()
        self.send_response(200)
        version = "1.0.0; escaping=allow-utf-8" if utf8 else "0.0.4"
        self.send_header("Content-Type", f"text/plain; version={version}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module", params=["prometheus", prometheus.VERSION_3])
def scraping(tmp_path_factory, request):
    with ThreadingHTTPServer(("127.0.0.1", 0), _Exporter) as exporter:
        threading.Thread(target=exporter.serve_forever, daemon=True).start()
        targets = {"exporter": f"127.0.0.1:{exporter.server_address[1]}"}
        directory = Path(tmp_path_factory.mktemp("prometheus"))
        try:
            real = prometheus.RealPrometheus(directory, free_port(), targets, request.param)
        except prometheus.NoPrometheusError as error:
            pytest.skip(f"no real Prometheus: {error}")
        with real:
            until("the first scrape is there", lambda: "y_total" in names(real.url))
            yield real.url, request.param == prometheus.VERSION_3
        exporter.shutdown()


def names(url):
    with urllib.request.urlopen(f"{url}/api/v1/label/__name__/values", timeout=5) as answer:
        return json.load(answer)["data"]


async def asked(url, directory, series):
    """Return what namespace a reads of each series, and the health of the rule afterwards."""
    rule = {"name": "all", "seriesPattern": ".+", "resources": {"pods": "pod"}}
    file = directory / "rules.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": API_VERSION, "kind": "MetricRules", "rules": [rule]}))
    clock = SystemClock()
    transport = HttpTransport(clock, Connection(url, StaticCredentials(), TlsSettings()))
    objects = ClusterObjects(Client(clock, transport), ())
    source = PrometheusSource(clock, "prom", PrometheusClient(clock, transport), objects, file)
    await source.discover()
    found = {}
    [active] = source.rules
    discovered = set(active.series)
    active.set_series(series)
    for name in active.series:
        samples = await source.custom(CustomMetricQuery("a", "pods", "*", name))
        found[name] = [(sample.name, str(sample.value)) for sample in samples]
    health = [health.reason for health in source.health() if health.reason]
    await source.close()
    return found, health, discovered


def test_no_name_reads_another_namespace_and_prometheus_parses_every_query(scraping, tmp_path):
    url, has_any_names = scraping
    found, health, discovered = asyncio.run(asked(url, tmp_path, [*NAMES, "x_total", "y_total"]))
    assert health == []
    assert found.pop("x_total") == []
    assert found.pop("y_total") == [("mine", "1")]
    if has_any_names:
        assert {ATTACK, DOTTED} <= discovered
        assert (found.pop(ATTACK), found.pop(DOTTED)) == ([("mine", "3")], [("mine", "3")])
    assert found
    assert all(samples == [] for samples in found.values())
