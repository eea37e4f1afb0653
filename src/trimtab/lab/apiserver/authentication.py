"""Authentication: bearer tokens and impersonation."""

import hmac

from trimtab.lab.apiserver.errors import bad_request, unauthorized
from trimtab.lab.apiserver.request import ApiRequest, RequestUser
from trimtab.lab.storage.identities import Identities

ADMIN = RequestUser("admin", ("system:masters", "system:authenticated"))


def service_account_user(namespace: str, name: str, uid: str = "") -> RequestUser:
    """Return the user that a service account acts as."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return RequestUser(f"system:serviceaccount:{namespace}:{name}", groups, uid)


class Tokens:
    """The bearer tokens of a server."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._users: dict[str, RequestUser] = {}
        self.admin = self.issue(ADMIN)

    def issue(self, user: RequestUser) -> str:
        """Issue a token for a user."""
        token = self._identities.token()
        self._users[token] = user
        return token

    def user_of(self, token: str) -> RequestUser | None:
        """Return the user of a token, compared in constant time."""
        user = None
        for issued, owner in self._users.items():
            if hmac.compare_digest(issued.encode(), token.encode(errors="replace")):
                user = owner
        return user

    def authenticate(self, request: ApiRequest) -> RequestUser:
        """Return the user of a request, or raise Unauthorized."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        user = self.user_of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise unauthorized()
        return user


def impersonated(request: ApiRequest) -> RequestUser | None:
    """Return the user that a request impersonates, or None."""
    name = request.headers.get("impersonate-user")
    if not name:
        if any(header.startswith("impersonate-") for header in request.headers):
            raise bad_request("requested headers without impersonating a user")
        return None
    groups = tuple(filter(None, request.headers.get("impersonate-group", "").split(",")))
    if name.startswith("system:serviceaccount:") and name.count(":") == 3 and not groups:
        _, _, namespace, account = name.split(":")
        return service_account_user(namespace, account)
    if "system:unauthenticated" not in groups:
        groups = (*groups, "system:authenticated")
    return RequestUser(name, groups)
