"""Get and list: selectors, versions and pages."""

import base64
import binascii
import re
from dataclasses import dataclass

import msgspec

from trimtab.model.labels.selector import EVERYTHING, Selector, SelectorError
from trimtab.model.status import StatusError, bad_request, expired, invalid, too_large_version
from trimtab_lab.apiserver.errors import forbidden_field, invalid_value, unsupported_value
from trimtab_lab.apiserver.request import ApiResponse, ResourceRequest
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.views import choose_view
from trimtab_lab.storage.codec import JsonObject, encode
from trimtab_lab.storage.store import Entry, ResourceStore

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


#: Digits of the largest version, which is an unsigned 64-bit number.
MOST_DIGITS = 20
CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - "
    "objects that were created, modified, or deleted between the time the first chunk was returned and "
    "now may show up in the list."
)


class _Position(msgspec.Struct):
    """Where the next page of a list starts."""

    v: str
    rv: int
    start: str


def encode_continue(version: int, start: str) -> str:
    """Return an opaque continue token."""
    raw = encode(_Position("meta.k8s.io/v1", version, start))
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_continue(token: str) -> _Position:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        return msgspec.json.decode(raw, type=_Position)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as problem:
        raise bad_request(f"invalid continue token: continue key is not valid: {problem}") from problem


def parse_version(text: str) -> int:
    """Parse a resourceVersion option."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise _invalid_version(text, "invalid syntax")
    if len(text) > MOST_DIGITS or int(text) >= 2**64:
        shown = text if len(text) <= 2 * MOST_DIGITS else f"{text[:MOST_DIGITS]}…"
        raise _invalid_version(shown, "value out of range")
    return int(text)


def _invalid_version(text: str, reason: str) -> StatusError:
    cause = invalid_value("resourceVersion", text, f'strconv.ParseUint: parsing "{text}": {reason}')
    return bad_request(f"invalid resource version: {cause}")


def forbidden_list_option(name: str, detail: str) -> StatusError:
    """Reject a combination of ListOptions."""
    return invalid("ListOptions", "meta.k8s.io", "", [forbidden_field(name, detail)])


@dataclass(frozen=True)
class ListChunk:
    """A page of a list and the list's metadata."""

    entries: list[Entry]
    meta: JsonObject


class ReadHandler:
    """The verbs get and list."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context
        self._store = context.store

    async def get(self, request: ResourceRequest) -> ApiResponse:
        entry = self._context.get(request)
        version = parse_version(request.option("resourceVersion"))
        if version > self._store.version:
            raise too_large_version(version, self._store.version)
        return self._context.respond(request, entry)

    async def list_objects(self, request: ResourceRequest) -> ApiResponse:
        view = choose_view(request, self._context.clock.now)
        page = self.page(request)
        return ApiResponse(200, view.render_list(page.entries, page.meta))

    def page(self, request: ResourceRequest) -> ListChunk:
        selected = Filter.of(request)
        limit = request.number("limit") or 0
        if limit < 0:
            raise bad_request("limit must not be negative")
        objects = self._store.resource(request.resource.storage)
        token = request.option("continue")
        if token:
            if request.option("resourceVersion") not in ("", "0"):
                raise bad_request("specifying resource version is not allowed when using continue")
            position = decode_continue(token)
            version = position.rv
            if version < objects.watch_cache.oldest:
                raise expired(CONTINUE_EXPIRED)
            entries = objects.list_at(version, request.info.namespace)
            entries = [entry for entry in entries if entry.key >= position.start]
        else:
            entries, version = self._list_at_option(request, objects, limit)
        if not selected.is_everything:
            entries = [entry for entry in entries if selected.matches(entry)]
        meta: JsonObject = {"resourceVersion": str(version)}
        if limit and len(entries) > limit:
            meta["continue"] = encode_continue(version, entries[limit].key)
            if selected.is_everything:
                meta["remainingItemCount"] = len(entries) - limit
            entries = entries[:limit]
        return ListChunk(entries, meta)

    def _list_at_option(
        self, request: ResourceRequest, objects: ResourceStore, limit: int
    ) -> tuple[list[Entry], int]:
        """Return the objects at the version that the options name, and that version."""
        text, match = request.option("resourceVersion"), request.option("resourceVersionMatch")
        version = parse_version(text)
        if match and not text:
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            raise forbidden_list_option("resourceVersionMatch", detail)
        if match == "Exact" and version == 0:
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            raise forbidden_list_option("resourceVersionMatch", detail)
        if match not in ("", "Exact", "NotOlderThan"):
            cause = unsupported_value("resourceVersionMatch", match, ("Exact", "NotOlderThan", ""))
            raise invalid("ListOptions", "meta.k8s.io", "", [cause])
        if version > self._store.version:
            raise too_large_version(version, self._store.version)
        # A limited list at a version and no match is exact: the old rule that pages need one snapshot.
        if match == "Exact" or (limit and version and not match):
            oldest = objects.watch_cache.oldest
            if version < oldest:
                raise expired(f"The resourceVersion for the provided list is too old: {version} ({oldest})")
            return objects.list_at(version, request.info.namespace), version
        return objects.all(request.info.namespace), self._store.version
