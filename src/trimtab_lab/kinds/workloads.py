"""The rules of workloads and of disruption budgets."""

import re
from collections.abc import Mapping
from datetime import datetime

from trimtab.model.field_errors import FieldError
from trimtab.model.json.wire import WireError, convert
from trimtab.model.labels.selector import NOTHING, LabelSelector, Selector, SelectorError
from trimtab_lab.apiserver.errors import forbidden_field, invalid_value, required, unsupported_value
from trimtab_lab.kinds.pods import NOT_NEGATIVE, default_pod_spec, validate_labels, validate_pod_spec
from trimtab_lab.kinds.strategy import StatusStrategy, fill, keep_from, text_at
from trimtab_lab.storage.codec import JsonObject

IMMUTABLE = "field is immutable"
PERCENT = re.compile(r"[0-9]+%\Z")
PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def selector_of(selector: JsonObject | None) -> Selector:
    """Return a label selector ready to match."""
    return Selector.from_label_selector(convert(selector, LabelSelector) if selector is not None else None)


def validate_selector(selector: JsonObject | None, path: str) -> list[FieldError]:
    """Return what is wrong with a label selector."""
    try:
        selector_of(selector)
    except (SelectorError, WireError) as problem:
        return [invalid_value(path, selector, str(problem))]
    return validate_labels((selector or {}).get("matchLabels"), f"{path}.matchLabels")


def default_template(parent: JsonObject) -> None:
    """Fill in the pod template of a spec."""
    fill(parent, {"template": {"spec": {}, "metadata": {}}})
    default_pod_spec(parent["template"]["spec"])


