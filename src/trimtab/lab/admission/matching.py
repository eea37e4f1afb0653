"""Which webhooks a write concerns: rules, selectors and match conditions."""

from dataclasses import dataclass
from typing import Any

from celpy.evaluation import CELEvalError

from trimtab.lab.admission import AdmissionAttributes
from trimtab.lab.crd.cel import compile_rule, to_cel
from trimtab.lab.resources.workloads import selector_of
from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.storage.store import ObjectStore
from trimtab.model.labels.selector import Selector

GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True)
class Hook:
    """One webhook of one configuration, ready to match."""

    name: str
    client: JsonObject
    rules: tuple[JsonObject, ...]
    namespaces: Selector
    objects: Selector
    conditions: tuple[JsonObject, ...]
    ignores_failure: bool
    is_reinvoked: bool
    timeout_seconds: int


class Hooks:
    """All webhooks of a cluster, decoded once per version of their configuration."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known: dict[str, tuple[int, tuple[Hook, ...]]] = {}

    def matching(self, kind: str, attempt: AdmissionAttributes) -> list[Hook]:
        """Return the webhooks that a write concerns, in the order in which they are asked."""
        shelf = self._store.shelf(f"{kind.lower()}webhookconfigurations.{GROUP}")
        if not shelf.entries or attempt.resource.group == GROUP:
            return []  # webhooks cannot lock themselves in
        found: list[Hook] = []
        for entry in shelf.range(""):
            known = self._known.get(entry.uid)
            if known is None or known[0] != entry.version:
                known = self._known[entry.uid] = (entry.version, _read(entry.decoded()))
            found += [hook for hook in known[1] if self._concerns(hook, attempt)]
        return found

    def _concerns(self, hook: Hook, attempt: AdmissionAttributes) -> bool:
        if not any(_matches_rule(rule, attempt) for rule in hook.rules):
            return False
        if not hook.namespaces.is_empty and not hook.namespaces.matches(self._namespace_labels(attempt)):
            return False
        objects = [one for one in (attempt.obj, attempt.old) if one is not None]
        if not hook.objects.is_empty and not any(
            hook.objects.matches(one["metadata"].get("labels") or {}) for one in objects
        ):
            return False
        return all(_holds(condition, attempt) for condition in hook.conditions)

    def _namespace_labels(self, attempt: AdmissionAttributes) -> dict[str, str]:
        """Return the labels of the namespace; a write of a namespace is judged by its own."""
        if attempt.resource.plural == "namespaces" and not attempt.resource.group:
            labels = (attempt.obj or attempt.old or {}).get("metadata", {}).get("labels") or {}
            return dict(labels)
        entry = self._store.get("namespaces", attempt.target.namespace)
        return dict(entry.labels) if entry is not None else {}


def _read(configuration: JsonObject) -> tuple[Hook, ...]:
    return tuple(
        Hook(
            hook["name"],
            hook["clientConfig"],
            tuple(hook.get("rules") or ()),
            selector_of(hook.get("namespaceSelector") or {}),
            selector_of(hook.get("objectSelector") or {}),
            tuple(hook.get("matchConditions") or ()),
            hook.get("failurePolicy") == "Ignore",
            hook.get("reinvocationPolicy") == "IfNeeded",
            hook.get("timeoutSeconds", 10),
        )
        for hook in configuration.get("webhooks") or ()
    )


def _matches_rule(rule: JsonObject, attempt: AdmissionAttributes) -> bool:
    resource, target = attempt.resource, attempt.target

    def listed(name: str, value: str) -> bool:
        values = rule.get(name) or ()
        return value in values or "*" in values

    if not listed("operations", attempt.operation) or not listed("apiGroups", resource.group):
        return False
    # matchPolicy Equivalent: a rule for another served version of the same resource applies as well.
    if not any(listed("apiVersions", version) for version in (target.version, *resource.versions)):
        return False
    scope = rule.get("scope", "*")
    if scope != "*" and (scope == "Namespaced") is not resource.is_namespaced:
        return False
    return any(
        _matches_resource(pattern, resource.plural, target.subresource)
        for pattern in rule.get("resources") or ()
    )


def _matches_resource(pattern: str, plural: str, subresource: str) -> bool:
    name, _, part = pattern.partition("/")
    return name in ("*", plural) and part in ("*", subresource)


def _holds(condition: JsonObject, attempt: AdmissionAttributes) -> bool:
    """Evaluate a match condition; one that cannot be evaluated lets the webhook be asked."""
    compiled = compile_rule(condition.get("expression", ""))
    if compiled.program is None:
        return True
    scope: dict[str, Any] = {
        "object": to_cel(attempt.obj, {}),
        "oldObject": to_cel(attempt.old, {}),
        "request": to_cel(
            {
                "operation": attempt.operation,
                "namespace": attempt.target.namespace,
                "name": attempt.target.name,
                "userInfo": {
                    "username": attempt.request.user.name,
                    "groups": list(attempt.request.user.groups),
                },
            },
            {},
        ),
    }
    try:
        return bool(compiled.program.evaluate(scope))
    except (CELEvalError, TypeError, ValueError, KeyError):
        return True
