"""What is wrong with which field of an object, in the words and the spelling of the Kubernetes API.

Validation returns lists of `FieldError`; the lab's API server turns them into a Status, `trimtab validate` into lines.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from trimtab.model.json import wire
from trimtab.model.quantity import Quantity


class ErrorType(StrEnum):
    """The API's name for a kind of mistake; it is also the `reason` of a Status cause."""

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


@dataclass(frozen=True, slots=True)
class FieldPath:
    """Where a field stands in its object, such as `spec.metrics[0].type` or `metadata.labels[app]`."""

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
    """One mistake in one field."""

    type: ErrorType
    field: str
    bad_value: Any = ""
    detail: str = ""

    @property
    def body(self) -> str:
        """Return what is wrong, without saying where."""
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


def invalid(path: FieldPath, value: Any, detail: str) -> FieldError:
    """Report a value that breaks a rule."""
    return FieldError(ErrorType.INVALID, path.text, value, detail)


def required(path: FieldPath, detail: str = "") -> FieldError:
    """Report a value that is missing."""
    return FieldError(ErrorType.REQUIRED, path.text, "", detail)


def forbidden(path: FieldPath, detail: str) -> FieldError:
    """Report a value that may not be set here, however well formed."""
    return FieldError(ErrorType.FORBIDDEN, path.text, "", detail)


def not_supported(path: FieldPath, value: Any, supported: Iterable[str]) -> FieldError:
    """Report a value that is none of the known ones, which are listed in order."""
    listed = ", ".join(quote(one) for one in sorted(supported))
    return FieldError(
        ErrorType.NOT_SUPPORTED, path.text, value, f"supported values: {listed}" if listed else ""
    )


def not_found(path: FieldPath, value: Any) -> FieldError:
    """Report a reference to something that does not exist."""
    return FieldError(ErrorType.NOT_FOUND, path.text, value)


def duplicate(path: FieldPath, value: Any) -> FieldError:
    """Report a value that stands twice where it may stand once."""
    return FieldError(ErrorType.DUPLICATE, path.text, value)


def too_long(path: FieldPath, limit_bytes: int) -> FieldError:
    """Report a value of too many bytes; the value itself is not repeated."""
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
    """Join several errors the way the API server's Status message does."""
    messages = list(dict.fromkeys(error.message for error in errors))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def render(value: Any) -> str:
    """Write a bad value as the API server would: text quoted, numbers bare, the rest as compact JSON."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        # Go's JSON keeps <, > and & out of its output, so that it can stand in HTML.
        return _for_html(wire.encode(value).decode())
    except (TypeError, ValueError, msgspec.MsgspecError):
        return quote(str(value))


_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_ESCAPES |= {'"': r"\"", "\\": r"\\"}


def quote(text: str) -> str:
    """Quote text as Go's `%q` does: printable characters stay, whatever their script."""
    return f'"{"".join(_quoted(letter) for letter in text)}"'


def _quoted(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    number = ord(letter)
    if 0xD800 <= number <= 0xDFFF:
        return (
            "\N{REPLACEMENT CHARACTER}"  # half a surrogate pair is no character; Go has replaced it already
        )
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _for_html(json: str) -> str:
    return json.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


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
