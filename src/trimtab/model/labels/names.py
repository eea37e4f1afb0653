"""Rules for names, label keys and label values.

Each rule returns the problems of a text, in the API server's own words; a valid text has none.
"""

import re
from collections.abc import Callable

from trimtab.model.field_errors import FieldError, FieldPath, invalid, required

Rule = Callable[[str], list[str]]

MAX_LABEL_BYTES = 63
MAX_SUBDOMAIN_BYTES = 253

_ALPHANUMERIC_ENDS = "and must start and end with an alphanumeric character"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"

# Python's $ would also match before a final newline; \Z does not.
_IS_LABEL = re.compile(rf"{_LABEL}\Z").match
_IS_SUBDOMAIN = re.compile(rf"{_SUBDOMAIN}\Z").match
# The same language as `_NAME`, which messages quote, written so that no input makes it slow.
_IS_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?\Z").match


def _quote(pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"(e.g. {shown}regex used for validation is '{pattern}')"


_CHARACTERS = f"consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}"
_NOT_A_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    f"{_ALPHANUMERIC_ENDS} {_quote(_LABEL, 'my-name', '123-abc')}"
)
_NOT_A_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    f"{_ALPHANUMERIC_ENDS} {_quote(_SUBDOMAIN, 'example.com')}"
)
_NOT_A_NAME = f"must {_CHARACTERS} {_quote(_NAME, 'MyName', 'my.name', '123-abc')}"
_NOT_A_KEY = f"a valid label key {_NOT_A_NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_NOT_A_VALUE = (
    f"a valid label must be an empty string or {_CHARACTERS} {_quote(_VALUE, 'MyValue', 'my_value', '12345')}"
)


def check_name(text: str, path: FieldPath, rule: Rule, missing: str | None = None) -> list[FieldError]:
    """Return the errors of a name: its problems, or `missing` as the detail about a required one."""
    if missing is not None and not text:
        return [required(path, missing)]
    return [invalid(path, text, problem) for problem in rule(text)]


def dns1123_label_problems(text: str) -> list[str]:
    """Check a name without dots, such as a namespace or a container."""
    problems = _too_long(text, MAX_LABEL_BYTES, "characters")
    if not _IS_LABEL(text):
        problems.append("must not contain dots" if _IS_SUBDOMAIN(text) else _NOT_A_LABEL)
    return problems


def dns1123_subdomain_problems(text: str, unit: str = "characters") -> list[str]:
    """Check a name that may have dots, as most objects have."""
    problems = _too_long(text, MAX_SUBDOMAIN_BYTES, unit)
    return problems if _IS_SUBDOMAIN(text) else [*problems, _NOT_A_SUBDOMAIN]


def generate_name_problems(prefix: str) -> list[str]:
    """Check a generateName, which may end with a dash because letters follow it."""
    if len(prefix) > 1 and prefix.endswith("-"):
        # The API server replaces the last two characters by one, so the one before the dash is not checked.
        prefix = f"{prefix[:-2]}a"
    return dns1123_subdomain_problems(prefix)


def label_key_problems(key: str) -> list[str]:
    """Check the key of a label or annotation, or any other name with an optional `prefix/`."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [_NOT_A_KEY]
    problems = [f"prefix part {problem}" for problem in _prefix_problems(prefix)] if slash else []
    return problems + [f"name part {problem}" for problem in _name_problems(name)]


def label_value_problems(value: str) -> list[str]:
    """Check the value of a label, which may be empty."""
    problems = _too_long(value, MAX_LABEL_BYTES, "bytes")
    return problems if not value or _IS_NAME(value) else [*problems, _NOT_A_VALUE]


def path_segment_problems(text: str) -> list[str]:
    """Check a name that will stand in the path of a URL."""
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{letter}'" for letter in "/%" if letter in text]


def byte_length(text: str) -> int:
    """Return the bytes of a text as Go counts them, 3 for half a surrogate pair."""
    # JSON may hold such a half, which has no UTF-8. A rule must reject it, not a crash.
    return len(text.encode(errors="surrogatepass"))


def _prefix_problems(prefix: str) -> list[str]:
    return dns1123_subdomain_problems(prefix, "bytes") if prefix else ["must be non-empty"]


def _name_problems(name: str) -> list[str]:
    problems = _too_long(name, MAX_LABEL_BYTES, "bytes") if name else ["must be non-empty"]
    return problems if _IS_NAME(name) else [*problems, _NOT_A_NAME]


def _too_long(text: str, limit: int, unit: str) -> list[str]:
    # The API server measures bytes whichever unit it names: it has two spellings of one rule.
    return [f"must be no more than {limit} {unit}"] if byte_length(text) > limit else []
