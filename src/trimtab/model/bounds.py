"""Bounds that no sensible object reaches: what is beyond them hurts whoever computes with it, so our kinds refuse it."""

import re
from collections.abc import Iterator

from trimtab.model.fielderror import FieldError, FieldPath, invalid
from trimtab.model.quantity import Quantity

MOST_DIGITS = 64
LARGEST_EXPONENT = 30
_CONTROL = re.compile(r"[\x00-\x1f\x7f]", re.ASCII)
_PARTS = re.compile(r"-?([0-9]+)[A-Za-z]*(?:e([0-9]+))?\Z", re.ASCII)
_SHOWN = 32


def shortened(text: str) -> str:
    """Return the beginning of a text that is too long to be repeated."""
    return f"{text[:_SHOWN]}…"


def name_errors(text: str, longest: int, path: FieldPath) -> Iterator[FieldError]:
    """Yield what is wrong with a name that nobody can have given."""
    if len(text) > longest:
        yield invalid(
            path, shortened(text), f"has {len(text)} characters; may have at most {longest} characters"
        )
    elif _CONTROL.search(text):
        yield invalid(path, text, "must not contain control characters")


def quantity_errors(quantity: Quantity | None, path: FieldPath) -> Iterator[FieldError]:
    """Yield that a quantity is out of all measure."""
    parts = _PARTS.match(str(quantity)) if quantity is not None else None
    if parts is None:
        return
    digits, exponent = parts.groups()
    if len(digits) > MOST_DIGITS or int(exponent or 0) > LARGEST_EXPONENT:
        detail = f"may have at most {MOST_DIGITS} digits and an exponent of {LARGEST_EXPONENT}"
        text = str(quantity)
        yield invalid(path, text if len(text) <= MOST_DIGITS else shortened(text), detail)
