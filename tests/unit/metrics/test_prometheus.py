"""Asking a Prometheus: forms, histories, and what counts as no answer."""

import asyncio
import json
from datetime import UTC, datetime
from urllib.parse import parse_qs

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.errors import TransportError
from trimtab.cluster.transport import Request, Response
from trimtab.metrics.prometheus import (
    Instant,
    PrometheusClient,
    PrometheusError,
    PrometheusSeries,
    QueryRefusedError,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Answering:
    """A transport that gives one answer and keeps the requests."""

    def __init__(self, status=200, body=None, error=None):
        self.requests: list[Request] = []
        self._answer = Response(status, {}, body if isinstance(body, bytes) else json.dumps(body).encode())
        self._error = error

    async def request(self, request):
        self.requests.append(request)
        if self._error:
            raise self._error
        return self._answer

    def stream(self, request):
        raise NotImplementedError

    async def close(self):
        pass


def client_of(transport):
    return PrometheusClient(VirtualClock(NOON), transport)


def success(kind, result):
    return {"status": "success", "data": {"resultType": kind, "result": result}}


def form(transport):
    request = transport.requests[-1]
    return request.path, {name: values[0] for name, values in parse_qs(request.body.decode()).items()}


def test_an_instant_query_is_a_form_with_its_lookback():
    transport = Answering(body=success("vector", [{"metric": {"pod": "a"}, "value": [1.5, "NaN"]}]))
    assert asyncio.run(client_of(transport).instant("up{a='+'}", lookback=120)) == [
        Instant({"pod": "a"}, 1.5, "NaN")
    ]
    assert form(transport) == (
        "/api/v1/query",
        {"query": "up{a='+'}", "timeout": "10s", "lookback_delta": "120s"},
    )


def test_a_history_has_start_end_and_step():
    transport = Answering(body=success("matrix", [{"metric": {}, "values": [[1, "2"], [61, "3"]]}]))
    traces = asyncio.run(client_of(transport).history("up", NOON, NOON.replace(hour=13), 60))
    assert traces == [PrometheusSeries({}, ((1.0, "2"), (61.0, "3")))]
    path, sent = form(transport)
    assert path == "/api/v1/query_range"
    assert (sent["start"], sent["end"], sent["step"]) == ("1767268800.000", "1767272400.000", "60")


def test_names_are_asked_for_the_last_seconds_only():
    transport = Answering(body={"status": "success", "data": ["a", "b"]})
    assert asyncio.run(client_of(transport).names('{job="x"}', 600)) == ["a", "b"]
    assert dict(transport.requests[0].query)["start"] == "1767268200.000"


@pytest.mark.parametrize("kind", ["bad_data", "execution"])
def test_a_wrong_question_is_told_from_a_server_that_is_away(kind):
    body = {"status": "error", "errorType": kind, "error": "parse error"}
    with pytest.raises(QueryRefusedError, match="parse error"):
        asyncio.run(client_of(Answering(400, body)).instant("x"))


@pytest.mark.parametrize(
    "transport",
    [
        pytest.param(Answering(error=TransportError("refused")), id="no connection"),
        pytest.param(Answering(500, b"<html>"), id="a proxy's page"),
        pytest.param(Answering(302, b""), id="a redirect"),
        pytest.param(
            Answering(422, {"status": "error", "errorType": "timeout", "error": "slow"}), id="a slow query"
        ),
        pytest.param(Answering(200, b"{"), id="half an answer"),
        pytest.param(Answering(200, {"data": {}}), id="no status"),
        pytest.param(Answering(200, success("vector", [{"value": "x"}])), id="a value of the wrong shape"),
    ],
)
def test_anything_else_is_no_answer(transport):
    with pytest.raises(PrometheusError) as caught:
        asyncio.run(client_of(transport).instant("x"))
    assert not isinstance(caught.value, QueryRefusedError)


@pytest.mark.parametrize("kind", ["scalar", "string", "matrix"])
def test_a_query_of_another_kind_is_a_wrong_question(kind):
    with pytest.raises(QueryRefusedError, match=f"gives a {kind} where a vector is needed"):
        asyncio.run(client_of(Answering(body=success(kind, [1, "2"]))).instant("x"))
