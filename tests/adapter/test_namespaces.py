"""`--watch-namespaces` of the adapter, with rights over those namespaces alone (N3)."""

import json

import pytest
from click.testing import CliRunner

from tests.adapter.conftest import CUSTOM, HPA, Caller, running, write_configuration
from tests.support.transport import Line
from trimtab.adapter.sources import objects
from trimtab.cli.commands import adapter as command
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.operator.log_format import JsonFormatter

WEB = {
    "custom": [
        {
            "metric": "rps",
            "resource": "pods",
            "namespace": namespace,
            "name": f"{namespace}-web",
            "value": "5",
        }
        for namespace in ("shop", "web", "other")
    ]
}


def asked(namespace):
    return f"{CUSTOM}/namespaces/{namespace}/pods/*/rps?labelSelector=app%3Dweb"


@pytest.fixture
async def start(cluster, tmp_path, front):
    """Start an adapter that watches some namespaces and may read in others."""
    for namespace in ("shop", "web", "other"):
        await cluster.put("pods", f"{namespace}-web", namespace, labels={"app": "web"})
    callers, contexts = [], []

    async def make(*, watched, allowed):
        # The ConfigMap of the front proxy is in kube-system; the chart grants it there.
        transport = Line(InProcessTransport(cluster), within=(*allowed, "kube-system"))
        client = Client(SystemClock(), transport)
        context = running(cluster, write_configuration(tmp_path, values=WEB), client, watched)
        contexts.append(context)
        callers.append(Caller(await context.__aenter__(), front.proxy))
        return callers[-1], transport

    yield make
    for caller in callers:
        await caller.close()
    for context in contexts:
        await context.__aexit__(None, None, None)


async def test_pods_of_watched_namespaces_are_known_with_rights_there_only(start):
    caller, rights = await start(watched=("shop", "web"), allowed=("shop", "web"))
    for namespace in ("shop", "web"):
        code, body = await caller.get(asked(namespace), HPA)
        assert (code, [item["describedObject"]["name"] for item in body["items"]]) == (
            200,
            [f"{namespace}-web"],
        )
    assert rights.forbidden == []
    _, text = await caller.get("/readyz?verbose")
    assert "[+]pods in namespace shop ok\n[+]pods in namespace web ok\n" in text


async def test_a_namespace_that_is_not_watched_is_named(start):
    caller, rights = await start(watched=("shop",), allowed=("shop",))
    code, body = await caller.get(asked("other"), HPA)
    assert code == 404
    assert "namespace other is not among those of --watch-namespaces" in body["message"]
    assert rights.forbidden == []


async def test_readyz_names_the_watch_that_fails_and_others_go_on(start, monkeypatch):
    """A failing watch does not make the adapter unready (docs/decisions/the-metrics-adapter-authenticates-callers-and-rejects-invalid-values.md)."""
    monkeypatch.setattr(objects, "SYNC_SECONDS", 0.05)
    caller, _ = await start(watched=("shop", "web"), allowed=("shop",))
    assert (await caller.get(asked("shop"), HPA))[0] == 200
    code, body = await caller.get(asked("web"), HPA)
    assert (code, "the pods cannot be listed" in body["message"]) == (503, True)
    code, text = await caller.get("/readyz?verbose")
    assert code == 200
    assert "[-]pods in namespace web failing" in text
    assert "[+]pods in namespace shop ok" in text
    _, metrics = await caller.get("/metrics", HPA)
    failing = (
        'trimtab_adapter_source_health{source="cluster",state="failing",what="pods in namespace web"} 1.0'
    )
    assert failing in metrics


def test_the_command_takes_the_settings_of_every_program(tmp_path, monkeypatch):
    """N3 and N15: namespaces, the rate of requests and the log format reach the adapter."""
    seen = []

    async def serve(_configuration, _root, settings):
        seen.append(settings)

    monkeypatch.setattr(command, "_serve", serve)
    file = write_configuration(tmp_path)
    flags = ["--watch-namespaces=shop,web", "--kube-api-qps=5", "--kube-api-burst=7", "--log-format=json"]
    done = CliRunner().invoke(command.adapter, ["--config", str(file), *flags])
    assert done.exit_code == 0, done.output
    (settings,) = seen
    assert settings.watch_namespaces == ("shop", "web")
    assert (settings.client.kube_api_qps, settings.client.kube_api_burst, settings.log_format) == (
        5,
        7,
        "json",
    )


def test_log_lines_of_the_adapter_are_json_where_the_chart_says_so(tmp_path, monkeypatch):
    import logging

    root = logging.getLogger()
    before, level = root.handlers[:], root.level

    async def serve(_configuration, _root, _settings):
        handler = logging.getLogger().handlers[0]
        assert isinstance(handler.formatter, JsonFormatter)
        line = handler.format(logging.makeLogRecord({"msg": "serving", "levelname": "INFO"}))
        assert json.loads(line)["message"] == "serving"

    monkeypatch.setattr(command, "_serve", serve)
    try:
        file = write_configuration(tmp_path)
        done = CliRunner().invoke(command.adapter, ["--config", str(file), "--log-format=json"])
        assert done.exit_code == 0, done.output
    finally:
        root.handlers[:], root.level = before, level
