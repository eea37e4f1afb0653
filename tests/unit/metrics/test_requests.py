"""What each reader of metrics sends: limits of time and size, and how the answer arrives."""

import asyncio
import gc
import json

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.transport import Deadlines, Request, Response
from trimtab.metrics.prometheus import PrometheusClient
from trimtab.metrics.queries import ExternalMetric, MetricsError, ObjectMetric, PodsMetric, PodUsage
from trimtab.metrics.reader import MetricsReader

MIB = 1024 * 1024


class Recording:
    """A transport that keeps requests and gives one answer, in chunks where that is asked for."""

    def __init__(self, body, status=200):
        self.requests: list[Request] = []
        self.body = json.dumps(body).encode()
        self.status = status
        self.is_closed = False

    async def request(self, request):
        self.requests.append(request)
        if request.into is None or self.status != 200:
            return Response(self.status, {}, self.body)
        request.into(self.body[:10])
        request.into(self.body[10:])
        return Response(self.status, {}, b"")

    def stream(self, request):
        raise NotImplementedError

    async def close(self):
        self.is_closed = True


def read(transport, ask, **options):
    clock = VirtualClock()

    async def main():
        reader = MetricsReader(clock, Client(clock, transport), **options)
        try:
            return await ask(reader)
        finally:
            await reader.close()

    return clock.run(main())


USAGE = {"items": [{"metadata": {"namespace": "shop", "name": name}} for name in ("web", "db")]}


@pytest.mark.parametrize(
    ("query", "is_decoded_while_it_arrives"),
    [
        pytest.param(PodUsage(), True, id="all namespaces"),
        pytest.param(PodUsage("shop"), False, id="one namespace"),
    ],
)
def test_only_the_list_of_all_pods_is_decoded_while_it_arrives(query, is_decoded_while_it_arrives):
    transport = Recording(USAGE)
    answer = read(transport, lambda reader: reader.pod_usage(query))
    assert [item.metadata.name for item in answer.items] == ["web", "db"]
    assert (transport.requests[-1].into is not None) == is_decoded_while_it_arrives


def test_a_metrics_answer_has_at_most_16_mib_and_10_seconds_by_default():
    transport = Recording(USAGE)
    read(transport, lambda reader: reader.pod_usage(PodUsage("shop")))
    request = transport.requests[-1]
    assert request.max_body == 16 * MIB
    assert request.deadlines == Deadlines(5.0, 10.0, 10.0, 10.0)


def test_the_limits_of_a_metrics_answer_can_be_set():
    transport = Recording(USAGE)
    read(transport, lambda reader: reader.pod_usage(PodUsage("shop")), deadline=3.0, max_bytes=1000)
    request = transport.requests[-1]
    assert request.max_body == 1000
    assert request.deadlines == Deadlines(3.0, 3.0, 3.0, 3.0)


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param(ExternalMetric("shop", "queue"), [], id="external, any series"),
        pytest.param(ExternalMetric("shop", "queue", "a=b"), [("labelSelector", "a=b")], id="external"),
        pytest.param(ObjectMetric("shop", "pods", "web", "hits"), [], id="object, any series"),
        pytest.param(
            ObjectMetric("shop", "pods", "web", "hits", "a=b"), [("metricLabelSelector", "a=b")], id="object"
        ),
        pytest.param(PodsMetric("shop", "hits", "app=web"), [("labelSelector", "app=web")], id="pods"),
        pytest.param(PodsMetric("shop", "hits", "", "a=b"), [("metricLabelSelector", "a=b")], id="every pod"),
        pytest.param(PodUsage("shop"), [], id="usage"),
    ],
)
def test_only_selectors_that_are_given_are_sent(query, want):
    assert query.parameters() == want


@pytest.mark.parametrize(
    ("status", "is_forbidden"), [(403, True), (404, False), (500, False)], ids=["403", "404", "500"]
)
def test_an_error_has_the_servers_words_and_whether_a_right_is_missing(status, is_forbidden):
    transport = Recording({"kind": "Status", "message": "not today", "code": status}, status)
    with pytest.raises(MetricsError) as caught:
        read(transport, lambda reader: reader.external(ExternalMetric("shop", "queue")))
    assert (str(caught.value), caught.value.is_forbidden) == ("not today", is_forbidden)


