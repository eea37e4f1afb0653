"""What Helm writes for each function and each form of an action that the chart uses, recorded from Helm 3.22.

`python -m tests.unit.install.helm_answers` records the answers anew. tests/real/install/test_helm.py asks Helm again.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

VALUES: Final[Mapping[str, Any]] = {
    "text": "a<b> \"c\" 'd' {{ e }}",
    "lines": "one\n  two\n\nthree\n",
    "empty": "",
    "yes": True,
    "no": False,
    "zero": 0,
    "port": 8443,
    "large": 104857600,
    "share": 0.1,
    "list": ["b", "a"],
    "none": [],
    "map": {"b": "2", "a": {"c": [1, True, "x: y"]}},
    "nothing": {},
    "odd": {
        "on": "off",
        "1": "2",
        "null": "~",
        "date": "2001-01-01",
        "sign": "= #",
        "long": "word " * 40,
        "tab": "a\tb\n",
    },
}
TEMPLATES: Final[Mapping[str, str]] = {
    "append": '{{ append .Values.list "c" | toJson }}',
    "and": "{{ and .Values.yes .Values.text }}|{{ and .Values.zero .Values.text }}|{{ and .Values.yes .Values.empty }}",
    "assignment": '{{ $a := "1" }}{{ if .Values.yes }}{{ $a = "2" }}{{ $b := "3" }}{{ $b }}{{ end }}{{ $a }}',
    "boolean": "{{ .Values.yes }} {{ .Values.no }}",
    "comment": "a {{- /* b */}} c {{/* d */ -}} e",
    "concat": '{{ concat .Values.list .Values.none (list "c") | toJson }}',
    "contains": '{{ contains "b" "abc" }} {{ contains "d" "abc" }} {{ contains "" "" }}',
    "default": '{{ .Values.empty | default "a" }} {{ .Values.zero | default 2 }} {{ .Values.text | default "a" }} '
    '{{ .Values.nothing | default (dict "a" "b") | toJson }} {{ .Values.no | default true }}',
    "dict": '{{ dict "b" 1 "a" (list true) | toJson }} {{ (dict) | toJson }}',
    "else if": "{{ if .Values.no }}a{{ else if .Values.zero }}b{{ else if .Values.list }}c{{ else }}d{{ end }}",
    "empty values": '{{ range $v := list "" 0 false (list) (dict) }}{{ if $v }}a{{ else }}b{{ end }}{{ end }}',
    "eq": '{{ eq .Values.text "a" }} {{ eq "a" "a" }} {{ eq .Values.yes true }}',
    "escapes": '{{ "a\\"b\\\\c\\n" }}',
    "field of a variable": "{{ $m := .Values.map }}{{ $m.a.c | toJson }} {{ $.Values.port }}",
    "fromYaml": '{{ fromYaml "a: [b, c]" | toJson }}',
    "get": '{{ get .Values.map "b" }}|{{ get .Values.map "z" }}|{{ get .Values.map "a" | toJson }}',
    "hasKey": '{{ hasKey .Values.map "b" }} {{ hasKey .Values.map "z" }}',
    "include": '{{ define "one" }} 1 {{ .a }} {{ end }}{{ include "one" (dict "a" "b") }}|{{ include "one" (dict "a" 2) | nindent 2 }}',
    "index": '{{ index .Values.list 1 }} {{ index (list "webhook" 8000) 1 }}',
    "join": '{{ join "," .Values.list }}|{{ join "," .Values.none }}|{{ list "a" | join "," }}',
    "kindIs": '{{ kindIs "string" .Values.text }} {{ kindIs "string" .Values.port }} {{ kindIs "string" .Values.yes }}',
    "list": '{{ list | toJson }} {{ list "a" 1 true .Values.list | toJson }}',
    "ne": '{{ ne .Values.text "a" }} {{ ne "a" "a" }}',
    "nindent": '{{ "a\\nb" | nindent 3 }}',
    "not": "{{ not .Values.yes }} {{ not .Values.empty }} {{ not .Values.none }}",
    "number": "{{ .Values.port }} {{ .Values.zero }}",
    "or": '{{ or .Values.empty .Values.text }}|{{ or .Values.empty .Values.zero }}|{{ or "" "" }}',
    "parentheses": '{{ if and .Values.yes (not (or .Values.no (eq "a" "b"))) }}a{{ end }}',
    "pipeline": '{{ .Values.list | join "-" | printf "%s-%s" "a" | quote }}',
    "printf": '{{ printf "%s-%s" "a" .Values.text }}',
    "quote": "{{ .Values.text | quote }} {{ quote .Values.lines }} {{ quote .Values.empty }}",
    "range over a list": "{{ range .Values.list }}{{ . }}{{ end }}{{ range $i := .Values.list }}{{ $i }}{{ end }}"
    "{{ range $n, $i := .Values.list }}{{ $n }}{{ $i }}{{ end }}{{ range .Values.none }}a{{ end }}",
    "range over a map": '{{ range $k, $v := dict "b" "1" "a" "2" "B" "3" "10" "4" "9" "5" }}{{ $k }}{{ $v }}{{ . }} {{ end }}'
    '{{ range $v := dict "b" "1" "a" "2" }}{{ $v }}{{ end }}',
    "range in two lines": '{{ range $k, $v := dict "a" "1"\n    "b" "2" }}{{ $k }}{{ $v }}{{ end }}',
    "root in a range": '{{ range .Values.list }}{{ $.Values.port }}{{ end }}{{ define "two" }}{{ $.a }}{{ end }}{{ include "two" (dict "a" "b") }}',
    "set": '{{ $m := dict "a" "1" }}{{ $_ := set $m "b" "2" }}{{ $_ := set $m "a" "3" }}{{ toJson $m }}',
    "splitList": '{{ splitList "," "a,b" | toJson }} {{ splitList "," "" | toJson }}',
    "ternary": '{{ ternary "a" "b" .Values.yes }} {{ ternary "a" "b" .Values.no }}',
    "toJson": "{{ toJson .Values.large }} {{ toJson .Values.share }} {{ toJson .Values.yes }} {{ toJson .Values.list }} {{ toJson .Values.map }}",
    "toYaml": "a:{{ .Values.map | toYaml | nindent 2 }}\nb: {{ toYaml .Values.list | nindent 2 }}\nc:\n  {{- toYaml .Values.odd | nindent 2 }}",
    "trimming": "a  {{- .Values.port -}}  b\n\n  {{- .Values.port }}  c {{ .Values.port -}}\n d",
    "trim": '{{ trim " \\n a b\\t" | quote }}',
    "until": "{{ range until 3 }}{{ . }}{{ end }}",
    "variables of a block": '{{ $a := "1" }}{{ range .Values.list }}{{ $a := . }}{{ $a }}{{ end }}{{ $a }}',
    "with": "{{ with .Values.map }}{{ .b }}{{ $.Values.port }}{{ end }}{{ with .Values.empty }}a{{ else }}b{{ end }}",
    "without": '{{ without .Values.list "a" | toJson }} {{ without (list "a" "b") "c" | toJson }}',
}
"""By what is shown. Each function of `trimtab.install.templates` is the name of one."""

ANSWERS: Final = Path(__file__).with_name("helm_answers.json")


def ask(helm: str) -> dict[str, str]:
    """Return Helm's answers, from a chart with one template for each. The text of a template is below a line of `---`."""
    with tempfile.TemporaryDirectory() as folder:
        chart = Path(folder)
        (chart / "templates").mkdir()
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: answers\nversion: 1.0.0\n")
        (chart / "values.yaml").write_text(json.dumps(VALUES))
        answers = "".join(
            f'{json.dumps(name)}: {{{{ include "answer.{number}" . | toJson }}}}\n'
            for number, name in enumerate(TEMPLATES)
        )
        (chart / "templates" / "answers.yaml").write_text(answers)
        for number, text in enumerate(TEMPLATES.values()):
            defined, rest = outside(text)
            (chart / "templates" / f"_{number}.body.tpl").write_text(
                f'{defined}{{{{ define "answer.{number}" }}}}{rest}{{{{ end }}}}'
            )
        done = subprocess.run([helm, "template", str(chart)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
        found = [json.loads(f"{{{line}}}") for line in lines]
        return {name: answer for each in found for name, answer in each.items()}


def outside(text: str) -> tuple[str, str]:
    """Return the definitions in a template, which Helm takes at the top of a file only, and the rest."""
    before, define, after = text.partition("{{ define ")
    if not define:
        return "", text
    inside, _, rest = after.partition("{{ end }}")
    defined, others = outside(rest)
    return define + inside + "{{ end }}" + defined, before + others


if __name__ == "__main__":
    ANSWERS.write_text(json.dumps(ask(sys.argv[1]), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
