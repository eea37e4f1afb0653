"""The label selector and the field selector of a list or watch.

Field selectors support `=`, `==` and `!=` on the fields that a kind offers.
"""

import re
from dataclasses import dataclass

from trimtab.model.labels.selector import EVERYTHING, Selector, SelectorError
from trimtab_lab.apiserver.errors import StatusError, bad_request
from trimtab_lab.apiserver.request import ResourceRequest
from trimtab_lab.storage.store import Entry

#: More requirements than this in one selector are refused (S23).
MAX_REQUIREMENTS = 100
#: Longer selectors are refused unparsed: parsing them would block all other requests (F53).
MAX_TEXT = 64 * 1024
_TERM = re.compile(r"\s*([^=!\s]+)\s*(!=|==|=)(.*)", re.DOTALL)


@dataclass(frozen=True)
class FieldRequirement:
    """One comparison of a field."""

    name: str
    value: str
    is_equal: bool


def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """Parse a field selector."""
    requirements: list[FieldRequirement] = []
    for term in filter(None, re.split(r"(?<!\\),", text)):  # at commas that are not escaped
        match = _TERM.fullmatch(term)
        if match is None:
            raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
        value = re.sub(r"\\([\\,=])", r"\1", match[3]).strip()
        requirements.append(FieldRequirement(match[1], value, match[2] != "!="))
    if len(requirements) > MAX_REQUIREMENTS:
        raise bad_request(f"the field selector has more than {MAX_REQUIREMENTS} requirements")
    return tuple(requirements)


def _unknown_field(name: str, known: frozenset[str]) -> StatusError:
    if known:
        return bad_request(f"field label not supported: {name}")
    return bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')


@dataclass(frozen=True)
class Filter:
    """Both selectors of a list or watch."""

    labels: Selector = EVERYTHING
    fields: tuple[FieldRequirement, ...] = ()
    is_everything: bool = True

    @classmethod
    def of(cls, request: ResourceRequest) -> "Filter":
        """Parse the selectors of a request."""
        text = request.option("labelSelector")
        if len(text) > MAX_TEXT:
            raise bad_request(f"the label selector has {len(text)} characters, more than {MAX_TEXT}")
        try:
            labels = Selector.parse(text) if text else EVERYTHING
        except SelectorError as problem:
            raise bad_request(str(problem)) from problem
        if len(tuple(labels.requirements)) > MAX_REQUIREMENTS:
            raise bad_request(f"the label selector has more than {MAX_REQUIREMENTS} requirements")
        fields = parse_fields(request.option("fieldSelector"))
        known = request.resource.strategy.field_names()
        for requirement in fields:
            if requirement.name not in known and requirement.name not in (
                "metadata.name",
                "metadata.namespace",
            ):
                raise _unknown_field(requirement.name, known)
        return cls(labels, fields, not fields and labels.is_empty)

    def matches(self, entry: Entry | None) -> bool:
        """Return whether an object matches both selectors."""
        if entry is None:
            return False
        if self.is_everything:
            return True
        for requirement in self.fields:
            if (_field_value(entry, requirement.name) == requirement.value) is not requirement.is_equal:
                return False
        return self.labels.matches(entry.labels)


def _field_value(entry: Entry, name: str) -> str:
    if name == "metadata.name":
        return entry.name
    if name == "metadata.namespace":
        return entry.namespace
    return entry.fields.get(name, "")


def selected_name(text: str) -> str:
    """Return the name that a field selector requires, or an empty text. Authorization uses it."""
    try:
        fields = parse_fields(text)
    except StatusError:
        return ""
    names = [field.value for field in fields if field.name == "metadata.name" and field.is_equal]
    return names[0] if names else ""
