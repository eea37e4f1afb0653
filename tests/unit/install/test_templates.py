"""Templates are rendered as Helm renders them; what Helm would do otherwise is an error."""

import json
import re

import pytest
import yaml

from tests.unit.install.helm_answers import ANSWERS, TEMPLATES, VALUES
from trimtab.install.schema import CHART
from trimtab.install.templates import FUNCTIONS, Failed, TemplateError, Templates

RECORDED = json.loads(ANSWERS.read_text(encoding="utf-8"))
CONTEXT = {
    "Values": VALUES,
    "Release": {"Namespace": "trimtab"},
    "Files": {"Get": lambda name: f"text of {name}"},
}


def written(text, context=CONTEXT):
    """Return what a template writes, as the text of a document."""
    quoted = '{{ define "whole" }}' + text + '{{ end }}{{ dict "text" (include "whole" .) | toJson }}'
    (document,) = Templates({"a.yaml": quoted}).render(context)
    return document["text"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_answer_is_helms(name):
    found = written(TEMPLATES[name]) if "define" not in TEMPLATES[name] else whole(TEMPLATES[name])
    if name == "toYaml":
        found, RECORDED[name] = yaml.safe_load(found), yaml.safe_load(RECORDED[name])
    assert found == RECORDED[name]


def whole(text):
    """Return what a template with definitions of its own writes."""
    from tests.unit.install.helm_answers import outside

    defined, rest = outside(text)
    files = {
        "_a.tpl": defined,
        "a.yaml": '{{ define "whole" }}' + rest + '{{ end }}{{ dict "text" (include "whole" .) | toJson }}',
    }
    (document,) = Templates(files).render(CONTEXT)
    return document["text"]


def test_every_function_has_an_answer():
    assert set(FUNCTIONS) - {"fail"} <= set(TEMPLATES)


def test_every_function_is_used_by_the_chart():
    paths = [path for path in (CHART / "templates").iterdir() if path.suffix in {".tpl", ".yaml"}]
    actions = [
        action for path in paths for action in re.findall(r"\{\{(.*?)\}\}", path.read_text(), re.DOTALL)
    ]
    words = {word for action in actions for word in re.findall(r'(?<![\w.$"-])[A-Za-z]+(?![\w"-])', action)}
    assert set(FUNCTIONS) - words == set()


@pytest.mark.parametrize("number", range(2))
def test_a_value_of_yaml_keeps_its_meaning(number):
    value = [VALUES["odd"], VALUES["map"]][number]
    assert yaml.safe_load(written("{{ toYaml . }}", value)) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(
            "{{ shout .Values.text }}", "shout is not a function", id="a function that Helm may have"
        ),
        pytest.param("{{ merge .Values.map }}", "merge is not a function", id="merge"),
        pytest.param("{{ tpl .Values.text . }}", "tpl is not a function", id="tpl"),
        pytest.param("{{ .Values.missing }}", "'missing'", id="a key that is missing"),
        pytest.param("{{ .Values.text.missing }}", "is of another type", id="a key of a text"),
        pytest.param("{{ if .Values.missing }}a{{ end }}", "'missing'", id="a condition on one"),
        pytest.param(
            "{{ .Values.large }}", "of another type", id="an integer that Helm writes with an exponent"
        ),
        pytest.param("{{ .Values.share }}", "of another type", id="a float"),
        pytest.param("{{ .Values.map }}", "of another type", id="a map in a text"),
        pytest.param(
            "{{ eq .Values.port 8443 }}", "of another type", id="numbers compared: Helm has floats there"
        ),
        pytest.param('{{ printf "%d" .Values.port }}', "printf writes texts only", id="a number in printf"),
        pytest.param("{{ range .Values.text }}a{{ end }}", "of another type", id="a range over a text"),
        pytest.param("{{ range .Values.port }}a{{ end }}", "of another type", id="a range over a number"),
        pytest.param('{{ include "none" . }}', "'none'", id="a template that is missing"),
        pytest.param("{{ $a }}", "'$a'", id="a variable that is missing"),
        pytest.param("{{ ternary 1 2 .Values.text }}", "of another type", id="a text for a condition"),
        pytest.param("{{ quote .Values.port }}", "of another type", id="a number in quotes"),
        pytest.param('{{ "a" ? }}', "cannot read", id="what is no token"),
        pytest.param('{{ (dict "a" "b").a }}', "cannot read", id="a field of what parentheses return"),
    ],
)
def test_what_helm_does_otherwise_is_an_error(text, says):
    with pytest.raises((TemplateError, KeyError), match=says.replace("$", r"\$")):
        written(text)


def test_an_error_names_file_and_action():
    with pytest.raises(TemplateError, match=r"^a\.yaml: \{\{ \.Values\.missing \| quote \}\}: 'missing'$"):
        written("{{ .Values.missing | quote }}")


def test_fail_refuses_the_values():
    with pytest.raises(Failed, match="set a"):
        written('{{ fail "set a" }}')


def test_a_file_is_part_of_a_document():
    assert written('{{ .Files.Get (printf "%s.yaml" "b") | quote }}') == '"text of b.yaml"'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("{{ if true }}a{{ end }}{{ end }}", "a block ends with end", id="no begin"),
        pytest.param("{{ if true }}a", "a block ends with the file", id="no end"),
        pytest.param('{{ define "a" }}a', "a block ends with the file", id="no end of a definition"),
        pytest.param("{{ range list }}a{{ else }}b{{ end }}", "a block ends with else", id="another range"),
        pytest.param("{{ with 0 }}a{{ else with 1 }}b{{ end }}", "ends with else with 1", id="another with"),
        pytest.param("{{ if false }}a{{ else }}b{{ else }}c{{ end }}", "ends with else", id="two others"),
    ],
)
def test_a_block_that_does_not_end_as_it_should_is_an_error(text, says):
    with pytest.raises(TemplateError, match=says):
        Templates({"a.yaml": text})


def test_documents_come_in_order_and_empty_ones_not_at_all():
    files = {"b.yaml": "b: 1\n---\n{{ if false }}\nc: 2\n{{ end }}\n", "a.yaml": "---\na: 1"}
    assert Templates(files).render({}) == [{"b": 1}, {"a": 1}]
    assert Templates(files).render({}, "a.yaml") == [{"a": 1}]
