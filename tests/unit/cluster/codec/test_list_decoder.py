"""A list that is decoded while it arrives is the list that arrived, and never held as a whole."""

import gc
import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.cluster.codec import lists as items_module
from trimtab.cluster.codec.lists import SLICE, ListDecoder
from trimtab.cluster.codec.objects import decode_page
from trimtab.cluster.errors import ApiError
from trimtab.model.json.wire import WireError, decode
from trimtab.model.metrics_api import PodMetrics, PodMetricsList

AWKWARD = '},{"metadata":{"name":"x"}},"items":[{'
"""What separates items, inside a string."""


def pod(number: int, **more: Any) -> dict[str, Any]:
    labels = {"app": "web", "note": AWKWARD} if number % 3 == 0 else {"app": "web"}
    return {
        "metadata": {"name": f"web-{number:05}", "namespace": f"shop-{number % 4}", "labels": labels},
        "timestamp": "2026-01-01T00:00:00Z",
        "window": "15s",
        "containers": [{"name": "main", "usage": {"cpu": f"{number}m", "memory": "100Mi"}}],
        **more,
    }


def listed(items: Any, **more: Any) -> bytes:
    whole = {"kind": "PodMetricsList", "metadata": {"resourceVersion": "1"}, "items": items, **more}
    return msgspec.json.encode(whole)


def pieces(text: bytes, size: int) -> list[bytes]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def fed(text: bytes, size: int) -> list[PodMetrics]:
    items = ListDecoder(PodMetrics)
    for piece in pieces(text, size):
        items.feed(piece)
    return items.finish("reading")


USUAL = [pod(number) for number in range(40)]
LISTS = {
    "usual": listed(USUAL),
    "empty": listed([]),
    "one": listed([pod(1)]),
    "of null": listed(None),
    "metadata last": msgspec.json.encode({"items": USUAL, "metadata": {"resourceVersion": "1"}}),
    "with spaces": json.dumps({"metadata": {}, "items": USUAL}, indent=1).encode(),
    "items that begin otherwise": listed([{"window": "15s", **pod(number)} for number in range(40)]),
    "items that hold others": listed([pod(1, others=[pod(2), pod(3), pod(4)]), pod(5)]),
    "with nulls": listed([pod(number, timestamp=None, containers=None) for number in range(40)]),
    "cut in one place by a null": listed([*USUAL[:20], pod(20, containers=None), *USUAL[21:]]),
}


@pytest.fixture
def _small_slices(monkeypatch):
    monkeypatch.setattr(items_module, "SLICE", 512)


@pytest.mark.usefixtures("_small_slices")
@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("size", [1, 7, 700, 10**6])
def test_the_items_are_those_of_the_whole_list(name, size):
    assert tuple(fed(LISTS[name], size)) == decode(LISTS[name], PodMetricsList).items


ODD = {
    "with one that cannot be read": listed([*USUAL[:20], pod(20, window=15), *USUAL[21:]]),
    "with a token": msgspec.json.encode(
        {"metadata": {"resourceVersion": "7", "continue": "abc"}, "items": USUAL}
    ),
}


@pytest.mark.usefixtures("_small_slices")
@pytest.mark.parametrize("name", [*LISTS, *ODD])
@pytest.mark.parametrize("size", [7, 700, 10**6])
def test_the_page_is_that_of_the_whole_list(name, size):
    text = (LISTS | ODD)[name]
    items = ListDecoder(PodMetrics)
    for piece in pieces(text, size):
        items.feed(piece)
    page, want = items.finish_page("listing"), decode_page("listing", text, PodMetrics)
    assert list(page.items) == list(want.items)
    assert page.unreadable == want.unreadable
    assert (page.resource_version, page.continue_token) == (want.resource_version, want.continue_token)


@pytest.mark.usefixtures("_small_slices")
@pytest.mark.parametrize("name", [*LISTS, *ODD])
@pytest.mark.parametrize("size", [7, 700, 10**6])
def test_a_list_is_reduced_as_the_whole_list_would_be(name, size):
    def even(item: PodMetrics) -> str | None:
        return item.metadata.name if item.metadata.name.endswith(tuple("02468")) else None

    text = (LISTS | ODD)[name]
    items: ListDecoder[Any] = ListDecoder(PodMetrics, reduce=even)
    for piece in pieces(text, size):
        items.feed(piece)
    want = decode_page("listing", text, PodMetrics).items
    assert list(items.finish_page("listing").items) == [kept for kept in map(even, want) if kept is not None]


@pytest.mark.usefixtures("_small_slices")
def test_items_are_reduced_while_the_list_arrives():
    """Whole pods of a page, twice because the next page is requested early, were 15 MB."""
    reduced: list[str] = []
    items = ListDecoder(PodMetrics, reduce=lambda item: reduced.append(item.metadata.name))
    for piece in pieces(LISTS["usual"], 700):
        items.feed(piece)
    assert 30 < len(reduced) < 40
    assert list(items.finish_page("listing").items) == []
    assert len(reduced) == 40


def test_the_head_is_told_as_soon_as_it_is_there():
    heads: list[str] = []
    items = ListDecoder(PodMetrics, lambda head: heads.append(head.continue_))
    text = ODD["with a token"]
    begin = text.index(b"[") + 1
    items.feed(text[: begin - 1])
    assert heads == []
    items.feed(text[begin - 1 : begin])
    assert heads == ["abc"]


@settings(max_examples=20)
@given(st.lists(st.sampled_from(USUAL), min_size=300, max_size=600), st.integers(1000, 90_000))
def test_however_it_is_cut(chosen, size):
    text = listed(chosen)
    assert tuple(fed(text, size)) == decode(text, PodMetricsList).items


@pytest.mark.usefixtures("_small_slices")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "not valid JSON"),
        (b"<html>", "not valid JSON"),
        (LISTS["usual"][:-30], "not valid JSON"),
        (listed([*USUAL, pod(41, window=15)]), r"window: expected `str`, got `int`"),
        (listed([pod(41, window=15), *USUAL]), r"window: expected `str`, got `int`"),
    ],
)
def test_what_is_no_list_is_told_at_the_end(text, why):
    with pytest.raises(WireError, match=why):
        fed(text, 100)


def test_a_failure_in_the_place_of_a_list_is_raised():
    """Some proxies answer 200 with a failure (fault F14)."""
    text = b'{"kind":"Status","status":"Failure","code":503,"message":"no backend"}'
    with pytest.raises(ApiError, match="no backend"):
        fed(text, 10)


def test_a_long_list_is_never_held_as_a_whole():
    """It was: 7 MB of text while the usage of 10,000 pods was read."""
    arriving = pieces(listed([pod(number) for number in range(10_000)]), 16_384)
    items = ListDecoder(PodMetrics)
    gc.collect()
    tracemalloc.start()
    for piece in arriving:
        items.feed(piece)
    found = items.finish("reading")
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 10_000
    assert peak - kept < 8 * SLICE
