"""Decodes responses, lists and watch events into typed objects.

Fields that the type does not have are skipped. An object that does not fit its type does not affect other objects: a
page is then decoded object by object, and invalid ones are reported.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, get_origin

import msgspec

from trimtab.cluster.errors import TransportError
from trimtab.model.core.meta import ListMeta, ObjectMeta, OwnerReference
from trimtab.model.json import wire
from trimtab.model.json.wire import cut_nulls
from trimtab.model.status import Status

T = TypeVar("T")


class Meta(Protocol):
    """The metadata that a cache needs. A type with thousands of objects may decode no more than this."""

    @property
    def name(self) -> str:
        """Return the name."""
        ...

    @property
    def namespace(self) -> str:
        """Return the namespace, which is empty for a cluster-scoped object."""
        ...

    @property
    def uid(self) -> str:
        """Return the uid."""
        ...

    @property
    def resource_version(self) -> str:
        """Return the version."""
        ...

    @property
    def owner_references(self) -> tuple[OwnerReference, ...]:
        """Return the owners."""
        ...

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        ...


class Object(Protocol):
    """An object with metadata."""

    @property
    def metadata(self) -> Meta:
        """Return the metadata."""
        ...


class PartialObject(wire.Wire, frozen=True):
    """An object of any kind, reduced to its metadata."""

    metadata: ObjectMeta = ObjectMeta()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that does not fit its type."""

    metadata: ObjectMeta
    why: str


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """A page of a list."""

    items: Sequence[T]
    resource_version: str
    continue_token: str
    unreadable: Sequence[Unreadable] = ()
    size: int = 0
    """The bytes of its text, if it arrived in pieces."""


class _RawList(wire.Wire, frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class _Head(wire.Wire, frozen=True):
    metadata: ListMeta = ListMeta()


class WatchEvent(msgspec.Struct, Generic[T]):
    """An event of a watch: its type and its object."""

    type: str
    object: T | None = None
    bookmark: str = ""
    status: Status | None = None
    unreadable: Unreadable | None = None
    size: int = 0
    """The bytes of its line."""


class _StatusEvent(wire.Wire, frozen=True):
    object: Status = Status()


class _PartialEvent(wire.Wire, frozen=True):
    type: str = ""
    object: PartialObject = PartialObject()


def decode_answer(act: str, body: bytes, kind: type[T]) -> T:
    """Decode the body of a successful response."""
    try:
        return wire.decode(body, kind)
    except wire.WireError as error:
        raise TransportError(f"{act}: the answer does not make sense: {error}") from error


def decode_page(act: str, body: bytes, kind: type[T]) -> ListPage[T]:
    """Decode a page of a list."""
    typed = _list_decoder(kind)
    try:
        listing = typed(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            listing = typed(cut_nulls(body))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _decode_one_by_one(act, body, kind)
    return ListPage(listing.items or (), listing.metadata.resource_version, listing.metadata.continue_)


def read_head(text: bytes) -> ListMeta | None:
    """Return the metadata of a list whose beginning is `text`, or None if it is not JSON."""
    try:
        return wire.decode(text.rstrip(b", \r\n\t") + b"}", _Head).metadata
    except wire.WireError:
        return None


def _decode_one_by_one(act: str, body: bytes, kind: type[T]) -> ListPage[T]:
    raw = decode_answer(act, body, _RawList)
    items: list[T] = []
    unreadable: list[Unreadable] = []
    for text in raw.items or ():
        try:
            items.append(wire.decode(bytes(text), kind))
        except wire.WireError as error:
            partial = decode_answer(act, bytes(text), PartialObject)
            unreadable.append(Unreadable(partial.metadata, str(error)))
    return ListPage(items, raw.metadata.resource_version, raw.metadata.continue_, unreadable)


def event_decoder(kind: type[T]) -> Callable[[bytes], WatchEvent[T]]:
    """Return a function that decodes a line of a watch.

    It raises WireError if the line is not an event.
    """
    typed = wire.decoder(_event_type(kind))

    def decode(line: bytes) -> WatchEvent[T]:
        try:
            event = typed.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _decode_odd_event(line, kind)
        if event.type in {"ADDED", "MODIFIED", "DELETED"}:
            return WatchEvent(event.type, event.object)
        return _decode_odd_event(line, kind)

    return decode


def _decode_odd_event(line: bytes, kind: type[T]) -> WatchEvent[T]:
    """Decode bookmarks, errors, unknown types, and objects that do not fit."""
    partial = wire.decode(line, _PartialEvent)
    if partial.type == "ERROR":
        return WatchEvent(partial.type, status=wire.decode(line, _StatusEvent).object)
    if partial.type == "BOOKMARK":
        return WatchEvent(partial.type, bookmark=partial.object.metadata.resource_version)
    if partial.type not in {"ADDED", "MODIFIED", "DELETED"}:
        return WatchEvent(partial.type)
    try:
        return WatchEvent(partial.type, wire.decode(line, _event_type(kind)).object)
    except wire.WireError as error:
        why = str(error).removeprefix("object.")  # the same text as in a list
        return WatchEvent(partial.type, unreadable=Unreadable(partial.object.metadata, why))


_LIST_DECODERS: dict[Any, Callable[[bytes], Any]] = {}
_LIST_TYPES: dict[Any, Any] = {}
_EVENT_TYPES: dict[Any, Any] = {}


def _list_decoder(kind: Any) -> Callable[[bytes], Any]:
    if kind not in _LIST_DECODERS:
        _LIST_DECODERS[kind] = wire.decoder(list_type(kind)).decode
    return _LIST_DECODERS[kind]


def list_type(kind: Any) -> Any:
    """Return the type of a list of `kind`, with `metadata` and `items`."""
    if kind not in _LIST_TYPES:
        items: Any = list[kind]
        fields = [("metadata", ListMeta, ListMeta()), ("items", items | None, None)]
        _LIST_TYPES[kind] = msgspec.defstruct(f"{_name(kind)}List", fields, frozen=True, gc=False)
    return _LIST_TYPES[kind]


def _event_type(kind: Any) -> Any:
    if kind not in _EVENT_TYPES:
        fields = [("type", str), ("object", kind)]
        _EVENT_TYPES[kind] = msgspec.defstruct(f"{_name(kind)}Event", fields, frozen=True, gc=False)
    return _EVENT_TYPES[kind]


def _name(kind: Any) -> str:
    return str(getattr(get_origin(kind) or kind, "__name__", "Object"))