class WorkloadStrategy(StatusStrategy):
    """The rules of all kinds with a pod template."""

    #: The restart policies that the template may have.
    restart_policies: tuple[str, ...] = ("Always",)
    #: The field of the update strategy, and the defaults of its rolling update.
    rolling: tuple[str, JsonObject] | None = None
    #: The fields of the spec that an update may not change.
    immutable: tuple[str, ...] = ("selector",)

    def default(self, obj: JsonObject) -> None:
        """Fill in the spec, its update strategy and its template."""
        super().default(obj)
        spec = obj.setdefault("spec", {})
        if self.rolling is not None:
            field, defaults = self.rolling
            strategy = spec.setdefault(field, {})
            if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
                fill(strategy, {"rollingUpdate": defaults})
        default_template(spec)

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Return what is wrong with replicas, selector and template."""
        spec = obj.get("spec", {})
        selector = spec.get("selector")
        errors = self.validate_replicas(spec)
        wrong = validate_selector(selector, "spec.selector") if selector else []
        if selector is None:
            errors.append(required("spec.selector"))
        elif not (selector.get("matchLabels") or selector.get("matchExpressions")):
            detail = f"empty selector is invalid for {obj['kind'].lower()}"
            errors.append(invalid_value("spec.selector", selector, detail))
        return errors + wrong + self.validate_template(spec, NOTHING if wrong else selector_of(selector))

    @staticmethod
    def validate_replicas(spec: JsonObject) -> list[FieldError]:
        replicas = spec.get("replicas", 0)
        return [invalid_value("spec.replicas", replicas, NOT_NEGATIVE)] if replicas < 0 else []

    def validate_template(self, spec: JsonObject, selector: Selector) -> list[FieldError]:
        """Return what is wrong with the pod template."""
        template = spec.get("template") or {}
        labels, pod_spec = template.get("metadata", {}).get("labels"), template.get("spec", {})
        errors: list[FieldError] = []
        if not selector.matches(labels or {}):
            detail = "`selector` does not match template `labels`"
            errors.append(invalid_value("spec.template.metadata.labels", labels, detail))
        errors += validate_labels(labels, "spec.template.metadata.labels")
        errors += validate_pod_spec(pod_spec, "spec.template.spec")
        policy = pod_spec.get("restartPolicy", "")
        if policy not in self.restart_policies:
            path = "spec.template.spec.restartPolicy"
            errors.append(unsupported_value(path, policy, self.restart_policies))
        return errors

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        before, after = old["spec"], obj["spec"]
        changed = [name for name in self.immutable if before.get(name) != after.get(name)]
        return [invalid_value(f"spec.{name}", after.get(name), IMMUTABLE) for name in changed]


class DeploymentStrategy(WorkloadStrategy):
    """Deployments."""

    defaults = {"spec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}}
    rolling = ("strategy", {"maxUnavailable": "25%", "maxSurge": "25%"})

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Keep the labels, which a status write may not change here."""
        super().prepare_for_status(obj, old)
        keep_from(obj["metadata"], old["metadata"], "labels")

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check the update strategy too."""
        errors = super().validate(obj)
        strategy = obj["spec"].get("strategy", {})
        kind = strategy.get("type")
        if kind not in ("Recreate", "RollingUpdate"):
            shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
            errors.append(unsupported_value("spec.strategy", shown, ("Recreate", "RollingUpdate")))
        elif kind == "Recreate" and strategy.get("rollingUpdate"):
            detail = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden_field("spec.strategy.rollingUpdate", detail))
        return errors


class ReplicaSetStrategy(WorkloadStrategy):
    """ReplicaSets."""

    defaults = {"spec": {"replicas": 1}}
    status_zeros = {"replicas": 0}
    selectable_fields = ("status.replicas",)


class ReplicationControllerStrategy(ReplicaSetStrategy):
    """ReplicationControllers, whose selector is a plain map that may change."""

    default_propagation = "Orphan"
    immutable = ()

    def default(self, obj: JsonObject) -> None:
        """Take selector and labels from the template."""
        super().default(obj)
        labels = obj["spec"]["template"]["metadata"].get("labels")
        for parent, name in ((obj["spec"], "selector"), (obj["metadata"], "labels")):
            if labels and not parent.get(name):
                parent[name] = dict(labels)

    def validate(self, obj: JsonObject) -> list[FieldError]:
        spec = obj.get("spec", {})
        selector = spec.get("selector")
        if not selector:
            return [required("spec.selector")]
        return self.validate_replicas(spec) + self.validate_template(spec, Selector.from_labels(selector))


class StatefulSetStrategy(WorkloadStrategy):
    """StatefulSets."""

    defaults = {
        "spec": {
            "replicas": 1,
            "podManagementPolicy": "OrderedReady",
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        }
    }
    rolling = ("updateStrategy", {"partition": 0})
    status_zeros = {"replicas": 0, "availableReplicas": 0}
    CHANGEABLE = (
        "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'"
    )

    def default(self, obj: JsonObject) -> None:
        """Fill in what declarations do since 1.37."""
        super().default(obj)
        strategy = obj["spec"]["updateStrategy"]
        if self.rules.declared_replicas and strategy["type"] == "RollingUpdate":
            strategy["rollingUpdate"].setdefault("maxUnavailable", 1)

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Allow changes of some fields only."""
        before, after = old["spec"], obj["spec"]
        names = [name for name in {**before, **after} if f"'{name}'" not in self.CHANGEABLE]
        changed = [name for name in names if before.get(name) != after.get(name)]
        if self.rules.declared_replicas or not changed:
            return [invalid_value(f"spec.{name}", after.get(name), IMMUTABLE) for name in changed]
        detail = f"updates to statefulset spec for fields other than {self.CHANGEABLE} are forbidden"
        return [forbidden_field("spec", detail)]


