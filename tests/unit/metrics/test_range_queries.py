"""A long past out of Prometheus: pieces, halves, progress, bounds."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.errors import TransportError
from trimtab.cluster.transport import Response
from trimtab.metrics import range_queries
from trimtab.metrics.prometheus import PrometheusClient
from trimtab.metrics.range_queries import HistoryError, Progress, Range, read_history

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOO_MANY = {
    "status": "error",
    "errorType": "execution",
    "error": "query processing would load too many samples into memory in query execution",
}


class Past:
    """A transport to a Prometheus that knows two series; `most` points is what it gives at once."""

    def __init__(self, most=11_000, value=lambda at: f"{at % 7}"):
        self.asked: list[tuple[float, float]] = []
        self._most = most
        self._value = value
        self.error = None

    async def request(self, request):
        if self.error is not None:
            raise self.error
        form = {
            name: float(one) for name, (one,) in parse_qs(request.body.decode()).items() if name != "query"
        }
        start, end, step = form["start"], form["end"], form["step"]
        self.asked.append((start, end))
        moments = [start + number * step for number in range(int((end - start) // step) + 1)]
        if len(moments) > self._most:
            return Response(422, {}, json.dumps(TOO_MANY).encode())
        points = [[at, self._value(at)] for at in moments]
        result = [{"metric": {"pod": name}, "values": points} for name in ("b", "a")]
        body = {"status": "success", "data": {"resultType": "matrix", "result": result}}
        return Response(200, {}, json.dumps(body).encode())

    def stream(self, request):
        raise NotImplementedError

    async def close(self):
        pass


def read(past, hours, step=60.0, **options):
    client = PrometheusClient(VirtualClock(NOON), past)
    return asyncio.run(
        read_history(client, "usage", Range(NOON - timedelta(hours=hours), NOON, step), **options)
    )


def test_eight_days_come_in_pieces_that_neither_overlap_nor_leave_a_gap():
    past = Past()
    found = read(past, 8 * 24)
    assert [dict(one.labels) for one in found] == [{"pod": "a"}, {"pod": "b"}]
    moments = list(found[0].at)
    assert moments == [NOON.timestamp() - 8 * 86400 + 60 * number for number in range(8 * 1440 + 1)]
    assert list(found[0].values) == [at % 7 for at in moments]
    assert [end - start for start, end in past.asked] == [60 * 9_999, 60 * 1_520]


def test_a_piece_that_is_too_much_is_asked_for_in_halves_and_the_rest_in_that_size():
    past = Past(most=400)
    assert len(read(past, 24)[0]) == 1441
    sizes = [int((end - start) / 60) + 1 for start, end in past.asked]
    assert sizes == [1441, 720, 360, 360, 360, 360, 1]


def test_what_is_too_much_even_in_small_pieces_is_an_error_that_names_the_part():
    with pytest.raises(HistoryError, match=r"reading usage from 2025-12-31T12:00:00Z to .*too many samples"):
        read(Past(most=1), 24)


def test_a_server_that_is_gone_is_an_error_after_a_few_tries():
    past = Past()
    past.error = TransportError("connection refused")
    with pytest.raises(HistoryError, match="connection refused"):
        read(past, 1)


def test_progress_is_told_after_every_piece(monkeypatch):
    monkeypatch.setattr(range_queries, "MOST_STEPS", 31)
    heard: list[Progress] = []
    read(Past(), 1, on_progress=heard.append)
    assert heard == [Progress(31 / 61, 2, 62), Progress(1.0, 2, 122)]


def test_what_is_no_number_is_a_gap_and_not_a_zero():
    found = read(Past(value=lambda at: "NaN" if at % 120 else "+Inf" if at % 240 else "2"), 1)
    assert set(found[0].values) == {2.0}
    assert len(found[0]) == 16


def test_too_many_samples_are_refused_with_what_to_do():
    with pytest.raises(HistoryError, match=r"more than 100 samples .* ask for fewer series"):
        read(Past(), 1, most_samples=100)


def test_an_empty_range_is_refused():
    with pytest.raises(ValueError, match="is empty"):
        Range(NOON, NOON - timedelta(seconds=1), 15.0)
