"""Renders templates as Helm does: the part of Go's template language that this chart uses, and nothing else.

A function that is not listed, a key that is missing and an argument of another type are errors, where Helm often goes on with
an empty text. A value becomes a text only if Helm writes it in the same way: so no floats, and no integers of a million or more,
which Helm writes with an exponent. Helm's answers for each function are recorded in tests/unit/install/helm_answers.py.
"""

import json
import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, Final, TypeVar

import yaml

from trimtab.library.documents import to_yaml

Scope = ChainMap[str, Any]
"""The variables of the blocks around an action, innermost first, with the dot as `.` and the root as `$`."""
Expression = Callable[[Scope], Any]
Node = Callable[[Scope], str]
T = TypeVar("T")

_ACTION: Final = re.compile(r"\{\{(-(?=\s))?(.*?)((?<=\s)-)?\}\}", re.DOTALL)
_TOKEN: Final = re.compile(r'("(?:\\.|[^"\\])*"|[(|]|\)(?!\.)|\$?\w*(?:\.\w+)+|\$?\w+|[$.])')
_ASSIGNMENT: Final = re.compile(r"(\$\w+) (:?=)\s(.*)", re.DOTALL)
_LOOP: Final = re.compile(r"(?:(?:(\$\w+), *)?(\$\w+) := )?(.*)", re.DOTALL)
_WORDS: Final = ("true", "false")
_WHITE: Final = " \t\r\n"
_LARGE: Final = 1_000_000


class TemplateError(Exception):
    """A template cannot be rendered. The message names the file and the action."""


class Failed(Exception):  # noqa: N818 - a template's own refusal of the values
    """A template calls `fail`."""


def _a(kind: type[T] | tuple[type[T], ...], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is of another type")
    return value


def _text(value: Any) -> str:
    if isinstance(value, int) and abs(value) < _LARGE:
        return str(value).lower()  # a bool is an int
    return _a(str, value)


def _is_equal(first: Any, second: Any) -> bool:
    return bool(_a((str, bool), first) == _a(type(first), second))


def _printf(form: str, *values: Any) -> str:
    if form.count("%") != form.count("%s"):
        raise ValueError("printf writes texts only, by %s")
    return form % tuple(_a(str, value) for value in values)


def _fail(message: str) -> str:
    raise Failed(message)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "and": lambda *values: next((value for value in values if not value), values[-1]),
    "append": lambda items, item: [*_a(list, items), item],
    "concat": lambda *lists: list(chain.from_iterable(_a(list, items) for items in lists)),
    "contains": lambda part, text: _a(str, part) in _a(str, text),
    "default": lambda default, value: value or default,
    "dict": lambda *pairs: dict(zip(pairs[::2], pairs[1::2], strict=True)),
    "eq": _is_equal,
    "fail": _fail,
    "fromYaml": lambda text: _a(dict, yaml.safe_load(text)),
    "get": lambda entries, key: _a(dict, entries).get(key, ""),
    "hasKey": lambda entries, key: key in _a(dict, entries),
    "index": lambda items, number: _a(list, items)[number],
    "join": lambda separator, texts: separator.join(_a(str, text) for text in _a(list, texts)),
    "kindIs": lambda kind, value: isinstance(value, {"string": str}[kind]),
    "list": lambda *items: list(items),
    "ne": lambda first, second: not _is_equal(first, second),
    "nindent": lambda width, text: f"\n{text}".replace("\n", "\n" + " " * width),
    "not": lambda value: not value,
    "or": lambda *values: next((value for value in values if value), values[-1]),
    "printf": _printf,
    "quote": lambda text: json.dumps(_a(str, text), ensure_ascii=False),
    "set": lambda target, key, value: target.update({key: value}) or target,
    "splitList": lambda separator, text: _a(str, text).split(separator),
    "ternary": lambda yes, no, condition: yes if _a(bool, condition) else no,
    "toJson": lambda value: json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False),
    "toYaml": lambda value: to_yaml(value).rstrip("\n"),
    "trim": lambda text: _a(str, text).strip(_WHITE),
    "until": lambda count: list(range(count)),
    "without": lambda items, *left: [item for item in _a(list, items) if item not in left],
}
"""By name. `include` is added: it needs what the chart defines. `and` and `or` evaluate all of their arguments."""


class Templates:
    """The templates of a chart: its files, and what `define` names in them."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._defined: dict[str, Node] = {}
        functions = {**FUNCTIONS, "include": self._include}
        self._files = {
            name: _Parser(name, _pieces(text), functions, self._defined).body("")[0]
            for name, text in files.items()
        }

    def render(self, context: Mapping[str, Any], only: str = "") -> list[dict[str, Any]]:
        """Return the objects of all files, or of one."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        scope = Scope({"$": context, ".": context})
        texts = [node(scope.new_child()) for name, node in self._files.items() if only in ("", name)]
        return [each for text in texts for each in yaml.load_all(text, loader) if each]

    def _include(self, name: str, dot: Any) -> str:
        return self._defined[name](Scope({"$": dot, ".": dot}))


