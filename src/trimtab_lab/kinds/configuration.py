"""The rules of objects that configure a cluster: namespaces, nodes, services, data, leases, access rules, webhooks."""

import base64
from collections.abc import Mapping
from datetime import datetime

from trimtab.model.core.server_rules import KUBERNETES_1_37, ServerRules
from trimtab.model.field_errors import FieldError
from trimtab_lab.apiserver.errors import forbidden_field, invalid_value, required, unsupported_value
from trimtab_lab.kinds.pods import NOT_NEGATIVE, PORT_RANGE
from trimtab_lab.kinds.strategy import Strategy, condition, keep_from, set_defaults, text_at
from trimtab_lab.storage.codec import JsonObject

IMMUTABLE = "field is immutable when `immutable` is set"
RBAC = "rbac.authorization.k8s.io"
SUBJECTS = ("ServiceAccount", "User", "Group")
SIDE_EFFECTS = ("None", "NoneOnDryRun")


class DataStrategy(Strategy):
    """ConfigMaps and Secrets: data that may be frozen."""

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Reject changes of what was declared immutable."""
        if not old.get("immutable"):
            return []
        changed = [] if obj.get("immutable") else ["immutable"]
        changed += [name for name in ("data", "binaryData") if obj.get(name) != old.get(name)]
        return [forbidden_field(name, IMMUTABLE) for name in changed]


class SecretStrategy(DataStrategy):
    """Secrets."""

    selectable_fields = ("type",)

    def default(self, obj: JsonObject) -> None:
        """Encode plain strings into data."""
        obj.setdefault("type", "Opaque")
        for key, text in (obj.pop("stringData", None) or {}).items():
            obj.setdefault("data", {})[key] = base64.b64encode(str(text).encode()).decode()

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Reject a change of the type."""
        errors = super().validate_change(obj, old)
        if obj.get("type") != old.get("type"):
            errors.append(invalid_value("type", obj.get("type"), "field is immutable"))
        return errors


