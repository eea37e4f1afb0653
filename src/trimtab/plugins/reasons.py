"""The check of the reasons that plug-ins give, which become part of conditions and pages."""

from typing import Any
from unicodedata import category

from trimtab.plugins.errors import WrongAnswerError

LONGEST_REASON = 200
"""Characters of a reason that are kept."""


def check_reason(reason: Any, *, missing: str) -> str:
    """Return a reason as one line, or raise WrongAnswerError, with `missing` if there is none."""
    text = " ".join(str.split(reason)) if isinstance(reason, str) else ""
    if not text:
        raise WrongAnswerError(missing)
    if not text.isprintable():
        for character in text:
            if category(character) in {"Cc", "Cs"}:
                raise WrongAnswerError(
                    f"a reason with the character U+{ord(character):04X}, which no JSON or terminal can show"
                )
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 1]}…"
