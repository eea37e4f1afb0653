"""Who asks: the front proxy's word if its certificate proves it, else a bearer token that the cluster knows.

Headers such as X-Remote-User are read only on a connection whose client certificate the front proxy's authority
signed, for an allowed name (S10). On any other they are not even looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from trimtab.adapter.auth.front_proxy import FrontProxyTrust, Trust
from trimtab.adapter.errors import Unauthorized
from trimtab.clock import Clock
from trimtab.cluster.access_reviews import TokenReviewer, UserInfo
from trimtab.cluster.client import Client

Headers = Mapping[str, Sequence[str]]
Chain = tuple[bytes, ...]
"""The certificates that a client sent (DER), its own first; empty without any."""

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"


class Authenticator:
    """Tells who asks, or refuses."""

    def __init__(self, clock: Clock, client: Client, trust: FrontProxyTrust, cache_seconds: float) -> None:
        self._clock = clock
        self._trust = trust
        self._tokens = TokenReviewer(clock, client, cache_seconds)
        self._vouched: tuple[Trust | None, dict[Chain, tuple[float, bool]]] = (None, {})

    async def authenticate(self, certificates: Chain, headers: Headers) -> UserInfo:
        """Return the user of a request."""
        trust = self._trust.current
        if trust is not None and certificates and self._is_front_proxy(trust, certificates):
            user = remote_user(trust, headers)
            if user is not None:
                return known(user)
        user = await self._bearer(headers)
        if user is None:
            raise Unauthorized("Unauthorized")
        return known(user)

    def _is_front_proxy(self, trust: Trust, certificates: Chain) -> bool:
        if self._vouched[0] is not trust:
            self._vouched = (trust, {})
        known = self._vouched[1]
        found = known.get(certificates)
        now = self._clock.monotonic()
        # A signature costs more than the rest of a request; the same proxy comes hundreds of times a second.
        if found is None or now >= found[0]:
            if len(known) > 100:
                known.clear()
            found = known[certificates] = (now + 10.0, trust.vouches_for(certificates, self._clock.now()))
        return found[1]

    async def _bearer(self, headers: Headers) -> UserInfo | None:
        values = headers.get("authorization", ())
        scheme, _, token = values[0].strip().partition(" ") if len(values) == 1 else ("", "", "")
        return await self._tokens.user(token.strip()) if scheme.lower() == "bearer" else None


def known(user: UserInfo) -> UserInfo:
    """Return the user as a member of all authenticated ones.

    kube-aggregator itself asks without any group; every aggregated API server adds this one, and the rights to read
    discovery hang on it.
    """
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


def remote_user(trust: Trust, headers: Headers) -> UserInfo | None:
    """Return the user that the front proxy names; None if it names none."""
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
