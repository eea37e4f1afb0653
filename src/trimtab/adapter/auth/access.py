"""Who may read: the user of a request, and whether the cluster allows it.

The user is that of the front proxy's headers if its certificate is valid, else that of a bearer token. Headers such as X-Remote-User are
read only on a connection whose client certificate the front proxy's authority signed, for an allowed name (S10). Other connections
must send a token that a TokenReview accepts. What users may read is decided by SubjectAccessReviews.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from trimtab.adapter.auth.front_proxy import FrontProxyTrust, Trust
from trimtab.clock import Clock
from trimtab.cluster.access_reviews import (
    AccessReviewer,
    Attributes,
    NonResourceAttributes,
    TokenReviewer,
    UserInfo,
)
from trimtab.cluster.client import Client
from trimtab.model.status import StatusError

Headers = Mapping[str, Sequence[str]]
Chain = tuple[bytes, ...]
"""The certificates that a client sent (DER), its own first."""

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

_CACHE_SECONDS = 10.0
_MAX_CACHED_CHAINS = 100


class Authenticator:
    """Returns the user of a request, or raises a StatusError."""

    def __init__(self, clock: Clock, client: Client, trust: FrontProxyTrust, cache_seconds: float) -> None:
        self._clock = clock
        self._trust = trust
        self._tokens = TokenReviewer(clock, client, cache_seconds)
        self._verified: dict[Chain, tuple[float, bool]] = {}
        self._verified_with: Trust | None = None

    @property
    def problem(self) -> str:
        """Return why the front proxy cannot be authenticated yet, or an empty text."""
        return self._trust.problem

    async def authenticate(self, certificates: Chain, headers: Headers) -> UserInfo:
        """Return the user of a request. Raise a StatusError without valid credentials."""
        trust = self._trust.current
        if trust is not None and certificates and self._is_front_proxy(trust, certificates):
            user = _remote_user(trust, headers)
            if user is not None:
                return with_authenticated_group(user)
        user = await self._bearer(headers)
        if user is None:
            raise StatusError(401, "Unauthorized")
        return with_authenticated_group(user)

    def _is_front_proxy(self, trust: Trust, certificates: Chain) -> bool:
        if self._verified_with is not trust or len(self._verified) > _MAX_CACHED_CHAINS:
            self._verified, self._verified_with = {}, trust
        now = self._clock.monotonic()
        cached = self._verified.get(certificates)
        # Verifying takes longer than the rest of a request, and the front proxy sends hundreds per second.
        if cached is None or now >= cached[0]:
            is_front_proxy = trust.is_front_proxy(certificates, self._clock.now())
            cached = self._verified[certificates] = (now + _CACHE_SECONDS, is_front_proxy)
        return cached[1]

    async def _bearer(self, headers: Headers) -> UserInfo | None:
        values = headers.get("authorization", ())
        scheme, _, token = values[0].strip().partition(" ") if len(values) == 1 else ("", "", "")
        return await self._tokens.user(token.strip()) if scheme.lower() == "bearer" else None


def with_authenticated_group(user: UserInfo) -> UserInfo:
    """Return the user with the group of all authenticated users.

    kube-aggregator itself sends no group. Every aggregated API server adds this group, and the right to read discovery is
    bound to it.
    """
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


def _remote_user(trust: Trust, headers: Headers) -> UserInfo | None:
    """Return the user that the front proxy's headers name, or None without such headers."""
    name = next((headers[header][0] for header in trust.user_headers if headers.get(header)), "")
    if not name:
        return None
    groups = tuple(value for header in trust.group_headers for value in headers.get(header, ()) if value)
    extra = {
        unquote(header[len(prefix) :]): tuple(values)
        for prefix in trust.extra_prefixes
        for header, values in headers.items()
        if header.startswith(prefix) and len(header) > len(prefix)
    }
    return UserInfo(name, "", groups, tuple(sorted(extra.items())))


class SubjectAccessAuthorizer:
    """Rejects requests that the cluster does not allow."""

    def __init__(self, clock: Clock, client: Client, cache_seconds: float) -> None:
        self._reviews = AccessReviewer(clock, client, cache_seconds)

    async def authorize(self, user: UserInfo, attributes: Attributes) -> None:
        """Raise a StatusError if the user may not, or ReviewFailedError if the cluster does not answer."""
        status = await self._reviews.review(user, attributes)
        if not status.is_allowed:
            raise StatusError(403, _refusal(user, attributes, status.reason))


def _refusal(user: UserInfo, attributes: Attributes, reason: str) -> str:
    if isinstance(attributes, NonResourceAttributes):
        message = f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}": {reason}'
        return message.rstrip(": ")
    resource = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
    where = f' in the namespace "{attributes.namespace}"' if attributes.namespace else " at the cluster scope"
    what = f'cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}"{where}'
    named = f' "{attributes.name}"' if attributes.name else f".{attributes.group}"
    return f'{resource}{named} is forbidden: User "{user.name}" {what}: {reason}'.rstrip(": ")
