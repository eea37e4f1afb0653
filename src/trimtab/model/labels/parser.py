"""Parser of the text form of selectors: `app=web,tier in (a,b),!old,size>5`.

It is a recursive descent over a token list. `in` and `notin` are operators only where an operator may stand; elsewhere
they are ordinary names. The messages are upstream's.
"""

import re
from typing import NamedTuple

from trimtab.model.labels.requirement import Operator, Requirement, SelectorError, check_key, require

# A symbol or a name; white space matches neither and is skipped.
_TOKEN = re.compile(r"(!=|==|[=!(),<>])|[^ \t\r\n=!(),<>]+")
_OPERATORS: dict[str, Operator] = {
    "in": "in",
    "notin": "notin",
    "=": "=",
    "==": "==",
    "!=": "!=",
    ">": "gt",
    "<": "lt",
}


class _Token(NamedTuple):
    text: str
    is_name: bool


_END = _Token("", False)


def parse_requirements(text: str) -> list[Requirement]:
    """Return the requirements in a selector's text, sorted by key, or raise SelectorError."""
    parser = _Parser([_Token(match[0], is_name=match[1] is None) for match in _TOKEN.finditer(text)])
    return sorted(parser.requirements(), key=lambda requirement: requirement.key)


class _Parser:
    """Reads tokens from left to right, with one token of lookahead."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def _peek(self) -> _Token:
        return self._tokens[self._next] if self._next < len(self._tokens) else _END

    def _take(self) -> _Token:
        token = self._peek()
        self._next += 1
        return token

    def requirements(self) -> list[Requirement]:
        """Return the requirements of all tokens."""
        requirements: list[Requirement] = []
        if self._peek() is _END:
            return requirements
        if not self._at_requirement():
            raise SelectorError(f"found '{self._peek().text}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from error
            token = self._take()
            if token is _END:
                return requirements
            if token.text != ",":
                raise SelectorError(f"found '{token.text}', expected: ',' or 'end of string'")
            if not self._at_requirement():
                raise SelectorError(f"found '{self._peek().text}', expected: identifier after ','")

    def _at_requirement(self) -> bool:
        token = self._peek()
        return token.is_name or token.text == "!"

    def _requirement(self) -> Requirement:
        is_absent = self._peek().text == "!"
        if is_absent:
            self._take()
        key = self._name()
        check_key(key)
        if is_absent:
            return require(key, "!")
        if self._at_separator():
            return require(key, "exists")
        operator = self._operator()
        values = self._listed_values() if operator in {"in", "notin"} else self._exact_value()
        return require(key, operator, values)

    def _name(self) -> str:
        token = self._take()
        if not token.is_name:
            raise SelectorError(f"found '{token.text}', expected: identifier")
        return token.text

    def _at_separator(self) -> bool:
        token = self._peek()
        return token is _END or token.text == ","

    def _operator(self) -> Operator:
        token = self._take()
        if token.text not in _OPERATORS:
            raise SelectorError(f"found '{token.text}', expected: in, notin, =, ==, !=, gt, lt")
        return _OPERATORS[token.text]

    def _exact_value(self) -> tuple[str, ...]:
        # `app=` requires the empty value.
        return ("",) if self._at_separator() else (self._name(),)

    def _listed_values(self) -> tuple[str, ...]:
        opening = self._take()
        if opening.text != "(":
            raise SelectorError(f"found '{opening.text}' expected: '('")
        token = self._peek()
        if not (token.is_name or token.text in {",", ")"}):
            raise SelectorError(f"found '{token.text}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            # A comma or a closing parenthesis without a name before it means the empty value: `(,a)`, `()`.
            values.add(self._take().text if self._peek().is_name else "")
            token = self._take()
            if token.text == ")":
                return tuple(sorted(values))
            if token.text != ",":
                raise SelectorError(f"found '{token.text}', expected: ',' or ')'")
