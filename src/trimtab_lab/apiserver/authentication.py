"""Authentication by bearer tokens."""

import hmac

from trimtab_lab.apiserver.errors import bad_request, unauthorized
from trimtab_lab.apiserver.request import ApiRequest, RequestUser
from trimtab_lab.storage.identities import Identities

AUTHENTICATION = "authentication.k8s.io"
AUTHENTICATED = "system:authenticated"
ADMIN = RequestUser("admin", ("system:masters", AUTHENTICATED))


def service_account_user(namespace: str, name: str, uid: str = "") -> RequestUser:
    """Return the user that a service account acts as."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
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
        if any(header.startswith("impersonate-") for header in request.headers):
            raise bad_request("the lab does not impersonate: use a token of that user")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        user = self.user_of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise unauthorized()
        return user
