"""The health port: who may read what, and by which Host."""

import asyncio
import http.client
import json
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from trimtab.operator.callers import LOOPBACK_PEERS, CallerTrust, trust_of
from trimtab.operator.health import HealthApp, HeldByAnotherReplica
from trimtab.operator.prometheus import OBJECT_LABELS
from trimtab.serving.server import served

TOKEN = "s3cret"
SECRET = "payroll"
"""The name of an object that only trusted callers may read."""
PAGES = ("/records", "/explain", "/autoscalers", "/settings")


class Loop:
    """A component with one problem."""

    name = "horizontal"

    async def run(self) -> None:
        """Do nothing."""

    def health(self) -> dict[str, str]:
        return {f"pods of {SECRET}": f"{SECRET}: forbidden"}

    def warnings(self) -> dict[str, str]:
        return {"lease": f"{SECRET}: late"}


def make_app(token: str = "") -> HealthApp:
    registry = CollectorRegistry()
    Gauge("desired_replicas", "", ["namespace", "hpa_name"], registry=registry).labels(SECRET, "web").set(3)
    evicted = Counter("evicted", "", ["vpa_name", "vpa_namespace", "reason"], registry=registry)
    for name in ("a", "b"):
        evicted.labels(name, SECRET, "size").inc(2)
    Histogram("took", "", ["namespace"], buckets=[1], registry=registry).labels(SECRET).observe(0.5)
    Gauge("hpas", "", registry=registry).set(7)
    pages = {path: lambda _name: SECRET.encode() for path in PAGES}
    return HealthApp([Loop()], registry, token=token, pages=pages)


def ask(app, path, *, peer="127.0.0.1", host="127.0.0.1:8080", token="", headers=(), query=b""):
    sent = []

    async def send(message):
        sent.append(message)

    given = [*((b"host", host.encode()) for host in [host] if host), *headers]
    if token:
        given.append((b"authorization", f"Bearer {token}".encode()))
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query,
        "headers": given,
        "client": (peer, 5) if peer else None,
    }
    asyncio.run(app(scope, None, send))
    return sent[0]["status"], sent[1]["body"].decode()


@pytest.mark.parametrize("path", [*PAGES, "/metrics"])
@pytest.mark.parametrize(
    ("configured", "request_", "want"),
    [
        pytest.param("", {}, 200, id="without a token, this host's own callers read everything"),
        pytest.param("", {"peer": "::ffff:127.0.0.1"}, 200, id="also over IPv4 on a socket for both"),
        pytest.param("", {"host": "LOCALHOST:9"}, 200, id="a port-forward on another port"),
        pytest.param("", {"host": "[::1]:8080", "peer": "::1"}, 200, id="IPv6"),
        pytest.param("", {"host": "evil.example:8080"}, 421, id="a rebound name is refused"),
        pytest.param("", {"host": "localhost.evil.example"}, 421, id="a name that only begins so"),
        pytest.param("", {"host": ""}, 421, id="no Host"),
        pytest.param("", {"headers": [(b"host", b"evil.example")]}, 421, id="two Hosts"),
        pytest.param("", {"host": "[::1"}, 421, id="a Host that cannot be read"),
        pytest.param("", {"peer": "10.0.0.9"}, 401, id="another pod, whatever Host it claims"),
        pytest.param("", {"peer": "127.0.0.6"}, 401, id="another pod through a sidecar proxy"),
        pytest.param("", {"peer": ""}, 401, id="an unknown peer"),
        pytest.param("", {"peer": "10.0.0.9", "token": "guess"}, 401, id="a token where none is set"),
        pytest.param("", {"peer": "10.0.0.9", "headers": [(b"authorization", b"Bearer ")]}, 401,
                     id="an empty token where none is set"),
        pytest.param(TOKEN, {"peer": "10.0.0.9", "token": TOKEN}, 200, id="the token, from anywhere"),
        pytest.param(TOKEN, {"host": "trimtab.svc", "token": TOKEN}, 200, id="the token, for any Host"),
        pytest.param(TOKEN, {"token": "guess"}, 401, id="another token"),
        pytest.param(TOKEN, {}, 401, id="with a token set, also this host's callers need it"),
        pytest.param(TOKEN, {"host": "evil.example"}, 421, id="with a token set, a rebound name is refused"),
    ],
)  # fmt: skip
def test_who_may_read_what(path, configured, request_, want):
    status, body = ask(make_app(configured), path, **request_)
    assert (SECRET in body) == (want == 200)
    if path == "/metrics" and want == 401 and not configured:
        want = 200  # without names, as the next test says
    assert status == want


