"""The rules of configuration objects: data, secrets, leases, access rules, webhooks, API services."""

import base64
from collections.abc import Mapping
from datetime import datetime

from trimtab.lab.apiserver.errors import (
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from trimtab.lab.resources.strategy import Strategy, text_at
from trimtab.lab.storage.codec import JsonObject
from trimtab.model.field_errors import FieldError
from trimtab.model.times import format_time

IMMUTABLE = "field is immutable when `immutable` is set"
RBAC = "rbac.authorization.k8s.io"


class ReturnedStrategy(Strategy):
    """Kinds without rules of their own whose deletion answers with the object."""

    returns_deleted = True


class DataStrategy(Strategy):
    """ConfigMaps and Secrets: data that may be frozen."""

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Keep what was declared immutable."""
        if not old.get("immutable"):
            return []
        found = [] if obj.get("immutable") else [forbidden_field("immutable", IMMUTABLE)]
        return found + [
            forbidden_field(name, IMMUTABLE)
            for name in ("data", "binaryData")
            if obj.get(name) != old.get(name)
        ]


class SecretStrategy(DataStrategy):
    """Secrets."""

    def default(self, obj: JsonObject) -> None:
        """Encode plain strings into data."""
        obj.setdefault("type", "Opaque")
        for key, text in (obj.pop("stringData", None) or {}).items():
            obj.setdefault("data", {})[key] = base64.b64encode(str(text).encode()).decode()

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Keep the type."""
        found = super().validate_change(obj, old)
        if obj.get("type") != old.get("type"):
            found.append(invalid_value("type", obj.get("type"), "field is immutable"))
        return found

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return what field selectors may use."""
        return {"type": text_at(obj, "type")}


class LimitRangeStrategy(Strategy):
    """LimitRanges: what is left open for containers follows from what is said."""

    def default(self, obj: JsonObject) -> None:
        """Take a maximum for the default limit, and that, or the minimum, for the default request."""
        for item in obj.get("spec", {}).get("limits") or ():
            if item.get("type") == "Container":
                limits = {**(item.get("max") or {}), **(item.get("default") or {})}
                requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
                for field, amounts in (("default", limits), ("defaultRequest", requests)):
                    if amounts:
                        item[field] = amounts


class LeaseStrategy(Strategy):
    """Leases."""

    #: A lease is a lock: a write without the version it was read at would steal it.
    needs_version_on_update = True

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check durations and counts."""
        spec = obj.get("spec") or {}
        found: list[FieldError] = []
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            found.append(invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        transitions = spec.get("leaseTransitions")
        if transitions is not None and transitions < 0:
            found.append(
                invalid_value("spec.leaseTransitions", transitions, "must be greater than or equal to 0")
            )
        return found


class RbacStrategy(Strategy):
    """Roles and bindings."""

    def default(self, obj: JsonObject) -> None:
        """Fill in API groups of references."""
        if "roleRef" in obj:
            obj["roleRef"].setdefault("apiGroup", RBAC)
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group"):
                subject.setdefault("apiGroup", RBAC)

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check rules, references and subjects."""
        found: list[FieldError] = []
        for index, rule in enumerate(obj.get("rules") or ()):
            path = f"rules[{index}]"
            if not rule.get("verbs"):
                found.append(required(f"{path}.verbs", "verbs must contain at least one value"))
            if not rule.get("nonResourceURLs"):
                found += [
                    required(f"{path}.{name}", "resource rules must supply at least one " + what)
                    for name, what in (("apiGroups", "api group"), ("resources", "resource"))
                    if not rule.get(name)
                ]
        if obj["kind"].endswith("Binding"):
            found += self._validate_reference(obj)
        return found

    @staticmethod
    def _validate_reference(obj: JsonObject) -> list[FieldError]:
        reference = obj.get("roleRef") or {}
        allowed = ("ClusterRole",) if obj["kind"] == "ClusterRoleBinding" else ("Role", "ClusterRole")
        found: list[FieldError] = []
        if reference.get("kind") not in allowed:
            found.append(unsupported_value("roleRef.kind", reference.get("kind", ""), allowed))
        if not reference.get("name"):
            found.append(required("roleRef.name"))
        for index, subject in enumerate(obj.get("subjects") or ()):
            kinds = ("ServiceAccount", "User", "Group")
            if subject.get("kind") not in kinds:
                found.append(unsupported_value(f"subjects[{index}].kind", subject.get("kind", ""), kinds))
            elif (
                subject["kind"] == "ServiceAccount"
                and not subject.get("namespace")
                and "namespace" not in obj["metadata"]
            ):
                found.append(required(f"subjects[{index}].namespace"))
        return found

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Keep the role of a binding."""
        if obj.get("roleRef") != old.get("roleRef"):
            shown = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
            seen = {shown.get(name, name): value for name, value in (obj.get("roleRef") or {}).items()}
            return [invalid_value("roleRef", seen, "cannot change roleRef")]
        return []


class WebhookStrategy(Strategy):
    """Webhook configurations."""

    def default(self, obj: JsonObject) -> None:
        """Fill in policies and scopes."""
        for hook in obj.get("webhooks") or ():
            hook.setdefault("failurePolicy", "Fail")
            hook.setdefault("matchPolicy", "Equivalent")
            hook.setdefault("namespaceSelector", {})
            hook.setdefault("objectSelector", {})
            hook.setdefault("timeoutSeconds", 10)
            if obj["kind"].startswith("Mutating"):
                hook.setdefault("reinvocationPolicy", "Never")
            for rule in hook.get("rules") or ():
                rule.setdefault("scope", "*")
            service = (hook.get("clientConfig") or {}).get("service")
            if service:
                service.setdefault("port", 443)

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check names, times and addresses."""
        found: list[FieldError] = []
        for index, hook in enumerate(obj.get("webhooks") or ()):
            path = f"webhooks[{index}]"
            if hook.get("name", "").count(".") < 2:
                detail = "should be a domain with at least three segments separated by dots"
                found.append(invalid_value(f"{path}.name", hook.get("name", ""), detail))
            if not 1 <= hook.get("timeoutSeconds", 10) <= 30:
                detail = "the timeout value must be between 1 and 30 seconds"
                found.append(invalid_value(f"{path}.timeoutSeconds", hook["timeoutSeconds"], detail))
            if hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
                found.append(
                    unsupported_value(
                        f"{path}.sideEffects", hook.get("sideEffects", ""), ("None", "NoneOnDryRun")
                    )
                )
            config = hook.get("clientConfig") or {}
            if ("url" in config) == ("service" in config):
                detail = "exactly one of url or service is required"
                found.append(required(f"{path}.clientConfig", detail))
            if not hook.get("admissionReviewVersions"):
                found.append(required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1"))
        return found


class ApiServiceStrategy(Strategy):
    """APIServices."""

    def default(self, obj: JsonObject) -> None:
        """Fill in the service's port."""
        service = (obj.get("spec") or {}).get("service")
        if service:
            service.setdefault("port", 443)

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Report the service as reachable; the lab asks it only when a request comes."""
        obj.setdefault("spec", {})
        condition = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": format_time(now),
            "reason": "Passed" if obj["spec"].get("service") else "Local",
            "message": "all checks passed"
            if obj["spec"].get("service")
            else "Local APIServices are always available",
        }
        obj["status"] = {"conditions": [condition]}

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check that the name says what is served."""
        spec = obj.get("spec") or {}
        wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
        name = obj["metadata"].get("name", "")
        if name != wanted:
            detail = f'must be `spec.version+"."+spec.group`: "{wanted}"'
            return [invalid_value("metadata.name", name, detail)]
        return []
