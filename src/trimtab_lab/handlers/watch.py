"""Watch: a stream of events from a version on."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from trimtab.model.status import StatusError, expired, too_large_version
from trimtab_lab.apiserver.request import ApiResponse, ResourceRequest
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.read import Filter, forbidden_list_option, parse_version
from trimtab_lab.handlers.views import View, choose_view
from trimtab_lab.storage.codec import JsonObject, decode, encode
from trimtab_lab.storage.store import Entry, ResourceStore, WatchCacheEvent, WatchStream, event_line

#: Seconds between bookmarks on a quiet watch, as kube-apiserver's.
BOOKMARK_SECONDS = 60.0
#: Seconds after which a watch that names no limit is ended, the lower end of kube-apiserver's range.
WATCH_SECONDS = 1800.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True)
class WatchPlan:
    """What a watch sends before the live events, and for how long it runs."""

    initial: list[Entry]
    missed: list[WatchCacheEvent]
    problem: StatusError | None
    after: int
    has_bookmarks: bool
    ends_initial: bool
    seconds: float


class WatchHandler:
    """The verb watch."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context

    async def watch(self, request: ResourceRequest) -> ApiResponse:
        """Return a stream of events."""
        view = choose_view(request, self._context.clock.now)
        selected = Filter.of(request)
        objects = self._context.store.resource(request.resource.storage)
        plan = self._plan(request, objects, selected)
        stream = objects.watch_cache.watch(request.info.namespace)
        response = WatchResponse(self._context, view, selected)
        return ApiResponse(200, stream=response.lines(objects, stream, plan))

    def _plan(self, request: ResourceRequest, objects: ResourceStore, selected: Filter) -> WatchPlan:
        _check_options(request)
        namespace, watch_cache = request.info.namespace, objects.watch_cache
        version, current = parse_version(request.option("resourceVersion")), self._context.store.version
        names_initial, sends_initial = "sendInitialEvents" in request.query, request.flag("sendInitialEvents")
        if sends_initial and version > current:
            raise too_large_version(version, current)
        problem: StatusError | None = None
        initial: list[Entry] = []
        missed: list[WatchCacheEvent] = []
        if sends_initial or (version == 0 and not names_initial):
            initial = [entry for entry in objects.all(namespace) if selected.matches(entry)]
        elif version and version < watch_cache.oldest:
            problem = expired(f"too old resource version: {version} ({watch_cache.oldest})")
        elif version:
            missed = [c for c in watch_cache.since(version) if namespace in ("", c.entry.namespace)]
        seconds = float(request.number("timeoutSeconds") or WATCH_SECONDS)
        bookmarks = request.flag("allowWatchBookmarks")
        return WatchPlan(initial, missed, problem, version, bookmarks, sends_initial, seconds)


def _check_options(request: ResourceRequest) -> None:
    match, names_initial = request.option("resourceVersionMatch"), "sendInitialEvents" in request.query
    if names_initial and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise forbidden_list_option("resourceVersionMatch", detail)
    if match and not names_initial:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise forbidden_list_option("resourceVersionMatch", detail)


class WatchResponse:
    """The events of one watch, filtered and rendered."""

    def __init__(self, context: HandlerContext, view: View, selected: Filter) -> None:
        self._clock = context.clock
        self._store = context.store
        self._view = view
        self._selected = selected

    async def lines(
        self, objects: ResourceStore, stream: WatchStream, plan: WatchPlan
    ) -> AsyncIterator[bytes]:
        """Yield the events, one or several lines at a time."""
        try:
            if plan.problem is not None:
                yield event_line("ERROR", encode(plan.problem.status()))
                return
            first = [event_line("ADDED", self._view.render(entry)) for entry in plan.initial]
            first += filter(None, map(self._line, plan.missed))
            if plan.ends_initial and plan.has_bookmarks:
                first.append(self._bookmark(plan.after, annotations={INITIAL_EVENTS_END: "true"}))
            if first:
                yield b"".join(first)
            async for chunk in self._follow(stream, plan):
                yield chunk
        finally:
            objects.watch_cache.stop(stream)

    async def _follow(self, stream: WatchStream, plan: WatchPlan) -> AsyncIterator[bytes]:
        deadline = self._clock.monotonic() + plan.seconds
        next_bookmark = self._clock.monotonic() + BOOKMARK_SECONDS
        while True:
            lines = [self._line(change) for change in stream.drain() if change.version > plan.after]
            chunk = b"".join(filter(None, lines))
            if chunk:
                yield chunk
                continue
            if stream.is_expired:
                problem = expired("too old resource version: the watch fell behind the events that are kept")
                yield event_line("ERROR", encode(problem.status()))
                return
            now = self._clock.monotonic()
            if now >= deadline:
                return
            if plan.has_bookmarks and now >= next_bookmark:
                next_bookmark = now + BOOKMARK_SECONDS
                yield self._bookmark(plan.after)
                continue
            until = min(deadline, next_bookmark) if plan.has_bookmarks else deadline
            await stream.wait(until - now)

    def _bookmark(self, at_least: int, annotations: dict[str, str] | None = None) -> bytes:
        meta: JsonObject = {"resourceVersion": str(max(self._store.version, at_least))}
        if annotations:
            meta["annotations"] = annotations
        return event_line("BOOKMARK", encode(self._view.bookmark(meta)))

    def _line(self, change: WatchCacheEvent) -> bytes | None:
        """Return the event of a change, relative to the selectors of this watch."""
        matches, matched = self._selected.matches(change.entry), self._selected.matches(change.previous)
        if change.action == "DELETED":
            return change.line("DELETED", self._view.form, self._view.render) if matched else None
        if matches:
            action = "MODIFIED" if matched else "ADDED"
            return change.line(action, self._view.form, self._view.render)
        if matched and change.previous is not None:
            return event_line("DELETED", self._view.render(_unmatched(change.previous, change.version)))
        return None


def _unmatched(previous: Entry, version: int) -> Entry:
    """Return the last state that matched, at the version at which it stopped matching."""
    obj: JsonObject = decode(previous.raw)
    obj["metadata"]["resourceVersion"] = str(version)
    return Entry(obj, previous.fields, version)
