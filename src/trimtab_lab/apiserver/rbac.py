"""Authorization by the stored roles and bindings."""

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab_lab.apiserver.errors import StatusError, forbidden, qualified
from trimtab_lab.apiserver.request import RequestUser
from trimtab_lab.storage.codec import JsonObject
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
        """Return whether the user is allowed to do this."""
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
            raise StatusError(403, "Forbidden", f"forbidden: {message}", {})
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
