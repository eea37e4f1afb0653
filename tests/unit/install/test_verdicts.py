"""`trimtab install -f FILE` refuses what the chart's schema refuses, with the value's name."""

import pytest
import yaml
from click.testing import CliRunner

from tests.unit.install.sets import SETS
from tests.unit.install.verdicts import BAD, GOOD
from trimtab.cli import cli
from trimtab.install import default_values
from trimtab.install.schema import problems, values_schema
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


@pytest.mark.parametrize("document", (GOOD | SETS).values(), ids=GOOD | SETS)
def test_good_values_are_taken(tmp_path, document):
    done = install(tmp_path, document)
    assert done.exit_code == 0, done.output


def test_the_defaults_satisfy_their_own_schema():
    assert list(problems(values_schema(), default_values())) == []


def test_the_schema_names_the_versions_that_the_program_knows():
    pattern = values_schema()["definitions"]["settings"]["properties"]["compat"]["pattern"].replace("\\", "")
    for version in (*KUBERNETES, VPA):
        assert version in pattern


def test_no_secret_can_be_a_value():
    """A pod shows its arguments to many, and Helm keeps values in a Secret of its own that more people may read."""
    text = str(values_schema()).lower()
    assert "'password'" not in text
    assert "'prometheus-bearer-token'" not in text


def test_a_file_that_is_no_map_of_values_is_named(tmp_path):
    path = tmp_path / "values.yaml"
    for text, words in (("- a\n", "must be a map of values"), ("a: [", "is not YAML")):
        path.write_text(text)
        done = CliRunner().invoke(cli, ["install", "-f", str(path)])
        assert done.exit_code == 2
        assert words in done.output
    assert "cannot be read" in CliRunner().invoke(cli, ["install", "-f", str(tmp_path / "none")]).output
