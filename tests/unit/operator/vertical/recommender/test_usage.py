"""Usage for the recommender: one list for all where it pays, the namespaces one by one where it does not."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.decide.vertical.policy_builders import NOW, vpa
from tests.unit.decide.vertical.usage_builders import Recommender, member
from tests.unit.metrics.fake_metrics import Api, run
from trimtab.decide.vertical.cluster_state.cluster import PodId
from trimtab.decide.vertical.input.usage import LARGEST_NODE, Capacity
from trimtab.metrics.queries import MetricsError, PodUsage
from trimtab.model.json import wire
from trimtab.model.metrics_api import PodMetricsList
from trimtab.operator.vertical.recommender.usage import PodCapacities, UsageFeed, _Batch, add_usage

ALL = PodUsage()


class Reader:
    """Answers every question but those that are refused."""

    def __init__(self, *refused: PodUsage) -> None:
        self.refused = refused
        self.asked: list[PodUsage] = []

    async def pod_usage(self, query: PodUsage) -> PodMetricsList:
        self.asked.append(query)
        if query in self.refused:
            raise MetricsError("forbidden")
        return PodMetricsList()


class Whole:
    """Says whether one list pays, and hears how it went."""

    def __init__(self, *, pays: bool) -> None:
        self._pays = pays
        self.heard: list[str] = []

    def is_cheaper(self, namespaces) -> bool:
        return self._pays

    def note_success(self) -> None:
        self.heard.append("worked")

    def note_failure(self, why: str) -> None:
        self.heard.append(why)


def read(reader: Any, whole: Any) -> tuple[list[PodMetricsList], UsageFeed, list[bool]]:
    counted: list[bool] = []
    feed = UsageFeed(reader, whole, counted.append)
    return asyncio.run(feed.read(["b", "a"])), feed, counted


def test_one_list_for_all_where_it_pays():
    reader, whole = Reader(), Whole(pays=True)
    answers, feed, counted = read(reader, whole)
    assert (reader.asked, len(answers), whole.heard, counted) == ([ALL], 1, ["worked"], [False])
    assert feed.failures == {}


def test_a_list_for_all_that_is_refused_costs_no_sample():
    reader, whole = Reader(ALL), Whole(pays=True)
    answers, feed, counted = read(reader, whole)
    assert reader.asked == [ALL, PodUsage("a"), PodUsage("b")]
    assert (len(answers), whole.heard, counted) == (2, ["forbidden"], [True, False, False])
    assert feed.failures == {}


def test_pods_of_another_namespace_in_the_answer_are_left_out():
    """Through the real reader: a server of one namespace's usage does not speak for another's pods."""
    items = [{"metadata": {"namespace": place, "name": "web"}} for place in ("a", "b")]
    api = Api()
    api.answer = lambda path: {"items": items}

    async def act(reader, clock):
        answers = await UsageFeed(reader, Whole(pays=False)).read(["a", "b"])  # type: ignore[arg-type]
        return [[item.metadata.namespace for item in answer.items] for answer in answers]

    assert run(api, act) == [["a"], ["b"]]


def test_a_namespace_that_cannot_be_read_is_named_and_the_others_are_read():
    reader, whole = Reader(PodUsage("a")), Whole(pays=False)
    answers, feed, _ = read(reader, whole)
    assert (len(answers), feed.failures) == (1, {"a": "forbidden"})


DB_0, DB_1 = PodId("shop", "db-0"), PodId("shop", "db-1")
SMALL, LARGE = Capacity(2000, 2**30), Capacity(64_000, 2**28)
"""One node has more memory, the other more CPU."""


@pytest.mark.parametrize("nodes", [["small", "large"], ["large", "small"]])
def test_a_pod_whose_node_is_not_known_may_use_the_most_that_any_node_has(nodes):
    by_node = {name: {"small": SMALL, "large": LARGE}[name] for name in nodes}
    capacities = PodCapacities(by_node, lambda pod: "small" if pod == DB_0 else "")
    assert (capacities.of(DB_0), capacities.of_node(DB_0)) == (SMALL, SMALL)
    assert (capacities.of(DB_1), capacities.of_node(DB_1)) == (Capacity(64_000, 2**30), None)
    assert PodCapacities({}, lambda _pod: "").of(DB_1) == LARGEST_NODE


def item(
    name: str, *containers: tuple[str, dict[str, str]], date: Any = None, namespace: str = "shop"
) -> Any:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "timestamp": NOW.isoformat() if date is None else date,
        "containers": [{"name": container, "usage": used} for container, used in containers],
    }


def added(*items: Any, waiting: frozenset[str] = frozenset()) -> tuple[dict[str, int], list[str]]:
    """Return how many samples of each resource were added, and what could not be read."""
    recommender = Recommender([vpa("base")])
    recommender.observe([member("db-0"), member("db-1")])
    answer = wire.convert({"items": items}, PodMetricsList)
    capacities = PodCapacities({}, lambda _pod: "")
    found = add_usage(recommender.state, [answer], capacities, NOW + timedelta(seconds=10), waiting=waiting)
    rows = {
        name: 0 if report.usage is None else len(report.usage.containers)
        for name, report in found.reports.items()
    }
    return rows, found.unreadable


USED = {"cpu": "100m", "memory": "1Mi"}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("odd", "unreadable"),
    [
        pytest.param(item("db-0", ("sidecar", USED)), "", id="a container that the pod's spec lacks"),
        pytest.param(item("db-9", ("app", USED)), "", id="a pod that is not known"),
        pytest.param(item("db-0", ("app", USED), namespace="other"), "", id="a pod of another namespace"),
        pytest.param(item("db-0", ("app", {})), "", id="no usage"),
        pytest.param(item("db-0", ("app", USED), date="soon"), "db-0} has no date", id="no date"),
        pytest.param(item("db-0", ("app", {"cpu": "much"})), "container app of pod", id="no quantity"),
    ],
)
def test_usage_that_is_left_out_hides_none_after_it(odd, unreadable, is_first):
    good = item("db-1", ("app", USED))
    rows, texts = added(*([odd, good] if is_first else [good, odd]))
    assert rows == {"cpu": 1, "memory": 1}
    assert len(texts) == (1 if unreadable else 0)
    assert unreadable in "".join(texts)


def test_a_container_that_is_left_out_hides_none_of_its_pod():
    rows, texts = added(item("db-0", ("sidecar", USED), ("app", USED)))
    assert (rows, texts) == ({"cpu": 1, "memory": 1}, [])


def test_usage_of_a_waiting_namespace_is_not_added():
    assert added(item("db-0", ("app", USED)), waiting=frozenset({"shop"}))[0] == {"cpu": 0, "memory": 0}
    assert added(item("db-0", ("app", USED)), waiting=frozenset({"mail"}))[0] == {"cpu": 1, "memory": 1}


@pytest.mark.parametrize(
    ("amount", "kept"),
    [
        (0, 0),
        (7, 7),
        (2**63 - 1, 2**63 - 1),
        (2**63, 2**63 - 1),
        (2**70, 2**63 - 1),
        (-1, -1),
        (-(2**70), -1),
    ],
)
def test_an_amount_is_kept_as_far_as_64_bits_hold_it(amount, kept):
    """A clamped amount is still above any capacity, so it is refused and not taken for a small one."""
    batch = _Batch()
    batch.add(3, amount, 5, 9)
    assert (batch.rows, batch.amounts, batch.times_ns, batch.capacities) == ([3], [kept], [5], [9])
