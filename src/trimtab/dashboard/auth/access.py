"""Who may look, and at which namespaces.

On a person's own machine one random token opens everything. In a cluster the viewer brings a token of the cluster: a
TokenReview says who it is, and SubjectAccessReviews which namespaces that user may list autoscalers in (S16). The
dashboard's own rights are never lent.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Iterable
from typing import Any, Final, Protocol, TypeVar

from trimtab.adapter.auth.access_reviews import ReviewCache, review
from trimtab.adapter.auth.authentication import TOKEN_REVIEWS, UserInfo
from trimtab.adapter.auth.authorization import ACCESS_REVIEWS
from trimtab.adapter.errors import Unavailable
from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.dashboard.web.http import RefusedError
from trimtab.model.json.wire import Wire

T = TypeVar("T")

MOST_TOKEN: Final = 16 * 1024
BELIEVED_SECONDS: Final = 10.0
_AT_ONCE: Final = 8


class Viewer(Protocol):
    """Somebody who has logged in."""

    @property
    def name(self) -> str:
        """Return what to call them."""
        ...

    async def visible(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Return those of the namespaces that they may see."""
        ...


class Access(Protocol):
    """Turns a token into a viewer."""

    async def viewer(self, token: str) -> Viewer | None:
        """Return who a token belongs to; None if to nobody."""
        ...


class LocalViewer:
    """The person who started the program: may see everything."""

    name = "owner"

    async def visible(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Return all of them."""
        return frozenset(namespaces)


class OneToken:
    """One random token for the person at this machine."""

    def __init__(self, token: str) -> None:
        if len(token) < 16:
            raise ValueError("the dashboard's token must have at least 16 characters")
        self._token = token.encode()

    async def viewer(self, token: str) -> Viewer | None:
        """Return the owner if the token is theirs."""
        return LocalViewer() if hmac.compare_digest(token.encode(), self._token) else None


class _UserInfo(Wire):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenStatus(Wire):
    authenticated: bool = False
    user: _UserInfo = _UserInfo()


class _TokenReview(Wire):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(Wire):
    allowed: bool = False


class _AccessReview(Wire):
    status: _AccessStatus = _AccessStatus()


class ClusterAccess:
    """Lets the cluster say who a token is and what they may see."""

    def __init__(self, clock: Clock, client: Client) -> None:
        self._client = client
        self._tokens: ReviewCache[bytes, UserInfo | None] = ReviewCache(clock, BELIEVED_SECONDS)
        self._rights: ReviewCache[tuple[UserInfo, str], bool] = ReviewCache(clock, BELIEVED_SECONDS)
        self._asking = asyncio.Semaphore(_AT_ONCE)

    async def viewer(self, token: str) -> Viewer | None:
        """Return who the cluster says that a token belongs to."""
        if not token or len(token) > MOST_TOKEN:
            return None
        key = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        user = await self._answered(self._tokens.get(key, lambda: self._who(token)))
        return ClusterUser(user, self) if user is not None else None

    async def may_list(self, user: UserInfo, namespace: str) -> bool:
        """Return whether a user may list autoscalers in a namespace; an empty one means all of them."""
        return await self._answered(self._rights.get((user, namespace), lambda: self._may(user, namespace)))

    async def _answered(self, asking: Awaitable[T]) -> T:
        try:
            async with self._asking:
                return await asking
        except Unavailable as error:
            raise RefusedError(503, str(error)) from error

    async def _who(self, token: str) -> UserInfo | None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = (await review(self._client, TOKEN_REVIEWS, body, _TokenReview)).status
        if not status.authenticated or not status.user.username:
            return None
        found = status.user
        return UserInfo(found.username, found.uid, found.groups, tuple(sorted(found.extra.items())))

    async def _may(self, user: UserInfo, namespace: str) -> bool:
        attributes = {
            "verb": "list",
            "group": "autoscaling.trimtab.dev",
            "resource": "horizontalpodautoscalers",
        }
        spec: dict[str, Any] = {
            "user": user.name,
            "groups": list(user.groups),
            "resourceAttributes": {**attributes, "namespace": namespace},
        }
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return (await review(self._client, ACCESS_REVIEWS, body, _AccessReview)).status.allowed


class ClusterUser:
    """A user of the cluster, who sees the namespaces that they may list autoscalers in."""

    def __init__(self, user: UserInfo, access: ClusterAccess) -> None:
        self._user = user
        self._access = access

    @property
    def name(self) -> str:
        """Return the user's name in the cluster."""
        return self._user.name

    async def visible(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Ask about all namespaces at once, and about each only if that is not allowed."""
        wanted = sorted(set(namespaces))
        if await self._access.may_list(self._user, ""):
            return frozenset(wanted)
        allowed = await asyncio.gather(*(self._access.may_list(self._user, one) for one in wanted))
        return frozenset(one for one, may in zip(wanted, allowed, strict=True) if may)
