"""Which failure of Prometheus an answer is, because callers treat each of them otherwise."""

import asyncio

import pytest

from tests.unit.metrics.test_prometheus import Answering, client_of
from trimtab.metrics.prometheus import PrometheusError, QueryFailedOnSeriesError, QueryRefusedError


def failure(status, kind, text="no"):
    body = {"status": "error", "errorType": kind, "error": text}
    with pytest.raises(PrometheusError) as caught:
        asyncio.run(client_of(Answering(status, body)).instant("x"))
    return caught.value


@pytest.mark.parametrize(
    ("status", "kind", "want"),
    [
        (400, "bad_data", QueryRefusedError),
        (422, "bad_data", QueryRefusedError),
        (400, "execution", QueryFailedOnSeriesError),
        (422, "execution", QueryFailedOnSeriesError),
        (400, "timeout", PrometheusError),
        (422, "canceled", PrometheusError),
        (500, "bad_data", PrometheusError),
        (503, "execution", PrometheusError),
        (500, "internal", PrometheusError),
    ],
)
def test_status_and_type_together_say_whether_the_query_is_wrong(status, kind, want):
    error = failure(status, kind, "too  many\nseries")
    assert type(error) is want
    assert str(error) == f"Prometheus answered {status}: too many series"


@pytest.mark.parametrize(
    ("body", "words"),
    [(b"", "no reason given"), (b" <html>\n bad </html> ", "<html> bad </html>"), (b"x" * 300, "x" * 200)],
)
def test_an_answer_without_an_error_has_its_own_words(body, words):
    with pytest.raises(PrometheusError) as caught:
        asyncio.run(client_of(Answering(502, body)).instant("x"))
    assert str(caught.value) == f"Prometheus answered 502: {words}"
