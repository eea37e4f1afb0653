"""Names are refused in the API server's words."""

import pytest

from trimtab.model.core.metadata_validation import WholeMeta, validate_metadata
from trimtab.model.labels import names
from trimtab.model.labels.requirement import SelectorError, require

KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("rule", "good"),
    [
        (names.dns1123_label_problems, ["a", "a-1", "0", "a" * 63]),
        (names.dns1123_subdomain_problems, ["a", "a.b-c", "a" * 253]),
        (names.generate_name_problems, ["web-", "a", "we_-", "a-", "_-"]),
        (names.label_key_problems, ["a", "example.com/A_b.c", "a" * 63]),
        (names.label_value_problems, ["", "a", "A_b.c-d", "a" * 63]),
        (names.path_segment_problems, ["", "a", "...", "x y"]),
    ],
)
def test_good_names(rule, good):
    assert [rule(text) for text in good] == [[]] * len(good)


@pytest.mark.parametrize(
    ("rule", "text", "starts"),
    [
        (names.dns1123_label_problems, "a.b", ["must not contain dots"]),
        (names.dns1123_label_problems, "A", ["a lowercase RFC 1123 label must"]),
        (names.dns1123_label_problems, "a\n", ["a lowercase RFC 1123 label must"]),
        (names.dns1123_label_problems, "a" * 64, ["must be no more than 63 characters"]),
        (names.dns1123_subdomain_problems, "a..b", ["a lowercase RFC 1123 subdomain must"]),
        (
            names.dns1123_subdomain_problems,
            "é" * 127,
            ["must be no more than 253 characters", "a lowercase RFC 1123"],
        ),
        (names.generate_name_problems, "-", ["a lowercase RFC 1123 subdomain must"]),
        (names.generate_name_problems, "_a", ["a lowercase RFC 1123 subdomain must"]),
        (names.label_value_problems, "a" * 64, ["must be no more than 63 bytes"]),
        (names.label_key_problems, "a" * 254 + "/b", ["prefix part must be no more than 253 bytes"]),
        (names.label_key_problems, "", ["name part must be non-empty", f"name part {KEY}"]),
        (names.label_key_problems, "/a", ["prefix part must be non-empty"]),
        (names.label_key_problems, "A/b", ["prefix part a lowercase RFC 1123 subdomain"]),
        (
            names.label_key_problems,
            "a/b/c",
            [f"a valid label key {KEY} with an optional DNS subdomain prefix and '/'"],
        ),
        (names.label_key_problems, "a" * 64, ["name part must be no more than 63 bytes"]),
        (names.label_value_problems, "a b", ["a valid label must be an empty string or consist of"]),
        (names.path_segment_problems, "..", ["may not be '..'"]),
        (names.path_segment_problems, "a/%", ["may not contain '/'", "may not contain '%'"]),
    ],
)
def test_bad_names(rule, text, starts):
    found = rule(text)
    assert [line.startswith(start) for line, start in zip(found, starts, strict=True)] == [True] * len(starts)


HALF = "\ud83d"
"""Half a surrogate pair, which JSON can hold and UTF-8 cannot. Go reads it as a character of 3 bytes."""


@pytest.mark.parametrize(
    ("rule", "text", "starts"),
    [
        (names.label_key_problems, HALF, [f"name part {KEY}"]),
        (
            names.label_key_problems,
            HALF * 22,
            ["name part must be no more than 63 bytes", f"name part {KEY}"],
        ),
        (
            names.label_key_problems,
            f"{HALF * 85}/a",
            ["prefix part must be no more than 253 bytes", "prefix part a"],
        ),
        (names.label_value_problems, HALF * 21, ["a valid label must be"]),
        (names.label_value_problems, HALF * 22, ["must be no more than 63 bytes", "a valid label must be"]),
        (names.dns1123_label_problems, HALF * 22, ["must be no more than 63 characters", "a lowercase"]),
    ],
)
def test_half_a_surrogate_pair_counts_3_bytes(rule, text, starts):
    found = rule(text)
    assert [line.startswith(start) for line, start in zip(found, starts, strict=True)] == [True] * len(starts)


def test_a_selector_and_metadata_obey_the_same_rule_for_labels():
    key, value = HALF * 22, "a" * 64
    errors = validate_metadata(WholeMeta(name="web", namespace="shop", labels={key: value}))
    assert [error.detail for error in errors] == names.label_key_problems(key) + names.label_value_problems(
        value
    )
    with pytest.raises(SelectorError) as caught:
        require(key, "=", (value,))
    assert all(problem in str(caught.value) for problem in names.label_key_problems(key))
    assert all(problem in str(caught.value) for problem in names.label_value_problems(value))
