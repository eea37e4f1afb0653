"""Load recorded from a real Prometheus and played back; every way to ask wrongly is told in one line."""

import json

import pytest

from tools.peers import cluster
from tools.peers.prometheus import NoPrometheusError, RealPrometheus
from trimtab.cli import answer

pytestmark = pytest.mark.real

HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 20
  metrics:
    - {type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}}
"""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    try:
        running = RealPrometheus(tmp_path_factory.mktemp("prometheus"), cluster.free_port(), {})
    except NoPrometheusError as error:
        pytest.skip(str(error))
    with running:
        yield running.url


def test_recorded_load_is_played_back(prometheus, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.yaml").write_text(HPA)
    since = ["--since", "1d", "--step", "5m"]
    assert (
        answer(["trace", "--prometheus", prometheus, "--query", "cpu=vector(3)", *since, "-o", "load.csv"])
        == 0
    )
    assert len((tmp_path / "load.csv").read_text().splitlines()) == 1 + 24 * 12 + 1
    assert answer(["simulate", "web.yaml", "--trace", "load.csv", "-o", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["lowest"], found["peak"]) == (6, 6)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["--query", "cpu=sum("], "reading sum(", id="a query that does not parse"),
        pytest.param(["--query", "cpu=absent_metric"], "cpu: the query found nothing", id="nothing there"),
        pytest.param(
            ["--query", 'cpu=vector(1) or label_replace(vector(2),"a","b","","")'],
            "gives 2 series where one total is needed",
            id="two series",
        ),
        pytest.param(["--query", "cpu"], "write COLUMN=QUERY", id="no query"),
        pytest.param(
            ["--query", "cpu=vector(1)", "--since", "0s"], "longer than nothing", id="no time at all"
        ),
        pytest.param(["--query", "cpu=vector(1)", "--step", "fast"], "is not a duration", id="no duration"),
    ],
)
def test_a_wrong_question_is_one_clear_line(prometheus, arguments, complaint, capsys):
    assert answer(["trace", "--prometheus", prometheus, *arguments]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1


def test_an_address_that_is_none_is_refused(capsys):
    assert answer(["trace", "--prometheus", "ftp://here", "--query", "cpu=vector(1)"]) == 2
    assert "'ftp://here' is not the address of a server" in capsys.readouterr().err


def test_a_prometheus_that_is_not_there_is_named(capsys):
    url = f"http://127.0.0.1:{cluster.free_port()}"
    assert answer(["trace", "--prometheus", url, "--query", "cpu=vector(1)", "--since", "1h"]) == 2
    assert "cannot connect to 127.0.0.1" in capsys.readouterr().err
