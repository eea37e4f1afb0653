"""Which webhooks a write concerns: rules, selectors, and the match conditions of our own webhooks.

Match conditions are in CEL, so each other one counts as met.
"""

from collections.abc import Callable
from dataclasses import dataclass

from trimtab.model.labels.selector import Selector
from trimtab_lab.admission import AdmissionAttributes
from trimtab_lab.resources.workloads import selector_of
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.storage.store import ObjectStore

GROUP = "admissionregistration.k8s.io"


def _always(_attributes: AdmissionAttributes) -> bool:
    return True


def _has_controller(attributes: AdmissionAttributes) -> bool:
    references = (attributes.obj or {}).get("metadata", {}).get("ownerReferences") or ()
    return any(reference.get("controller") for reference in references)


HAS_CONTROLLER = (
    "has(object.metadata.ownerReferences) && "
    "object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller)"
)
#: The match conditions of our own webhooks.
CONDITIONS: dict[str, Callable[[AdmissionAttributes], bool]] = {
    HAS_CONTROLLER: _has_controller,
    f"request.kind.kind != 'Pod' || ({HAS_CONTROLLER})": lambda attributes: (
        attributes.request.resource.kind != "Pod" or _has_controller(attributes)
    ),
}


@dataclass(frozen=True)
class Hook:
    """A webhook of a configuration, ready to match."""

    name: str
    client: JsonObject
    rules: tuple[JsonObject, ...]
    namespaces: Selector
    objects: Selector
    conditions: tuple[str, ...]
    ignores_failure: bool
    is_reinvoked: bool
    timeout_seconds: int


class Hooks:
    """All webhooks of a cluster, decoded once per version of their configuration."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known: dict[str, tuple[int, tuple[Hook, ...]]] = {}

    def matching(self, kind: str, attributes: AdmissionAttributes) -> list[Hook]:
        """Return the webhooks that match a write, in the order of their calls."""
        configurations = self._store.resource(f"{kind.lower()}webhookconfigurations.{GROUP}")
        if not configurations.entries or attributes.request.resource.group == GROUP:
            return []  # webhooks cannot lock themselves in
        hooks: list[Hook] = []
        for entry in configurations.all():
            known = self._known.get(entry.uid)
            if known is None or known[0] != entry.version:
                known = self._known[entry.uid] = (entry.version, _read(entry.decoded()))
            hooks += [hook for hook in known[1] if self._matches(hook, attributes)]
        return hooks

    def _matches(self, hook: Hook, attributes: AdmissionAttributes) -> bool:
        if not any(_matches_rule(rule, attributes) for rule in hook.rules):
            return False
        if not hook.namespaces.is_empty and not hook.namespaces.matches(self._namespace_labels(attributes)):
            return False
        objects = [obj for obj in (attributes.obj, attributes.old) if obj is not None]
        labels = [obj["metadata"].get("labels") or {} for obj in objects]
        if not hook.objects.is_empty and not any(map(hook.objects.matches, labels)):
            return False
        return all(CONDITIONS.get(condition, _always)(attributes) for condition in hook.conditions)

    def _namespace_labels(self, attributes: AdmissionAttributes) -> dict[str, str]:
        """Return the labels of the namespace, or of the object if it is a namespace."""
        resource = attributes.request.resource
        if resource.plural == "namespaces" and not resource.group:
            labels = (attributes.obj or attributes.old or {}).get("metadata", {}).get("labels") or {}
            return dict(labels)
        entry = self._store.get("namespaces", attributes.request.info.namespace)
        return dict(entry.labels) if entry is not None else {}


def _read(configuration: JsonObject) -> tuple[Hook, ...]:
    return tuple(
        Hook(
            hook["name"],
            hook["clientConfig"],
            tuple(hook.get("rules") or ()),
            selector_of(hook.get("namespaceSelector") or {}),
            selector_of(hook.get("objectSelector") or {}),
            tuple(condition["expression"] for condition in hook.get("matchConditions") or ()),
            hook.get("failurePolicy") == "Ignore",
            hook.get("reinvocationPolicy") == "IfNeeded",
            hook.get("timeoutSeconds", 10),
        )
        for hook in configuration.get("webhooks") or ()
    )


def _matches_rule(rule: JsonObject, attributes: AdmissionAttributes) -> bool:
    resource, info = attributes.request.resource, attributes.request.info

    def listed(name: str, value: str) -> bool:
        values = rule.get(name) or ()
        return value in values or "*" in values

    if not listed("operations", attributes.operation) or not listed("apiGroups", resource.group):
        return False
    # matchPolicy Equivalent: a rule for another served version of the same resource applies as well.
    if not any(listed("apiVersions", version) for version in (info.version, *resource.versions)):
        return False
    scope = rule.get("scope", "*")
    if scope != "*" and (scope == "Namespaced") is not resource.is_namespaced:
        return False
    return any(
        _matches_resource(pattern, resource.plural, info.subresource)
        for pattern in rule.get("resources") or ()
    )


def _matches_resource(pattern: str, plural: str, subresource: str) -> bool:
    name, _, part = pattern.partition("/")
    return name in ("*", plural) and part in ("*", subresource)
