"""Sends requests: turn, rate limit, fence, retries, and errors of responses.

Reads are retried with jitter. A write is repeated only after a 429, when the server did nothing. After a lost response or
a 5xx the write may have happened, so the caller reads first and decides again.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Final

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.lanes import OBJECTS, Lane, LaneLimits
from trimtab.cluster.leases.fence import Fence, NoFence
from trimtab.cluster.transport import Request, Response, ResponseStream, Transport
from trimtab.model.json import wire
from trimtab.pacing import Backoff

_EVENTS: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
_REVIEWS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
_OWN_ENDING: Final = re.compile(r"(member-)?\d+|settings")
_LEASES: Final = ("coordination.k8s.io", "leases")


class _Metadata(wire.Wire):
    name: str = ""


class _Named(wire.Wire):
    metadata: _Metadata = _Metadata()


@dataclass(frozen=True, slots=True)
class _Target:
    group: str
    resource: str
    """The plural, with the subresource if there is one."""
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """The rule of a dry run."""

    lease_namespace: str = ""
    lease_name: str = ""
    """What the names of the Leases of this process begin with."""

    def may_send(self, request: Request) -> bool:
        """Return whether a request may be sent."""
        if request.method == "GET" or ("dryRun", "All") in request.query:
            return True
        target = _target_of(request)
        kind = target.group, target.resource
        return kind in _EVENTS or target.group in _REVIEWS or (kind == _LEASES and self._is_own_lease(target))

    def _is_own_lease(self, target: _Target) -> bool:
        ending = target.name.removeprefix(f"{self.lease_name}-")
        is_named = ending != target.name and bool(_OWN_ENDING.fullmatch(ending))
        return bool(self.lease_name) and target.namespace == self.lease_namespace and is_named


def _target_of(request: Request) -> _Target:
    parts = request.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else ("".join(parts[1:2]), parts[3:])
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", "", ""][:3]
    return _Target(
        group, f"{plural}/{subresource}" if subresource else plural, namespace, name or _name_in(request)
    )


def _name_in(request: Request) -> str:
    """Return the name of the object that is created."""
    try:
        return wire.decode(request.body or b"{}", _Named).metadata.name
    except (wire.WireError, msgspec.DecodeError):
        return ""


_MAX_THROTTLED = 10
_MAX_READ_TRIES = 4
_MAX_ERROR_BODY = 64 * 1024


@dataclass(slots=True)
class RequestCounts:
    """Counts requests by verb and outcome, for tests and metrics."""

    sent: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, verb: str, status: int) -> None:
        """Count a request. A status of 0 means that no response arrived."""
        self.sent[verb, status] = self.sent.get((verb, status), 0) + 1

    def total(self) -> int:
        """Return the number of requests."""
        return sum(self.sent.values())


class Sender:
    """Sends all requests of a client. `fenced` and `in_lane` return copies on the same transport."""

    def __init__(self, clock: Clock, transport: Transport, lane: Lane, jitter: random.Random) -> None:
        self.clock = clock
        self.transport = transport
        self.random = jitter
        self.counts = RequestCounts()
        self._lane = lane
        self._lanes = {lane.name: lane}
        """All lanes of the client and of its copies, so that equal limits are one lane."""
        self._fence: Fence = NoFence()
        self.dry_run: DryRun | None = None
        """The rule of a dry run, or None if this process may write."""

    def fenced(self, fence: Fence) -> "Sender":
        """Return a sender whose writes `fence` can stop."""
        other = self._copy()
        other._fence = fence
        return other

    def in_dry_run(self, rule: DryRun) -> "Sender":
        """Return a sender that sends only the writes of a dry run."""
        other = self._copy()
        other.dry_run = rule
        return other

    def in_lane(self, limits: LaneLimits) -> "Sender":
        """Return a sender whose requests cannot be delayed by those of other lanes."""
        other = self._copy()
        if limits.name not in self._lanes:
            self._lanes[limits.name] = Lane(self.clock, self.random, limits)
        other._lane = self._lanes[limits.name]
        return other

    def _copy(self) -> "Sender":
        other = Sender(self.clock, self.transport, self._lane, self.random)
        other.counts, other._fence, other.dry_run = self.counts, self._fence, self.dry_run
        other._lanes = self._lanes
        return other

    async def send(self, act: str, request: Request) -> Response:
        """Send a request, wait after a 429, retry a failed read. Return a successful response or raise."""
        backoff: Backoff | None = None
        throttled = failures = 0
        while True:
            try:
                return await self.send_in_turn(act, request)
            except errors.TooManyRequests:
                throttled += 1
                if throttled >= _MAX_THROTTLED:
                    raise
            except (errors.TransportError, errors.ServerError):
                failures += 1
                if request.method != "GET" or failures >= _MAX_READ_TRIES:
                    raise
                backoff = backoff or Backoff(self.clock, first=0.2, longest=5.0, jitter=self.random)
                await self.clock.sleep(backoff.failed())

    async def send_once(self, act: str, request: Request) -> Response:
        """Send a request once, when the lane has a turn. Return a successful response or raise."""
        if self._lane.name != OBJECTS.name:
            request = msgspec.structs.replace(request, lane=self._lane.name)
        async with self._lane.turns(request.method):
            if request.method != "GET":
                # After the wait for a turn, in which the lease may have been lost.
                request = self._allowed(act, request)
            answer = await self._exchange(act, request)
        self.counts.add(request.method, answer.status)
        if not 200 <= answer.status < 300:
            raise errors.error_from_answer(act, answer.status, answer.headers, answer.body)
        # Some proxies answer 200 with a failure Status. Typed decoding would see an empty object.
        if failure := errors.read_failure(answer.body):
            raise errors.error_from_status(act, failure)
        return answer

    async def _exchange(self, act: str, request: Request) -> Response:
        breaker = self._lane.breaker
        while breaker is not None and breaker.is_open and not breaker.admit():
            if breaker.verdict is None:
                # The caller decides again in its next sync.
                raise errors.Unreachable(f"{act}: not sent, because the API server cannot be reached")
            await asyncio.shield(breaker.verdict)
        try:
            answer = await self.transport.request(request)
        except errors.TransportError as error:
            self.counts.add(request.method, 0)
            if breaker is not None and isinstance(error, errors.Unreachable):
                breaker.failed()
            raise
        finally:
            if breaker is not None and breaker.is_open:
                breaker.end_probe()  # also if the caller was cancelled, or the response did not arrive in time
        if breaker is not None:
            breaker.passed()
        return answer

    @asynccontextmanager
    async def watch(self, act: str, request: Request) -> AsyncIterator[ResponseStream]:
        """Open a watch, rate-limited and without retry. The informer has its own back-off."""
        async with AsyncExitStack() as stack:
            await self._lane.limiter.admit(_key(request))
            try:
                stream = await stack.enter_async_context(self.transport.stream(request))
            except errors.TransportError:
                self.counts.add("WATCH", 0)
                raise
            self.counts.add("WATCH", stream.status)
            if self._lane.breaker is not None:
                self._lane.breaker.passed()
            if stream.status == 200:
                self._lane.limiter.served(_key(request))
            else:
                await self._refuse(act, _key(request), stream)
            yield stream

    async def _refuse(self, act: str, key: str, stream: ResponseStream) -> None:
        body = b""
        async for chunk in stream.chunks():
            body += chunk
            if len(body) > _MAX_ERROR_BODY:
                break
        error = errors.error_from_answer(act, stream.status, stream.headers, body)
        if isinstance(error, errors.TooManyRequests):
            self._lane.limiter.throttle(key, error.retry_after)
        raise error

    async def send_in_turn(self, act: str, request: Request) -> Response:
        """Send a request once, rate-limited, for callers with their own back-off."""
        limiter, key = self._lane.limiter, _key(request)
        if not limiter.may_pass(key):
            await limiter.admit(key)
        try:
            answer = await self.send_once(act, request)
        except errors.TooManyRequests as error:
            limiter.throttle(key, error.retry_after)
            raise
        except errors.ApiError:
            limiter.served(key)
            raise
        limiter.served(key)
        return answer

    def _allowed(self, act: str, request: Request) -> Request:
        """Return the write with a deadline before the lease may be lost, or raise if it may not be sent."""
        if self.dry_run is not None and not self.dry_run.may_send(request):
            raise errors.DryRunRefused(f"{act}: not sent, this is a dry run")
        if not self._fence.may_write():
            raise errors.Fenced(f"{act}: not sent, the lease may be lost")
        left = self._fence.time_left()
        if left < request.deadlines.total:
            deadlines = request.deadlines.within(left)
            return msgspec.structs.replace(request, deadlines=deadlines, may_send=self._fence.may_write)
        return request if left == inf else msgspec.structs.replace(request, may_send=self._fence.may_write)


def _key(request: Request) -> str:
    """Return what a 429 holds back: a webhook may throttle the writes of one object."""
    return f"{request.method} {request.path}"
