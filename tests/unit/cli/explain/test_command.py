"""`trimtab explain` of an operator's decision, as it was made and as it would be made by other rules."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from tests.unit.decide.horizontal.builders import T, cpu, hpa, observe, pod, samples
from trimtab.cli import answer, operator_port
from trimtab.decide.horizontal import explain
from trimtab.decide.horizontal.records.record import (
    WELL,
    Record,
    decide_and_complete,
    dumps,
)
from trimtab.model.json import wire

HPAS = Path(__file__, "../../../../data/records/hpas.jsonl").resolve()
OURS = decide_and_complete(
    observe(hpa(cpu(50)), 1, samples({"web-1": 50, "scrape-1": 50}), pods=(pod("web-1"), pod("scrape-1"))),
    T,
    WELL,
)
"""A pod that only shares the labels is told by our rules, and not by upstream's."""


OLD = next(line for line in HPAS.read_bytes().splitlines() if b'"countedPods":2,' in line)


class Operator(BaseHTTPRequestHandler):
    """What the port of an operator answers about one HPA."""

    records = dumps(OURS)

    def do_GET(self) -> None:
        story = explain(OURS)
        told = {"about": "shop/web", "text": str(story), "explanation": wire.to_builtins(story)}
        page = self.records + b"\n" if self.path.startswith("/records?") else wire.encode(told)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def operator() -> Iterator[str]:
    with running(Operator) as address:
        yield address


@pytest.fixture
def ask(operator, capsys):
    """Return the exit code, what is printed, and what is said on standard error."""

    def asking(*options: str) -> tuple[int, str, str]:
        code = answer(["explain", "hpa/web", "-n", "shop", "--operator", operator, *options])
        return code, *capsys.readouterr()

    return asking


def test_the_operators_decision_is_told_as_it_was_made(ask):
    code, told, _ = ask()
    assert code == 0
    assert "pods: 2 counted by LabelSelector, 1 more than the target has" in told


