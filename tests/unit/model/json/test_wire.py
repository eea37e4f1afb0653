"""JSON to values and back: what cannot be read says where, and null means absent on every path."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.json import wire
from trimtab.model.quantity import Quantity


class Inner(wire.Wire):
    name: str = ""
    amount: Quantity = Quantity.zero


class Outer(wire.Wire):
    count: int = 3
    parts: tuple[Inner, ...] = ()
    labels: dict[str, str] = {}


class Lazy(wire.Wire):
    rest: msgspec.Raw = msgspec.Raw()
    count: int = 3


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "not valid JSON", id="cut off"),
        pytest.param(b'{"count": "\xff"}', "not valid JSON", id="no UTF-8"),
        pytest.param('{"labels": ' + DEEP, "not valid JSON: it is nested too deep", id="too deep"),
        pytest.param('{"count": "1"}', "count: expected `int`, got `str`", id="another type"),
        pytest.param('{"count": "1", "labels": null}', "count: expected `int`, got `str`", id="another type beside a null"),
        pytest.param('{"parts": [{}, {"name": 1}]}', "parts[1].name: expected `str`", id="deep inside"),
        pytest.param('{"parts": [{"amount": true}]}', "a quantity is a string or a number, not bool", id="no quantity"),
        pytest.param('{"parts": [{"amount": []}]}', "a quantity is a string or a number, not list", id="a list for a quantity"),
        pytest.param('{"parts": [{"amount": "1x"}]}', "quantit", id="a wrong quantity"),
        pytest.param("[]", "expected `object`, got `array`", id="no object"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_where(text, message):
    with pytest.raises(wire.WireError) as caught:
        wire.decode(text, Outer)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["{", b"\xff", '{"count": null, "rest": ' + DEEP])
def test_what_is_no_json_is_refused_after_a_null_too(text):
    with pytest.raises(wire.WireError, match="not valid JSON"):
        wire.decode(text, Outer)


def test_plain_data_says_where_too():
    with pytest.raises(wire.WireError, match=r"parts\[0\].name: expected `str`, got `int`"):
        wire.convert({"parts": [{"name": 1}]}, Outer)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('{"count":null}', Outer()),
        ('{"count":null,"parts":[{"name":null,"amount":"1"}]}', Outer(parts=(Inner(amount=Quantity.parse("1")),))),
        ('{"parts":[{"name":"a","amount":null}],"count":null}', Outer(parts=(Inner(name="a"),))),
        ('{"count": null, "labels": {"a": "\\":null"}}', Outer(labels={"a": '":null'})),
        ('{"labels":{"a":"b","c":null}}', Outer(labels={"a": "b"})),
        ('{"parts":[{"amount":1.5},{"amount":2}]}', Outer(parts=(Inner(amount=Quantity.parse("1.5")), Inner(amount=Quantity.parse("2"))))),
    ],
)  # fmt: skip
def test_null_means_absent(text, want):
    assert wire.decode(text, Outer) == wire.decode(text.encode(), Outer) == want


def test_a_part_that_is_left_unread_survives_a_null_with_spaces():
    found = wire.decode('{"count" : null, "rest": {"a": [1]}}', Lazy)
    assert (found.count, bytes(found.rest)) == (3, b'{"a":[1]}')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('":null{},\\', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('ab":\\', max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_cutting_nulls_out_of_text_is_dropping_them_from_data(data):
    text = msgspec.json.encode(data)
    assert wire.without_nulls(msgspec.json.decode(wire.cut_nulls(text))) == wire.without_nulls(data)


def test_other_types_are_neither_read_nor_written():
    with pytest.raises(NotImplementedError, match="no way to write a complex"):
        wire.encode([1j])
    with pytest.raises(NotImplementedError, match="no way to read a complex"):
        wire.convert("1", complex)


def test_values_survive_text_plain_data_and_packing():
    value = Outer(count=4, parts=(Inner(name="a", amount=Quantity.parse("1Gi")),))
    assert wire.decode(wire.encode(value), Outer) == value
    assert wire.convert(wire.to_builtins(value), Outer) == value
    assert wire.unpacker(Outer).decode(wire.packer().encode(value)) == value
    assert wire.decoder(Outer).decode(wire.encode(value)) == value
    assert wire.to_builtins(value) == {"count": 4, "parts": ({"name": "a", "amount": "1Gi"},)}
    assert wire.without_members({"a": 1, "b": 2}, ("a", "c")) == {"b": 2}
