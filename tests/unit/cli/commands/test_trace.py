"""`trimtab trace` as people type it, against a Prometheus that answers anything."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.unit.cli.api_server import answering
from trimtab.cli import answer
from trimtab.cluster.transport import Deadlines
from trimtab.library.simulator import read_trace


class Prometheus(BaseHTTPRequestHandler):
    """Answers every range query with one series of two samples at the beginning of what is asked."""

    def do_GET(self) -> None:
        self._send(0.0, 1.0, "")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        asked = dict(part.split("=") for part in body.split("&"))
        self._send(float(asked["start"]), float(asked["step"]), asked["query"])

    def _send(self, start: float, step: float, asked: str) -> None:
        values = [[start, "1"], [start + step, "2"]]
        series: list[dict[str, object]] = [{"metric": {}, "values": values}]
        if "by_pod" in asked:
            names = {"container": "db", "label_role": "leader"}
            series = [{"metric": {"pod": pod, **names}, "values": values} for pod in ("db-0", "db-1")]
        found = {"resultType": "matrix", "result": series}
        page = json.dumps({"status": "success", "data": found}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def prometheus() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Prometheus) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("query", "column"),
    [
        pytest.param("cpu=sum(x)", "cpu", id="a plain column"),
        pytest.param("queue{queue=mail}=sum(x{queue='mail'})", "queue{queue=mail}", id="one label"),
        pytest.param("queue{a=1,b=2}=sum(x)", "queue{a=1,b=2}", id="two labels"),
    ],
)
def test_a_column_may_carry_labels(prometheus, query, column, capsys):
    """The name of the column ended at the first equals sign, which is inside of the braces."""
    asked = ["--query", query, "--since", "10m", "--step", "5m"]
    assert answer(["trace", "--prometheus", prometheus, *asked]) == 0
    trace = read_trace(capsys.readouterr().out.splitlines(), "load.csv")
    assert list(trace.columns) == [column]


def test_each_pod_has_its_columns_and_its_role(prometheus, capsys):
    asked = ["--query", "POD/CONTAINER/memory=by_pod", "--query", "POD/label/role=by_pod"]
    assert answer(["trace", "--prometheus", prometheus, *asked, "--since", "10m", "--step", "5m"]) == 0
    trace = read_trace(capsys.readouterr().out.splitlines(), "load.csv")
    assert list(trace.columns) == ["db-0/db/memory", "db-1/db/memory"]
    assert trace.labels["db-1/label/role"] == ["leader", "leader", ""]


def test_a_query_that_names_no_pods_is_refused(prometheus, capsys):
    assert answer(["trace", "--prometheus", prometheus, "--query", "POD/CONTAINER/cpu=sum(x)"]) == 2
    assert "wrap it in sum by (pod, container)" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_wrong_usage(prometheus, tmp_path, monkeypatch, capsys):
    """Exit code 1 says that something was found."""
    monkeypatch.chdir(tmp_path)
    asked = ["--query", "cpu=sum(x)", "--since", "10m", "--step", "5m", "-o", "none/load.csv"]
    assert answer(["trace", "--prometheus", prometheus, *asked]) == 2
    err = capsys.readouterr().err
    assert "none/load.csv" in err
    assert err.count("\n") == 1


def test_a_server_that_never_answers_ends_it_in_one_line(monkeypatch, capsys):
    """It asked for ever shorter parts of the history, and waited a minute for each."""
    monkeypatch.setattr("trimtab.metrics.prometheus.REACH", Deadlines(5.0, 0.2, 0.2))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert answer(["trace", "--prometheus", url, "--query", "cpu=sum(x)"]) == 2
    err = capsys.readouterr().err
    assert "no answer in time" in err
    assert err.count("\n") == 1


HINT = "(start it, or correct the address and port of --prometheus)\n"


def test_a_wrong_port_is_one_line_with_the_address_and_a_hint(capsys):
    """It quoted the request, and gave no hint."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and never listens
        where = f"127.0.0.1:{bound.getsockname()[1]}"
        assert answer(["trace", "--prometheus", f"http://{where}", "--query", "cpu=sum(x)"]) == 2
    why = f"cannot connect to {where}: Connection refused"
    assert capsys.readouterr().err == f"trimtab: no Prometheus answers at http://{where}: {why} {HINT}"


@pytest.mark.parametrize("code", [200, 302, 404, 502])
def test_a_page_of_another_program_is_one_line_with_a_hint(code, capsys):
    """It quoted the page."""
    with answering(code, "text/html", "<html>Sign in</html>") as port:
        assert answer(["trace", "--prometheus", f"http://127.0.0.1:{port}", "--query", "cpu=sum(x)"]) == 2
    why = f"another program answers {code}"
    assert (
        capsys.readouterr().err == f"trimtab: no Prometheus answers at http://127.0.0.1:{port}: {why} {HINT}"
    )
