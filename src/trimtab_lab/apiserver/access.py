"""Who may do what: bearer tokens, the stored roles and bindings, and reviews, which are answered and never stored."""

import hmac
from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.model.status import StatusError, bad_request, forbidden, qualified, unauthorized
from trimtab_lab.apiserver.request import ApiRequest, ApiResponse, RequestUser, ResourceRequest
from trimtab_lab.handlers.bodies import read_typed
from trimtab_lab.storage.codec import Identities, JsonObject
from trimtab_lab.storage.store import Entry, ObjectStore

GROUP = "rbac.authorization.k8s.io"
#: Paths that every authenticated user may read, as the default roles of a cluster allow.
OPEN_PATHS = ("/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz")


@dataclass(frozen=True)
class Attributes:
    """What a user wants to do: a verb on a resource or on a path."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """Return the resource as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class RbacAuthorizer:
    """The role-based access rules of one cluster."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._decoded: dict[str, tuple[int, JsonObject]] = {}

    def allows(self, user: RequestUser, attributes: Attributes) -> bool:
        if user.is_master:
            return True
        if attributes.path:
            return self._allows_path(user, attributes)
        return any(_covers(rule, attributes) for rule in self.rules(user, attributes.namespace))

    def check(self, user: RequestUser, attributes: Attributes) -> None:
        """Raise Forbidden if the user is not allowed to do this."""
        if self.allows(user, attributes):
            return
        if attributes.path:
            message = f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
            raise StatusError(403, f"forbidden: {message}", {})
        scope = (
            f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
        )
        reason = (
            f'User "{user.name}" cannot {attributes.verb} resource "{attributes.full_resource}" in API group '
            f'"{attributes.group}" {scope}'
        )
        raise forbidden(attributes.resource, attributes.group, attributes.name, reason)

    def _allows_path(self, user: RequestUser, attributes: Attributes) -> bool:
        if "system:authenticated" in user.groups and attributes.verb == "get":
            path = attributes.path
            if any(path == root or path.startswith(root + "/") for root in OPEN_PATHS):
                return True
        return any(_covers_path(rule, attributes) for rule in self.rules(user, ""))

    def rules(self, user: RequestUser, namespace: str) -> Iterator[JsonObject]:
        """Yield the rules that apply to a user, cluster-wide and in a namespace."""
        for entry in self._store.resource(qualified("clusterrolebindings", GROUP)).all():
            yield from self._granted(entry, user, "")
        if namespace:
            for entry in self._store.resource(qualified("rolebindings", GROUP)).all(namespace):
                yield from self._granted(entry, user, namespace)

    def _granted(self, entry: Entry, user: RequestUser, namespace: str) -> Iterator[JsonObject]:
        binding = self._read(entry)
        if not any(_is_subject(subject, user, namespace) for subject in binding.get("subjects") or ()):
            return
        reference = binding["roleRef"]
        if reference["kind"] == "ClusterRole":
            role = self._store.get(qualified("clusterroles", GROUP), reference["name"])
        else:
            role = self._store.get(qualified("roles", GROUP), f"{namespace}/{reference['name']}")
        if role is not None:
            yield from self._read(role).get("rules") or ()

    def _read(self, entry: Entry) -> JsonObject:
        """Return a role or binding, decoded once per version."""
        known = self._decoded.get(entry.uid)
        if known is None or known[0] != entry.version:
            known = self._decoded[entry.uid] = (entry.version, entry.decoded())
        return known[1]


def _is_subject(subject: JsonObject, user: RequestUser, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "User":
        return bool(name == user.name)
    if kind == "Group":
        return name in user.groups
    place = subject.get("namespace") or namespace
    return bool(place) and user.name == f"system:serviceaccount:{place}:{name}"


def _covers(rule: JsonObject, attributes: Attributes) -> bool:
    resources = [attributes.full_resource]
    if attributes.subresource:
        resources.append(f"*/{attributes.subresource}")
    names = rule.get("resourceNames") or ()
    return (
        _allows(rule, "verbs", attributes.verb)
        and _allows(rule, "apiGroups", attributes.group)
        and _allows(rule, "resources", *resources)
        and (not names or attributes.name in names)
    )


def _allows(rule: JsonObject, field: str, *wanted: str) -> bool:
    allowed = rule.get(field) or ()
    return "*" in allowed or any(word in allowed for word in wanted)


def _covers_path(rule: JsonObject, attributes: Attributes) -> bool:
    return _allows(rule, "verbs", attributes.verb) and any(
        url in ("*", attributes.path) or (url.endswith("*") and attributes.path.startswith(url[:-1]))
        for url in rule.get("nonResourceURLs") or ()
    )


AUTHENTICATION = "authentication.k8s.io"
AUTHENTICATED = "system:authenticated"
ADMIN = RequestUser("admin", ("system:masters", AUTHENTICATED))


def service_account_user(namespace: str, name: str, uid: str = "") -> RequestUser:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return RequestUser(f"system:serviceaccount:{namespace}:{name}", groups, uid)


class Tokens:
    """The bearer tokens of a server."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._users: dict[str, RequestUser] = {}
        self.admin = self.issue(ADMIN)

    def issue(self, user: RequestUser) -> str:
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


