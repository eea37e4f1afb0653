"""Errors read as the API server writes them."""

import pytest

from trimtab.model.field_errors import (
    FieldPath,
    aggregate,
    duplicate,
    forbidden,
    invalid,
    name_errors,
    not_found,
    not_supported,
    quantity_errors,
    quote,
    render,
    required,
    too_long,
    too_many,
    type_invalid,
)
from trimtab.model.quantity import Quantity

SPEC = FieldPath("spec")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (invalid(SPEC.child("max"), -1, "too small"), "spec.max: Invalid value: -1: too small"),
        (invalid(SPEC.child("name"), 'a"b\n', "odd"), r'spec.name: Invalid value: "a\"b\n": odd'),
        (invalid(SPEC.child("q"), Quantity.parse("0.1"), "odd"), 'spec.q: Invalid value: "100m": odd'),
        (invalid(SPEC.child("on"), True, "odd"), "spec.on: Invalid value: true: odd"),
        (invalid(SPEC.child("gone"), None, "odd"), "spec.gone: Invalid value: null: odd"),
        (invalid(SPEC.child("list"), ["<", 1], "odd"), r'spec.list: Invalid value: ["\u003c",1]: odd'),
        (required(SPEC.child("kind")), "spec.kind: Required value"),
        (required(SPEC.child("kind"), "say it"), "spec.kind: Required value: say it"),
        (forbidden(SPEC.index(3), "not here"), "spec[3]: Forbidden: not here"),
        (
            not_supported(SPEC.key("a"), "x", ["b", "a"]),
            'spec[a]: Unsupported value: "x": supported values: "a", "b"',
        ),
        (not_found(SPEC, "x"), 'spec: Not found: "x"'),
        (duplicate(SPEC, "x"), 'spec: Duplicate value: "x"'),
        (too_long(SPEC, 3), "spec: Too long: may not be more than 3 bytes"),
        (too_long(SPEC, 1), "spec: Too long: may not be more than 1 byte"),
        (too_many(SPEC, 3, 2), "spec: Too many: 3: must have at most 2 items"),
        (not_supported(SPEC, "x", []), 'spec: Unsupported value: "x"'),
        (invalid(SPEC, False, "odd"), "spec: Invalid value: false: odd"),
        (too_many(SPEC, 2, 1), "spec: Too many: 2: must have at most 1 item"),
        (type_invalid(SPEC, 1.5, "must be text"), "spec: Invalid value: 1.5: must be text"),
        (invalid(FieldPath(), "x", "whole"), 'Invalid value: "x": whole'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_message(error, message):
    assert str(error) == message


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("héllo 世界", '"héllo 世界"'),
        ("\x00\x7f\t", r'"\x00\x7f\t"'),
        ("\u200b\U000e0001", r'"\u200b\U000e0001"'),
        ("\ud800", '"\N{REPLACEMENT CHARACTER}"'),
        ("a\\b", r'"a\\b"'),
    ],
)
def test_text_is_quoted_as_go_quotes_it(text, quoted):
    assert quote(text) == quoted


def test_several_errors_are_listed_once_each():
    one, other = required(SPEC.child("a")), required(SPEC.child("b"))
    assert aggregate([one]) == "spec.a: Required value"
    assert aggregate([one, other, one]) == "[spec.a: Required value, spec.b: Required value]"


def test_a_path_grows_by_members_elements_and_keys():
    path = FieldPath().child("spec", "metrics").index(0).child("labels").key("app")
    assert str(path) == "spec.metrics[0].labels[app]"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("9" * 64, None, id="64 digits"),
        pytest.param("9" * 65, "9" * 32 + "…", id="65 digits, shown by their beginning"),
        pytest.param("-" + "9" * 64, None, id="the sign is no digit"),
        pytest.param("1e30", None, id="an exponent of 30"),
        pytest.param("1e33", "1e33", id="a larger exponent"),
        pytest.param("1Ki", None, id="a suffix"),
    ],
)
def test_a_quantity_may_have_64_digits_and_an_exponent_of_30(text, want):
    errors = list(quantity_errors(Quantity.parse(text), SPEC))
    assert [error.bad_value for error in errors] == ([] if want is None else [want])
    assert list(quantity_errors(None, SPEC)) == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("x" * 5, None, id="as long as allowed"),
        pytest.param("x" * 6, "has 6 characters; may have at most 5 characters", id="a character too long"),
        pytest.param("a\nb", "must not contain control characters", id="a control character"),
        pytest.param("a\x7f", "must not contain control characters", id="delete"),
        pytest.param("é b", None, id="letters of every script"),
    ],
)
def test_a_name_has_a_length_and_no_control_characters(text, want):
    assert [error.detail for error in name_errors(text, 5, SPEC)] == ([] if want is None else [want])


@pytest.mark.parametrize(
    ("number", "want"),
    [(0x7E, "~"), (0x7F, r"\x7f"), (0x80, r"\u0080"), (0xD7FF, r"\ud7ff"), (0xD800, "\N{REPLACEMENT CHARACTER}"), (0xDFFF, "\N{REPLACEMENT CHARACTER}"), (0xE000, r"\ue000"), (0xFFFF, r"\uffff"), (0x10FFFF, r"\U0010ffff")],
)  # fmt: skip
def test_letters_at_the_edges_of_each_spelling(number, want):
    assert quote(chr(number)) == f'"{want}"'


def test_values_that_no_json_holds_are_quoted():
    assert render(["\ud800"]).startswith('"[')
    assert render({"a": "<&>"}) == r'{"a":"\u003c\u0026\u003e"}'
