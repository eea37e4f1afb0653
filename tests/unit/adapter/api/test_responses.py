"""Selectors in answers, and several series for one object."""

from datetime import UTC, datetime, timedelta

import pytest

from trimtab.adapter.api.responses import label_selector
from trimtab.adapter.sources.source import Collapse, CustomSample, collapse
from trimtab.model.json.wire import convert
from trimtab.model.labels.selector import EVERYTHING, LabelSelector, Selector
from trimtab.model.quantity import Quantity
from trimtab.model.status import StatusError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["a=b", "a==b", "a!=b", "a in (b,c)", "a in (b)", "a notin (b,c)", "a", "!a", "a=b,a!=c,a"]
)
def test_the_json_form_of_a_selector_selects_the_same(text):
    selector = Selector.parse(text)
    again = Selector.from_label_selector(convert(label_selector(selector), LabelSelector))
    for labels in ({}, {"a": "b"}, {"a": "c"}, {"a": "d"}, {"b": "b"}):
        assert again.matches(labels) == selector.matches(labels)


def test_no_selector_is_null():
    assert label_selector(EVERYTHING) is None


def samples():
    return [
        CustomSample("foo", Quantity.parse("3"), NOON, 60),
        CustomSample("foo", Quantity.parse("1500m"), NOON - timedelta(seconds=30), 120),
        CustomSample("bar", Quantity.parse("1"), NOON),
    ]


@pytest.mark.parametrize(
    ("how", "want"),
    [(Collapse.SUM, "4500m"), (Collapse.AVERAGE, "2250m"), (Collapse.MAX, "3"), (Collapse.MIN, "1500m")],
)
def test_several_series_of_an_object_become_one_value_as_old_as_the_oldest(how, want):
    bar, foo = collapse(samples(), how)
    assert (bar.name, str(bar.value)) == ("bar", "1")
    assert (str(foo.value), foo.timestamp, foo.window_seconds) == (want, NOON - timedelta(seconds=30), 120)


def test_several_series_can_be_refused():
    with pytest.raises(StatusError, match="2 series match foo", check=lambda error: error.code == 503):
        collapse(samples(), Collapse.REFUSE)