@dataclass
class _Parser:
    """Parses a file, block by block."""

    name: str
    pieces: Iterator[tuple[str, str]]
    functions: Mapping[str, Callable[..., Any]]
    defined: dict[str, Node]

    def body(self, *ends: str) -> tuple[Node, str]:
        """Return what a block writes up to one of these actions, and the action. A file ends with an empty one."""
        nodes: list[Node] = []
        action = ""
        for text, action in self.pieces:
            nodes.append(_constant(text))
            if action.partition(" ")[0] in ("end", "else"):
                break
            if action and not action.startswith("/*"):
                nodes.append(self._node(action))
        if action not in ends and not (action.startswith("else if ") and "else" in ends):
            raise TemplateError(f"{self.name}: a block ends with {action or 'the file'}")
        return lambda scope: "".join([node(scope) for node in nodes]), action

    def _node(self, action: str) -> Node:
        word, _, rest = action.partition(" ")
        if word == "define":
            self.defined[json.loads(rest)] = self.body("end")[0]
            return _constant("")
        if word in ("if", "with"):
            return self._choice(word, rest)
        if word == "range":
            return self._loop(rest)
        if assignment := _ASSIGNMENT.fullmatch(action):
            return self._assignment(*assignment.groups())
        value = self._expression(action)
        return lambda scope: _text(value(scope))

    def _assignment(self, name: str, sign: str, text: str) -> Node:
        value = self._expression(text)

        def assign(scope: Scope) -> str:
            holder = scope.maps[0] if sign == ":=" else next(names for names in scope.maps if name in names)
            holder[name] = value(scope)
            return ""

        return assign

    def _choice(self, word: str, text: str) -> Node:
        condition = self._expression(text)
        then, end = self.body("end", "else")
        otherwise = _constant("")
        if end.startswith("else if "):
            otherwise = self._choice("if", end.removeprefix("else if "))
        elif end == "else":
            otherwise, _ = self.body("end")

        def choose(scope: Scope) -> str:
            value = condition(scope)
            inner = scope.new_child({".": value} if value and word == "with" else {})
            return then(inner) if value else otherwise(inner)

        return choose

    def _loop(self, text: str) -> Node:
        key_name, name, source = _LOOP.fullmatch(text).groups()  # type: ignore[union-attr]  # everything matches
        items = self._expression(source)
        body, _ = self.body("end")

        def loop(scope: Scope) -> str:
            found = _a((list, dict), items(scope))
            pairs = sorted(found.items()) if isinstance(found, dict) else enumerate(found)
            return "".join(
                [body(scope.new_child({".": value, key_name: key, name: value})) for key, value in pairs]
            )

        return loop

    def _expression(self, text: str) -> Expression:
        if unread := _TOKEN.sub("", text).strip():
            raise TemplateError(f"{self.name}: {{{{ {text} }}}}: cannot read {unread}")
        value = self._pipeline(_TOKEN.findall(text))

        def evaluate(scope: Scope) -> Any:
            try:
                return value(scope)
            except (AttributeError, TypeError, ValueError, LookupError) as error:
                raise TemplateError(f"{self.name}: {{{{ {text} }}}}: {error}") from error

        return evaluate

    def _pipeline(self, tokens: list[str]) -> Expression:
        """Return the expression up to the end or a closing parenthesis, and take its tokens."""
        value = self._command(tokens, [])
        while tokens and tokens.pop(0) == "|":
            value = self._command(tokens, [value])
        return value

    def _command(self, tokens: list[str], piped: list[Expression]) -> Expression:
        """Return a value, or the call of a function or of what a field holds."""
        is_call = tokens[0].isidentifier() and tokens[0] not in _WORDS
        if is_call and tokens[0] not in self.functions:
            raise TemplateError(f"{self.name}: {tokens[0]} is not a function that this program has")
        head = _constant(self.functions[tokens.pop(0)]) if is_call else self._operand(tokens)
        arguments = []
        while tokens and tokens[0] not in ("|", ")"):
            arguments.append(self._operand(tokens))
        arguments += piped
        if not is_call and not arguments:
            return head
        return lambda scope: head(scope)(*(each(scope) for each in arguments))

    def _operand(self, tokens: list[str]) -> Expression:
        word = tokens.pop(0)
        if word == "(":
            return self._pipeline(tokens)
        if word[0] == '"' or word.isdigit() or word in _WORDS:
            return _constant(json.loads(word))
        start, *path = word.split(".")
        if start[:1] not in ("$", ""):
            raise TemplateError(f"{self.name}: unexpected {word}")
        return lambda scope: reduce(_field, filter(None, path), scope[start or "."])


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield each text with the action after it. A dash trims the text on its side."""
    position, is_trimmed = 0, False
    for found in _ACTION.finditer(text):
        before = text[position : found.start()]
        before = before.lstrip(_WHITE) if is_trimmed else before
        yield before.rstrip(_WHITE) if found[1] else before, found[2].strip()
        position, is_trimmed = found.end(), bool(found[3])
    yield text[position:].lstrip(_WHITE) if is_trimmed else text[position:], ""


def _constant(value: Any) -> Callable[[Scope], Any]:
    return lambda _scope: value


def _field(value: Any, name: str) -> Any:
    return _a(dict, value)[name]
