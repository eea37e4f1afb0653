"""Usage for the recommender: one list for all where it pays, the namespaces one by one where it does not."""

import asyncio
from typing import Any

from tests.unit.metrics.fake_metrics import Api, run
from trimtab.metrics.queries import MetricsError, PodUsage
from trimtab.model.metrics_api import PodMetricsList
from trimtab.operator.vertical.recommender.usage import UsageFeed

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
