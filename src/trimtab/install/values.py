r"""The values of an installation: the defaults, values files, and assignments of `--set` in Helm's syntax.

Files are merged as Helm merges them: maps key by key, everything else as a whole, and null removes a key. `a.b=1,c[0].d=2` holds
two assignments, and a backslash makes the next character an ordinary one, as in `annotations.example\.com/role=x`. Unlike Helm,
a comma ends an assignment only if a known value follows it. So `settings.watch-namespaces=shop,search` needs no backslash.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from trimtab.install.schema import Problem, Schema, followed, problems, read, values_schema
from trimtab.model.readable import counted

Path = tuple[str | int, ...]
"""Keys of maps and indices of lists."""

_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_PART: Final = re.compile(r"((?:\\.|[^\\.\[])*)((?:\[[0-9]{1,5}\])*)(\.|$)", re.DOTALL | re.ASCII)
_KEY: Final = re.compile(r"((?:\\.|[^\\=])*)(=?)(.*)", re.DOTALL)
_SEPARATOR: Final = re.compile(r"\\.|[][{},]", re.DOTALL)
_SHORT: Final = 600
"""The length of a list of names that fits into a message."""
_HELM_SCALAR: Final = re.compile(r"true|false|null|0|-?[1-9][0-9]*", re.ASCII)
"""The scalars that Helm does not take for texts, where the schema names no type."""


class ValueProblem(Exception):  # noqa: N818 - a problem of what was typed, shown as it is
    """A value is invalid. The message names it and what is valid."""


def default_values() -> dict[str, Any]:
    """Return the values that the chart has by itself."""
    values: dict[str, Any] = yaml.safe_load(read("values.yaml"))
    return values


def set_values(assignments: Iterable[str] = (), *, files: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return the values of a flat installation after values files and assignments. Raise ValueProblem."""
    values = _merged(default_values(), {"namespace": {"create": True}})
    for file in files:
        values = _merged(values, file)
    for text in assignments:
        if "=" not in text[1:]:
            raise ValueProblem(f"--set {text}: expected KEY=VALUE, for example replicas=3")
        for typed, value in _assignments(text):
            path = _path(typed)
            values = _assigned(values, path, _value(typed, value, _schema_of(typed, path)), typed)
    for problem in problems(values_schema(), values):
        raise ValueProblem(_sentence(problem))
    return values


def check_namespace(namespace: str) -> None:
    """Raise ValueProblem if a text cannot be a namespace."""
    for problem in problems({"$ref": "#/definitions/namespace"}, namespace):
        raise ValueProblem(f"--namespace: {problem.message}")


def _merged(values: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for key, value in file.items():
        inner = merged.get(key)
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = (
                _merged(inner, value) if isinstance(value, dict) and isinstance(inner, dict) else value
            )
    return merged


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the paths in a text, as they were typed, with their values."""
    typed, value = "", ""
    for number, part in enumerate(_separated(text)):
        key, equals, rest = _KEY.findall(part)[0]
        if number and not (equals and _schema_at(_path(key.strip()))):
            value += f",{part}"
            continue
        if number:
            yield typed, value
        typed, value = key.strip(), rest
    yield typed, value


def _separated(text: str) -> Iterator[str]:
    """Yield what commas separate. Commas inside of braces and brackets, and escaped ones, separate nothing."""
    start, depth = 0, 0
    for found in _SEPARATOR.finditer(text):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if found[0] == "," and depth <= 0:
            yield text[start : found.start()]
            start = found.end()
    yield text[start:]


def _path(typed: str) -> Path:
    """Return the parts of a path such as `tolerations[0].key`, or nothing if an index is no number."""
    parts: list[str | int] = []
    position = 0
    while found := _PART.match(typed, position):
        parts += [_unescaped(found[1]), *map(int, re.findall(r"\d+", found[2]))]
        position = found.end()
        if not found[3]:
            return tuple(parts)
    return ()


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _assigned(old: Any, path: Path, value: Any, typed: str) -> Any:
    """Return a value after an assignment: to a key of a map, or to an item of a list or the one after its last."""
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(part, int):
        items = list(old) if isinstance(old, list) else []
        if part > len(items):
            told = f"the list has {counted(len(items), 'item')}, so the next index is {len(items)}"
            raise ValueProblem(f"{typed}: {told}")
        items[part : part + 1] = [_assigned(items[part] if part < len(items) else None, rest, value, typed)]
        return items
    entries = dict(old) if isinstance(old, Mapping) else {}
    entries[part] = _assigned(entries.get(part), rest, value, typed)
    if entries[part] is None:
        del entries[part]
    return entries


def _value(typed: str, text: str, schema: Schema) -> Any:
    """Return the value in the type of the schema. The check of all values rejects another type."""
    if schema.get("type") == "string":
        return _unescaped(text)
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueProblem(f"--set {typed}: {text!r} is not YAML: {error}") from error
    if schema.get("type") == "array" and not isinstance(value, list | None):
        inner = re.sub(r"^\{(.*)\}$", r"\1", text.strip(), flags=re.DOTALL)
        items = [_unescaped(item).strip() for item in re.split(r"(?<!\\),", inner)]
        return [_item(item, followed(schema["items"])) for item in items if item]
    if not schema and not isinstance(value, dict | list) and not _HELM_SCALAR.fullmatch(text):
        return _unescaped(text)
    return value


def _item(text: str, schema: Schema) -> Any:
    """Return an item of a list in the type that the list holds. The text itself is returned if it is not YAML."""
    try:
        return text if schema.get("type") == "string" else yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _schema_of(typed: str, path: Path) -> Schema:
    if not path:
        raise ValueProblem(f"--set {typed}: an index is a number, as {typed.partition('[')[0]}[0]")
    schema = _schema_at(path)
    if schema is None:
        unknown = (each for each in problems(values_schema(), _assigned({}, path, "", typed)) if each.known)
        raise ValueProblem(
            _sentence(next(unknown, Problem((), "there is no such value"))._replace(path=(typed,)))
        )
    return schema


def _schema_at(path: Path) -> Schema | None:
    """Return the type at a path, which may lead into a map whose keys the user chooses, or None."""
    schema: Any = values_schema()
    for part in path:
        if schema and schema.get("type", "object") != ("array" if isinstance(part, int) else "object"):
            return None
        others = schema.get("additionalProperties", {})
        schema = (
            schema.get("items", {})
            if isinstance(part, int)
            else schema.get("properties", {}).get(part, others)
        )
        if not isinstance(schema, Mapping):
            return None
        schema = followed(schema)
    return schema if path else None


def _sentence(problem: Problem) -> str:
    sentence = f"{'.'.join(map(str, problem.path)) or 'the values'}: {problem.message}"
    if not problem.known:
        return sentence
    parent, dot, name = ".".join(map(str, problem.path)).rpartition(".")
    for near in difflib.get_close_matches(name, problem.known, 1, 0.75):
        return f"{sentence}; did you mean {parent}{dot}{near}?"
    known = f"known are: {', '.join(problem.known)}"
    return f"{sentence}; {known if len(known) < _SHORT else 'docs/reference/flags.md lists them'}"