@pytest.mark.parametrize(
    ("query", "resource"),
    [
        pytest.param(PodUsage("shop"), "pods.metrics.k8s.io", id="usage of a namespace"),
        pytest.param(PodUsage(), "pods.metrics.k8s.io", id="usage of all"),
        pytest.param(ExternalMetric("shop", "queue"), "queue.external.metrics.k8s.io", id="external"),
    ],
)
def test_an_api_that_is_not_served_is_reported_in_the_words_of_upstreams_client(query, resource):
    """`404 page not found` does not say what is missing."""
    transport = Recording({}, 404)
    transport.body = b"404 page not found\n"
    with pytest.raises(MetricsError) as caught:
        read(
            transport,
            lambda reader: reader.pod_usage(query) if isinstance(query, PodUsage) else reader.external(query),
        )
    assert str(caught.value) == f"the server could not find the requested resource (get {resource})"


def test_an_unexpected_failure_after_every_asker_has_gone_is_not_reported_as_forgotten():
    """asyncio logs the traceback of a task whose error nobody has seen."""
    go = asyncio.Event()
    reported = []

    class Broken(Recording):
        async def request(self, request):
            await go.wait()
            raise RuntimeError("a defect")

    async def give_up(reader):
        asker = asyncio.ensure_future(reader.external(ExternalMetric("shop", "queue")))
        await asyncio.sleep(0.1)
        asker.cancel()
        await asyncio.gather(asker, return_exceptions=True)

    async def ask(reader):
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        await give_up(reader)
        gc.collect()  # an error of the asker would refer to the query
        go.set()
        await asyncio.sleep(0.1)
        gc.collect()

    read(Broken({}), ask)
    assert reported == []


def test_closing_ends_the_queries_in_flight():
    ended = []

    class Hanging(Recording):
        async def request(self, request):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(request.path)

    async def ask(reader):
        askers = [
            asyncio.ensure_future(reader.external(ExternalMetric("shop", name))) for name in ("one", "two")
        ]
        await asyncio.sleep(0.1)
        await reader.close()
        return await asyncio.gather(*askers, return_exceptions=True)

    results = read(Hanging({}), ask)
    assert {type(error) for error in results} == {asyncio.CancelledError}
    assert [path.rpartition("/")[2] for path in ended] == ["one", "two"]


def ask_prometheus(body, ask, **options):
    transport = Recording(body)
    client = PrometheusClient(VirtualClock(), transport, **options)

    async def main():
        await ask(client)
        await client.close()

    asyncio.run(main())
    assert transport.is_closed
    return transport.requests[0]


def matrix(kind="matrix"):
    return {"status": "success", "data": {"resultType": kind, "result": []}}


@pytest.mark.parametrize(
    ("body", "ask", "limit"),
    [
        pytest.param(matrix("vector"), lambda client: client.instant("up"), 16 * MIB, id="instant"),
        pytest.param(
            matrix(),
            lambda client: client.history("up", client._clock.now(), client._clock.now(), 60),
            256 * MIB,
            id="history",
        ),
        pytest.param(
            {"status": "success", "data": []}, lambda client: client.names("up", 60), 16 * MIB, id="names"
        ),
    ],
)
def test_a_history_may_be_longer_than_other_answers_of_prometheus(body, ask, limit):
    request = ask_prometheus(body, ask)
    assert (request.max_body, request.deadlines) == (limit, Deadlines(5.0, 10.0, 10.0))


@pytest.mark.parametrize(
    ("deadline", "want"),
    [
        pytest.param(2.0, Deadlines(2.0, 2.0, 2.0), id="a short deadline also bounds connecting"),
        pytest.param(60.0, Deadlines(5.0, 60.0, 60.0), id="a long one does not prolong connecting"),
    ],
)
def test_connecting_to_prometheus_has_a_deadline_of_its_own(deadline, want):
    request = ask_prometheus(matrix("vector"), lambda client: client.instant("up"), deadline=deadline)
    assert request.deadlines == want
    assert f"timeout={deadline:g}s" in request.body.decode()
    assert "lookback_delta" not in request.body.decode()


def test_only_32_queries_of_prometheus_are_in_flight():
    release = asyncio.Event()
    together = []

    class Slow(Recording):
        async def request(self, request):
            together.append(request)
            await release.wait()
            return await super().request(request)

    async def main():
        transport = Slow(matrix("vector"))
        client = PrometheusClient(VirtualClock(), transport)
        tasks = [asyncio.ensure_future(client.instant("up")) for _ in range(40)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sent = len(together)
        release.set()
        await asyncio.gather(*tasks)
        return sent, len(together)

    assert asyncio.run(main()) == (32, 40)
