"""Builds the values of a flat installation from values files and `--set` assignments, and checks them.

Files are merged as Helm merges them: maps key by key, everything else as a whole, and null removes a key.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from trimtab.install.schema import Problem, problems, values_schema
from trimtab.install.template import look_up
from trimtab.install.value_types import NAMESPACE_NAME, Schema
from trimtab.install.values import CHART_VALUES, default_values, put


class ValueProblem(Exception):  # noqa: N818 - a problem of what was typed, shown as it is
    """A value is invalid. The message names it and what is valid."""


def set_values(
    assignments: Iterable[str], *, files: Iterable[Mapping[str, Any]] = (), namespace: str = "trimtab"
) -> dict[str, Any]:
    """Return the values of a flat installation after values files and `path=value` assignments.

    The value of an assignment is YAML. Raise ValueProblem if a value is invalid.
    """
    for problem in problems(NAMESPACE_NAME, namespace):
        raise ValueProblem(f"--namespace: {problem.message}")
    values = default_values()
    values["namespace"]["create"] = True
    for file in files:
        _merge(values, file)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals:
            raise ValueProblem(f"--set {assignment}: expected KEY=VALUE, for example replicas=3")
        _assign(values, path, text)
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


def _assign(values: dict[str, Any], path: str, text: str) -> None:
    schema = _schema_at(path)
    if schema is None:
        raise ValueProblem(f"{path}: there is no such value; {_hint(path)}")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueProblem(f"--set {path}: {text!r} is not YAML: {error}") from error
    if schema.get("type") == "string":
        value = text
    elif schema.get("type") == "array" and not isinstance(value, list):
        value = [_item(item, schema["items"]) for item in _split_items(text)]
    parent = look_up(values, path.rpartition(".")[0]) if "." in path else values
    if value is None and schema.get("type") != "string":
        parent.pop(path.rpartition(".")[2], None)
    else:
        put(values, path, value)


def _item(text: str, schema: Schema) -> Any:
    """Return an item of a list in the type that the list holds. The text itself is returned if it is not YAML."""
    if schema.get("type") == "string":
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _schema_at(path: str) -> Schema | None:
    """Return the type at a path, which may lead into a map whose keys the user chooses."""
    schema: Schema | None = values_schema()
    for name in path.split("."):
        if schema is None:
            return None
        inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
        is_map = schema.get("type", "object") == "object"
        schema = inner if is_map and isinstance(inner, Mapping) else None
    return schema


def _hint(path: str) -> str:
    known = [value.path for value in CHART_VALUES]
    parent = path.rpartition(".")[0]
    if parent in known:
        known = [f"{parent}.{name}" for name in (_schema_at(parent) or {}).get("properties", {})]
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
