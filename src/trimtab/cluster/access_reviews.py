"""TokenReviews and SubjectAccessReviews, cached for a few seconds.

A review that fails raises ReviewFailedError. It is never treated as a yes.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.errors import ClusterError
from trimtab.cluster.transport import Deadlines, Request
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

MAX_CACHE_SECONDS = 10.0
"""How long a review is cached at most, so that a revoked right ends soon."""
MAX_TOKEN_CHARACTERS = 16 * 1024
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SELF_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

_MAX_ENTRIES = 10_000
_DEADLINES = Deadlines().within(5.0)
_JSON = {"Content-Type": "application/json"}


class ReviewFailedError(ClusterError):
    """The API server could not review a request."""


@dataclass(frozen=True, slots=True)
class UserInfo:
    """An authenticated user."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class ResourceAttributes(NamedTuple):
    """A request for a resource. An empty namespace is all namespaces."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    version: str = ""
    name: str = ""
    subresource: str = ""


class NonResourceAttributes(NamedTuple):
    """A request for a path without a resource."""

    verb: str
    path: str


Attributes = ResourceAttributes | NonResourceAttributes


class AccessStatus(Wire):
    """The answer of a SubjectAccessReview."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""

    @property
    def is_allowed(self) -> bool:
        """Return whether the user may do it."""
        return self.allowed and not self.denied


class _AccessReview(Wire):
    status: AccessStatus = AccessStatus()


class _User(Wire):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenStatus(Wire):
    authenticated: bool = False
    user: _User = _User()


class _TokenReview(Wire):
    status: _TokenStatus = _TokenStatus()


class TokenReviewer:
    """Authenticates bearer tokens."""

    def __init__(self, clock: Clock, client: Client, cache_seconds: float = MAX_CACHE_SECONDS) -> None:
        self._client = client
        self._cache: ReviewCache[bytes, UserInfo | None] = ReviewCache(clock, cache_seconds)

    async def user(self, token: str) -> UserInfo | None:
        """Return the user of a token, or None. The cache stores a hash of the token."""
        if not token or len(token) > MAX_TOKEN_CHARACTERS:
            return None
        key = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        return await self._cache.get(key, lambda: self._review(token))

    async def _review(self, token: str) -> UserInfo | None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = (await _review(self._client, TOKEN_REVIEWS, body, _TokenReview)).status
        user = status.user
        if not status.authenticated or not user.username:
            return None
        return UserInfo(user.username, user.uid, user.groups, tuple(sorted(user.extra.items())))


class AccessReviewer:
    """Authorizes users."""

    def __init__(self, clock: Clock, client: Client, cache_seconds: float = MAX_CACHE_SECONDS) -> None:
        self._client = client
        self._cache: ReviewCache[tuple[UserInfo, Attributes], AccessStatus] = ReviewCache(
            clock, cache_seconds
        )

    def cached(self, user: UserInfo, attributes: Attributes) -> AccessStatus | None:
        """Return a cached review, or None."""
        return self._cache.cached((user, attributes))

    async def review(self, user: UserInfo, attributes: Attributes) -> AccessStatus:
        """Return whether a user may do something, and why."""
        return await self._cache.get((user, attributes), lambda: self._review(user, attributes))

    async def _review(self, user: UserInfo, attributes: Attributes) -> AccessStatus:
        is_resource = isinstance(attributes, ResourceAttributes)
        spec: dict[str, Any] = {
            "user": user.name,
            "groups": list(user.groups),
            "resourceAttributes" if is_resource else "nonResourceAttributes": attributes._asdict(),
        }
        if user.uid:
            spec["uid"] = user.uid
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return (await _review(self._client, ACCESS_REVIEWS, body, _AccessReview)).status


async def may_self(client: Client, attributes: ResourceAttributes) -> bool:
    """Return whether the client itself has a right. Nothing is cached."""
    spec = {"resourceAttributes": attributes._asdict()}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    return (await _review(client, SELF_REVIEWS, body, _AccessReview)).status.is_allowed


class ReviewCache(Generic[K, T]):
    """Caches reviews for a short time and sends equal ones once. Failures are not cached."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = min(seconds, MAX_CACHE_SECONDS)
        self._entries: OrderedDict[K, tuple[float, T]] = OrderedDict()
        self._flights: dict[K, asyncio.Task[T]] = {}

    def cached(self, key: K) -> T | None:
        """Return a cached review, or None."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and self._clock.monotonic() < entry[0] else None

    async def get(self, key: K, review: Callable[[], Awaitable[T]]) -> T:
        """Return the cached review, or send it."""
        entry = self._entries.get(key)
        if entry is not None and self._clock.monotonic() < entry[0]:
            return entry[1]
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.ensure_future(self._send(key, review))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        # Shielded, so that a cancelled caller does not cancel the review of other callers.
        return await asyncio.shield(flight)

    async def _send(self, key: K, review: Callable[[], Awaitable[T]]) -> T:
        sent_at = self._clock.monotonic()
        result = await review()
        self._entries[key] = (sent_at + self._seconds, result)
        self._entries.move_to_end(key)
        while len(self._entries) > _MAX_ENTRIES:
            self._entries.popitem(last=False)
        return result

    def _landed(self, key: K, flight: asyncio.Task[T]) -> None:
        self._flights.pop(key, None)
        if not flight.cancelled():
            flight.exception()


async def _review(client: Client, path: str, body: dict[str, Any], into: type[T]) -> T:
    act = f"asking {path.rsplit('/', 1)[1]}"
    request = Request("POST", path, (), _JSON, wire.encode(body), _DEADLINES)
    try:
        response = await client.sender.send_once(act, request)
        return wire.decode(response.body, into)
    except (ClusterError, wire.WireError) as error:
        raise ReviewFailedError(f"the cluster cannot be asked about this request: {error}") from error
