"""Evaluates a validation rule of a definition in CEL, as the real server does."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import celpy
from celpy import celtypes
from celpy.evaluation import CELEvalError

from trimtab.model.quantity import Quantity, QuantityError


def _is_quantity(text: Any) -> celtypes.BoolType:
    try:
        Quantity.parse(str(text))
    except QuantityError:
        return celtypes.BoolType(False)
    return celtypes.BoolType(True)


def _quantity(text: Any) -> celtypes.StringType:
    try:
        Quantity.parse(str(text))
    except QuantityError as problem:
        raise CELEvalError(str(problem)) from problem
    return celtypes.StringType(text)


def _parse(value: Any) -> Quantity:
    return Quantity.parse(str(value))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isQuantity": _is_quantity,
    "quantity": _quantity,
    "isLessThan": lambda left, right: celtypes.BoolType(_parse(left) < _parse(right)),
    "isGreaterThan": lambda left, right: celtypes.BoolType(_parse(left) > _parse(right)),
}


#: Made once: it raises Python's limit of recursion, which no test may change.
_ENVIRONMENT = celpy.Environment()


@lru_cache(maxsize=256)
def _program(rule: str) -> Any:
    return _ENVIRONMENT.program(_ENVIRONMENT.compile(rule), functions=FUNCTIONS)


def holds(rule: str, value: Any) -> bool:
    """Return whether a value keeps a rule. A rule that cannot be evaluated is violated."""
    try:
        return bool(_program(rule).evaluate({"self": _to_cel(value)}))
    except CELEvalError:
        return False


def _to_cel(value: Any) -> Any:
    if isinstance(value, bool):
        return celtypes.BoolType(value)
    if isinstance(value, dict):
        return celtypes.MapType({celtypes.StringType(name): _to_cel(child) for name, child in value.items()})
    if isinstance(value, list):
        return celtypes.ListType([_to_cel(child) for child in value])
    if isinstance(value, str):
        return celtypes.StringType(value)
    return celtypes.DoubleType(value) if isinstance(value, float) else celtypes.IntType(value)