def test_metrics_for_strangers_name_no_object_and_add_up():
    status, text = ask(make_app(), "/metrics", peer="10.0.0.9")
    assert status == 200
    assert "hpas 7.0" in text
    assert 'evicted_total{reason="size"} 4.0' in text
    assert 'took_bucket{le="1.0"} 1.0' in text
    assert "desired_replicas{" not in text
    assert not re.search(rf"{SECRET}|hpa_name|vpa_name|namespace", text)


def test_a_sum_does_not_fall_when_an_object_is_gone():
    """Prometheus would take it for a counter that began anew, and show all evictions so far as new ones."""
    registry = CollectorRegistry()
    evicted = Counter("evicted", "", ["vpa_name", "reason"], registry=registry)
    app = HealthApp([], registry)
    seen = []

    def scrape():
        lines = ask(app, "/metrics", peer="10.0.0.9")[1].splitlines()
        seen.append([line for line in lines if line.startswith("evicted_total")])

    evicted.labels("a", "size").inc(5)
    evicted.labels("b", "size").inc(2)
    scrape()
    evicted.remove("a", "size")
    scrape()
    evicted.labels("a", "size").inc(1)  # another VPA of that name
    scrape()
    evicted.clear()
    scrape()
    evicted.labels("a", "age").inc(1)
    scrape()
    assert seen == [
        ['evicted_total{reason="size"} 7.0'],
        ['evicted_total{reason="size"} 7.0'],
        ['evicted_total{reason="size"} 8.0'],
        ['evicted_total{reason="size"} 8.0'],
        ['evicted_total{reason="size"} 8.0', 'evicted_total{reason="age"} 1.0'],
    ]


def test_every_label_of_our_metrics_is_known_to_name_an_object_or_not():
    """A new label needs a decision: does its value name an object of the cluster?

    The adapter is another server, whose metrics need a right.
    """
    page = Path(__file__, "../../../../docs/reference/metrics.md").resolve().read_text()
    rows = [
        line.split("|")[3]
        for line in page.splitlines()
        if line.startswith("| `") and "`trimtab_adapter_" not in line
    ]
    labels = {label.strip() for row in rows for label in row.split(",") if label.strip()}
    nameless = {
        "action", "api", "applied", "client_name", "code", "error", "group", "has_recommendation", "is_error", "is_oom",
        "kind", "level", "limit", "loop", "matches_pods", "method", "metric_type", "part", "plugin", "reason", "recommendation_missing",
        "resource", "resource_kind", "rule", "source", "state", "status", "step", "unsupported_config",
        "update_mode", "verb", "version", "vpa_size_log2",
    }  # fmt: skip
    assert labels - nameless == OBJECT_LABELS


@pytest.mark.parametrize("path", ["/livez", "/healthz", "/health-check"])
@pytest.mark.parametrize("peer", ["10.0.0.9", "127.0.0.1"])
def test_probes_answer_whoever_asks_by_whatever_name(path, peer):
    assert ask(make_app(TOKEN), path, peer=peer, host="10.0.0.5:8080") == (200, "ok\n")


def test_readiness_withholds_names_from_strangers():
    app = make_app()
    status, text = ask(app, "/readyz", peer="10.0.0.9", query=b"verbose")
    assert status == 503
    assert json.loads(text) == {
        "ready": False,
        "problems": {"horizontal": "1 withheld: ask through loopback or with the token"},
        "warnings": {"horizontal": "1 withheld: ask through loopback or with the token"},
    }
    full = json.loads(ask(app, "/readyz")[1])
    assert full == {"ready": False, "problems": {f"horizontal/pods of {SECRET}": f"{SECRET}: forbidden"}}
    verbose = json.loads(ask(app, "/readyz", query=b"verbose")[1])
    assert verbose["warnings"] == {"horizontal/lease": f"{SECRET}: late"}


