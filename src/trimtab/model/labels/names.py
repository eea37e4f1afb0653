"""What Kubernetes accepts as a name: each rule returns the complaints about a text, none if it is fine.

The complaints are the API's own, so that a manifest is refused here in the words the server would use.
"""

import re
from collections.abc import Callable, Mapping

Rule = Callable[[str], list[str]]

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253

_ALPHANUMERIC_ENDS = "and must start and end with an alphanumeric character"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"

# Python's $ would also match before a final newline; \Z does not.
_IS_LABEL = re.compile(rf"{_LABEL}\Z").match
_IS_SUBDOMAIN = re.compile(rf"{_SUBDOMAIN}\Z").match
_IS_KEY = re.compile(rf"{_KEY}\Z").match
_IS_VALUE = re.compile(rf"{_VALUE}\Z").match


def dns1123_label(text: str) -> list[str]:
    """Check a name without dots, such as a namespace or a container."""
    complaints = _too_long(text, LABEL_LENGTH, "characters")
    if not _IS_LABEL(text):
        if _IS_SUBDOMAIN(text):
            complaints.append("must not contain dots")
        else:
            rule = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALPHANUMERIC_ENDS}"
            complaints.append(_pattern(rule, _LABEL, "my-name", "123-abc"))
    return complaints


def dns1123_subdomain(text: str) -> list[str]:
    """Check a name that may have dots, such as that of most objects."""
    return _too_long(text, SUBDOMAIN_LENGTH, "characters") + _not_a_subdomain(text)


def generated_subdomain(prefix: str) -> list[str]:
    """Check a generateName: a trailing dash is fine there, for letters will follow it."""
    if len(prefix) > 1 and prefix.endswith("-"):
        # The API server replaces the last two characters by one, so the one before the dash is not checked.
        prefix = f"{prefix[:-2]}a"
    return dns1123_subdomain(prefix)


def label_key(text: str) -> list[str]:
    """Check the key of a label or annotation, or any other name with an optional `prefix/`."""
    prefix, slash, name = text.rpartition("/")
    rule = f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}"
    explained = _pattern(rule, _KEY, "MyName", "my.name", "123-abc")
    if "/" in prefix:
        return [
            f"a valid label key {explained} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    complaints = _prefix(prefix) if slash else []
    if not name:
        complaints.append("name part must be non-empty")
    complaints += [f"name part {complaint}" for complaint in _too_long(name, LABEL_LENGTH, "bytes")]
    if not _IS_KEY(name):
        complaints.append(f"name part {explained}")
    return complaints


def label_value(text: str) -> list[str]:
    """Check the value of a label."""
    complaints = _too_long(text, LABEL_LENGTH, "bytes")
    if not _IS_VALUE(text):
        rule = f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}"
        complaints.append(_pattern(rule, _VALUE, "MyValue", "my_value", "12345"))
    return complaints


def path_segment(text: str) -> list[str]:
    """Check a name that will stand in a URL's path."""
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{letter}'" for letter in "/%" if letter in text]


def _prefix(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    complaints = _too_long(prefix, SUBDOMAIN_LENGTH, "bytes") + _not_a_subdomain(prefix)
    return [f"prefix part {complaint}" for complaint in complaints]


def _not_a_subdomain(text: str) -> list[str]:
    if _IS_SUBDOMAIN(text):
        return []
    rule = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        f"{_ALPHANUMERIC_ENDS}"
    )
    return [_pattern(rule, _SUBDOMAIN, "example.com")]


def _too_long(text: str, limit: int, unit: str) -> list[str]:
    # The server measures bytes whichever unit it names: it has two spellings of one rule.
    return [f"must be no more than {limit} {unit}"] if len(text.encode(errors="replace")) > limit else []


def _pattern(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


Labels = Mapping[str, str]

MAX_NAME_BYTES = 63
MAX_PREFIX_BYTES = 253

_NAME_RULE = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN_RULE = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_ALPHABET = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"

# The same languages as the rules above that messages quote, written so that no input makes them slow.
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_IS_KEY_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\Z")


def label_key_problems(key: str) -> list[str]:
    """Return what is wrong with a label key (`name` or `prefix/name`); nothing if it is valid."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        rule = _quoted_rule(_NAME_RULE, "MyName", "my.name", "123-abc")
        suffix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_ALPHABET} {rule} {suffix}"]
    problems = [f"prefix part {problem}" for problem in _prefix_problems(prefix)] if slash else []
    return problems + [f"name part {problem}" for problem in _name_problems(name)]


def label_value_problems(value: str) -> list[str]:
    """Return what is wrong with a label value; nothing if it is valid, as the empty one is."""
    problems = []
    if _bytes(value) > MAX_NAME_BYTES:
        problems.append(f"must be no more than {MAX_NAME_BYTES} bytes")
    if value and not _NAME.match(value):
        rule = _quoted_rule(f"({_NAME_RULE})?", "MyValue", "my_value", "12345")
        problems.append(f"a valid label must be an empty string or {_ALPHABET.removeprefix('must ')} {rule}")
    return problems


def _name_problems(name: str) -> list[str]:
    problems = []
    if not name:
        problems.append("must be non-empty")
    elif _bytes(name) > MAX_NAME_BYTES:
        problems.append(f"must be no more than {MAX_NAME_BYTES} bytes")
    if not _NAME.match(name):
        problems.append(f"{_ALPHABET} {_quoted_rule(_NAME_RULE, 'MyName', 'my.name', '123-abc')}")
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    problems = []
    if _bytes(prefix) > MAX_PREFIX_BYTES:
        problems.append(f"must be no more than {MAX_PREFIX_BYTES} bytes")
    if not _IS_KEY_PREFIX.match(prefix):
        problems.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
            f"must start and end with an alphanumeric character {_quoted_rule(_SUBDOMAIN_RULE, 'example.com')}"
        )
    return problems


def _quoted_rule(rule: str, *examples: str) -> str:
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"(e.g. {listed}regex used for validation is '{rule}')"


def _bytes(text: str) -> int:
    # JSON may hold half a surrogate pair, which has no UTF-8; it must be refused by its rule, not by a crash.
    return len(text.encode(errors="surrogatepass"))
