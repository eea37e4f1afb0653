"""Writes trees as Helm templates: YAML in block style, and every placeholder as a Helm expression.

A value is written by its declared type: maps and lists with `toYaml`, texts with `quote`. Numbers, switches and texts with a pattern need
no quotes (`values.types`), so they are written into longer texts as they are.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from trimtab.install.template import (
    ABSENT,
    Both,
    Condition,
    Each,
    Either,
    Entries,
    Given,
    If,
    Item,
    Joined,
    Mentions,
    Namespace,
    Not,
    Pairs,
    Part,
    Text,
    Tree,
    Val,
)
from trimtab.install.values.table import CHART_VALUES
from trimtab.install.values.types import NAMESPACE_NAME, TEXT, Schema

HELPERS = """{{- /* A map as A=true,B=false; Helm walks maps in the order of their keys. */}}
{{- define "trimtab.pairs" -}}
{{- $pairs := list -}}
{{- range $key, $value := . }}{{ $pairs = append $pairs (printf "%s=%v" $key $value) }}{{ end -}}
{{- join "," $pairs -}}
{{- end }}
"""
_SCHEMAS = {value.path: value.schema for value in CHART_VALUES}


def write_check(condition: Condition, message: str) -> str:
    """Return the line that fails with a message if a condition holds."""
    return f"{{{{- if {_condition(condition)} }}}}{{{{ fail {json.dumps(message)} }}}}{{{{ end }}}}\n"


def write_document(tree: Tree) -> Iterator[str]:
    """Yield the lines of one object, or of those that a condition or a list yields."""
    match tree:
        case If():
            yield f"{{{{- if {_condition(tree.condition)} }}}}"
            yield from write_document(tree.then)
            yield "{{- end }}"
        case Each():
            yield f"{{{{- range {_first(tree)} }}}}"
            yield from _Writer(_items_of(tree.path)).document(tree.item)
            yield "{{- end }}"
        case _:
            yield from _Writer().document(tree)


class _Writer:
    """Writes trees. `item` is the type of the entries of the enclosing `Each`."""

    def __init__(self, item: Schema = TEXT) -> None:
        self._item = item

    def document(self, tree: Tree) -> Iterator[str]:
        yield "---"
        yield from self._block(tree, 0)

    def _block(self, tree: Tree, depth: int) -> Iterator[str]:
        if isinstance(tree, dict):
            for key, child in tree.items():
                if isinstance(key, Entries):
                    yield from _spread(key, depth)
                else:
                    yield from self._entry(_plain(key), child, depth)
        else:
            for child in tree:
                yield from self._element(child, depth)

    def _entry(self, key: str, child: Tree, depth: int) -> Iterator[str]:
        indent = "  " * depth
        match child:
            case If(condition=Val() as value, then=then) if value == then and child.otherwise is ABSENT:
                yield f"{indent}{{{{- with {_first(value)} }}}}"
                yield from _written(f"{indent}{key}:", ".", _schema(value), depth + 1)
                yield f"{indent}{{{{- end }}}}"
            case If():
                yield f"{indent}{{{{- if {_condition(child.condition)} }}}}"
                yield from self._entry(key, child.then, depth)
                if child.otherwise is not ABSENT:
                    yield f"{indent}{{{{- else }}}}"
                    yield from self._entry(key, child.otherwise, depth)
                yield f"{indent}{{{{- end }}}}"
            case dict() | list() if child:
                yield f"{indent}{key}:"
                yield from self._block(child, depth + 1)
            case Val():
                yield from _written(f"{indent}{key}:", _first(child), _schema(child), depth + 1)
            case _:
                yield from _joined(f"{indent}{key}:", self._scalar(child), depth + 1)

    def _element(self, child: Tree, depth: int) -> Iterator[str]:
        indent = "  " * depth
        match child:
            case If():
                yield f"{indent}{{{{- if {_condition(child.condition)} }}}}"
                yield from self._element(child.then, depth)
                if child.otherwise is not ABSENT:
                    yield f"{indent}{{{{- else }}}}"
                    yield from self._element(child.otherwise, depth)
                yield f"{indent}{{{{- end }}}}"
            case Each(item=Item(field="")):
                yield f"{indent}{{{{- with {_first(child)} }}}}"
                yield f"{indent}{{{{- toYaml . | nindent {2 * depth} }}}}"
                yield f"{indent}{{{{- end }}}}"
            case Each():
                yield f"{indent}{{{{- range {_first(child)} }}}}"
                yield from _Writer(_items_of(child.path))._element(child.item, depth)
                yield f"{indent}{{{{- end }}}}"
            case dict() | list() if child:
                first, *rest = self._block(child, depth + 1)
                yield f"{indent}- {first.lstrip()}"
                yield from rest
            case Val():
                yield from _written(f"{indent}-", _first(child), _schema(child), depth + 1)
            case _:
                yield from _joined(f"{indent}-", self._scalar(child), depth + 1)

    def _scalar(self, value: Any) -> str:
        match value:
            case Text():
                return self._text(value)
            case Item() | Namespace() | Joined() | Pairs():
                schema = self._part_schema(value)
                return _expression(value, schema)
            case _:
                return _plain(value)

    def _text(self, text: Text) -> str:
        """Return a text with values in it, as one scalar."""
        if all(isinstance(part, str) or _needs_no_quotes(self._part_schema(part)) for part in text.parts):
            return _around(text, lambda part: f"{{{{ {_operand(part)} }}}}")
        operands = " ".join(
            json.dumps(part) if isinstance(part, str) else _nested(_operand(part)) for part in text.parts
        )
        return f"{{{{ print {operands} | quote }}}}"

    def _part_schema(self, part: Part) -> Schema:
        match part:
            case Val():
                return _schema(part)
            case Joined():
                return _items_of(part.path)
            case Pairs():
                return NAMESPACE_NAME  # the names of gates are declared
            case Namespace():
                return NAMESPACE_NAME
            case Item():
                return self._item.get("properties", {}).get(part.field, TEXT) if part.field else self._item
            case _:
                return TEXT


def _spread(entries: Entries, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if not entries.paths:
        yield f"{indent}{{{{- toYaml . | nindent {2 * depth} }}}}"
        return
    maps = [f"$.Values.{path}" for path in entries.paths]
    merged = maps[0] if len(maps) == 1 else f"merge (dict) {' '.join(maps)}"
    yield f"{indent}{{{{- with {merged} }}}}"
    yield f"{indent}{{{{- toYaml . | nindent {2 * depth} }}}}"
    yield f"{indent}{{{{- end }}}}"


def _written(prefix: str, expression: str, schema: Schema, depth: int) -> Iterator[str]:
    """Yield a value after its key or dash."""
    if schema.get("type") in ("object", "array"):
        yield prefix
        yield f"{'  ' * depth}{{{{- toYaml {_nested(expression)} | nindent {2 * depth} }}}}"
    else:
        yield f"{prefix} {_quoted(expression, schema)}"


def _joined(prefix: str, scalar: str, depth: int) -> Iterator[str]:
    """Yield a scalar after its key or dash; a block of several lines is indented."""
    first, *rest = scalar.split("\n")
    yield f"{prefix} {first}"
    for line in rest:
        yield f"{'  ' * depth}{line}" if line else ""


def _expression(value: Part, schema: Schema) -> str:
    return _quoted(_operand(value), schema)


def _quoted(expression: str, schema: Schema) -> str:
    numeric = schema.get("type") in ("integer", "boolean")
    return f"{{{{ {expression} }}}}" if numeric else f"{{{{ {expression} | quote }}}}"


def _needs_no_quotes(schema: Schema) -> bool:
    kind = schema.get("type")
    return kind in ("integer", "boolean") or "enum" in schema or str(schema.get("pattern", "")).endswith("$")


_HOLE = "\ue000"
"""Stands for a value while the text around it is written. No manifest contains it."""


def _around(text: Text, action: Any) -> str:
    actions = [action(part) for part in text.parts if not isinstance(part, str)]
    skeleton = "".join(part if isinstance(part, str) else _HOLE for part in text.parts)
    if skeleton.startswith(_HOLE) and skeleton != _HOLE and "\n" not in skeleton and '"' not in skeleton:
        scalar = json.dumps(skeleton, ensure_ascii=False)
    else:
        scalar = _plain(skeleton)
    pieces = scalar.split(_HOLE)
    return pieces[0] + "".join(made + piece for made, piece in zip(actions, pieces[1:], strict=True))


def _plain(value: Any) -> str:
    """Return a scalar as YAML, in the plainest form that means the same. Braces of templates are escaped."""
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    if not isinstance(value, str):
        return json.dumps(value)
    if (
        "\n" in value
        and re.fullmatch(r"\S[^\n]*(\n([^\s][^\n]*| +[^\s][^\n]*)?)*", value)
        and not re.search(r"[ \t]\n|\n\n$", value)
    ):
        body = value.removesuffix("\n")
        return _escaped(("|\n" if value.endswith("\n") else "|-\n") + body)
    if "\n" in value:
        return _escaped(json.dumps(value, ensure_ascii=False))
    is_plain = re.fullmatch(r"[A-Za-z0-9/_.\-\ue000][^\x00-\x1f]*", value) and _reads_as(value, value)
    return _escaped(value if is_plain else json.dumps(value, ensure_ascii=False))


def _reads_as(text: str, value: str) -> bool:
    """Return whether a plain scalar means a text, to YAML 1.1 and 1.2 alike."""
    if re.fullmatch(r"[-+.0-9_eExXoObB:]+|y|n|yes|no|on|off|true|false|null|~|<<", text, re.IGNORECASE):
        return False
    try:
        return bool(yaml.safe_load(f"- {text}\n") == [value] and yaml.safe_load(f"{text}: 1\n") == {value: 1})
    except yaml.YAMLError:
        return False


def _escaped(text: str) -> str:
    return text.replace("{{", '{{ "{{" }}')


def _schema(value: Val) -> Schema:
    return _SCHEMAS[value.path]


def _items_of(path: str) -> Schema:
    items: Mapping[str, Any] = _SCHEMAS[path].get("items", TEXT)
    return items


def _first(value: Val | Each) -> str:
    own = f"$.Values.{value.path}"
    return f"{own} | default $.Values.{value.otherwise}" if value.otherwise else own


def _operand(part: Part) -> str:
    match part:
        case Val():
            return _first(part)
        case Namespace():
            return "$.Release.Namespace"
        case Joined():
            return f'join "," $.Values.{part.path}'
        case Pairs():
            return f'include "trimtab.pairs" $.Values.{part.path}'
        case Item():
            return f".{part.field}"
        case _:
            return json.dumps(part)


def _nested(expression: str) -> str:
    return f"({expression})" if " " in expression else expression


def _condition(condition: Condition) -> str:
    match condition:
        case Not():
            return f"not {_nested(_condition(condition.condition))}"
        case Both():
            return f"and {_nested(_condition(condition.first))} {_nested(_condition(condition.second))}"
        case Either():
            return f"or {_nested(_condition(condition.first))} {_nested(_condition(condition.second))}"
        case Given():
            value = f"$.Values.{condition.path}"
            return f'not (or (kindIs "invalid" {value}) (eq (toString {value}) ""))'
        case Mentions():
            return f"contains {json.dumps(condition.text)} (toString $.Values.{condition.path})"
        case Val():
            return _first(condition)
