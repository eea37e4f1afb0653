"""Authenticates viewers, and decides which namespaces they may see.

On a user's own machine a random token gives access to everything. In a cluster a viewer logs in with a token of the
cluster. A TokenReview returns the user, and SubjectAccessReviews the namespaces in which that user may list HPAs. The
dashboard's own rights are never used for a viewer.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Iterable
from typing import Final, Protocol, TypeVar

from trimtab.clock import Clock
from trimtab.cluster.access_reviews import (
    AccessReviewer,
    ResourceAttributes,
    ReviewFailedError,
    TokenReviewer,
    UserInfo,
)
from trimtab.cluster.client import Client
from trimtab.dashboard.web.http import RefusedError

T = TypeVar("T")

OWN_GROUP: Final = "autoscaling.trimtab.dev"
_MAX_REVIEWS: Final = 8
"""Concurrent reviews."""


class Viewer(Protocol):
    """A logged-in viewer."""

    @property
    def name(self) -> str:
        """Return the viewer's name."""
        ...

    async def visible(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Return the namespaces that the viewer may see."""
        ...


class Access(Protocol):
    """Authenticates tokens."""

    async def viewer(self, token: str) -> Viewer | None:
        """Return the viewer of a token, or None."""
        ...


class LocalViewer:
    """The user who started the program. This viewer may see everything."""

    name = "owner"

    async def visible(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Return all namespaces."""
        return frozenset(namespaces)


class OneToken:
    """A random token for the user of this machine."""

    def __init__(self, token: str) -> None:
        if len(token) < 16:
            raise ValueError("the dashboard's token must have at least 16 characters")
        self._token = token.encode()

    async def viewer(self, token: str) -> Viewer | None:
        """Return the owner if the token matches."""
        return LocalViewer() if hmac.compare_digest(token.encode(), self._token) else None


class ClusterAccess:
    """Authenticates tokens of the cluster, and reviews which namespaces a user may see."""

    def __init__(self, clock: Clock, client: Client) -> None:
        self._tokens = TokenReviewer(clock, client)
        self._rights = AccessReviewer(clock, client)
        self._in_flight = asyncio.Semaphore(_MAX_REVIEWS)

    async def viewer(self, token: str) -> Viewer | None:
        """Return the user of a token."""
        user = await self._reviewed(self._tokens.user(token))
        return ClusterUser(user, self) if user is not None else None

    async def may_list(self, user: UserInfo, namespace: str) -> bool:
        """Return whether a user may list HPAs in a namespace. The empty namespace is all of them."""
        attributes = ResourceAttributes("list", OWN_GROUP, "horizontalpodautoscalers", namespace)
        return (await self._reviewed(self._rights.review(user, attributes))).is_allowed

    async def _reviewed(self, review: Awaitable[T]) -> T:
        try:
            async with self._in_flight:
                return await review
        except ReviewFailedError as error:
            raise RefusedError(503, str(error)) from error


class ClusterUser:
    """A user of the cluster. Visible are the namespaces in which the user may list HPAs."""

    def __init__(self, user: UserInfo, access: ClusterAccess) -> None:
        self._user = user
        self._access = access

    @property
    def name(self) -> str:
        """Return the user's name in the cluster."""
        return self._user.name

    async def visible(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Review all namespaces at once, and each of them only if that is forbidden."""
        wanted = sorted(set(namespaces))
        if await self._access.may_list(self._user, ""):
            return frozenset(wanted)
        allowed = await asyncio.gather(
            *(self._access.may_list(self._user, namespace) for namespace in wanted)
        )
        return frozenset(namespace for namespace, may in zip(wanted, allowed, strict=True) if may)