@pytest.mark.parametrize(
    "words",
    [
        ["hpa/web"],
        ["hpa", "web"],
        ["web"],
        ["thpa/web"],
        ["thpa", "web"],
        ["horizontalpodautoscalers", "web"],
    ],
    ids=" ".join,
)
def test_an_hpa_is_named_as_kubectl_takes_it(words, operator, capsys):
    assert answer(["explain", *words, "-n", "shop", "--operator", operator, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["about"] == "shop/web"


@pytest.mark.parametrize(
    "words",
    [["hpa", "web", "api"], ["svc/web"], ["svc", "web"], ["hpa/"], ["hpa/a", "hpa/b"], ["/"]],
    ids=" ".join,
)
def test_what_cannot_be_explained_is_said_in_one_line(words, capsys):
    assert answer(["explain", *words]) == 2
    said = capsys.readouterr().err
    assert "cannot be explained (say hpa/NAME, vpa/NAME or pod/NAME)" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("words", [["hpa/web"], ["vpa/web", "-o", "record"]])
def test_plugins_do_not_go_with_an_operator(words, capsys):
    """They were ignored without a word."""
    options = ["--operator", "http://127.0.0.1:8080", "--plugins", "example.com/Mine"]
    assert answer(["explain", *words, *options]) != 0
    said = capsys.readouterr().err
    assert "--plugins has no effect with --operator" in said
    assert "trimtab replay FILE --plugins example.com/Mine" in said


def test_with_compat_the_operators_decision_is_made_again_as_upstream_would(ask):
    """The option was ignored, and the operator's own decision shown as upstream's."""
    code, told, _ = ask("--compat", "kubernetes-1.36")
    assert code == 0
    assert "pods: 2 counted by LabelSelector\n" in told


def test_with_gates_it_is_made_again_with_these(ask):
    _, record, _ = ask("--feature-gates", "HPAScaleToZero=true", "-o", "record")
    seen = wire.decode(record, Record).observation
    assert seen.gates.hpa_scale_to_zero
    assert seen.rules == OURS.observation.rules


def test_the_record_of_an_older_operator_is_read(ask, monkeypatch):
    """It has format 1."""
    monkeypatch.setattr(Operator, "records", OLD)
    code, told, _ = ask("--compat", "kubernetes-1.36")
    assert code == 0
    assert "pods: 2 counted by LabelSelector" in told


@pytest.mark.parametrize("option", ["--compat", "--feature-gates"])
def test_rules_that_do_not_exist_are_refused_in_one_line(ask, option):
    code, told, why = ask(option, "nonsense")
    assert (code, told) == (2, "")
    assert "nonsense" in why
    assert len(why.splitlines()) == 1


@pytest.mark.parametrize("shape", ["json", "yaml"])
def test_data_holds_the_values_and_not_only_their_names(ask, shape):
    """As YAML it was three keys without a value."""
    code, told, _ = ask("-o", shape)
    story = explain(OURS)
    assert code == 0
    assert yaml.safe_load(told) == {
        "about": "shop/web",
        "text": str(story),
        "explanation": json.loads(wire.encode(story)),
    }


class Behind(BaseHTTPRequestHandler):
    """Notes every request that a redirect leads here."""

    seen: list[str | None] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization"))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"about": "shop/web", "text": "stolen"}')

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def running(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_the_token_stays_with_the_operator(code, monkeypatch, capsys):
    """The library sent the Authorization header along to any other host."""
    monkeypatch.setenv("TRIMTAB_TOKEN", "s3cret")
    Behind.seen.clear()
    given: list[str | None] = []
    with running(Behind) as elsewhere:

        class Redirecting(Behind):
            def do_GET(self) -> None:
                given.append(self.headers.get("Authorization"))
                self.send_response(code)
                self.send_header("Location", elsewhere + self.path)
                self.end_headers()

        with running(Redirecting) as operator:
            assert answer(["explain", "hpa/web", "-n", "shop", "--operator", operator]) == 1
    assert given == ["Bearer s3cret"]
    assert Behind.seen == []
    said = capsys.readouterr().err
    assert f"redirects to {elsewhere}/explain" in said
    assert len(said.splitlines()) == 1


def test_a_missing_token_is_asked_for_by_its_variable(monkeypatch, capsys):
    class Closed(Behind):
        def do_GET(self) -> None:
            self.send_response(401)
            self.end_headers()
            self.wfile.write(b"a token is needed: Authorization: Bearer TOKEN")

    monkeypatch.delenv("TRIMTAB_TOKEN", raising=False)
    with running(Closed) as operator:
        assert answer(["explain", "hpa/web", "-n", "shop", "--operator", operator]) == 1
    assert "set TRIMTAB_TOKEN" in capsys.readouterr().err


class Guarded(Operator):
    """Answers to the token `hunter2` only."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") == "Bearer hunter2":
            super().do_GET()
            return
        self.send_response(401)
        self.end_headers()
        self.wfile.write(b"a token is needed: Authorization: Bearer TOKEN")


@pytest.mark.parametrize("token", ["hunter2\r", "hunter2\n", " hunter2\r\n"])
def test_white_space_around_the_token_is_removed(token, monkeypatch, capsys):
    """The token was printed in the message of a defect."""
    monkeypatch.setenv("TRIMTAB_TOKEN", token)
    with running(Guarded) as operator:
        assert answer(["explain", "hpa/web", "-n", "shop", "--operator", operator]) == 0
    assert "hunter2" not in capsys.readouterr().err


@pytest.mark.parametrize("token", ["hunter2\rx", "hunter2€", "hunter2\x7f", "hunter\x002"])
def test_an_invalid_token_is_named_by_its_variable_and_not_printed(token, monkeypatch, capsys):
    monkeypatch.setattr("os.environ", {**os.environ, "TRIMTAB_TOKEN": token})
    with running(Guarded) as operator:
        assert answer(["explain", "hpa/web", "-n", "shop", "--operator", operator]) == 2
    said = capsys.readouterr().err
    assert "TRIMTAB_TOKEN" in said
    assert "hunter" not in said
    assert len(said.splitlines()) == 1


def test_a_wrong_token_is_said_to_be_wrong(monkeypatch, capsys):
    """The message asked for a token, as if there was none."""
    monkeypatch.setenv("TRIMTAB_TOKEN", "hunter3")
    with running(Guarded) as operator:
        assert answer(["explain", "hpa/web", "-n", "shop", "--operator", operator]) == 1
    said = capsys.readouterr().err
    assert "the token in TRIMTAB_TOKEN is not accepted" in said
    assert "hunter3" not in said


@pytest.mark.parametrize("options", [(), ("-o", "record"), ("-o", "json"), ("--compat", "kubernetes-1.36")])
@pytest.mark.parametrize("page", [b'{"status": "ok"}', b"[1]", b'"ok"', b"<html>", b"\xff", b'{"about": 1}'])
def test_another_program_is_not_taken_for_an_operator(page, options, capsys):
    """It was a defect: KeyError: 'about'."""

    class Another(Operator):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page)

    with running(Another) as operator:
        code = answer(["explain", "hpa/web", "-n", "shop", "--operator", operator, *options])
    assert code == 1
    assert "is not a Trimtab operator" in capsys.readouterr().err


@pytest.mark.parametrize(
    "address",
    [
        "http://eve:pa55@127.0.0.1:1",
        "http://pa55@127.0.0.1:1",
        "http://127.0.0.1:1/?token=pa55",
        "http://127.0.0.1:1/#pa55",
        "http://127.0.0.1:1?",
        "eve:pa55@127.0.0.1:1",
        "ftp://eve:pa55@127.0.0.1:1",
        "http://127.0.0.1:pa55",
        "http://[pa55",
        "http://127.0.0.1:1/ pa55",
        "http://",
    ],
)
def test_an_address_with_more_than_a_place_is_refused_without_its_secrets(address, capsys):
    assert answer(["explain", "hpa/web", "-n", "shop", "--operator", address]) == 2
    said = capsys.readouterr().err
    assert "--operator" in said
    assert "does not answer" not in said
    assert "pa55" not in said


@pytest.mark.parametrize("what", ["hpa/web", "vpa/web"])
def test_the_request_timeout_holds_for_the_operator_too(what, capsys, monkeypatch):
    """`--request-timeout` was for the cluster only, and the operator had 10 s."""
    waited = []
    opened = operator_port._OPENER.open

    def open_and_note(asked, timeout):
        waited.append(timeout)
        return opened(asked, timeout=timeout)

    monkeypatch.setattr(operator_port._OPENER, "open", open_and_note)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = ["--operator", url, "--request-timeout", "100ms", "-o", "record"]
        assert answer(["explain", what, *options]) == 2
    assert f"the operator at {url} does not answer" in capsys.readouterr().err
    assert waited == [0.1]


class Overview(BaseHTTPRequestHandler):
    """An operator with two HPAs, which has decided about none that is asked for."""

    def do_GET(self) -> None:
        rows = [{"namespace": "shop", "name": "web-front"}, {"namespace": "mail", "name": "mailer"}]
        is_overview = self.path.startswith("/autoscalers")
        page = json.dumps({"autoscalers": rows} if is_overview else {}).encode()
        self.send_response(200 if is_overview else 404)
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("web-frnt", "did you mean web-front?"),
        ("mailer", "there is one in mail: add -n mail"),
        ("other", "look with: kubectl get thpa,hpa -A"),
    ],
)
def test_a_missing_hpa_comes_with_the_one_that_was_probably_meant(name, hint, capsys):
    with running(Overview) as url:
        assert answer(["explain", f"hpa/{name}", "-n", "shop", "--operator", url]) == 1
    assert capsys.readouterr().err == f"trimtab: there is no HPA '{name}' in namespace shop ({hint})\n"
