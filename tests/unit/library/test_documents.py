"""Manifests are read with their lines, and whatever cannot be read says why in one sentence."""

import io
import json

import pytest

from trimtab.library import documents
from trimtab.library.documents import parse_documents, read_documents
from trimtab.library.yaml_nodes import MAX_ALIASES, MAX_DEPTH, DocumentError

MANIFEST = """\
# a comment
metadata:
  name: web
  labels: {app: web, "app.kubernetes.io/name": web}
spec:
  metrics:
  - type: Resource
    resource:
      name: cpu
  -
    type: Pods
"""


def parse(text):
    return list(parse_documents(text, "f.yaml"))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 2),
        ("metadata.name", 3),
        ("metadata.labels[app]", 4),
        ("metadata.labels[app.kubernetes.io/name]", 4),
        ("spec.metrics[0].resource.name", 9),
        ("spec.metrics[1].type", 11),
        ("spec.metrics[1].object.metric.name", 11),
        ("spec.maxReplicas", 5),
        ("status", 2),
    ],
)
def test_a_field_path_finds_its_line_or_that_of_its_nearest_parent(path, line):
    (document,) = parse(MANIFEST)
    place = document.place_of(path)
    assert (place.source, place.line) == ("f.yaml", line)


def test_documents_are_separated_and_empty_ones_left_out():
    assert [one.data for one in parse("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n")] == [
        {"a": 1},
        {"b": 2},
    ]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("yes", True, id="YAML 1.1 words are booleans, as for kubectl"),
        pytest.param('"yes"', "yes", id="quoted words are text"),
        pytest.param("2026-01-15T12:00:00Z", "2026-01-15T12:00:00Z", id="a time stays text"),
        pytest.param("1:30", "1:30", id="a sexagesimal number stays text"),
        pytest.param("010", 8, id="a leading zero means octal"),
        pytest.param("-0x10", -16, id="hexadecimal"),
        pytest.param("1_000", 1000, id="underscores are left out"),
        pytest.param("2e3", 2000.0, id="an exponent without a point is a number, as in JSON"),
        pytest.param("'2e3'", "2e3", id="a quoted number is text"),
        pytest.param("~", None, id="a tilde is null"),
        pytest.param("100m", "100m", id="a quantity is text"),
        pytest.param("!!str 5", "5", id="a core tag is obeyed"),
    ],
)
def test_scalars_mean_what_they_mean_to_kubectl(text, want):
    (document,) = parse(f"key: {text}\n")
    value = document.data["key"]
    assert (value, type(value)) == (want, type(want))


def test_keys_are_text_as_in_json():
    (document,) = parse("1: a\ntrue: b\nnull: c\n")
    assert document.data == {"1": "a", "true": "b", "null": "c"}


def test_a_merge_fills_in_only_what_is_not_there():
    (document,) = parse(
        "base: &base {a: 1, b: 1}\nuse: {a: 2, <<: *base}\nother: {<<: [*base, {c: 3}], b: 2}\n"
    )
    assert document.data["use"] == {"a": 2, "b": 1}
    assert document.data["other"] == {"a": 1, "b": 2, "c": 3}


def test_json_may_be_indented_with_tabs():
    (document,) = parse('{\n\t"spec": {\n\t\t"text": "a\\tb"\n\t}\n}\n')
    assert document.data == {"spec": {"text": "a\tb"}}
    assert document.place_of("spec.text").line == 3


@pytest.mark.parametrize(
    "layout", [{}, {"separators": (",", ":")}, {"indent": "\t"}, {"ensure_ascii": False}]
)
def test_json_is_read_however_it_is_laid_out(layout):
    data = {
        "a": [1, 2.5, -3, True, None, "x: y # z"],
        "b": '\t\n"\\ \\ud83d \N{GRINNING FACE} é /',
        "1e3": "1e3",
    }
    (document,) = parse(json.dumps(data, **layout))
    assert document.data == data


LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        pytest.param(
            "a: 1\nb: 2\na: 3\n", 3, 'the key "a" is given twice, first in line 1', id="duplicate key"
        ),
        pytest.param("a: [1\nb: 2\n", 2, "not valid YAML", id="broken YAML"),
        pytest.param("a: 1\n\tb: 2\n", 2, "not valid YAML", id="tabs"),
        pytest.param("a: .nan\n", 1, "is not a number that JSON can hold", id="NaN"),
        pytest.param("a: 1e999\n", 1, "is not a number that JSON can hold", id="a number beyond a double"),
        pytest.param(f"a: {'9' * 5000}\n", 1, "more than 1000 digits", id="a number of 5000 digits"),
        pytest.param("a: !!python/object/apply:os.system [ls]\n", 1, "tag", id="a tag that runs code"),
        pytest.param("a: !!binary aGk=\n", 1, "tag !!binary is not allowed", id="binary"),
        pytest.param("a: !!bool maybe\n", 1, "is not a boolean", id="a false boolean"),
        pytest.param("a: !!int five\n", 1, "is not a whole number", id="a false number"),
        pytest.param("a: &a [*a]\n", 1, "contains itself", id="an alias within its anchor"),
        pytest.param("a: *b\n", 1, "names no anchor", id="an alias without anchor"),
        pytest.param(
            f"x: &x 1\nl: [{'*x, ' * (MAX_ALIASES + 1)}]\n", 2, "more than 100 aliases", id="too many aliases"
        ),
        pytest.param(LAUGHS, 6, "holds more than 1000000 values", id="aliases of aliases of aliases"),
        pytest.param("[" * (MAX_DEPTH + 1), 1, "nested deeper than 100 levels", id="too deep"),
        pytest.param("[" * 200_000, 1, "nested deeper than 100 levels", id="far too deep"),
        pytest.param("? [a]\n: 1\n", 1, "a key must be text", id="a list as key"),
        pytest.param("<<: 5\n", 1, "merge key << needs a mapping", id="a merge of a number"),
        pytest.param("a: 1\nb: \x07\n", 2, "not valid YAML", id="a control character"),
    ],
)
def test_what_cannot_be_read_names_its_line_and_the_reason(text, line, problem):
    with pytest.raises(DocumentError) as caught:
        parse(text)
    assert caught.value.place.line == line
    assert problem in caught.value.problem


def test_a_file_that_is_no_text_says_where(tmp_path):
    file = tmp_path / "latin.yaml"
    file.write_bytes("a: 1\nname: caf\xe9\n".encode("latin-1"))
    with pytest.raises(DocumentError, match=r"latin.yaml:2: is not UTF-8 text: byte 0xe9"):
        read_documents(str(file))


def test_a_directory_and_a_missing_file_say_so(tmp_path):
    with pytest.raises(DocumentError, match="is a directory"):
        read_documents(str(tmp_path))
    with pytest.raises(DocumentError, match="cannot be read: No such file"):
        read_documents(str(tmp_path / "missing.yaml"))
    with pytest.raises(DocumentError, match="cannot be read"):
        read_documents("a\0b")


def test_a_file_beyond_the_limit_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_BYTES", 2 * 1024 * 1024)
    file = tmp_path / "big.yaml"
    file.write_bytes(b"a: " + b"x" * (2 * 1024 * 1024))
    with pytest.raises(DocumentError, match="is larger than 2 MiB"):
        read_documents(str(file))


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    file = tmp_path / "bom.yaml"
    file.write_bytes(b"\xef\xbb\xbfkind: List\n")
    assert read_documents(str(file))[0].data == {"kind": "List"}


def test_a_dash_reads_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("名: 値\n".encode()), encoding="ascii"))
    (document,) = read_documents("-")
    assert document.data == {"名": "値"}
    assert str(document.place_of("名")) == "<stdin>:1"
