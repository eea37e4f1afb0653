"""Rules and bounds that several definitions share."""

from typing import Any

from trimtab.model.crds.schema import QUANTITY_SUFFIX, Schema, rule, rules

NAME_LENGTH = 253
TEXT_LENGTH = 512
LABEL_LENGTH = 63
LABEL_KEY_LENGTH = 317
"""A prefix of 253 characters, a slash and a name of 63."""

MAX_LABELS = 32
"""Entries of a selector, and values of each: beyond any use, and what keeps rules over them affordable."""

LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"

_SOME = r"([0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*)"
_ANY = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"


def _number(pattern: str, **bounds: Any) -> Schema:
    """Return the schema of a quantity that people also write as a bare number with a point, such as 0.05.

    autoscaling/v2 takes those, and `x-kubernetes-int-or-string` does not. A schema without a type takes any value, so
    text is held to a pattern, numbers to bounds, and lists and objects to being empty.
    """
    return {
        "anyOf": None,
        "x-kubernetes-int-or-string": None,
        "x-kubernetes-preserve-unknown-fields": True,
        "pattern": f"^{pattern}$",
        "maxItems": 0,
        "maxProperties": 0,
        **bounds,
    }


NO_SIGN = rf"^\+?{_ANY}{QUANTITY_SUFFIX}$"
"""Text of a quantity that is not below zero."""
POSITIVE = _number(rf"\+?{_SOME}{QUANTITY_SUFFIX}", minimum=0, exclusiveMinimum=True)
NOT_NEGATIVE = {
    **_number("", minimum=0),
    # A refused text is answered with the pattern alone, and CEL sees no field without a type: the group is the message.
    "pattern": r"^(?P<must_not_be_negative>[^-]|$)",
    "allOf": [{"pattern": rf"^[+-]?{_ANY}{QUANTITY_SUFFIX}$"}],
}
"""Zero or more."""
FRACTION = _number(
    r"\+?(1(\.0*)?|0?\.[0-9]*[1-9][0-9]*|1000m|[1-9][0-9]{0,2}m)", minimum=0, exclusiveMinimum=True, maximum=1
)
"""More than nothing, at most all."""

PATH_SEGMENT: Schema = {
    "minLength": 1,
    "maxLength": TEXT_LENGTH,
    "pattern": r"^[^\x00-\x1f\x7f]*$",
    **rules(
        rule(
            "!(self in ['.', '..']) && !self.contains('/') && !self.contains('%')",
            "must not be '.' or '..' and must not contain '/' or '%'",
        )
    ),
}


def described(text: str, note: Schema | None = None) -> Schema:
    """Return a note with the description that `kubectl explain` shows."""
    return {"description": text, **(note or {})}
