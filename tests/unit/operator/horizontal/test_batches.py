"""A sync sends each distinct query once, and a failure stops only the HPAs that it concerns."""

from typing import Any

import pytest

from tests.unit.decide.horizontal.builders import average, cpu, external, samples
from tests.unit.operator.horizontal.fakes import UNUSED, controller_metrics, hpa_state, queries_of
from trimtab.clock import VirtualClock
from trimtab.decide.horizontal import FetchFailure
from trimtab.metrics.queries import ExternalMetric, PodUsage
from trimtab.operator.horizontal.batches import Batches
from trimtab.operator.horizontal.reconciler import Reconciler
from trimtab.operator.horizontal.usage import ALL_NAMESPACES

SHOP, BANK, QUEUE = PodUsage("shop"), PodUsage("bank"), ExternalMetric("shop", "queue", "")
USAGE, FAILED = samples({}), FetchFailure(message="refused")


class Fetcher:
    def __init__(self, *, is_cheaper: bool, failing: tuple[object, ...]) -> None:
        self.list_all: Any = self
        self.is_cheaper = lambda _namespaces: is_cheaper
        self.failing = failing
        self.sent: list[set[object]] = []

    async def fetch(self, queries):
        self.sent.append(set(queries))
        return {query: FAILED if query in self.failing else USAGE for query in queries}


class Snapshots:
    """Has queries for all HPAs, except those whose name says otherwise."""

    def queries_for(self, state):
        if state.hpa.metadata.name == "broken":
            raise RuntimeError("unexpected")
        return None if state.hpa.metadata.name == "uncached" else queries_of(state)


class RecordingReconciler(Reconciler):
    def __init__(self, clock, metrics) -> None:
        super().__init__(clock, UNUSED, UNUSED, metrics, UNUSED)
        self.alone: list[str] = []
        self.in_batch: list[str] = []

    def reconcile(self, request, samples=None) -> None:
        if request.hpa_state.hpa.metadata.name == "raises":
            raise RuntimeError("unexpected")
        (self.alone if samples is None else self.in_batch).append(request.hpa_state.key)
        request.finish(0.0)


def sync(states, *, is_cheaper=False, failing=()):
    clock, metrics = VirtualClock(), controller_metrics()
    fetcher = Fetcher(is_cheaper=is_cheaper, failing=failing)
    snapshots: Any = Snapshots()

    async def main() -> RecordingReconciler:
        reconciler = RecordingReconciler(clock, metrics)
        anything: Any = fetcher
        Batches(clock, anything, snapshots, reconciler, metrics).reconcile_all(states)
        await reconciler.wait_idle()
        return reconciler

    return clock.run(main()), fetcher.sent


@pytest.mark.parametrize(
    ("states", "how", "sent"),
    [
        pytest.param([hpa_state("web"), hpa_state("mail")], {}, [{SHOP}], id="a namespace is listed once"),
        pytest.param(
            [hpa_state("web"), hpa_state("ledger", "bank")],
            {},
            [{SHOP}, {BANK}],
            id="two namespaces are two lists",
        ),
        pytest.param(
            [hpa_state("web"), hpa_state("ledger", "bank")],
            {"is_cheaper": True},
            [{ALL_NAMESPACES}],
            id="one list for all where it is cheaper",
        ),
        pytest.param(
            [hpa_state("web"), hpa_state("ledger", "bank")],
            {"is_cheaper": True, "failing": (ALL_NAMESPACES,)},
            [{ALL_NAMESPACES}, {SHOP}, {BANK}],
            id="one list per namespace if the list for all fails",
        ),
        pytest.param(
            [hpa_state("web"), hpa_state("mail", "shop", cpu(50), external(average("10")))],
            {},
            [{SHOP}, {SHOP, QUEUE}],
            id="a slow source delays only the HPAs that use it",
        ),
        pytest.param(
            [hpa_state("uncached")], {}, [], id="an HPA with an unread target is no part of a batch"
        ),
    ],
)
def test_each_distinct_query_is_sent_once(states, how, sent):
    reconciler, fetched = sync(states, **how)
    assert fetched == sent
    assert sorted(reconciler.in_batch + reconciler.alone) == sorted(state.key for state in states)
    assert not any(state.is_busy for state in states)


@pytest.mark.parametrize("bad", ["broken", "raises"])
def test_an_unexpected_error_stops_no_other_hpa(bad):
    states = [hpa_state(bad), hpa_state("web")]
    reconciler, _ = sync(states)
    assert reconciler.in_batch == ["shop/web"]
    assert not any(state.is_busy for state in states)


def test_an_hpa_that_is_still_reconciled_is_left_out():
    busy = hpa_state("web")
    request = busy.start_reconcile(0.0)
    reconciler, sent = sync([busy])
    assert (reconciler.in_batch, reconciler.alone, sent) == ([], [], [])
    assert busy.request is request
