"""Rules and bounds that several definitions share."""

from trimtab.model.crds.schema import Schema, rule, rules

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

POSITIVE = rules(
    rule(
        "isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))", "must be positive"
    )
)
NOT_NEGATIVE = rules(
    rule(
        "isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('0'))",
        "must be greater than or equal to 0",
    )
)
PATH_SEGMENT: Schema = {
    "minLength": 1,
    "maxLength": TEXT_LENGTH,
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
