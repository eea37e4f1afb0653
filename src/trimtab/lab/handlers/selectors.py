"""Field selectors, and the two selectors of a list or watch as one test.

Label selectors are the model's; field selectors know only `=`, `==` and `!=` on the fields that a kind offers.
"""

import re
from dataclasses import dataclass, field

from trimtab.lab.apiserver.errors import StatusError, bad_request
from trimtab.lab.storage.store import Entry
from trimtab.model.labels.selector import EVERYTHING, Selector, SelectorError

#: More requirements than this in one selector are refused (S23).
MAX_REQUIREMENTS = 100
#: Characters of a selector that are read at all: reading a longer one would hold up everybody else (F53).
MAX_TEXT = 64 * 1024


@dataclass(frozen=True)
class FieldRequirement:
    """One comparison of a field."""

    name: str
    value: str
    is_equal: bool


def _split(text: str) -> list[str]:
    """Split at commas that are not escaped."""
    return re.split(r"(?<!\\),", text)


def _unescape(text: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", text)


def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """Parse a field selector."""
    found: list[FieldRequirement] = []
    for term in filter(None, _split(text)):
        match = re.fullmatch(r"\s*([^=!\s]+)\s*(!=|==|=)(.*)", term, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
        found.append(FieldRequirement(match[1], _unescape(match[3]).strip(), match[2] != "!="))
    if len(found) > MAX_REQUIREMENTS:
        raise bad_request(f"the field selector has more than {MAX_REQUIREMENTS} requirements")
    return tuple(found)


def _unknown_field(name: str, known: frozenset[str]) -> StatusError:
    if known:
        return bad_request(f"field label not supported: {name}")
    return bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')


@dataclass(frozen=True)
class Filter:
    """Which objects a list or watch is about."""

    labels: Selector = EVERYTHING
    fields: tuple[FieldRequirement, ...] = ()
    is_everything: bool = field(default=True)

    @classmethod
    def parse(cls, label_text: str, field_text: str, known: frozenset[str]) -> "Filter":
        """Parse both selectors; `known` are the field names that the kind offers."""
        if len(label_text) > MAX_TEXT:
            raise bad_request(f"the label selector has {len(label_text)} characters, more than {MAX_TEXT}")
        try:
            labels = Selector.parse(label_text) if label_text else EVERYTHING
        except SelectorError as problem:
            raise bad_request(str(problem)) from problem
        if len(tuple(labels.requirements)) > MAX_REQUIREMENTS:
            raise bad_request(f"the label selector has more than {MAX_REQUIREMENTS} requirements")
        fields = parse_fields(field_text)
        for one in fields:
            if one.name not in known and one.name not in ("metadata.name", "metadata.namespace"):
                raise _unknown_field(one.name, known)
        return cls(labels, fields, not fields and labels.is_empty)

    def matches(self, entry: Entry | None) -> bool:
        """Tell whether an object is wanted."""
        if entry is None:
            return False
        if self.is_everything:
            return True
        for one in self.fields:
            if (self._value(entry, one.name) == one.value) is not one.is_equal:
                return False
        return self.labels.matches(entry.labels)

    @staticmethod
    def _value(entry: Entry, name: str) -> str:
        if name == "metadata.name":
            return entry.name
        if name == "metadata.namespace":
            return entry.namespace
        return entry.fields.get(name, "")


def selected_name(text: str) -> str:
    """Return the one name that a field selector asks for, for authorisation; none when it cannot be read."""
    try:
        found = [one.value for one in parse_fields(text) if one.name == "metadata.name" and one.is_equal]
    except StatusError:
        return ""
    return found[0] if found else ""
