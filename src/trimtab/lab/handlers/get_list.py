"""Get, list and watch: what versions mean, page by page and event by event."""

import base64
import binascii
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

from trimtab.clock import Clock
from trimtab.lab.apiserver.errors import (
    StatusError,
    bad_request,
    expired,
    forbidden_field,
    invalid,
    invalid_value,
    not_found,
    too_large_version,
    unsupported_value,
)
from trimtab.lab.apiserver.request import ApiRequest, ApiResponse, RequestPath
from trimtab.lab.handlers.selectors import Filter
from trimtab.lab.handlers.views import View, choose_view
from trimtab.lab.resources.registry import ServedResource
from trimtab.lab.storage.codec import JsonObject, decode, encode
from trimtab.lab.storage.store import Entry, ObjectStore, ResourceStore
from trimtab.lab.storage.watch_cache import WatchCacheEvent, WatchStream, event_line

#: Seconds between bookmarks on a quiet watch, as kube-apiserver's.
BOOKMARK_SECONDS = 60.0
#: Seconds after which a watch that names no limit is ended, the lower end of kube-apiserver's range.
WATCH_SECONDS = 1800.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def key_of(resource: ServedResource, target: RequestPath) -> str:
    """Return the storage key of the object that a path names."""
    return f"{target.namespace}/{target.name}" if resource.is_namespaced else target.name


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
    """Read a continue token."""
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        return msgspec.json.decode(raw, type=_Position)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as problem:
        raise bad_request(f"invalid continue token: continue key is not valid: {problem}") from problem


MOST_DIGITS = 20
"""Digits of the largest version, which is an unsigned 64-bit number."""


