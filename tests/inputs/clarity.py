"""When is a refusal clear? When it names the field, what was there, and why that cannot be."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.inputs.input import GONE, Refusal
from trimtab.model.field_errors import render
from trimtab.model.quantity import Quantity, QuantityError

MOST = 64
"""Characters of a value that a message may repeat; what is longer has to be described instead."""

LONGEST = 2000
"""Characters of a whole message; nobody reads more."""

KINDS: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number", "float64"),
    float: ("number", "fraction", "float64"),
    str: ("string", "text", "str"),
    list: ("array", "list"),
    dict: ("object", "map"),
}
STOCK = re.compile(
    r"(Invalid|Unsupported|Duplicate|Required) value|Too (long|many)|Forbidden|Not found", re.IGNORECASE
)
SIZED = re.compile(r"Too (long|many)|Forbidden")
"""How the API's own sentences describe a value that they do not repeat; where it is forbidden, any would be."""
SIZES = re.compile(r"\d (bytes?|characters?|items?|digits|requirements|operations|levels)|Too (long|many)")
MISSING = "Required value"
WORDS = re.compile(r"[A-Za-z]{2,}")


@dataclass(frozen=True)
class Answer:
    """What came back: a code of HTTP, or what `trimtab validate` ends with in its place, and how long it took."""

    code: int
    message: str
    causes: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0


def unclear(answer: Answer, wanted: Refusal) -> str:
    """Return what an answer lacks of a clear refusal, or nothing."""
    if answer.code not in wanted.codes:
        return f"answered with {answer.code}"
    if len(answer.message) > LONGEST:
        return f"its message has {len(answer.message)} characters"
    lacks = [_lacks(text, wanted) for text in _statements(answer, wanted)]
    if not lacks:
        return f"does not name {wanted.path}"
    return min(lacks, key=len)


def _statements(answer: Answer, wanted: Refusal) -> Iterator[str]:
    """Yield what is said about the field: its causes, or the whole message where it names it."""
    for field, text in answer.causes:
        if field.startswith(wanted.path) or (not field and wanted.path in text):
            yield text
    if wanted.path in answer.message:
        yield answer.message.replace(wanted.path, "")


def _lacks(text: str, wanted: Refusal) -> str:
    shown = _shown(text, wanted.value)
    if shown is None:
        return f"does not show the value: {text}"
    if wanted.why and not re.search(wanted.why, text):
        return f"does not say why ({wanted.why}): {text}"
    # That a value is missing says why by itself, and so do a pattern's own words; anything else takes a few words.
    if (MISSING in text and wanted.value in ("", GONE)) or wanted.why:
        return ""
    rest = STOCK.sub("", text.replace(shown, "", 1))
    return "" if len(WORDS.findall(rest)) >= 3 else f"does not say why: {text}"


def _shown(text: str, value: Any) -> str | None:
    """Return how the text shows a value, or None if it does not."""
    if value is GONE or (value == "" and MISSING in text):
        return ""
    for form in _forms(value):
        if form in text:
            return form
    described = SIZES.search(text) if len(render(value)) > MOST else SIZED.search(text)
    return described[0] if described else None


def _forms(value: Any) -> Iterator[str]:
    """Yield how a value may be shown: as it is, as the quantity that it is, or by its kind where that is wrong."""
    if len(render(value)) <= MOST:
        yield render(value)
        yield json.dumps(value)
        yield str(value)
        with suppress(QuantityError):
            yield str(Quantity.parse(str(value)))
    for kind in KINDS[type(value)]:
        yield f'"{kind}"'
        yield f"not a {kind}"
        yield f"not an {kind}"
        yield f"got `{kind}`"
        yield f"cannot unmarshal {kind} "
