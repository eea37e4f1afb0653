"""The functions that Kubernetes adds to CEL. `docs/lab.md` lists the functions that are missing."""

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


def _is_quantity(text: Any) -> celtypes.BoolType:
    try:
        Quantity.parse(str(text))
    except QuantityError:
        return celtypes.BoolType(False)
    return celtypes.BoolType(True)


def _quantity(text: Any) -> QuantityType:
    try:
        Quantity.parse(str(text))
    except QuantityError as problem:
        raise CELEvalError(str(problem)) from problem
    return QuantityType(text)


def _parse(value: Any) -> Quantity:
    return Quantity.parse(str(value))


def _compare_to(left: Any, right: Any) -> int:
    return (_parse(left) > _parse(right)) - (_parse(left) < _parse(right))


def _text(function: Callable[..., Any]) -> Callable[..., celtypes.StringType]:
    return lambda *args: celtypes.StringType(function(*args))


def _substring(text: str, start: int, end: int | None = None) -> str:
    return str(text)[int(start) : None if end is None else int(end)]


def _join(parts: list[Any], separator: str = "") -> str:
    return str(separator).join(str(part) for part in parts)


def _split(text: str, separator: str, most: int = -1) -> celtypes.ListType:
    pieces = (
        list(str(text))
        if not separator
        else str(text).split(str(separator), int(most) - 1 if most > 0 else -1)
    )
    return celtypes.ListType([celtypes.StringType(piece) for piece in pieces])


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    return str(text).replace(str(old), str(new), int(most))


def _index_of(where: Any, what: Any) -> celtypes.IntType:
    if isinstance(where, str):
        return celtypes.IntType(str(where).find(str(what)))
    return celtypes.IntType(next((index for index, item in enumerate(where) if item == what), -1))


def _is_sorted(items: list[Any]) -> celtypes.BoolType:
    return celtypes.BoolType(all(item <= following for item, following in pairwise(items)))


def _total(items: list[Any]) -> Any:
    return sum(items[1:], items[0]) if items else celtypes.IntType(0)


def _find(text: str, pattern: str) -> celtypes.StringType:
    match = re.search(str(pattern), str(text))
    return celtypes.StringType(match[0] if match else "")


def _find_all(text: str, pattern: str) -> celtypes.ListType:
    return celtypes.ListType(
        [celtypes.StringType(match[0]) for match in re.finditer(str(pattern), str(text))]
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isQuantity": _is_quantity,
    "quantity": _quantity,
    "isLessThan": lambda left, right: celtypes.BoolType(_compare_to(left, right) < 0),
    "isGreaterThan": lambda left, right: celtypes.BoolType(_compare_to(left, right) > 0),
    "compareTo": lambda left, right: celtypes.IntType(_compare_to(left, right)),
    "sign": lambda value: celtypes.IntType(_parse(value).sign),
    "asInteger": lambda value: celtypes.IntType(_parse(value).value()),
    "isInteger": lambda value: celtypes.BoolType(_parse(value).milli_value() % 1000 == 0),
    "lowerAscii": _text(lambda text: str(text).lower()),
    "upperAscii": _text(lambda text: str(text).upper()),
    "trim": _text(lambda text: str(text).strip()),
    "substring": _text(_substring),
    "join": _text(_join),
    "replace": _text(_replace),
    "charAt": _text(lambda text, index: str(text)[int(index)]),
    "split": _split,
    "indexOf": _index_of,
    "isSorted": _is_sorted,
    "sum": _total,
    "min": min,
    "max": max,
    "find": _find,
    "findAll": _find_all,
}
