"""The one place where a difference from upstream is ruled to be meant.

A ruling sets aside a *kind* of difference, recognised from the case and from the difference text; naming a
case id here is not a ruling, but for the overflows in `overflows.py`. Each has a page in docs/decisions/ or a sentence that says why.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.conformance.differences import paths_of
from tests.conformance.overflows import answers_of, overflows

OVERFLOW = "Go's overflow"
"""The ruling that a limit does not count, because it names its cases."""


@dataclass(frozen=True)
class Ruling:
    """A difference we mean: its name, why we differ, and how to tell it from a mistake."""

    name: str
    reason: str
    covers: Callable[[Mapping[str, Any], str], bool]


def ruling_for(case: Mapping[str, Any], difference: str) -> Ruling | None:
    """Return the first ruling that covers this difference."""
    return next((ruling for ruling in RULINGS if ruling.covers(case, difference)), None)


def _upstream_panics(case: Mapping[str, Any], difference: str) -> bool:
    return any("panic" in answer for answer in answers_of(case)) and not difference.startswith("raised ")


_SUFFIX_DROPPED = re.compile(r'\w+: want "(-?\d+)", got "\1e(?:2[1-9]|[3-9]\d|\d{3,})"')


def _drops_the_suffix(case: Mapping[str, Any], difference: str) -> bool:
    is_quantity = "Quantity" in case.get("function", "") or case.get("kind", "").startswith("quantity")
    return is_quantity and all(_SUFFIX_DROPPED.fullmatch(line) for line in difference.splitlines())


def _is_absurd(_case: Mapping[str, Any], difference: str) -> bool:
    return 'error: want nothing, got "a quantity may have at most' in difference


def _keeps_the_input(case: Mapping[str, Any], difference: str) -> bool:
    if case.get("kind") != "quantity" or not paths_of(difference) <= {"string", "roundUpToUnit"}:
        return False
    return bool(case["expect"]["string"] == case["input"]["value"])


def _is_zero_times_anything(case: Mapping[str, Any], difference: str) -> bool:
    return difference.startswith("read as 0;") and str(case["input"]).lstrip("+-").startswith("0e")


def _is_smallest_integer(case: Mapping[str, Any], difference: str) -> bool:
    return case.get("input") == -(2**63) and difference.startswith("string:")


def _refuses_what_it_cannot_decode(case: Mapping[str, Any], difference: str) -> bool:
    causes = [
        cause
        for answer in answers_of(case)
        for cause in ((answer.get("status") or {}).get("details") or {}).get("causes", ())
    ]
    is_undecoded = [(cause["reason"], cause["field"]) for cause in causes] == [("InternalError", ".")]
    return is_undecoded and all(path.startswith("status.") for path in paths_of(difference))


RULINGS: tuple[Ruling, ...] = (
    Ruling(
        "upstream panics",
        "upstream crashes on this input; we answer, and a crash of ours still fails the case",
        _upstream_panics,
    ),
    Ruling(
        OVERFLOW,
        "an integer of Go wrapped around, or a float became one that cannot hold it; ours stop at the limit",
        lambda case, _difference: overflows(case),
    ),
    Ruling(
        "object that cannot be decoded",
        "both refuse it with 422; upstream repeats its JSON decoder's words for the whole object, we name each field",
        _refuses_what_it_cannot_decode,
    ),
    Ruling(
        "suffix above E",
        "upstream 1.36 writes 1000E as 1 and loses the amount (kubernetes/kubernetes#140459); we write 1e21",
        _drops_the_suffix,
    ),
    Ruling(
        "absurd quantity",
        "upstream stores 1e1000000000 and then computes with it for minutes; we refuse more than 1000 digits",
        _is_absurd,
    ),
    Ruling(
        "zero with a huge exponent",
        "upstream 1.38 refuses an exponent above int32 also if the number is 0; we read 0, as 1.37 does",
        _is_zero_times_anything,
    ),
    Ruling(
        "smallest integer in Ei",
        "upstream does not shorten -2**63, which has no positive counterpart; we write the canonical -8Ei",
        _is_smallest_integer,
    ),
    Ruling(
        "quantity text not canonical",
        "newer upstream repeats the input where it has 3, 6 or 9 decimals or an upper-case exponent "
        "(kubernetes/kubernetes#138165); we always write the canonical form",
        _keeps_the_input,
    ),
)