class LimitRangeStrategy(Strategy):
    """LimitRanges, whose defaults for containers follow from their bounds."""

    def default(self, obj: JsonObject) -> None:
        """Take the maximum as default limit, and that or the minimum as default request."""
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
        errors: list[FieldError] = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            errors.append(invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            errors.append(invalid_value("spec.leaseTransitions", transitions, NOT_NEGATIVE))
        return errors


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
        errors: list[FieldError] = []
        for index, rule in enumerate(obj.get("rules") or ()):
            path = f"rules[{index}]"
            if not rule.get("verbs"):
                errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
            if not rule.get("nonResourceURLs"):
                errors += [
                    required(f"{path}.{name}", "resource rules must supply at least one " + what)
                    for name, what in (("apiGroups", "api group"), ("resources", "resource"))
                    if not rule.get(name)
                ]
        if obj["kind"].endswith("Binding"):
            errors += self._validate_reference(obj)
        return errors

    @staticmethod
    def _validate_reference(obj: JsonObject) -> list[FieldError]:
        reference = obj.get("roleRef") or {}
        allowed = ("ClusterRole",) if obj["kind"] == "ClusterRoleBinding" else ("Role", "ClusterRole")
        errors: list[FieldError] = []
        if reference.get("kind") not in allowed:
            errors.append(unsupported_value("roleRef.kind", reference.get("kind", ""), allowed))
        if not reference.get("name"):
            errors.append(required("roleRef.name"))
        for index, subject in enumerate(obj.get("subjects") or ()):
            kind, has_namespace = (
                subject.get("kind"),
                subject.get("namespace") or "namespace" in obj["metadata"],
            )
            if kind not in SUBJECTS:
                errors.append(unsupported_value(f"subjects[{index}].kind", kind or "", SUBJECTS))
            elif kind == "ServiceAccount" and not has_namespace:
                errors.append(required(f"subjects[{index}].namespace"))
        return errors

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Reject a change of a binding's role."""
        if obj.get("roleRef") != old.get("roleRef"):
            detail = "field is immutable" if self.rules.declared_replicas else "cannot change roleRef"
            go_names = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
            shown = {go_names.get(name, name): value for name, value in (obj.get("roleRef") or {}).items()}
            return [invalid_value("roleRef", shown, detail)]
        return []


class WebhookStrategy(Strategy):
    """Webhook configurations."""

    def default(self, obj: JsonObject) -> None:
        """Fill in policies and scopes."""
        for hook in obj.get("webhooks") or ():
            set_defaults(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
            set_defaults(hook, namespaceSelector={}, objectSelector={})
            if obj["kind"].startswith("Mutating"):
                hook.setdefault("reinvocationPolicy", "Never")
            for rule in hook.get("rules") or ():
                rule.setdefault("scope", "*")
            _default_port(hook.get("clientConfig"))

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check names, times and addresses."""
        errors: list[FieldError] = []
        for index, hook in enumerate(obj.get("webhooks") or ()):
            path = f"webhooks[{index}]"
            if hook.get("name", "").count(".") < 2:
                detail = "should be a domain with at least three segments separated by dots"
                errors.append(invalid_value(f"{path}.name", hook.get("name", ""), detail))
            if not 1 <= hook.get("timeoutSeconds", 10) <= 30:
                detail = "the timeout value must be between 1 and 30 seconds"
                errors.append(invalid_value(f"{path}.timeoutSeconds", hook["timeoutSeconds"], detail))
            if hook.get("sideEffects") not in SIDE_EFFECTS:
                given = hook.get("sideEffects", "")
                errors.append(unsupported_value(f"{path}.sideEffects", given, SIDE_EFFECTS))
            config = hook.get("clientConfig") or {}
            if ("url" in config) == ("service" in config):
                detail = "exactly one of url or service is required"
                errors.append(required(f"{path}.clientConfig", detail))
            if not hook.get("admissionReviewVersions"):
                errors.append(required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1"))
        return errors


def _default_port(config: JsonObject | None) -> None:
    service = (config or {}).get("service")
    if service:
        service.setdefault("port", 443)


class ApiServiceStrategy(Strategy):
    """APIServices."""

    def default(self, obj: JsonObject) -> None:
        """Fill in the service's port."""
        _default_port(obj.get("spec"))

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Report the service as available. The lab connects only when it proxies a request."""
        reason, message = "Local", "Local APIServices are always available"
        if obj.setdefault("spec", {}).get("service"):
            reason, message = "Passed", "all checks passed"
        obj["status"] = {"conditions": [condition("Available", reason, message, now)]}

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check that the name is version and group."""
        spec = obj.get("spec") or {}
        wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
        name = obj["metadata"].get("name", "")
        if name != wanted:
            detail = f'must be `spec.version+"."+spec.group`: "{wanted}"'
            return [invalid_value("metadata.name", name, detail)]
        return []


FIRST_NODE_PORT = 30_000


class ServiceStrategy(Strategy):
    """Services."""

    returns_deleted = True
    defaults = {"spec": {"type": "ClusterIP", "sessionAffinity": "None"}}

    def __init__(self, rules: ServerRules = KUBERNETES_1_37) -> None:
        super().__init__(rules)
        self._addresses = 0
        self._ports = 0

    def default(self, obj: JsonObject) -> None:
        """Fill in type, ports and affinity."""
        super().default(obj)
        spec = obj["spec"]
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if "port" in port:
                port.setdefault("targetPort", port["port"])
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Assign an address and node ports."""
        spec = obj["spec"]
        obj["status"] = {"loadBalancer": {}}
        if spec["type"] == "ExternalName":
            return
        if not spec.get("clusterIP"):
            spec["clusterIP"] = self._next_address()
        spec.update(clusterIPs=[spec["clusterIP"]], ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
        if spec["type"] in ("NodePort", "LoadBalancer"):
            for port in spec.get("ports") or ():
                if not port.get("nodePort"):
                    self._ports += 1
                    port["nodePort"] = FIRST_NODE_PORT + self._ports

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Keep the address."""
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if name in old["spec"] and obj["spec"]["type"] != "ExternalName":
                obj["spec"].setdefault(name, old["spec"][name])

    def _next_address(self) -> str:
        self._addresses += 1
        return f"10.96.{self._addresses // 250}.{self._addresses % 250 + 1}"

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check ports and names."""
        spec = obj["spec"]
        errors: list[FieldError] = []
        if spec["type"] == "ExternalName":
            return [] if spec.get("externalName") else [required("spec.externalName")]
        if not spec.get("ports") and spec.get("clusterIP") != "None":
            errors.append(required("spec.ports"))
        for index, port in enumerate(spec.get("ports") or ()):
            if not 0 < port.get("port", 0) < 65536:
                errors.append(invalid_value(f"spec.ports[{index}].port", port.get("port", 0), PORT_RANGE))
            if len(spec["ports"]) > 1 and not port.get("name"):
                errors.append(required(f"spec.ports[{index}].name"))
        return errors

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Reject a change of the address."""
        before, after = old["spec"].get("clusterIP"), obj["spec"].get("clusterIP")
        if before and after and before != after:
            return [invalid_value("spec.clusterIPs[0]", [after], "may not change once set")]
        return []


NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    """Namespaces, which stay until their content is deleted."""

    returns_deleted = True

    def default(self, obj: JsonObject) -> None:
        """Label the namespace with its name."""
        name = obj["metadata"].get("name")
        if name:
            obj["metadata"].setdefault("labels", {})[NAME_LABEL] = name

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start as Active, with the finalizer of namespaces."""
        self.default(obj)
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Keep finalizers, which the finalize subresource changes."""
        keep_from(obj, old, "spec")
        keep_from(obj, old, "status")

    def is_held(self, obj: JsonObject) -> bool:
        """Return whether the namespace has content to delete."""
        return bool((obj.get("spec") or {}).get("finalizers"))

    def mark_deleted(self, obj: JsonObject) -> None:
        """Set the phase to Terminating."""
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        return {"status.phase": text_at(obj, "status", "phase"), "name": text_at(obj, "metadata", "name")}


class NodeStrategy(Strategy):
    """Nodes, which an agent creates with their status."""

    keeps_status_on_create = True

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Add an empty spec and status."""
        obj.setdefault("spec", {})
        obj.setdefault("status", {})

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        return {"spec.unschedulable": text_at(obj, "spec", "unschedulable") or "false"}
