"""Rejects roles and bindings that grant more than their author has.

A user may write a role only with rights that the user has in that place, or with the verb `escalate` on roles. A user may
bind a role only with the rights of that role, or with the verb `bind` on it. Otherwise a user with the right to write bindings could
become the administrator.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from trimtab_lab.admission import AdmissionAttributes, AdmissionPlugin
from trimtab_lab.apiserver.errors import bad_request, forbidden, not_found, qualified
from trimtab_lab.apiserver.rbac import GROUP, Attributes, RbacAuthorizer
from trimtab_lab.apiserver.request import RequestUser, ResourceRequest
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.storage.store import ObjectStore

ROLES = ("roles", "clusterroles")
BINDINGS = ("rolebindings", "clusterrolebindings")
EVERYTHING: tuple[JsonObject, ...] = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
)
NO_AGGREGATION = "must have cluster-admin privileges to use the aggregationRule"


class Right(NamedTuple):
    """A single right: one verb on one resource, one object or one path."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str = ""
    path: str = ""


class RoleEscalation(AdmissionPlugin):
    """Checks writes of roles and bindings."""

    def __init__(self, store: ObjectStore, authorizer: RbacAuthorizer) -> None:
        self._store = store
        self._authorizer = authorizer

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Raise Forbidden for a write that grants more than its author has.

        Like the real check it precedes validation.
        """
        request, obj = attributes.request, attributes.obj
        resource = request.resource
        if resource.group != GROUP or obj is None or request.user.is_master:
            return
        if attributes.old is not None and _collectable(obj) == _collectable(attributes.old):
            return  # only what garbage collection needs has changed
        if resource.plural in ROLES:
            self._check_role(request, obj, attributes.old)
        elif resource.plural in BINDINGS:
            self._check_binding(request, obj)

    def _check_role(self, request: ResourceRequest, obj: JsonObject, old: JsonObject | None) -> None:
        info = request.info
        escalate = Attributes(
            "escalate", GROUP, request.resource.plural, namespace=info.namespace, name=info.name
        )
        if self._authorizer.allows(request.user, escalate):
            return
        self._check_rules(request, obj, obj.get("rules") or ())
        is_aggregated = any("aggregationRule" in (role or {}) for role in (obj, old))
        if is_aggregated and self._missing(request, EVERYTHING):
            raise forbidden(request.resource.plural, GROUP, obj["metadata"].get("name", ""), NO_AGGREGATION)

    def _check_binding(self, request: ResourceRequest, obj: JsonObject) -> None:
        reference = obj.get("roleRef") or {}
        plural = "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
        name, namespace = reference.get("name", ""), request.info.namespace
        if self._authorizer.allows(request.user, Attributes("bind", GROUP, plural, "", namespace, name)):
            return
        if not name:
            raise bad_request(
                "Name parameter required."
            )  # the real server looks the role up before it validates
        key = name if plural == "clusterroles" else f"{namespace}/{name}"
        role = self._store.get(qualified(plural, GROUP), key)
        if role is None:
            # The real server names the role and the resource of the binding.
            raise not_found(request.resource.plural, GROUP, name)
        self._check_rules(request, obj, role.decoded().get("rules") or ())

    def _check_rules(self, request: ResourceRequest, obj: JsonObject, rules: Iterable[JsonObject]) -> None:
        missing = self._missing(request, rules)
        if missing:
            reason = _describe(request.user, missing)
            raise forbidden(request.resource.plural, GROUP, obj["metadata"].get("name", ""), reason)

    def _missing(self, request: ResourceRequest, rules: Iterable[JsonObject]) -> list[Right]:
        held = list(self._authorizer.rules(request.user, request.info.namespace))
        return [right for right in rights_of(rules) if not any(covers(rule, right) for rule in held)]


def rights_of(rules: Iterable[JsonObject]) -> Iterator[Right]:
    """Yield the single rights of rules."""
    for rule in rules:
        verbs = rule.get("verbs") or ()
        for group, resource, verb in product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs):
            for name in rule.get("resourceNames") or ("",):
                yield Right(verb, group, resource, name)
        for path, verb in product(rule.get("nonResourceURLs") or (), verbs):
            yield Right(verb, path=path)


def covers(rule: JsonObject, right: Right) -> bool:
    """Return whether a rule contains a right.

    A pattern is contained only in the same or a wider pattern.
    """
    if not _has(rule, "verbs", right.verb):
        return False
    if right.path:
        return any(_covers_path(url, right.path) for url in rule.get("nonResourceURLs") or ())
    _, _, subresource = right.resource.partition("/")
    resources = (right.resource, f"*/{subresource}") if subresource else (right.resource,)
    names = rule.get("resourceNames") or ()
    return (
        _has(rule, "apiGroups", right.group)
        and _has(rule, "resources", *resources)
        and (not names or right.name in names)
    )


def _has(rule: JsonObject, field: str, *wanted: str) -> bool:
    allowed = rule.get(field) or ()
    return "*" in allowed or any(word in allowed for word in wanted)


def _covers_path(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url[:-1]))


def _collectable(obj: JsonObject) -> JsonObject:
    """Return an object without what the garbage collector changes."""
    ignored = ("ownerReferences", "finalizers", "managedFields")
    meta = {name: value for name, value in obj["metadata"].items() if name not in ignored}
    return {**obj, "metadata": meta}


def _describe(user: RequestUser, missing: Sequence[Right]) -> str:
    """Return the sentence of the real server, with the missing verbs of a resource together."""
    verbs: dict[Right, list[str]] = {}
    for right in missing:
        verbs.setdefault(right._replace(verb=""), []).append(right.verb)
    lines = sorted(_compact(right, of_right) for right, of_right in verbs.items())
    groups = _list(user.groups)
    text = "\n".join(dict.fromkeys(lines))
    return f'user "{user.name}" (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{text}'


def _compact(right: Right, verbs: Sequence[str]) -> str:
    if right.path:
        return f"{{NonResourceURLs:{_list([right.path])}, Verbs:{_list(verbs)}}}"
    names = f"ResourceNames:{_list([right.name])}, " if right.name else ""
    where = f"APIGroups:{_list([right.group])}, Resources:{_list([right.resource])}"
    return f"{{{where}, {names}Verbs:{_list(verbs)}}}"


def _list(words: Iterable[str]) -> str:
    quoted = " ".join(f'"{word}"' for word in words)
    return f"[{quoted}]"
