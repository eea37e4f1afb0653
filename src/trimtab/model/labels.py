"""Which label keys and label values Kubernetes accepts, and what it says of the others."""

import re
from collections.abc import Mapping

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
