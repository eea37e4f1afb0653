"""Names are refused in the API server's words."""

import pytest

from trimtab.model.labels import names

KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("rule", "good"),
    [
        (names.dns1123_label, ["a", "a-1", "0", "a" * 63]),
        (names.dns1123_subdomain, ["a", "a.b-c", "a" * 253]),
        (names.generated_subdomain, ["web-", "a", "we_-"]),
        (names.label_key, ["a", "example.com/A_b.c", "a" * 63]),
        (names.label_value, ["", "a", "A_b.c-d", "a" * 63]),
        (names.path_segment, ["", "a", "...", "x y"]),
    ],
)
def test_good_names(rule, good):
    assert [rule(text) for text in good] == [[]] * len(good)


@pytest.mark.parametrize(
    ("rule", "text", "starts"),
    [
        (names.dns1123_label, "a.b", ["must not contain dots"]),
        (names.dns1123_label, "A", ["a lowercase RFC 1123 label must"]),
        (names.dns1123_label, "a\n", ["a lowercase RFC 1123 label must"]),
        (names.dns1123_label, "a" * 64, ["must be no more than 63 characters"]),
        (names.dns1123_subdomain, "a..b", ["a lowercase RFC 1123 subdomain must"]),
        (names.dns1123_subdomain, "é" * 127, ["must be no more than 253 characters", "a lowercase RFC 1123"]),
        (names.label_key, "", ["name part must be non-empty", f"name part {KEY}"]),
        (names.label_key, "/a", ["prefix part must be non-empty"]),
        (names.label_key, "A/b", ["prefix part a lowercase RFC 1123 subdomain"]),
        (
            names.label_key,
            "a/b/c",
            [f"a valid label key {KEY} with an optional DNS subdomain prefix and '/'"],
        ),
        (names.label_key, "a" * 64, ["name part must be no more than 63 bytes"]),
        (names.label_value, "a b", ["a valid label must be an empty string or consist of"]),
        (names.path_segment, "..", ["may not be '..'"]),
        (names.path_segment, "a/%", ["may not contain '/'", "may not contain '%'"]),
    ],
)
def test_bad_names(rule, text, starts):
    found = rule(text)
    assert [line.startswith(start) for line, start in zip(found, starts, strict=True)] == [True] * len(starts)
