"""Access and token reviews: questions about a user that are answered at once and never stored."""

from trimtab_lab.apiserver.authentication import Tokens
from trimtab_lab.apiserver.errors import bad_request
from trimtab_lab.apiserver.rbac import Attributes, RbacAuthorizer
from trimtab_lab.apiserver.request import ApiResponse, RequestUser, ResourceRequest
from trimtab_lab.handlers.bodies import read_typed
from trimtab_lab.storage.codec import JsonObject

GROUPS = ("authentication.k8s.io", "authorization.k8s.io")


class ReviewHandler:
    """The review resources of both groups."""

    def __init__(self, tokens: Tokens, authorizer: RbacAuthorizer) -> None:
        self._tokens = tokens
        self._authorizer = authorizer

    async def create(self, request: ResourceRequest) -> ApiResponse:
        """Return a review with its status."""
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