class DaemonSetStrategy(WorkloadStrategy):
    """DaemonSets."""

    defaults = {"spec": {"revisionHistoryLimit": 10}}
    rolling = ("updateStrategy", {"maxUnavailable": 1, "maxSurge": 0})
    status_zeros = dict.fromkeys(
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
    )

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start counting templates, in the annotation that replaced an old field."""
        super().prepare_for_create(obj, now)
        obj["metadata"].setdefault("annotations", {})[TEMPLATE_GENERATION] = "1"

    def prepare_for_update(self, obj: JsonObject, old: JsonObject) -> None:
        """Count each new template."""
        number = int((old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "0"))
        number += obj["spec"].get("template") != old["spec"].get("template")
        obj["metadata"].setdefault("annotations", {})[TEMPLATE_GENERATION] = str(number)


class BudgetStrategy(StatusStrategy):
    """PodDisruptionBudgets."""

    needs_version_on_update = True
    status_zeros = dict.fromkeys(
        ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
    )

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check the selector and both limits."""
        spec = obj.get("spec", {})
        errors = validate_selector(spec.get("selector"), "spec.selector") if spec.get("selector") else []
        if "minAvailable" in spec and "maxUnavailable" in spec:
            errors.append(invalid_value("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for name in ("minAvailable", "maxUnavailable"):
            value = spec.get(name)
            if isinstance(value, int) and value < 0:
                errors.append(invalid_value(f"spec.{name}", value, NOT_NEGATIVE))
            elif isinstance(value, str) and not PERCENT.match(value):
                errors.append(invalid_value(f"spec.{name}", value, PERCENT_RULE))
        return errors


class JobStrategy(WorkloadStrategy):
    """Jobs, whose selector is generated and whose template is fixed."""

    #: Without a policy the pods stay, as in the first version of the API.
    default_propagation = "Orphan"
    restart_policies = ("OnFailure", "Never")
    immutable = ("selector", "template", "completionMode")
    defaults = {
        "spec": {
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "manualSelector": False,
            "podReplacementPolicy": "TerminatingOrFailed",
        }
    }

    def default(self, obj: JsonObject) -> None:
        """Run one pod if nothing is said about numbers."""
        spec = obj.setdefault("spec", {})
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        super().default(obj)

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Select the job's pods by its uid."""
        super().prepare_for_create(obj, now)
        spec, meta = obj["spec"], obj["metadata"]
        if spec.get("manualSelector"):
            return
        fill(spec, {"template": {"metadata": {"labels": {}}}})
        labels = spec["template"]["metadata"]["labels"]
        for prefix in ("batch.kubernetes.io/", ""):
            labels[f"{prefix}controller-uid"] = meta["uid"]
            labels[f"{prefix}job-name"] = meta.get("name", "")
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": meta["uid"]}}
        meta["labels"] = meta.get("labels") or dict(labels)

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Let a suspended job have another template."""
        errors = super().validate_change(obj, old)
        return [error for error in errors if error.field != "spec.template" or not old["spec"].get("suspend")]

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        return {"status.successful": text_at(obj, "status", "succeeded") or "0"}


class CronJobStrategy(StatusStrategy):
    """CronJobs."""

    defaults = {
        "spec": {
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {}, "spec": {}},
        }
    }

    def default(self, obj: JsonObject) -> None:
        """Fill in the template."""
        super().default(obj)
        default_template(obj["spec"]["jobTemplate"]["spec"])

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check schedule and template."""
        spec = obj["spec"]
        schedule = spec.get("schedule", "")
        parts = schedule.split()
        errors: list[FieldError] = [] if schedule else [required("spec.schedule")]
        if schedule and not schedule.startswith("@") and len(parts) != 5:
            detail = f"expected exactly 5 fields, found {len(parts)}: {parts}"
            errors.append(invalid_value("spec.schedule", schedule, detail))
        pod_spec, path = (
            spec["jobTemplate"]["spec"]["template"]["spec"],
            "spec.jobTemplate.spec.template.spec",
        )
        errors += validate_pod_spec(pod_spec, path)
        if pod_spec.get("restartPolicy") == "Always":
            policies = JobStrategy.restart_policies
            errors.append(unsupported_value(f"{path}.restartPolicy", "Always", policies))
        return errors
