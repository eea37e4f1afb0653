"""Null members are cut out of text as they would be dropped from what it says."""

import gc
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.codec.objects import decode_page
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
from trimtab.model.json.wire import cut_nulls, without_nulls

PLAIN = st.text(alphabet="abcXYZ0./-,{}[]: null", max_size=6)
ANY = st.text(alphabet='ab"\\,{}:é null', max_size=8)


def json_with(names: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    leaves = st.none() | st.booleans() | st.integers(-9, 9) | names | ANY
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
        max_leaves=12,
    )


@given(json_with(PLAIN))
def test_cutting_text_is_dropping_members(data):
    assert json.loads(cut_nulls(msgspec.json.encode(data))) == without_nulls(data)


@given(json_with(ANY), st.sampled_from([None, 2]))
def test_whatever_is_written_keeps_its_meaning(data, indent):
    text = json.dumps(data, indent=indent).encode()
    assert without_nulls(json.loads(cut_nulls(text))) == without_nulls(data)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (b'{"a":null}', b"{}"),
        (b'{"a":null,"b":null}', b"{}"),
        (b'{"x":1,"a":null,"b":null}', b'{"x":1}'),
        (b'{"a":null,"x":{"b":null},"c":null,"y":[null]}', b'{"x":{},"y":[null]}'),
        (b'{"a":"\\",\\"b\\":null,"}', b'{"a":"\\",\\"b\\":null,"}'),
        (b"", b""),
    ],
)
def test_cut(text, want):
    assert cut_nulls(text) == want


NEW = {"metadata": {"name": "web"}, "status": {"desiredReplicas": 0, "currentMetrics": None}}


def test_a_page_of_new_objects_is_decoded_in_one_go(monkeypatch):
    """A new HPA says `"currentMetrics":null`; each used to be decoded three times, by itself."""
    monkeypatch.setattr("trimtab.cluster.codec.objects._decode_one_by_one", None)
    page = decode_page("listing", msgspec.json.encode({"items": [NEW] * 3}), HorizontalPodAutoscaler)
    assert [hpa.status.current_metrics for hpa in page.items] == [(), (), ()]


def test_decoding_a_null_leaves_no_garbage():
    """The error of the first try was kept by its own frame: a KB for each new HPA, for good once it was frozen."""
    text = msgspec.json.encode(NEW)
    gc.collect()
    gc.disable()
    try:
        wire.decode(text, HorizontalPodAutoscaler)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_an_object_that_is_wrong_is_told_as_it_was_sent():
    with pytest.raises(wire.WireError, match=r"^status\.desiredReplicas: expected `int`, got `str`"):
        wire.decode(b'{"status":{"desiredReplicas":"x","conditions":null}}', HorizontalPodAutoscaler)
