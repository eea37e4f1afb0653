"""Builds the values of a flat installation from values files and `--set` assignments, and checks them.

Files are merged as Helm merges them: maps key by key, everything else as a whole, and null removes a key.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from trimtab.install.values.schema import Problem, problems, values_schema
from trimtab.install.values.set_syntax import Assignment, BadPath, Path, parse, parse_path, unescape
from trimtab.install.values.table import CHART_VALUES, default_values
from trimtab.install.values.types import NAMESPACE_NAME, Schema
from trimtab.model.readable import counted

_HELM_SCALAR = re.compile(r"true|false|null|0|-?[1-9][0-9]*", re.ASCII)
"""The scalars that Helm does not take for texts, where the schema names no type."""


class ValueProblem(Exception):  # noqa: N818 - a problem of what was typed, shown as it is
    """A value is invalid. The message names it and what is valid."""


def set_values(
    assignments: Iterable[str], *, files: Iterable[Mapping[str, Any]] = (), namespace: str = "trimtab"
) -> dict[str, Any]:
    """Return the values of a flat installation after values files and `path=value` assignments.

    Paths have the syntax of Helm, and the value is YAML. Raise ValueProblem if a value is invalid.
    """
    for problem in problems(NAMESPACE_NAME, namespace):
        raise ValueProblem(f"--namespace: {problem.message}")
    values = default_values()
    values["namespace"]["create"] = True
    for file in files:
        _merge(values, file)
    for text in assignments:
        if "=" not in text[1:]:
            raise ValueProblem(f"--set {text}: expected KEY=VALUE, for example replicas=3")
        try:
            for assignment in parse(text, lambda path: _schema_at(path) is not None):
                _assign(values, assignment)
        except BadPath as problem:
            raise ValueProblem(f"--set {text}: {problem}") from problem
    _check(values)
    values["namespace"]["name"] = namespace
    return values


def _merge(values: dict[str, Any], file: Mapping[str, Any]) -> None:
    for key, value in file.items():
        inner = values.get(key)
        if value is None:
            values.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(inner, dict):
            _merge(inner, value)
        else:
            values[key] = value


def _check(values: Mapping[str, Any]) -> None:
    for problem in problems(values_schema(), values):
        raise ValueProblem(_sentence(problem))


def _sentence(problem: Problem) -> str:
    path = ".".join(problem.path)
    hint = f"; {_hint(path)}" if problem.is_unknown else ""
    return f"{path or 'the values'}: {problem.message}{hint}"


def _assign(values: dict[str, Any], assignment: Assignment) -> None:
    schema = _schema_at(assignment.path)
    if schema is None:
        raise ValueProblem(f"{assignment.typed}: there is no such value; {_hint(assignment.typed)}")
    value = _value(assignment, schema)
    *parents, last = assignment.path
    container: Any = values
    for part, following in zip(parents, assignment.path[1:], strict=True):
        _put(assignment.typed, container, part, [] if isinstance(following, int) else {}, replace=False)
        container = container[part]
    if value is None and isinstance(container, dict):
        container.pop(last, None)
    else:
        _put(assignment.typed, container, last, value, replace=True)


def _put(typed: str, container: Any, part: str | int, value: Any, *, replace: bool) -> None:
    """Set a key of a map, or an item of a list or the one after its last."""
    if isinstance(part, str):
        if replace or not container.get(part):
            container[part] = value
    elif part == len(container):
        container.append(value)
    elif part > len(container):
        raise ValueProblem(
            f"{typed}: the list has {counted(len(container), 'item')}, so the next index is {len(container)}"
        )
    elif replace:
        container[part] = value


def _value(assignment: Assignment, schema: Schema) -> Any:
    """Return the value in the type of the schema. The check of all values rejects another type."""
    text = assignment.text
    if schema.get("type") == "string":
        return unescape(text)
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueProblem(f"--set {assignment.typed}: {text!r} is not YAML: {error}") from error
    if schema.get("type") == "array" and not isinstance(value, list | None):
        return [_item(item, schema["items"]) for item in _split_items(text)]
    if not schema and not isinstance(value, dict | list) and not _HELM_SCALAR.fullmatch(text):
        return unescape(text)
    return value


def _item(text: str, schema: Schema) -> Any:
    """Return an item of a list in the type that the list holds. The text itself is returned if it is not YAML."""
    if schema.get("type") == "string":
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _schema_at(path: Path) -> Schema | None:
    """Return the type at a path, which may lead into a map whose keys the user chooses, or None."""
    schema: Schema = values_schema()
    for part in path:
        wanted = "array" if isinstance(part, int) else "object"
        if schema and schema.get("type", "object") != wanted:
            return None
        if isinstance(part, int):
            inner = schema.get("items", {})
        else:
            inner = schema.get("properties", {}).get(part, schema.get("additionalProperties", {}))
        if not isinstance(inner, Mapping):
            return None
        schema = inner
    return schema if path else None


def _hint(path: str) -> str:
    known = [value.path for value in CHART_VALUES]
    parent = path.rpartition(".")[0]
    if parent in known:
        known = [f"{parent}.{name}" for name in (_schema_at(parse_path(parent)) or {}).get("properties", {})]
    near = difflib.get_close_matches(path, known, 1, 0.75)
    if near:
        return f"did you mean {near[0]}?"
    group = path.partition(".")[0]
    inside = [path for path in known if path.startswith(f"{group}.")]
    return f"known are: {', '.join(inside or dict.fromkeys(path.partition('.')[0] for path in known))}"


def _split_items(text: str) -> list[str]:
    """Return the items of `a,b`, or of `{a,b}` as Helm spells a list. A backslash escapes a comma."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1]
    items = [item.replace("\\,", ",").strip() for item in re.split(r"(?<!\\),", inner)]
    return [item for item in items if item]
