"""What the flags of --storage mean: where history is read from, and which values are refused with their flag."""

import asyncio
import socket
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from trimtab.clock import SystemClock, VirtualClock
from trimtab.cluster.config.connection import Connection, StaticCredentials
from trimtab.cluster.errors import TransportError
from trimtab.cluster.transport import Request
from trimtab.metrics.prometheus import PrometheusError
from trimtab.metrics.usage_history import SlowHistoryError
from trimtab.operator.settings.vertical import HistorySettings
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.history_loader import (
    MAX_PARALLEL,
    CountedTransport,
    HistoryFailure,
    HistoryLoader,
    make_history,
)
from trimtab.serving.server import served

REQUESTS = "vpa_recommender_prometheus_client_api_requests_count"
SECONDS = "vpa_recommender_prometheus_client_api_requests_duration_seconds"
PROMETHEUS: dict[str, Any] = {"storage": "prometheus", "prometheus_address": "http://127.0.0.1:9"}


def made(**changed: Any) -> HistoryLoader | None:
    settings = replace(HistorySettings(), **changed)
    return make_history(VirtualClock(), settings, RecommenderMetrics(CollectorRegistry()))


def test_checkpoints_need_no_loader_and_prometheus_does() -> None:
    assert made(storage="checkpoint", history_length="soon") is None
    assert isinstance(made(**PROMETHEUS), HistoryLoader)
    assert isinstance(made(**PROMETHEUS, history_length="1s", history_resolution="1s"), HistoryLoader)


@pytest.mark.parametrize("flag", ["history_length", "history_resolution"])
@pytest.mark.parametrize("text", ["soon", "", "0s", "-1h", "999ms"])
def test_a_length_that_is_none_is_refused_with_its_flag(flag: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"--{flag.replace('_', '-')}"):
        made(**PROMETHEUS, **{flag: text})


def test_a_storage_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="--storage=disk is not known; use checkpoint or prometheus"):
        made(storage="disk")


@pytest.mark.parametrize("status", [200, 503])
def test_requests_to_prometheus_are_counted_with_their_code_and_time(status: int) -> None:
    registry, clock = CollectorRegistry(), SystemClock()

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def main() -> None:
        async with served(app, "127.0.0.1", 0) as port:
            connection = Connection(f"http://127.0.0.1:{port}", StaticCredentials())
            transport = CountedTransport(clock, connection, RecommenderMetrics(registry))
            assert (await transport.request(Request("POST", "/api/v1/query"))).status == status
            await transport.close()

    began = clock.monotonic()
    asyncio.run(main())
    labels = {"code": str(status), "method": "post"}
    assert registry.get_sample_value(REQUESTS, labels) == 1.0
    assert registry.get_sample_value(f"{SECONDS}_count", labels) == 1.0
    took = registry.get_sample_value(f"{SECONDS}_sum", labels)
    assert took is not None
    assert 0.0 < took <= clock.monotonic() - began


def test_a_request_without_an_answer_is_counted_with_code_0() -> None:
    registry = CollectorRegistry()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        connection = Connection(f"http://127.0.0.1:{taken.getsockname()[1]}", StaticCredentials())

        async def main() -> None:
            transport = CountedTransport(SystemClock(), connection, RecommenderMetrics(registry))
            with pytest.raises(TransportError):
                await transport.request(Request("GET", "/"))
            await transport.close()

        asyncio.run(main())
    labels = {"code": "0", "method": "get"}
    assert registry.get_sample_value(REQUESTS, labels) == 1.0
    assert registry.get_sample_value(f"{SECONDS}_count", labels) == 1.0


class Reader:
    """A Prometheus whose reads take some seconds, and fail as they are told."""

    def __init__(self, clock: VirtualClock, *failures: Exception, seconds: float = 0.0) -> None:
        self.clock, self.seconds = clock, seconds
        self.failures = list(failures)
        self.began: list[float] = []
        self.is_closed = False
        self.client: Any = self

    async def read(self, namespace: str, _now: Any, _keys: Any) -> str:
        self.began.append(self.clock.monotonic())
        await self.clock.sleep(self.seconds)
        if self.failures:
            raise self.failures.pop(0)
        return namespace

    async def close(self) -> None:
        self.is_closed = True


DOWN = PrometheusError("down")


@pytest.mark.parametrize(
    ("failures", "began", "result"),
    [
        pytest.param([], [0.0], "shop", id="at once"),
        pytest.param([DOWN], [0.0, 10.0], "shop", id="after ten seconds"),
        pytest.param([DOWN, DOWN], [0.0, 10.0, 20.0], "shop", id="at the third attempt"),
        pytest.param([DOWN] * 3, [0.0, 10.0, 20.0], HistoryFailure("down"), id="three attempts and no more"),
        pytest.param([SlowHistoryError("slow")], [0.0], HistoryFailure("slow"), id="no second slow attempt"),
    ],
)
def test_a_prometheus_that_just_starts_is_asked_again(failures, began, result):
    clock = VirtualClock()
    reader: Any = Reader(clock, *failures)

    async def main() -> Any:
        loader = HistoryLoader(clock, reader)
        loader.want("shop", ())
        assert loader.take("shop") is None
        await loader.finished(["shop", "other"])
        found = loader.take("shop")
        assert loader.take("shop") is None, "only once"
        outcome = "failed" if isinstance(found, HistoryFailure) else "read"
        assert loader.counts == {"reading": 0, "read": 0, "failed": 0} | {outcome: 1}
        return found

    assert clock.run(main()) == result
    assert reader.began == began


def test_a_few_namespaces_are_read_at_the_same_time_and_each_once():
    clock = VirtualClock()
    reader: Any = Reader(clock, seconds=5.0)
    namespaces = [f"n{number}" for number in range(MAX_PARALLEL + 1)]

    async def main() -> None:
        loader = HistoryLoader(clock, reader)
        for namespace in [*namespaces, *namespaces]:
            loader.want(namespace, ())
        assert loader.counts["reading"] == len(namespaces)
        await loader.finished(namespaces)
        assert [str(loader.take(namespace)) for namespace in namespaces] == namespaces
        await loader.close()

    clock.run(main())
    assert reader.began == [0.0] * MAX_PARALLEL + [5.0]
    assert reader.is_closed


@pytest.mark.parametrize(
    ("seconds", "reported"),
    [
        pytest.param(3.0, (1, 17, 20), id="reads of 3 s: the fifth round is 12 s after the first"),
        pytest.param(5.0, (1, 9, 17, 20), id="reads of 5 s: every second round is 10 s after the last"),
    ],
)
def test_progress_is_logged_now_and_then_and_at_the_end(caplog, seconds, reported):
    caplog.set_level("INFO")
    clock = VirtualClock()
    reader: Any = Reader(clock, seconds=seconds)
    namespaces = [f"n{number}" for number in range(5 * MAX_PARALLEL)]

    async def main() -> None:
        loader = HistoryLoader(clock, reader)
        for namespace in namespaces:
            loader.want(namespace, ())
        await loader.finished(namespaces)

    clock.run(main())
    logged = [record.getMessage() for record in caplog.records]
    assert [text.partition(": ")[2] for text in logged] == [
        f"{read} of 20 namespaces read, 0 failed" for read in reported
    ]
