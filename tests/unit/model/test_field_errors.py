"""Errors read as the API server writes them."""

import pytest

from trimtab.model.field_errors import (
    FieldPath,
    aggregate,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    quote,
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
