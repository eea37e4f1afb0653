"""Who asks: bearer tokens and what they stand for."""

import hmac

from trimtab.lab.apiserver.errors import StatusError, unauthorized
from trimtab.lab.apiserver.request import ApiRequest, RequestUser
from trimtab.lab.storage.bootstrap import Identities

ADMIN = RequestUser("admin", ("system:masters", "system:authenticated"))


def service_account_user(namespace: str, name: str, uid: str = "") -> RequestUser:
    """Return the user that a service account acts as."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return RequestUser(f"system:serviceaccount:{namespace}:{name}", groups, uid)


class Tokens:
    """The tokens the server knows; compared in constant time."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._users: dict[str, RequestUser] = {}
        self.admin = self.issue(ADMIN)

    def issue(self, user: RequestUser) -> str:
        """Make a token for a user."""
        token = self._identities.token()
        self._users[token] = user
        return token

    def user_of(self, token: str) -> RequestUser | None:
        """Return whom a token stands for."""
        found = None
        for known, user in self._users.items():
            if hmac.compare_digest(known.encode(), token.encode(errors="replace")):
                found = user
        return found

    def authenticate(self, request: ApiRequest) -> RequestUser:
        """Return the user of a request, as impersonated if asked, or refuse it."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        user = self.user_of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise unauthorized()
        return user


def impersonated(request: ApiRequest) -> RequestUser | None:
    """Return whom a request wants to act as, from its headers."""
    name = request.headers.get("impersonate-user")
    if not name:
        if any(header.startswith("impersonate-") for header in request.headers):
            message = "requested headers without impersonating a user"
            raise StatusError(400, "BadRequest", message)
        return None
    groups = tuple(filter(None, request.headers.get("impersonate-group", "").split(",")))
    if name.startswith("system:serviceaccount:") and name.count(":") == 3 and not groups:
        _, _, namespace, account = name.split(":")
        return service_account_user(namespace, account)
    return RequestUser(
        name, (*groups, *(() if "system:unauthenticated" in groups else ("system:authenticated",)))
    )
