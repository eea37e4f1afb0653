r"""Parses the assignments of `--set` in the syntax of Helm.

`a.b=1,c[0].d=2` holds two assignments. A backslash makes the next character an ordinary one, as in `annotations.example\.com/role=x`.
Unlike Helm, a comma ends an assignment only if a known value follows it. So `watchNamespaces=shop,search` is a list.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Keys of maps and indices of lists."""

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_INDEX = re.compile(r"\[([0-9]{1,5})\]", re.ASCII)
_NAME = re.compile(r"(?:\\.|[^\\.\[])*", re.DOTALL)


class BadPath(ValueError):  # noqa: N818 - a problem of what was typed, shown as it is
    """A path has an index that is no number."""


@dataclass(frozen=True)
class Assignment:
    """A path, as it was typed and by its parts, and the text of the value."""

    typed: str
    path: Path
    text: str


def parse(text: str, is_known: Callable[[Path], bool]) -> Iterator[Assignment]:
    """Yield the assignments in a text. The first one may be of an unknown value. Raise BadPath."""
    typed, value = "", ""
    for number, part in enumerate(_parts(text)):
        key, equals, rest = _partition(part)
        if not number:
            typed, value = key, rest
        elif equals and is_known(_path_or_nothing(key.strip())):
            yield Assignment(typed, parse_path(typed), value)
            typed, value = key.strip(), rest
        else:
            value += f",{part}"
    yield Assignment(typed, parse_path(typed), value)


def parse_path(text: str) -> Path:
    """Return the parts of a path such as `tolerations[0].key`. Raise BadPath."""
    parts: list[str | int] = []
    position = 0
    while True:
        name = _NAME.match(text, position)
        assert name is not None  # the pattern also matches nothing
        parts.append(unescape(name[0]))
        position = name.end()
        while text[position : position + 1] == "[":
            index = _INDEX.match(text, position)
            if index is None:
                raise BadPath(f"an index is a number, as {text[:position]}[0]")
            parts.append(int(index[1]))
            position = index.end()
        if position >= len(text):
            return tuple(parts)
        position += text[position] == "."


def unescape(text: str) -> str:
    """Return the text without the backslashes that make the next character an ordinary one."""
    return _ESCAPED.sub(r"\1", text)


def _path_or_nothing(text: str) -> Path:
    try:
        return parse_path(text)
    except BadPath:
        return ()


def _partition(part: str) -> tuple[str, str, str]:
    r"""Return the text before and after the first `=` that no backslash escapes."""
    found = re.match(r"((?:\\.|[^\\=])*)(=?)", part, re.DOTALL)
    assert found is not None  # the pattern also matches nothing
    return found[1], found[2], part[found.end() :]


def _parts(text: str) -> list[str]:
    """Return what commas separate. Commas inside of braces and brackets, and escaped ones, separate nothing."""
    parts, start, depth, is_escaped = [], 0, 0, False
    for position, character in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
        elif character == "," and depth <= 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]
