r"""The values of an installation: the defaults, values files, and assignments of `--set` in Helm's syntax.

Files are merged as Helm merges them: maps key by key, everything else as a whole, and null removes a key. `a.b=1,c[0].d=2` holds
two assignments, and a backslash makes the next character an ordinary one, as in `annotations.example\.com/role=x`. Unlike Helm,
a comma ends an assignment only if a value of the chart follows it. So `settings.watch-namespaces=shop,search` needs no backslash.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from trimtab.install.schema import Problem, Schema, followed, problems, read, values_schema
from trimtab.model.readable import counted

Path = list[str | int]
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


class _Typed(str):
    """A text as it was typed. The schema tells what it means."""

    __slots__ = ()


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
        for key, value in _assignments(text):
            meant = None if value == "null" else _Typed(value)
            values = _meant(_assigned(values, _path(key), meant, key), values_schema())
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
        if isinstance(value, dict) and isinstance(inner, dict):
            value = _merged(inner, value)
        merged[key] = value
    return {key: value for key, value in merged.items() if value is not None}


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys in a text, as they were typed, with their values."""
    key, value = "", ""
    for part in _separated(text):
        start, equals, rest = _KEY.findall(part)[0]
        if key and not (equals and re.split(r"[.[]", start.strip())[0] in values_schema()["properties"]):
            value += f",{part}"
            continue
        if key:
            yield key, value
        key, value = start.strip(), rest
    yield key, value


def _separated(text: str) -> Iterator[str]:
    """Yield what commas separate. Commas inside of braces and brackets, and escaped ones, separate nothing."""
    start, depth = 0, 0
    for found in _SEPARATOR.finditer(text):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if found[0] == "," and depth <= 0:
            yield text[start : found.start()]
            start = found.end()
    yield text[start:]


def _path(key: str) -> Path:
    """Return the parts of a key such as `tolerations[0].key`."""
    path: Path = []
    position = 0
    while found := _PART.match(key, position):
        path += [_unescaped(found[1]), *map(int, re.findall(r"\d+", found[2]))]
        position = found.end()
        if not found[3]:
            return path
    raise ValueProblem(f"--set {key}: an index is a number, as {key.partition('[')[0]}[0]")


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _assigned(old: Any, path: Path, value: Any, key: str) -> Any:
    """Return a value after an assignment: to a key of a map, or to an item of a list or the one after its last."""
    if not path:
        return value
    part, *rest = path
    if isinstance(part, int):
        items = list(old) if isinstance(old, list) else []
        if part > len(items):
            told = f"the list has {counted(len(items), 'item')}, so the next index is {len(items)}"
            raise ValueProblem(f"{key}: {told}")
        items[part : part + 1] = [_assigned(items[part] if part < len(items) else None, rest, value, key)]
        return items
    entries = old if isinstance(old, Mapping) else {}
    return _merged({}, {**entries, part: _assigned(entries.get(part), rest, value, key)})


def _meant(value: Any, schema: Schema) -> Any:
    """Return a value with each typed text in the type of its schema. The check of all values rejects another type."""
    schema = followed(schema)
    if isinstance(value, Mapping):
        declared, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
        return {key: _meant(inner, declared.get(key, others)) for key, inner in value.items()}
    if isinstance(value, list):
        return [_meant(item, schema.get("items", {})) for item in value]
    if not isinstance(value, _Typed):
        return value
    kind = schema.get("type")
    if kind == "string" or (not schema and not _HELM_SCALAR.fullmatch(value) and value[:1] not in ("[", "{")):
        return _unescaped(value)
    if kind == "boolean":
        return {"true": True, "false": False}.get(value.lower(), str(value))
    try:
        found = yaml.safe_load(value)
    except yaml.YAMLError:
        found = str(value)
    if kind != "array" or isinstance(found, list):
        return found
    parts = re.split(r"(?<!\\),", re.sub(r"^\{(.*)\}$", r"\1", value.strip(), flags=re.DOTALL))
    return [_meant(_Typed(part.strip()), schema["items"]) for part in parts if part.strip()]


def _sentence(problem: Problem) -> str:
    path = ".".join(problem.path)
    sentence = f"{path or 'the values'}: {problem.message}"
    if not problem.known:
        return sentence
    parent, dot, name = path.rpartition(".")
    for near in difflib.get_close_matches(name, problem.known, 1, 0.75):
        return f"{sentence}; did you mean {parent}{dot}{near}?"
    known = f"known are: {', '.join(problem.known)}"
    return f"{sentence}; {known if len(known) < _SHORT else 'docs/reference/flags.md lists them'}"
