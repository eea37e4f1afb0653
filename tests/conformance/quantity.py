"""Checkers of `resource.Quantity`: parsing, arithmetic, canonical text."""

import math
from typing import Any

from tests.conformance.differences import differences
from tests.conformance.int64 import Amount
from tests.conformance.registry import checks
from trimtab.model.quantity import Quantity, QuantityError


@checks("function", "parseQuantity")
def parse_quantity(case):
    try:
        quantity = Quantity.parse(case["input"])
    except QuantityError as error:
        return differences(case["expect"], {"error": str(error)})
    return differences(case["expect"], _described(quantity, Amount.of_text(case["input"], quantity)))


@checks("function", "newQuantity")
def new_quantity(case):
    quantity = Quantity.from_int(case["input"], case["format"])
    return differences(case["expect"], _described(quantity, Amount(case["input"], 0)))


@checks("function", "newMilliQuantity")
def new_milli_quantity(case):
    quantity = Quantity.from_milli(case["input"], case["format"])
    return differences(case["expect"], _described(quantity, Amount(case["input"], -3)))


@checks("function", "compareQuantity")
def compare_quantity(case):
    a, b = Quantity.parse(case["a"]), Quantity.parse(case["b"])
    return differences(case["expect"], {"equal": a == b, **_compared(a, b)})


@checks("kind", "quantityPair")
def quantity_pair(case):
    a, b = (Quantity.parse(case["input"][name]) for name in "ab")
    return differences(case["expect"], _compared(a, b))


@checks("kind", "quantity")
def vpa_quantity(case):
    want = case["expect"]
    try:
        quantity = Quantity.parse(case["input"]["value"])
    except QuantityError as error:
        return differences(want, {"error": str(error)})
    unit = Quantity.from_int(quantity.value(), quantity.format)
    return differences(
        want,
        {
            "error": None,
            "string": str(quantity),
            "format": quantity.format,
            "value": quantity.value(),
            "milliValue": quantity.milli_value() if abs(quantity.milli_value()) < 2**63 else None,
            "sign": quantity.sign,
            "isZero": quantity.is_zero,
            "roundUpToUnit": str(unit),
            "roundUpExact": unit == quantity,
            "unitExact": unit == quantity,
            "milliExact": Quantity.from_milli(quantity.milli_value()) == quantity,
        },
    )


def _compared(a: Quantity, b: Quantity) -> dict[str, Any]:
    return {"cmp": (a > b) - (a < b), "sum": str(a + b), "difference": str(a - b)}


def _described(quantity: Quantity, amount: Amount) -> dict[str, Any]:
    approximate = quantity.as_float()
    return {
        "string": str(quantity),
        "format": quantity.format,
        "value": amount.narrowed(quantity.value(), 0),
        "milliValue": amount.narrowed(quantity.milli_value(), -3),
        "asInt64": amount.as_int64(),
        "asApproximateFloat64": approximate if math.isfinite(approximate) else f"{approximate:+}".title(),
        "sign": quantity.sign,
        "isZero": quantity.is_zero,
    }
