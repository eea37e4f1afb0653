"""What a user may do: roles and bindings, read from the stored objects at each request."""

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.lab.apiserver.errors import StatusError, forbidden, qualified
from trimtab.lab.apiserver.request import RequestUser
from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.storage.store import Entry, ObjectStore

GROUP = "rbac.authorization.k8s.io"
#: Paths that every authenticated user may read, as the default roles of a cluster allow.
OPEN_PATHS = ("/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz")


@dataclass(frozen=True)
class Attributes:
    """One thing that somebody wants to do."""

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

    def allows(self, user: RequestUser, question: Attributes) -> bool:
        """Tell whether the user may."""
        if user.is_master:
            return True
        if question.path:
            return self._allows_path(user, question)
        return any(_covers(rule, question) for rule in self.rules(user, question.namespace))

    def check(self, user: RequestUser, question: Attributes) -> None:
        """Refuse what the user may not do."""
        if self.allows(user, question):
            return
        if question.path:
            message = f'User "{user.name}" cannot {question.verb} path "{question.path}"'
            raise StatusError(403, "Forbidden", f"forbidden: {message}", {})
        scope = f'in the namespace "{question.namespace}"' if question.namespace else "at the cluster scope"
        why = (
            f'User "{user.name}" cannot {question.verb} resource "{question.full_resource}" in API group '
            f'"{question.group}" {scope}'
        )
        raise forbidden(question.resource, question.group, question.name, why)

    def _allows_path(self, user: RequestUser, question: Attributes) -> bool:
        is_known = "system:authenticated" in user.groups
        if (
            is_known
            and question.verb == "get"
            and any(question.path == one or question.path.startswith(one + "/") for one in OPEN_PATHS)
        ):
            return True
        return any(_covers_path(rule, question) for rule in self.rules(user, ""))

    def rules(self, user: RequestUser, namespace: str) -> Iterator[JsonObject]:
        """Yield the rules that apply to a user, cluster-wide and in a namespace."""
        for entry in self._store.shelf(qualified("clusterrolebindings", GROUP)).range(""):
            yield from self._granted(entry, user, "")
        if namespace:
            for entry in self._store.shelf(qualified("rolebindings", GROUP)).range(namespace):
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
            yield from self._role_rules(role)

    def _role_rules(self, entry: Entry) -> Iterator[JsonObject]:
        yield from self._read(entry).get("rules") or ()

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
    return user.name == f"system:serviceaccount:{place}:{name}"


def _covers(rule: JsonObject, question: Attributes) -> bool:
    resources = [question.full_resource]
    if question.subresource:
        resources.append(f"*/{question.subresource}")
    names = rule.get("resourceNames") or ()
    return (
        _allows(rule, "verbs", question.verb)
        and _allows(rule, "apiGroups", question.group)
        and _allows(rule, "resources", *resources)
        and (not names or question.name in names)
    )


def _allows(rule: JsonObject, field: str, *wanted: str) -> bool:
    """Tell whether a list of a rule has one of these words, or the star that stands for every word."""
    allowed = rule.get(field) or ()
    return "*" in allowed or any(one in allowed for one in wanted)


def _covers_path(rule: JsonObject, question: Attributes) -> bool:
    return _allows(rule, "verbs", question.verb) and any(
        one in ("*", question.path) or (one.endswith("*") and question.path.startswith(one[:-1]))
        for one in rule.get("nonResourceURLs") or ()
    )
