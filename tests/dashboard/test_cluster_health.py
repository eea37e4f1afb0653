"""The sentences about what cannot be read."""

import pytest

from trimtab.clock import SystemClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.transport import Response
from trimtab.dashboard.sources.cluster_health import ClusterConnection, ReadProblems


class Answers:
    """A transport with one answer to everything."""

    def __init__(self, answer):
        self.answer = answer

    async def request(self, request):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, Response) else Response(self.answer, {}, b"{}")

    def stream(self, request):
        raise NotImplementedError(f"{request}: a probe opens no watch")

    async def close(self):
        pass


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(200, "", id="it answers"),
        pytest.param(403, "", id="a refusal is an answer"),
        pytest.param(401, "does not accept this program's credentials (401): log in again", id="not let in"),
        pytest.param(500, "cannot be reached: its API server answers 500.", id="it fails"),
        pytest.param(
            Response(503, {}, b'{"kind": "Status", "status": "Failure", "code": 503}'),
            "cannot be reached: its API server answers 503.",
            id="it is not ready",
        ),
        pytest.param(
            Response(502, {"content-type": "text/html"}, b"<html>"),
            "its address answers 502 with an HTML page: a proxy or load balancer probably answers",
            id="a proxy in front of nothing",
        ),
        pytest.param(
            Response(200, {"content-type": "text/html"}, b"<html>"),
            "its address answers 200 with an HTML page: probably a login page",
            id="a login page",
        ),
        pytest.param(
            errors.Unreachable("GET /version: cannot connect to 10.1.2.3:6443: Connection refused"),
            "cannot be reached: cannot connect to 10.1.2.3:6443: Connection refused.",
            id="nobody listens",
        ),
        pytest.param(
            errors.Unreachable("GET /version: https://10.1.2.3 sent no answer in time; is it reachable?"),
            "cannot be reached: https://10.1.2.3 sent no answer in time; is it reachable?",
            id="nobody answers",
        ),
        pytest.param(
            errors.ConfigError("the credential plugin failed"),
            "cannot be reached: the credential plugin failed.",
            id="no credentials",
        ),
    ],
)
async def test_a_probe_says_what_is_wrong_and_keeps_the_time_of_the_last_answer(answer, problem):
    transport = Answers(200)
    connection = ClusterConnection(SystemClock(), Client(SystemClock(), transport))
    await connection.probe()
    first = connection.answered_at
    assert first > 0
    transport.answer = answer
    await connection.probe()
    assert problem in connection.problem
    assert bool(connection.problem) is bool(problem)
    assert "?." not in connection.problem
    assert (connection.answered_at == first) is bool(problem)
    transport.answer = 200
    await connection.probe()
    assert connection.problem == ""


async def test_each_problem_is_reported_once_and_so_is_its_end():
    """The terminal of `trimtab dashboard` showed nothing of a server that does not answer."""
    transport = Answers(200)
    reported: list[str] = []
    connection = ClusterConnection(SystemClock(), Client(SystemClock(), transport), reported.append)
    silent = errors.TransportError("GET /version: https://10.1.2.3 sent no answer in time; is it reachable?")
    for transport.answer in (200, silent, silent, 401, 200, 200):
        await connection.probe()
    assert [problem.partition(":")[0] for problem in reported] == [
        "The cluster cannot be reached",
        "The cluster does not accept this program's credentials (401)",
        "",
    ]


@pytest.mark.parametrize(
    ("texts", "connection", "want"),
    [
        pytest.param({}, "", [], id="all is read"),
        pytest.param({"pods": "boom"}, "", [("pods: boom", True, 0)], id="one problem is its own sentence"),
        pytest.param(
            {"pods": "boom", "nodes": "bang"},
            "",
            [("2 parts of the cluster cannot be read. Autoscalers may be missing or old.", True, 2)],
            id="several are counted",
        ),
        pytest.param(
            {"pods": "the first list is not complete", "caches": "the first lists are not complete"},
            "",
            [("Reading the cluster: caches, pods are not complete yet.", False, 0)],
            id="a start is no problem",
        ),
        pytest.param(
            {"pods": "boom", "caches": "the first lists are not complete"},
            "The cluster cannot be reached.",
            [("The cluster cannot be reached.", True, 1)],
            id="a lost cluster explains all others",
        ),
    ],
)
def test_problems_are_one_sentence(texts, connection, want):
    notices = ReadProblems(texts).notices(connection)
    assert [(notice.text, notice.is_problem, len(notice.details)) for notice in notices] == want
