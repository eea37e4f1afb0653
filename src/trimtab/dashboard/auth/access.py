"""Authenticates viewers by their tokens, and reviews their rights.

On a user's own machine a random token gives access to everything. In a cluster a viewer logs in with a token of the
cluster. A TokenReview returns the user, and SubjectAccessReviews what that user may list.
"""

import asyncio
import hmac
import zlib
from collections import OrderedDict
from collections.abc import Awaitable
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
from trimtab.dashboard.auth.rights import KindInNamespace, LocalViewer, Viewer
from trimtab.dashboard.web.http import RefusedError

T = TypeVar("T")

MAX_TOKEN_REVIEWS: Final = 4
"""Concurrent TokenReviews. They are separate, so that a flood of logins does not delay pages."""
MAX_REVIEWS: Final = 16
"""Concurrent SubjectAccessReviews of all viewers."""
MAX_VIEWER_REVIEWS: Final = 8
"""Concurrent SubjectAccessReviews of one viewer, so that a viewer of many namespaces does not delay others."""
DENIED_SECONDS: Final = 45
"""How long a denied listing is not reviewed again, and up to twice as long.

A viewer of one namespace is denied all others, so these are nearly all reviews. A granted right shows that much later.
"""
MAX_DENIED: Final = 5000
"""Denied listings that are cached for one viewer."""
MAX_USERS: Final = 256


class Access(Protocol):
    """Authenticates tokens."""

    @property
    def login_token(self) -> str:
        """Return which token logs in and where a viewer gets it, as a part of a sentence."""
        ...

    async def viewer(self, token: str) -> Viewer | None:
        """Return the viewer of a token, or None."""
        ...


class OneToken:
    """A random token for the user of this machine."""

    login_token = "the token that the program printed"  # noqa: S105 - words about it

    def __init__(self, token: str) -> None:
        if len(token) < 16:
            raise ValueError("the dashboard's token must have at least 16 characters")
        self._token = token.encode()

    async def viewer(self, token: str) -> Viewer | None:
        """Return the owner if the token matches."""
        return LocalViewer() if hmac.compare_digest(token.encode(), self._token) else None


class ClusterAccess:
    """Authenticates tokens of the cluster, and reviews what a user may list."""

    login_token = "a token of your own: kubectl create token NAME"  # noqa: S105 - words about it

    def __init__(self, clock: Clock, client: Client) -> None:
        self.clock = clock
        self._users: OrderedDict[UserInfo, ClusterUser] = OrderedDict()
        self._tokens = TokenReviewer(clock, client)
        self._rights = AccessReviewer(clock, client)
        self._token_reviews = asyncio.Semaphore(MAX_TOKEN_REVIEWS)
        self._reviews = asyncio.Semaphore(MAX_REVIEWS)

    async def viewer(self, token: str) -> Viewer | None:
        """Return the user of a token."""
        async with self._token_reviews:
            user = await _reviewed(self._tokens.user(token))
        return self._viewer_of(user) if user is not None else None

    def _viewer_of(self, user: UserInfo) -> "ClusterUser":
        """Return the viewer of a user, which stays the same as long as it is used, with its cached rights."""
        viewer = self._users.pop(user, None) or ClusterUser(user, self)
        self._users[user] = viewer
        while len(self._users) > MAX_USERS:
            self._users.popitem(last=False)
        return viewer

    def cached(self, user: UserInfo, listing: KindInNamespace) -> bool | None:
        """Return the cached answer about a listing, or None."""
        status = self._rights.cached(user, _attributes(listing))
        return status.is_allowed if status is not None else None

    async def may_list(self, user: UserInfo, listing: KindInNamespace) -> bool:
        """Return whether a user may list a kind in a namespace."""
        async with self._reviews:
            return (await _reviewed(self._rights.review(user, _attributes(listing)))).is_allowed


class ClusterUser:
    """A user of the cluster."""

    def __init__(self, user: UserInfo, access: ClusterAccess) -> None:
        self._user = user
        self._access = access
        self._reviews = asyncio.Semaphore(MAX_VIEWER_REVIEWS)
        self._denied: OrderedDict[KindInNamespace, float] = OrderedDict()
        """When to review a denied listing again."""

    @property
    def name(self) -> str:
        """Return the user's name in the cluster."""
        return self._user.name

    def known(self, listing: KindInNamespace) -> bool | None:
        """Return the cached answer about a listing, or None."""
        if self._access.clock.monotonic() < self._denied.get(listing, 0.0):
            return False
        return self._access.cached(self._user, listing)

    async def may_list(self, listing: KindInNamespace) -> bool:
        """Return whether the user may list a kind in a namespace."""
        async with self._reviews:
            is_allowed = await self._access.may_list(self._user, listing)
        if not is_allowed:
            self._deny(listing)
        return is_allowed

    def _deny(self, listing: KindInNamespace) -> None:
        # Spread, so that the reviews of a thousand namespaces are not due at the same time.
        spread = DENIED_SECONDS * (zlib.crc32(str(listing).encode()) % 100) / 100
        self._denied.pop(listing, None)
        self._denied[listing] = self._access.clock.monotonic() + DENIED_SECONDS + spread
        while len(self._denied) > MAX_DENIED:
            self._denied.popitem(last=False)


def _attributes(listing: KindInNamespace) -> ResourceAttributes:
    kind = listing.kind
    return ResourceAttributes(
        kind.verb, kind.group, kind.resource, listing.namespace, subresource=kind.subresource
    )


async def _reviewed(review: Awaitable[T]) -> T:
    try:
        return await review
    except ReviewFailedError as error:
        raise RefusedError(503, str(error)) from error
