"""What is asked of Prometheus about the past, and how its answer is read."""

import asyncio
import json
import math
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.transport import Response
from trimtab.metrics.prometheus import PrometheusClient
from trimtab.metrics.usage_history import SeriesNames, SlowHistoryError, Span, UsageHistoryReader
from trimtab.model.usage_history import ContainerName, Labelled

NOON = datetime(2026, 1, 1, 12, 20, tzinfo=UTC)
SPAN = Span(timedelta(hours=3), timedelta(hours=1))
NINE, TEN, ELEVEN, TWELVE = (datetime(2026, 1, 1, hour, tzinfo=UTC).timestamp() for hour in (9, 10, 11, 12))
NAMES = SeriesNames(
    job="",
    pod_labels="kube_pod_labels",
    pod_label_prefix="label_",
    pod_namespace="namespace",
    pod_name="pod",
    container_pod="pod",
    container_name="container",
)


class Answering:
    """Answers the three questions in their order: CPU, memory, labels."""

    def __init__(self, *results, hangs=False):
        self.queries: list[dict[str, str]] = []
        self._results = list(results) + [[]] * (3 - len(results))
        self._hangs = hangs

    async def request(self, request):
        if self._hangs:
            await asyncio.Event().wait()
        self.queries.append({key: values[0] for key, values in parse_qs(request.body.decode()).items()})
        data = {"resultType": "matrix", "result": self._results[len(self.queries) - 1]}
        return Response(200, {}, json.dumps({"status": "success", "data": data}).encode())

    def stream(self, request):
        raise NotImplementedError

    async def close(self):
        pass


def read(transport, names=NAMES, keys=()):
    clock = VirtualClock(NOON)
    reader = UsageHistoryReader(PrometheusClient(clock, transport), names, SPAN, seconds=60)
    return clock.run(reader.read("shop", clock.now(), keys))


def series(labels, *points):
    return {"metric": labels, "values": [[at, value] for at, value in points]}


def test_upstreams_names_are_the_defaults_and_memory_is_asked_for_its_peaks():
    transport = Answering()
    read(transport, SeriesNames())
    where = 'job="kubernetes-cadvisor", namespace="shop", pod_name!="", name!="", name!="POD"'
    assert [query["query"] for query in transport.queries] == [
        f"sum by (pod_name, name) (rate(container_cpu_usage_seconds_total{{{where}}}[3600s]))",
        f"max by (pod_name, name) (max_over_time(container_memory_working_set_bytes{{{where}}}[3600s]))",
        'max_over_time(up{job="kubernetes-pods", kubernetes_namespace="shop"}[3600s])',
    ]
    assert {(query["start"], query["end"], query["step"]) for query in transport.queries} == {
        (f"{TEN:.3f}", f"{TWELVE:.3f}", "3600")
    }


def test_values_lie_on_one_grid_with_holes_where_nothing_was_measured():
    app = {"pod": "web-1", "container": "app"}
    found = read(Answering([series(app, (TEN, "0.5"), (TWELVE, "0.25"))], [series(app, (ELEVEN, "1e9"))]))
    assert [moment // 10**9 for moment in found.times_ns] == [TEN, ELEVEN, TWELVE]
    cpu, memory = found.cpu[ContainerName("web-1", "app")], found.memory[ContainerName("web-1", "app")]
    assert (cpu[0], cpu[2], memory[1]) == (0.5, 0.25, 1e9)
    assert all(math.isnan(hole) for hole in (cpu[1], memory[0], memory[2]))


def test_labels_change_over_time_and_are_spelt_as_kubernetes_does():
    pod = {"namespace": "shop", "pod": "web-1", "label_app_kubernetes_io_name": "web"}
    answers = [
        series({**pod, "label_role": "leader"}, (TEN, "1"), (ELEVEN, "1")),
        series(pod, (ELEVEN, "1"), (TWELVE, "1")),
    ]
    found = read(Answering([], [], answers), keys=["app.kubernetes.io/name", "role"])
    assert found.labels == {
        "web-1": (
            Labelled(0, {"app.kubernetes.io/name": "web", "role": "leader"}),
            # Between ten and eleven it was both: whose usage that was cannot be told.
            Labelled(1, None),
            Labelled(2, {"app.kubernetes.io/name": "web"}),
        )
    }


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("kube_pod_labels", 'kube_pod_labels{namespace="shop"}'),
        ('up{job="pods",}', 'up{job="pods", namespace="shop"}'),
        ('{__name__="up"}', '{__name__="up", namespace="shop"}'),
    ],
)
def test_the_series_of_labels_is_narrowed_to_the_namespace(given, asked):
    assert SeriesNames(pod_labels=given, pod_namespace="namespace").labels("shop") == asked


@pytest.mark.parametrize("given", ["sum(up)", "up or down", "", "up{job='a'} * 2"])
def test_an_expression_is_no_series_of_labels(given):
    with pytest.raises(ValueError, match="is no series of Prometheus"):
        SeriesNames(pod_labels=given)


def test_a_prometheus_that_hangs_is_given_up_after_the_deadline():
    with pytest.raises(SlowHistoryError, match="no answer within 60 s"):
        read(Answering(hangs=True))
