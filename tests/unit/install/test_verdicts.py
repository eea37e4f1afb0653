"""`trimtab install -f FILE` refuses what the chart's schema refuses, with the value's name."""

import json

import pytest
import yaml
from click.testing import CliRunner

from tests.unit.install.verdicts import BAD, GOOD
from trimtab.cli import cli
from trimtab.install.chart import chart_files
from trimtab.install.values.schema import problems, values_schema
from trimtab.install.values.table import CHART_VALUES, default_values
from trimtab.operator.settings.compat import KUBERNETES, VPA


def install(tmp_path, document):
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(document))
    return CliRunner().invoke(cli, ["install", "-f", str(path)])


def names(document, path=()):
    """Return the paths of all values of a document."""
    for key, value in document.items():
        yield ".".join((*path, key))
        if isinstance(value, dict):
            yield from names(value, (*path, key))


@pytest.mark.parametrize("document", BAD.values(), ids=BAD)
def test_bad_values_are_refused_by_name(tmp_path, document):
    """`scalable: [{group: x}]` ended in a KeyError, and many others in the API server."""
    done = install(tmp_path, document)
    assert done.exit_code == 2, done.output
    assert any(name in done.output for name in names(document)), done.output
    assert "defect" not in done.output


@pytest.mark.parametrize("document", GOOD.values(), ids=GOOD)
def test_good_values_are_taken(tmp_path, document):
    done = install(tmp_path, document)
    assert done.exit_code == 0, done.output


def test_the_defaults_satisfy_their_own_schema():
    values = default_values()
    assert list(problems(values_schema(), values)) == []
    assert yaml.safe_load(chart_files()["values.yaml"]) == values


def test_every_value_is_described_in_the_schema():
    text = chart_files()["values.schema.json"]
    for value in CHART_VALUES:
        schema = json.loads(text)
        for name in value.path.split("."):
            schema = schema["properties"][name]
        assert schema["description"] == value.help
        assert schema["default"] == value.default
        assert schema["type"]


def test_the_schema_names_the_versions_that_the_program_knows():
    pattern = values_schema()["properties"]["compat"]["pattern"].replace("\\", "")
    for version in (*KUBERNETES, VPA):
        assert version in pattern


NASTY = ('a "b', "a\\b", "a: b", "a #b", "a\nb", "{{ a }}", " a", "'a", "a'b c")


def inline_types(schema):
    """Yield the types whose values templates write without quotes: those with a pattern to the end of the text."""
    if str(schema.get("pattern", "")).endswith("$"):
        yield schema
    for child in (
        *schema.get("properties", {}).values(),
        schema.get("items", {}),
        schema.get("additionalProperties", {}),
    ):
        if isinstance(child, dict) and child:
            yield from inline_types(child)


@pytest.mark.parametrize("text", NASTY)
def test_a_value_that_is_written_without_quotes_needs_none(text):
    found = list(inline_types(values_schema()))
    assert len(found) > 30
    for schema in found:
        assert list(problems(schema, text)), f"{schema['pattern']} takes {text!r}"


def test_a_file_that_is_no_map_of_values_is_named(tmp_path):
    path = tmp_path / "values.yaml"
    for text, words in (("- a\n", "must be a map of values"), ("a: [", "is not YAML")):
        path.write_text(text)
        done = CliRunner().invoke(cli, ["install", "-f", str(path)])
        assert done.exit_code == 2
        assert words in done.output
    assert "cannot be read" in CliRunner().invoke(cli, ["install", "-f", str(tmp_path / "none")]).output
