"""Authentication: bearer tokens and impersonation."""

import hmac
from dataclasses import dataclass
from urllib.parse import unquote

from trimtab.model.labels.names import dns1123_label_problems, dns1123_subdomain_problems
from trimtab_lab.apiserver.errors import bad_request, unauthorized
from trimtab_lab.apiserver.rbac import Attributes
from trimtab_lab.apiserver.request import ApiRequest, RequestUser
from trimtab_lab.storage.identities import Identities

AUTHENTICATION = "authentication.k8s.io"
ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
_EXTRA = "impersonate-extra-"
_SERVICE_ACCOUNT = "system:serviceaccount:"
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
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        user = self.user_of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise unauthorized()
        return user


@dataclass(frozen=True)
class Impersonation:
    """The user that a request impersonates, and the rights that it needs.

    It needs a right for the user, and for each group, uid and extra value.
    """

    user: RequestUser
    needed: tuple[Attributes, ...]


def impersonation_of(request: ApiRequest) -> Impersonation | None:
    """Return whom a request impersonates, or None."""
    headers = request.headers
    name = headers.get("impersonate-user")
    if not name:
        if any(header.startswith("impersonate-") for header in headers):
            raise bad_request("requested headers without impersonating a user")
        return None
    groups = tuple(filter(None, headers.get("impersonate-group", "").split(",")))
    uid = headers.get("impersonate-uid", "")
    extra = {
        unquote(header.removeprefix(_EXTRA)): tuple(value.split(","))
        for header, value in headers.items()
        if header.startswith(_EXTRA)
    }
    needed = [
        _needed_for_user(name),
        *(Attributes("impersonate", "", "groups", name=group) for group in groups),
        *(
            Attributes("impersonate", AUTHENTICATION, "userextras", key, name=value)
            for key, values in extra.items()
            for value in values
        ),
    ]
    if uid:
        needed.append(Attributes("impersonate", AUTHENTICATION, "uids", name=uid))
    return Impersonation(RequestUser(name, _groups_of(name, groups), uid, extra), tuple(needed))


def _needed_for_user(name: str) -> Attributes:
    account = _service_account(name)
    if account is not None:
        return Attributes("impersonate", "", "serviceaccounts", namespace=account[0], name=account[1])
    return Attributes("impersonate", "", "users", name=name)


def _groups_of(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    account = _service_account(name)
    if account is not None and not groups:
        return service_account_user(*account).groups
    if name == ANONYMOUS:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    is_complete = {UNAUTHENTICATED, AUTHENTICATED} & set(groups)
    return groups if is_complete else (*groups, AUTHENTICATED)


def _service_account(name: str) -> tuple[str, str] | None:
    """Return the namespace and name of the service account that a user is, or None.

    A name whose parts are invalid or empty is that of a plain user.
    """
    prefix, _, rest = name.partition(_SERVICE_ACCOUNT)
    namespace, _, account = rest.partition(":")
    if prefix or dns1123_label_problems(namespace) or dns1123_subdomain_problems(account):
        return None
    return namespace, account