GROUPS = ("authentication.k8s.io", "authorization.k8s.io")


class ReviewHandler:
    """The review resources of both groups."""

    def __init__(self, tokens: Tokens, authorizer: RbacAuthorizer) -> None:
        self._tokens = tokens
        self._authorizer = authorizer

    async def create(self, request: ResourceRequest) -> ApiResponse:
        kind = request.resource.kind
        body = read_typed(request, request.resource.group, request.info.version, kind)
        spec = body.setdefault("spec", {})
        if kind == "TokenReview":
            body["status"] = self._token(spec)
        elif kind == "SelfSubjectReview":
            del body["spec"]
            body["status"] = {"userInfo": _user_info(request.user)}
        elif kind == "SelfSubjectRulesReview":
            body["status"] = self._rules(request.user, spec.get("namespace", ""))
        elif kind == "SelfSubjectAccessReview":
            body["status"] = self._access(request.user, spec)
        else:
            user = RequestUser(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
            if not user.name and not user.groups:
                raise bad_request("a SubjectAccessReview must name a user or at least one group")
            body["status"] = self._access(user, spec)
        return ApiResponse.of(body, 201)

    def _token(self, spec: JsonObject) -> JsonObject:
        user = self._tokens.user_of(spec.get("token", "")) if spec.get("token") else None
        if user is None:
            return {"user": {}, "error": "[invalid bearer token]"}
        audiences = spec.get("audiences") or ["lab"]
        return {"authenticated": True, "user": _user_info(user), "audiences": audiences}

    def _access(self, user: RequestUser, spec: JsonObject) -> JsonObject:
        of_resource, of_path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if bool(of_resource) == bool(of_path):
            raise bad_request("exactly one of resourceAttributes and nonResourceAttributes must be set")
        if of_resource:
            names = ("verb", "group", "resource", "subresource", "namespace", "name")
            attributes = Attributes(**{name: of_resource.get(name, "") for name in names})
        else:
            attributes = Attributes(of_path.get("verb", ""), path=of_path.get("path", ""))  # type: ignore[union-attr]  # one is set
        return {"allowed": self._authorizer.allows(user, attributes)}

    def _rules(self, user: RequestUser, namespace: str) -> JsonObject:
        rules = list(self._authorizer.rules(user, namespace))
        if user.is_master:
            everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            rules = [everything, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
        return {
            "resourceRules": [rule for rule in rules if rule.get("resources")],
            "nonResourceRules": [
                {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
                for rule in rules
                if rule.get("nonResourceURLs")
            ],
            "incomplete": False,
        }


def _user_info(user: RequestUser) -> JsonObject:
    info: JsonObject = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {name: list(values) for name, values in user.extra.items()}
    return info