def parse_version(text: str) -> int:
    """Read a resourceVersion option."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise _no_version(text, "invalid syntax")
    if len(text) > MOST_DIGITS or int(text) >= 2**64:
        raise _no_version(
            text if len(text) <= 2 * MOST_DIGITS else f"{text[:MOST_DIGITS]}…", "value out of range"
        )
    return int(text)


def _no_version(text: str, why: str) -> StatusError:
    cause = invalid_value("resourceVersion", text, f'strconv.ParseUint: parsing "{text}": {why}')
    return bad_request(f"invalid resource version: {cause}")


@dataclass(frozen=True)
class ListChunk:
    """A part of a list, with what its metadata says."""

    entries: list[Entry]
    meta: JsonObject


class ReadHandler:
    """The reading verbs of every resource."""

    def __init__(self, clock: Clock, store: ObjectStore) -> None:
        self._clock = clock
        self._store = store

    def entry(self, resource: ServedResource, target: RequestPath) -> Entry:
        """Return the object that a path names."""
        entry = self._store.get(resource.storage, key_of(resource, target))
        if entry is None:
            raise not_found(resource.plural, resource.group, target.name)
        return entry

    def get(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Answer with one object."""
        entry = self.entry(resource, target)
        asked = parse_version(request.option("resourceVersion"))
        if asked > self._store.version:
            raise too_large_version(asked, self._store.version)
        view = choose_view(request, resource, target.version, self._clock.now)
        return ApiResponse(200, view.one(entry))

    def list_objects(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Answer with the objects that match."""
        view = choose_view(request, resource, target.version, self._clock.now)
        page = self.page(request, resource, target)
        return ApiResponse(200, view.many(page.entries, page.meta))

    def filter_of(self, request: ApiRequest, resource: ServedResource) -> Filter:
        """Return the request's selectors."""
        known = resource.strategy.field_names()
        return Filter.parse(request.option("labelSelector"), request.option("fieldSelector"), known)

    def page(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ListChunk:
        """Return the part of the list that the request asks for."""
        wanted = self.filter_of(request, resource)
        limit = request.number("limit") or 0
        if limit < 0:
            raise bad_request("limit must not be negative")
        shelf = self._store.shelf(resource.storage)
        start, version = "", self._store.version
        token = request.option("continue")
        if token:
            if request.option("resourceVersion") not in ("", "0"):
                raise bad_request("specifying resource version is not allowed when using continue")
            position = decode_continue(token)
            start, version = position.start, position.rv
            entries = self._at(shelf, version, target.namespace, is_continue=True)
            entries = [entry for entry in entries if entry.key >= start]
        else:
            entries, version = self._at_option(request, shelf, target.namespace, limit)
        if not wanted.is_everything:
            entries = [entry for entry in entries if wanted.matches(entry)]
        meta: JsonObject = {"resourceVersion": str(version)}
        if limit and len(entries) > limit:
            meta["continue"] = encode_continue(version, entries[limit].key)
            if wanted.is_everything:
                meta["remainingItemCount"] = len(entries) - limit
            entries = entries[:limit]
        return ListChunk(entries, meta)

    def _at_option(
        self, request: ApiRequest, shelf: ResourceStore, namespace: str, limit: int
    ) -> tuple[list[Entry], int]:
        """Return the objects at the version that the options ask for."""
        text, match = request.option("resourceVersion"), request.option("resourceVersionMatch")
        asked = parse_version(text)
        if match and not text:
            raise _list_option(
                "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
            )
        if match == "Exact" and asked == 0:
            raise _list_option(
                "resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            )
        if match not in ("", "Exact", "NotOlderThan"):
            cause = unsupported_value("resourceVersionMatch", match, ("Exact", "NotOlderThan", ""))
            raise invalid("ListOptions", "meta.k8s.io", "", [cause])
        if asked > self._store.version:
            raise too_large_version(asked, self._store.version)
        # A limited list at a version and no match is exact: the old rule that pages need one snapshot.
        if match == "Exact" or (limit and asked and not match):
            return self._at(shelf, asked, namespace), asked
        return shelf.range(namespace), self._store.version

    def _at(
        self, shelf: ResourceStore, version: int, namespace: str, *, is_continue: bool = False
    ) -> list[Entry]:
        if version < shelf.history.oldest:
            if is_continue:
                raise expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start a new "
                    "list without the continue parameter, or use the continue token in this response to retrieve the "
                    "remainder of the results. Continuing with the provided token results in an inconsistent list - "
                    "objects that were created, modified, or deleted between the time the first chunk was returned and "
                    "now may show up in the list."
                )
            raise expired(
                f"The resourceVersion for the provided list is too old: {version} ({shelf.history.oldest})"
            )
        return shelf.at(version, namespace)

    def watch(self, request: ApiRequest, resource: ServedResource, target: RequestPath) -> ApiResponse:
        """Answer with a stream of events."""
        view = choose_view(request, resource, target.version, self._clock.now)
        wanted = self.filter_of(request, resource)
        shelf = self._store.shelf(resource.storage)
        plan = self._plan_watch(request, shelf, target.namespace, wanted)
        stream = shelf.history.follow(target.namespace)
        watch = WatchResponse(self._clock, self._store, view, wanted)
        return ApiResponse(200, stream=watch.lines(shelf, stream, plan))

    def _plan_watch(
        self, request: ApiRequest, shelf: ResourceStore, namespace: str, wanted: Filter
    ) -> "WatchPlan":
        _check_watch_options(request)
        asked = parse_version(request.option("resourceVersion"))
        names_initial, sends_initial = "sendInitialEvents" in request.query, request.flag("sendInitialEvents")
        if sends_initial and asked > self._store.version:
            raise too_large_version(asked, self._store.version)
        problem: StatusError | None = None
        initial: list[Entry] = []
        missed: list[WatchCacheEvent] = []
        if sends_initial or (asked == 0 and not names_initial):
            initial = [entry for entry in shelf.range(namespace) if wanted.matches(entry)]
        elif asked and asked < shelf.history.oldest:
            problem = expired(f"too old resource version: {asked} ({shelf.history.oldest})")
        elif asked:
            missed = [c for c in shelf.history.since(asked) if namespace in ("", c.entry.namespace)]
        seconds = float(request.number("timeoutSeconds") or WATCH_SECONDS)
        bookmarks = request.flag("allowWatchBookmarks")
        return WatchPlan(initial, missed, problem, asked, bookmarks, sends_initial, seconds)


def _check_watch_options(request: ApiRequest) -> None:
    match, names_initial = request.option("resourceVersionMatch"), "sendInitialEvents" in request.query
    if names_initial and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise _list_option("resourceVersionMatch", detail)
    if match and not names_initial:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise _list_option("resourceVersionMatch", detail)


def _list_option(name: str, detail: str) -> StatusError:
    return invalid("ListOptions", "meta.k8s.io", "", [forbidden_field(name, detail)])


@dataclass(frozen=True)
class WatchPlan:
    """What a watch sends before it follows, and for how long it follows."""

    initial: list[Entry]
    missed: list[WatchCacheEvent]
    problem: StatusError | None
    after: int
    has_bookmarks: bool
    ends_initial: bool
    seconds: float


class WatchResponse:
    """One stream of events through one view and one filter."""

    def __init__(self, clock: Clock, store: ObjectStore, view: View, wanted: Filter) -> None:
        self._clock = clock
        self._store = store
        self._view = view
        self._wanted = wanted

    async def lines(self, shelf: ResourceStore, stream: WatchStream, plan: WatchPlan) -> AsyncIterator[bytes]:
        """Yield the stream, line by line or several lines at once."""
        try:
            if plan.problem is not None:
                yield event_line("ERROR", encode(plan.problem.status()))
                return
            first = [event_line("ADDED", self._view.one(entry)) for entry in plan.initial]
            first += filter(None, map(self._line, plan.missed))
            if plan.ends_initial and plan.has_bookmarks:
                first.append(self._bookmark(plan.after, annotations={INITIAL_EVENTS_END: "true"}))
            if first:
                yield b"".join(first)
            async for chunk in self._follow(stream, plan):
                yield chunk
        finally:
            shelf.history.unfollow(stream)

    async def _follow(self, stream: WatchStream, plan: WatchPlan) -> AsyncIterator[bytes]:
        deadline = self._clock.monotonic() + plan.seconds
        mark = self._clock.monotonic() + BOOKMARK_SECONDS
        while True:
            lines = [self._line(change) for change in stream.drain() if change.version > plan.after]
            chunk = b"".join(filter(None, lines))
            if chunk:
                yield chunk
                continue
            if stream.is_cut:
                problem = expired("too old resource version: the watch fell behind the events that are kept")
                yield event_line("ERROR", encode(problem.status()))
                return
            now = self._clock.monotonic()
            if now >= deadline:
                return
            if plan.has_bookmarks and now >= mark:
                mark = now + BOOKMARK_SECONDS
                yield self._bookmark(plan.after)
                continue
            until = min(deadline, mark) if plan.has_bookmarks else deadline
            await stream.wait(until - now)

    def _bookmark(self, at_least: int, annotations: dict[str, str] | None = None) -> bytes:
        meta: JsonObject = {"resourceVersion": str(max(self._store.version, at_least))}
        if annotations:
            meta["annotations"] = annotations
        return event_line("BOOKMARK", encode(self._view.bookmark(meta)))

    def _line(self, change: WatchCacheEvent) -> bytes | None:
        """Return the line for a change, as this stream's filter sees it."""
        is_seen, was_seen = self._wanted.matches(change.entry), self._wanted.matches(change.previous)
        if change.action == "DELETED":
            return change.line("DELETED", self._view.form, self._view.one) if was_seen else None
        if is_seen:
            action = "MODIFIED" if was_seen else "ADDED"
            return change.line(action, self._view.form, self._view.one)
        if was_seen and change.previous is not None:
            return event_line("DELETED", self._view.one(self._left(change.previous, change.version)))
        return None

    @staticmethod
    def _left(previous: Entry, version: int) -> Entry:
        """Return the last state that matched, at the version at which it stopped matching."""
        obj: JsonObject = decode(previous.raw)
        obj["metadata"]["resourceVersion"] = str(version)
        return Entry(obj, previous.fields, version)
