"""One condition on labels: a key, an operator and its values."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from trimtab.model.field_errors import FieldError, FieldPath, aggregate, invalid
from trimtab.model.labels.names import label_key_problems, label_value_problems

Labels = Mapping[str, str]
Operator = Literal["=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt"]

_VALUES = FieldPath("values")
_INTEGER = re.compile(r"[+-]?0*[0-9]{1,19}\Z", re.ASCII)

_Count = tuple[Callable[[int], bool], str]
_SOME: _Count = ((0).__lt__, "for 'in', 'notin' operators, values set can't be empty")
_EXACT: _Count = ((1).__eq__, "exact-match compatibility requires one single value")
_NONE: _Count = ((0).__eq__, "values set must be empty for exists and does not exist")
_BOUND: _Count = ((1).__eq__, "for 'Gt', 'Lt' operators, exactly one value is required")
_COUNTS: dict[Operator, _Count] = {
    "in": _SOME,
    "notin": _SOME,
    "=": _EXACT,
    "==": _EXACT,
    "!=": _EXACT,
    "exists": _NONE,
    "!": _NONE,
    "gt": _BOUND,
    "lt": _BOUND,
}
"""Per operator: whether a number of values is right, and the message if it is not."""


class SelectorError(ValueError):
    """The selector is invalid. The message is Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on labels, with sorted values. `require` checks and builds it."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    @property
    def equality(self) -> tuple[str, str] | None:
        """Return the key and the only value that a label may have, or None for other conditions."""
        if self.operator in {"=", "==", "in"} and len(set(self.values)) == 1:
            return self.key, self.values[0]
        return None

    def matches(self, labels: Labels) -> bool:
        """Return whether labels meet this condition. An absent label meets `!=` and `notin`."""
        value = labels.get(self.key)
        match self.operator:
            case "=" | "==" | "in":
                return value in self.values
            case "!=" | "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "gt" | "lt":
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        have, bound = _int64(value), _int64(self.values[0])
        if have is None or bound is None:
            return False
        return have > bound if self.operator == "gt" else have < bound

    def __str__(self) -> str:
        joined = ",".join(self.values)
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({joined})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{joined}"
            case _:
                return f"{self.key}{self.operator}{joined}"


def require(key: str, operator: Operator, values: tuple[str, ...] = ()) -> Requirement:
    """Return a requirement, or raise SelectorError with all its errors."""
    errors = [*_key_errors(key, FieldPath("key")), *_value_errors(operator, values)]
    for index, value in enumerate(values):
        if problems := label_value_problems(value):
            errors.append(invalid(_VALUES.index(index).key(key), value, "; ".join(problems)))
    if errors:
        raise SelectorError(aggregate(errors))
    return Requirement(key, operator, tuple(sorted(values)))


def check_key(key: str) -> None:
    """Raise SelectorError if the key of a selector's text, which has no field path, is invalid."""
    for error in _key_errors(key, FieldPath("<nil>")):
        raise SelectorError(error.message)


def _key_errors(key: str, path: FieldPath) -> list[FieldError]:
    problems = label_key_problems(key)
    return [invalid(path, key, "; ".join(problems))] if problems else []


def _value_errors(operator: Operator, values: tuple[str, ...]) -> list[FieldError]:
    """Check the number of values, and for `gt` and `lt` the value."""
    is_right, detail = _COUNTS[operator]
    errors = [] if is_right(len(values)) else [invalid(_VALUES, list(values) or None, detail)]
    if operator in {"gt", "lt"}:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors += [
            invalid(_VALUES.index(index), value, detail)
            for index, value in enumerate(values)
            if _int64(value) is None
        ]
    return errors


def _int64(text: str | None) -> int | None:
    """Return a decimal integer of 64 bits, with sign and leading zeros as in Go, else None."""
    if text is None or not _INTEGER.match(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
