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


@checks("function", "parseQuantity", "newQuantity", "newMilliQuantity", stem="quantity-1-38")
def quantity_of_1_38(case):
    """Compare with Kubernetes 1.38, whose values are exact within int64 and stop at its ends."""
    want = case["expect"]
    try:
        quantity = _made(case)
    except QuantityError:
        return None if "error" in want else f"rejected; upstream reads {want}"
    if "error" in want:
        return f"read as {quantity}; upstream says {want['error']}"
    value, milli = quantity.value(), quantity.milli_value()
    approximate = want["asApproximateFloat64"]
    if isinstance(approximate, str) or math.isclose(quantity.as_float(), approximate, rel_tol=1e-15):
        # Upstream multiplies numbers of 19 digits otherwise than in 1.36: the last digit may differ.
        approximate = None
    got = {
        "string": str(quantity),
        "format": quantity.format,
        "value": min(max(value, -(2**63)), 2**63 - 1),
        "milliValue": min(max(milli, -(2**63)), 2**63 - 1),
        "milliFits": -(2**63) <= milli < 2**63,
        "sign": quantity.sign,
        "isZero": quantity.is_zero,
        "asApproximateFloat64": None if approximate is None else quantity.as_float(),
    }
    return differences(want | {"asApproximateFloat64": approximate}, got)


def _made(case: dict[str, Any]) -> Quantity:
    if case["function"] == "parseQuantity":
        return Quantity.parse(case["input"])
    make = Quantity.from_int if case["function"] == "newQuantity" else Quantity.from_milli
    return make(case["input"], case["format"])


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
