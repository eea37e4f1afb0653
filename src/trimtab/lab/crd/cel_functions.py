"""The functions that Kubernetes adds to CEL and rules in use call; `docs/lab.md` lists those that are missing."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from celpy import celtypes
from celpy.evaluation import CELEvalError

from trimtab.model.quantity import Quantity, QuantityError


class QuantityType(celtypes.StringType):
    """A quantity as a CEL value: text that compares as a number."""

    def amount(self) -> Quantity:
        """Return the number."""
        return Quantity.parse(str(self))


def is_quantity(text: Any) -> celtypes.BoolType:
    """Tell whether a text is a quantity."""
    try:
        Quantity.parse(str(text))
    except QuantityError:
        return celtypes.BoolType(False)
    return celtypes.BoolType(True)


def quantity(text: Any) -> QuantityType:
    """Read a quantity."""
    try:
        Quantity.parse(str(text))
    except QuantityError as problem:
        raise CELEvalError(str(problem)) from problem
    return QuantityType(text)


def _compare(test: Callable[[Quantity, Quantity], bool]) -> Callable[[Any, Any], celtypes.BoolType]:
    return lambda one, other: celtypes.BoolType(test(Quantity.parse(str(one)), Quantity.parse(str(other))))


def compare_to(one: Any, other: Any) -> celtypes.IntType:
    """Return -1, 0 or 1."""
    left, right = Quantity.parse(str(one)), Quantity.parse(str(other))
    return celtypes.IntType((left > right) - (left < right))


def _text(function: Callable[..., Any]) -> Callable[..., celtypes.StringType]:
    return lambda *args: celtypes.StringType(function(*args))


def substring(text: str, start: int, end: int | None = None) -> str:
    """Return a part of a text."""
    return str(text)[int(start) : None if end is None else int(end)]


def join(parts: list[Any], separator: str = "") -> str:
    """Join texts."""
    return str(separator).join(str(part) for part in parts)


def split(text: str, separator: str, most: int = -1) -> celtypes.ListType:
    """Split a text."""
    pieces = (
        list(str(text))
        if not separator
        else str(text).split(str(separator), int(most) - 1 if most > 0 else -1)
    )
    return celtypes.ListType([celtypes.StringType(piece) for piece in pieces])


def replace(text: str, old: str, new: str, most: int = -1) -> str:
    """Replace parts of a text."""
    return str(text).replace(str(old), str(new), int(most))


def index_of(where: Any, what: Any) -> celtypes.IntType:
    """Return where a text or item is first found, or -1."""
    if isinstance(where, str):
        return celtypes.IntType(str(where).find(str(what)))
    return celtypes.IntType(next((i for i, one in enumerate(where) if one == what), -1))


def is_sorted(items: list[Any]) -> celtypes.BoolType:
    """Tell whether a list is in order."""
    return celtypes.BoolType(all(one <= other for one, other in pairwise(items)))


def total(items: list[Any]) -> Any:
    """Add numbers."""
    result = items[0] if items else celtypes.IntType(0)
    for one in items[1:]:
        result = result + one
    return result


def find(text: str, pattern: str) -> celtypes.StringType:
    """Return the first match of a pattern, or an empty text."""
    match = re.search(str(pattern), str(text))
    return celtypes.StringType(match[0] if match else "")


def find_all(text: str, pattern: str) -> celtypes.ListType:
    """Return all matches of a pattern."""
    return celtypes.ListType(
        [celtypes.StringType(match[0]) for match in re.finditer(str(pattern), str(text))]
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isQuantity": is_quantity,
    "quantity": quantity,
    "isLessThan": _compare(lambda one, other: one < other),
    "isGreaterThan": _compare(lambda one, other: one > other),
    "compareTo": compare_to,
    "sign": lambda one: celtypes.IntType(Quantity.parse(str(one)).sign),
    "asInteger": lambda one: celtypes.IntType(Quantity.parse(str(one)).value()),
    "isInteger": lambda one: celtypes.BoolType(Quantity.parse(str(one)).milli_value() % 1000 == 0),
    "lowerAscii": _text(lambda text: str(text).lower()),
    "upperAscii": _text(lambda text: str(text).upper()),
    "trim": _text(lambda text: str(text).strip()),
    "substring": _text(substring),
    "join": _text(join),
    "replace": _text(replace),
    "charAt": _text(lambda text, index: str(text)[int(index)]),
    "split": split,
    "indexOf": index_of,
    "isSorted": is_sorted,
    "sum": total,
    "min": min,
    "max": max,
    "find": find,
    "findAll": find_all,
}
