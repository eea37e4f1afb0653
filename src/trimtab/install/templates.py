"""Renders templates as Helm does: the part of Go's template language that this chart uses, and nothing else.

A function that is not listed, a key that is missing and an argument of another type are errors, where Helm often goes on with
an empty text. A value becomes a text only if Helm writes it in the same way: so no floats, and no integers of a million or more,
which Helm writes with an exponent. Helm's answers for each function are recorded in tests/unit/install/helm_answers.py.
"""

import json
import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_TOKEN: Final = re.compile(r'\s*("(?:\\.|[^"\\])*"|[(|]|\)(?!\.)|\$?\w*(?:\.\w+)+|\$?\w+|[$.])')
_ASSIGNMENT: Final = re.compile(r"(\$\w+) (:?=)\s(.*)", re.DOTALL)
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
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) < _LARGE:
        return str(value)
    return _a(str, value)


def _is_equal(first: Any, second: Any) -> bool:
    return bool(_a((str, bool), first) == _a(type(first), second))


def _printf(form: str, *values: Any) -> str:
    if form.count("%") != form.count("%s"):
        raise ValueError("printf writes texts only, by %s")
    return form % tuple(_a(str, value) for value in values)


def _indented(width: int, text: str) -> str:
    return " " * width + text.replace("\n", "\n" + " " * width)


def _fail(message: str) -> str:
    raise Failed(message)


_KINDS: Final = {"string": str, "bool": bool, "map": Mapping, "slice": list}

FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
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
    "kindIs": lambda kind, value: isinstance(value, _KINDS[kind]),
    "list": lambda *items: list(items),
    "ne": lambda first, second: not _is_equal(first, second),
    "nindent": lambda width, text: "\n" + _indented(width, text),
    "not": lambda value: not value,
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
"""By name. `include`, `and` and `or` are elsewhere: they need the chart, or not all of their arguments."""


class Templates:
    """The templates of a chart: its files, and what `define` names in them."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._defined: dict[str, Node] = {}
        self._files = {name: _Parser(name, text, self._defined).file() for name, text in files.items()}

    def render(self, context: Mapping[str, Any], only: str = "") -> list[dict[str, Any]]:
        """Return the objects of all files, or of one."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        scope = Scope({"$": context, ".": context})
        texts = [node(scope.new_child()) for name, node in self._files.items() if only in ("", name)]
        return [each for text in texts for each in yaml.load_all(text, loader) if each]


class _Parser:
    """Parses a file, block by block."""

    def __init__(self, name: str, text: str, defined: dict[str, Node]) -> None:
        self._name = name
        self._defined = defined
        self._pieces = _pieces(text)

    def file(self) -> Node:
        node, end = self._block()
        if end:
            raise TemplateError(f"{self._name}: {end} without a block")
        return node

    def _block(self) -> tuple[Node, str]:
        """Return the nodes up to an `end` or `else`, and that action."""
        nodes: list[Node] = []
        for text, action in self._pieces:
            nodes.append(_constant(text))
            if action.partition(" ")[0] in ("end", "else"):
                return _all(nodes), action
            if action and not action.startswith("/*"):
                nodes.append(self._node(action))
        return _all(nodes), ""

    def _body(self, *ends: str) -> tuple[Node, str]:
        """Return the nodes up to one of these actions, and the action."""
        node, end = self._block()
        if end not in ends and not (end.startswith("else if ") and "else" in ends):
            raise TemplateError(f"{self._name}: a block ends with {end or 'the file'}")
        return node, end

    def _node(self, action: str) -> Node:
        word, _, rest = action.partition(" ")
        if word == "define":
            self._defined[json.loads(rest)] = self._body("end")[0]
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
        then, end = self._body("end", "else")
        otherwise = _constant("")
        if end.startswith("else if "):
            otherwise = self._choice("if", end.removeprefix("else if "))
        elif end == "else":
            otherwise, _ = self._body("end")

        def choose(scope: Scope) -> str:
            value = condition(scope)
            inner = scope.new_child({".": value} if value and word == "with" else {})
            return then(inner) if value else otherwise(inner)

        return choose

    def _loop(self, text: str) -> Node:
        variables, _, source = text.rpartition(":= ")
        names = [name.strip() for name in variables.split(",") if name]
        items = self._expression(source)
        body, _ = self._body("end")

        def loop(scope: Scope) -> str:
            found = _a((list, dict), items(scope))
            written = []
            for key, value in sorted(found.items()) if isinstance(found, dict) else enumerate(found):
                inner = scope.new_child({".": value})
                inner.update(zip(reversed(names), (value, key), strict=False))  # one name is the value
                written.append(body(inner))
            return "".join(written)

        return loop

    def _expression(self, text: str) -> Expression:
        tokens, rest = [], text.strip()
        while rest:
            found = _TOKEN.match(rest)
            if not found:
                raise TemplateError(f"{self._name}: cannot read {rest!r}")
            tokens.append(found[1])
            rest = rest[found.end() :]
        value = self._pipeline(tokens)

        def evaluate(scope: Scope) -> Any:
            try:
                return value(scope)
            except (AttributeError, TypeError, ValueError, LookupError) as error:
                raise TemplateError(f"{self._name}: {{{{ {text} }}}}: {error}") from error

        return evaluate

    def _pipeline(self, tokens: list[str]) -> Expression:
        """Return the expression up to the end or a closing parenthesis, and take its tokens."""
        value = self._command(tokens, [])
        while tokens and tokens.pop(0) == "|":
            value = self._command(tokens, [value])
        return value

    def _command(self, tokens: list[str], piped: list[Expression]) -> Expression:
        name = tokens[0] if tokens else "nothing"
        is_call = name.isidentifier() and name not in _WORDS
        if is_call and tokens.pop(0) not in (*FUNCTIONS, "include", "and", "or"):
            raise TemplateError(f"{self._name}: {name} is not a function that this program has")
        operands = []
        while tokens and tokens[0] not in ("|", ")"):
            operands.append(self._operand(tokens))
        if is_call:
            return self._call(name, [*operands, *piped])
        head, *arguments = operands
        return (lambda scope: head(scope)(*(each(scope) for each in arguments))) if arguments else head

    def _call(self, name: str, arguments: Sequence[Expression]) -> Expression:
        if name in ("and", "or"):
            return lambda scope: _first(name == "or", (each(scope) for each in arguments))
        function = self._include if name == "include" else FUNCTIONS[name]
        return lambda scope: function(*(each(scope) for each in arguments))

    def _include(self, name: str, dot: Any) -> str:
        return self._defined[name](Scope({"$": dot, ".": dot}))

    def _operand(self, tokens: list[str]) -> Expression:
        word = tokens.pop(0)
        if word == "(":
            return self._pipeline(tokens)
        if word[0] == '"' or word.isdigit() or word in _WORDS:
            return _constant(json.loads(word))
        start, *path = word.split(".")
        if start[:1] not in ("$", ""):
            raise TemplateError(f"{self._name}: unexpected {word}")
        return lambda scope: _field(scope[start or "."], list(filter(None, path)))


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


def _all(nodes: Sequence[Node]) -> Node:
    return lambda scope: "".join([node(scope) for node in nodes])


def _first(wanted: bool, values: Iterator[Any]) -> Any:
    """Return the first value that is true, or that is false, else the last."""
    value = None
    for value in values:
        if bool(value) is wanted:
            break
    return value


def _field(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = _a(dict, value)[name]
    return value
