"""Errors about fields of an object, in the words and the spelling of the Kubernetes API.

Validation returns lists of `FieldError`. The lab's API server turns them into a Status, `trimtab validate` into lines.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from trimtab.model.json import wire
from trimtab.model.quantity import Quantity


class ErrorType(StrEnum):
    """The API's name for a kind of error, which is the `reason` of a Status cause."""

    NOT_FOUND = "FieldValueNotFound"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    INTERNAL = "InternalError"
    TYPE_INVALID = "FieldValueTypeInvalid"


_WORDS = {
    ErrorType.NOT_FOUND: "Not found",
    ErrorType.REQUIRED: "Required value",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.TOO_MANY: "Too many",
    ErrorType.INTERNAL: "Internal error",
    ErrorType.TYPE_INVALID: "Invalid value",
}
_WITHOUT_VALUE = {ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.INTERNAL}

_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_ESCAPES |= {'"': r"\"", "\\": r"\\"}

MAX_QUANTITY_DIGITS = 64
MAX_QUANTITY_EXPONENT = 30
_CONTROL = re.compile(r"[\x00-\x1f\x7f]", re.ASCII)
_QUANTITY = re.compile(r"-?([0-9]+)[A-Za-z]*(?:e([0-9]+))?\Z", re.ASCII)
_SHORTENED_LENGTH = 32


@dataclass(frozen=True, slots=True)
class FieldPath:
    """The path of a field in its object, such as `spec.metrics[0].type` or `metadata.labels[app]`."""

    text: str = ""

    def child(self, *names: str) -> "FieldPath":
        """Return the path of a member, or of a member of a member."""
        return FieldPath(".".join((self.text, *names) if self.text else names))

    def index(self, position: int) -> "FieldPath":
        """Return the path of a list's element."""
        return FieldPath(f"{self.text}[{position}]")

    def key(self, name: str) -> "FieldPath":
        """Return the path of a map's entry."""
        return FieldPath(f"{self.text}[{name}]")

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error about one field."""

    type: ErrorType
    field: str
    bad_value: Any = ""
    detail: str = ""

    @property
    def body(self) -> str:
        """Return the text without the field."""
        parts = [_WORDS[self.type]]
        if self.type not in _WITHOUT_VALUE:
            parts.append(render(self.bad_value))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)

    @property
    def message(self) -> str:
        """Return the whole text, such as `spec.maxReplicas: Invalid value: -1: must be ...`."""
        return f"{self.field}: {self.body}" if self.field else self.body

    def __str__(self) -> str:
        return self.message


class FieldWarning(NamedTuple):
    """A field that is valid but probably not meant, and why."""

    field: str
    message: str


def invalid(path: FieldPath, value: Any, detail: str) -> FieldError:
    """Report a value that breaks a rule."""
    return FieldError(ErrorType.INVALID, path.text, value, detail)


def required(path: FieldPath, detail: str = "") -> FieldError:
    """Report a value that is missing."""
    return FieldError(ErrorType.REQUIRED, path.text, "", detail)


def forbidden(path: FieldPath, detail: str) -> FieldError:
    """Report a well-formed value that must not be set here."""
    return FieldError(ErrorType.FORBIDDEN, path.text, "", detail)


def not_supported(path: FieldPath, value: Any, supported: Iterable[str]) -> FieldError:
    """Report a value outside an enumeration, which is listed in order."""
    listed = ", ".join(map(quote, sorted(supported)))
    return FieldError(
        ErrorType.NOT_SUPPORTED, path.text, value, f"supported values: {listed}" if listed else ""
    )


def not_found(path: FieldPath, value: Any) -> FieldError:
    """Report a reference to an object that does not exist."""
    return FieldError(ErrorType.NOT_FOUND, path.text, value)


def duplicate(path: FieldPath, value: Any) -> FieldError:
    """Report a value that occurs twice where it may occur once."""
    return FieldError(ErrorType.DUPLICATE, path.text, value)


def too_long(path: FieldPath, limit_bytes: int) -> FieldError:
    """Report a value of too many bytes, without the value."""
    unit = "byte" if limit_bytes == 1 else "bytes"
    return FieldError(ErrorType.TOO_LONG, path.text, "", f"may not be more than {limit_bytes} {unit}")


def too_many(path: FieldPath, actual: int, limit: int) -> FieldError:
    """Report a list of too many items."""
    unit = "item" if limit == 1 else "items"
    return FieldError(ErrorType.TOO_MANY, path.text, actual, f"must have at most {limit} {unit}")


def type_invalid(path: FieldPath, value: Any, detail: str) -> FieldError:
    """Report a value of the wrong JSON type."""
    return FieldError(ErrorType.TYPE_INVALID, path.text, value, detail)


def aggregate(errors: Sequence[FieldError]) -> str:
    """Join errors as the API server's Status message does."""
    messages = list(dict.fromkeys(error.message for error in errors))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def render(value: Any) -> str:
    """Return a bad value as the API server writes it: quoted text, bare numbers, else compact JSON."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        # Go's JSON encoder escapes <, > and &, so that its output is safe in HTML.
        return _for_html(wire.encode(value).decode())
    except (TypeError, ValueError, msgspec.MsgspecError):
        return quote(str(value))


def quote(text: str) -> str:
    """Quote text as Go's `%q` does, keeping printable characters of every script."""
    return f'"{"".join(_quoted(letter) for letter in text)}"'


def _quoted(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    number = ord(letter)
    if 0xD800 <= number <= 0xDFFF:
        return "\N{REPLACEMENT CHARACTER}"  # Go reads half a surrogate pair as this
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _for_html(json: str) -> str:
    return json.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def shortened(text: str) -> str:
    """Return the beginning of a text that is too long for a message."""
    return f"{text[:_SHORTENED_LENGTH]}…"


def name_errors(text: str, longest: int, path: FieldPath) -> Iterator[FieldError]:
    """Yield an error if a name is too long or has control characters."""
    if len(text) > longest:
        yield invalid(
            path, shortened(text), f"has {len(text)} characters; may have at most {longest} characters"
        )
    elif _CONTROL.search(text):
        yield invalid(path, text, "must not contain control characters")


def quantity_errors(quantity: Quantity | None, path: FieldPath) -> Iterator[FieldError]:
    """Yield an error if a quantity has too many digits or too large an exponent."""
    text = "" if quantity is None else str(quantity)
    parts = _QUANTITY.match(text)
    if parts is None:
        return
    digits, exponent = parts.groups()
    if len(digits) > MAX_QUANTITY_DIGITS or int(exponent or 0) > MAX_QUANTITY_EXPONENT:
        detail = f"may have at most {MAX_QUANTITY_DIGITS} digits and an exponent of {MAX_QUANTITY_EXPONENT}"
        yield invalid(path, text if len(text) <= MAX_QUANTITY_DIGITS else shortened(text), detail)