@pytest.mark.parametrize(("address", "caller"), [("127.0.0.1", "127.0.0.1"), ("::", "127.0.0.1")])
def test_the_server_tells_where_a_caller_is(address, caller):
    """The whole rule depends on the peer's address as the server writes it."""
    seen = []

    async def app(scope, _receive, send):
        seen.append((scope["client"][0], trust_of(scope, "")))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def main():
        async with served(app, address, 0) as port:

            def call():
                connection = http.client.HTTPConnection(caller, port)
                connection.request("GET", "/")
                connection.getresponse().read()
                connection.close()

            await asyncio.to_thread(call)

    asyncio.run(main())
    assert seen[0][0] in LOOPBACK_PEERS
    assert seen[0][1] is CallerTrust.FULL


@pytest.mark.parametrize(
    ("token", "peer", "host", "sent", "want"),
    [
        ("", "127.0.0.1", "localhost", "", CallerTrust.FULL),
        ("", "127.0.0.1", "evil.example", "", CallerTrust.MISDIRECTED),
        ("", "10.0.0.9", "localhost", "", CallerTrust.ANONYMOUS),
        ("s", "127.0.0.1", "localhost", "", CallerTrust.ANONYMOUS),
        ("s", "10.0.0.9", "localhost", "Bearer t", CallerTrust.ANONYMOUS),
        ("s", "10.0.0.9", "evil.example", "Bearer s", CallerTrust.FULL),
    ],
)
def test_the_trust_of_a_caller(token, peer, host, sent, want):
    headers = [(b"Host", host.encode()), (b"Authorization", sent.encode())]
    assert trust_of({"client": (peer, 5), "headers": headers}, token) is want


@pytest.mark.parametrize(
    "host",
    [
        "evil@localhost",
        "localhost#evil.example",
        "localhost/evil",
        "localhost?evil",
        "localhost:99999x",
        "localhost:",
    ],
)
def test_a_host_that_is_more_than_a_name_and_a_port_is_refused(host):
    """A parser of URLs took these for localhost."""
    assert ask(make_app(), "/records", host=host)[0] == 421


class Healthy(Loop):
    """A component without problems."""

    name = "updater"

    def health(self) -> dict[str, str]:
        return {}


@pytest.mark.parametrize(
    ("components", "is_ready"),
    [
        ([], True),
        ([Healthy()], True),
        ([Loop()], False),
        ([Loop(), Healthy()], False),
        ([Healthy(), Loop()], False),
    ],
)
def test_one_problem_of_any_component_makes_the_process_unready(components, is_ready):
    status, body = ask(HealthApp(components, CollectorRegistry()), "/readyz")
    assert status == (200 if is_ready else 503)
    assert json.loads(body)["ready"] is is_ready
    assert bool(json.loads(body)["problems"]) is not is_ready


def test_warnings_are_shown_only_when_asked_for():
    app = HealthApp([Healthy()], CollectorRegistry())
    assert "warnings" not in json.loads(ask(app, "/readyz")[1])
    assert json.loads(ask(app, "/readyz", query=b"verbose")[1])["warnings"] == {
        "updater/lease": f"{SECRET}: late"
    }


def page(name: str) -> bytes | None:
    """A page that has one object, of which another replica decides about one more."""
    if name == "shop/theirs":
        raise HeldByAnotherReplica("shop/theirs is held by replica b")
    return b"{}" if name == "shop/web" else None


@pytest.mark.parametrize(
    ("path", "query", "want"),
    [
        pytest.param("/explain", b"name=shop/web", (200, "{}"), id="known"),
        pytest.param("/explain", b"name=shop/web&name=shop/no", (200, "{}"), id="the first of two names"),
        pytest.param("/explain", b"name=shop/no", (404, "nothing is known about 'shop/no'\n"), id="unknown"),
        pytest.param("/explain", b"", (404, "nothing is known about ''\n"), id="no name"),
        pytest.param(
            "/explain",
            b"name=shop/theirs",
            (421, "shop/theirs is held by replica b\n"),
            id="another replica decides about it",
        ),
        pytest.param("/nothing", b"", (404, "nothing is served at /nothing\n"), id="no page"),
    ],
)
def test_a_page_answers_for_the_object_that_is_named(path, query, want):
    app = HealthApp([], CollectorRegistry(), pages={"/explain": page})
    assert ask(app, path, query=query) == want
