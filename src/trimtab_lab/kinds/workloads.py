"""The rules of workloads and of disruption budgets."""

import re
from collections.abc import Mapping
from datetime import datetime

from trimtab.model.core.server_rules import KUBERNETES_1_37, ServerRules
from trimtab.model.field_errors import FieldError
from trimtab.model.json.wire import WireError, convert
from trimtab.model.labels.selector import NOTHING, LabelSelector, Selector, SelectorError
from trimtab_lab.apiserver.errors import forbidden_field, invalid_value, required, unsupported_value
from trimtab_lab.kinds.pods import NOT_NEGATIVE, default_pod_spec, validate_labels, validate_pod_spec
from trimtab_lab.kinds.strategy import StatusStrategy, Strategy, keep_from, set_defaults, text_at
from trimtab_lab.storage.codec import JsonObject

IMMUTABLE = "field is immutable"
QUARTER = "25%"
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
    template = parent.setdefault("template", {})
    default_pod_spec(template.setdefault("spec", {}))
    template.setdefault("metadata", {})


class WorkloadStrategy(StatusStrategy):
    """The rules of all kinds with a pod template."""

    #: The restart policies that the template may have.
    restart_policies: tuple[str, ...] = ("Always",)

    def default(self, obj: JsonObject) -> None:
        """Fill in the spec and its template."""
        spec = obj.setdefault("spec", {})
        self.default_spec(spec)
        default_template(spec)

    def default_spec(self, spec: JsonObject) -> None:
        """Fill in the fields of the kind."""

    def validate(self, obj: JsonObject) -> list[FieldError]:
        spec = obj.get("spec", {})
        errors = self.validate_replicas(spec)
        selector = spec.get("selector")
        wrong = validate_selector(selector, "spec.selector") if selector else []
        if selector is None:
            errors.append(required("spec.selector"))
        elif not (selector.get("matchLabels") or selector.get("matchExpressions")):
            detail = f"empty selector is invalid for {obj['kind'].lower()}"
            errors.append(invalid_value("spec.selector", selector, detail))
        return errors + wrong + self.validate_template(spec, NOTHING if wrong else selector_of(selector))

    @staticmethod
    def validate_replicas(spec: JsonObject) -> list[FieldError]:
        """Reject a negative number of replicas."""
        replicas = spec.get("replicas", 0)
        return [invalid_value("spec.replicas", replicas, NOT_NEGATIVE)] if replicas < 0 else []

    def validate_template(self, spec: JsonObject, selector: Selector) -> list[FieldError]:
        """Return what is wrong with the pod template."""
        template = spec.get("template") or {}
        labels = template.get("metadata", {}).get("labels")
        errors: list[FieldError] = []
        if not selector.matches(labels or {}):
            detail = "`selector` does not match template `labels`"
            errors.append(invalid_value("spec.template.metadata.labels", labels, detail))
        errors += validate_labels(labels, "spec.template.metadata.labels")
        pod_spec = template.get("spec", {})
        errors += validate_pod_spec(pod_spec, "spec.template.spec")
        policy = pod_spec.get("restartPolicy", "")
        if policy not in self.restart_policies:
            path = "spec.template.spec.restartPolicy"
            errors.append(unsupported_value(path, policy, self.restart_policies))
        return errors

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Reject a change of the selector."""
        if obj["spec"].get("selector") != old["spec"].get("selector"):
            return [invalid_value("spec.selector", obj["spec"].get("selector"), IMMUTABLE)]
        return []


class DeploymentStrategy(WorkloadStrategy):
    """Deployments."""

    def default_spec(self, spec: JsonObject) -> None:
        """Fill in replicas and the rolling update."""
        set_defaults(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
        strategy = spec.setdefault("strategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            set_defaults(strategy.setdefault("rollingUpdate", {}), maxUnavailable=QUARTER, maxSurge=QUARTER)

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

    status_zeros = {"replicas": 0}
    selectable_fields = ("status.replicas",)

    def default_spec(self, spec: JsonObject) -> None:
        spec.setdefault("replicas", 1)


class ReplicationControllerStrategy(ReplicaSetStrategy):
    """ReplicationControllers, whose selector is a plain map."""

    default_propagation = "Orphan"

    def default(self, obj: JsonObject) -> None:
        """Take selector and labels from the template."""
        super().default(obj)
        labels = obj["spec"]["template"]["metadata"].get("labels")
        for parent, name in ((obj["spec"], "selector"), (obj["metadata"], "labels")):
            if labels and not parent.get(name):
                parent[name] = dict(labels)

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check replicas, selector and template."""
        spec = obj.get("spec", {})
        selector = spec.get("selector")
        if not selector:
            return [required("spec.selector")]
        return self.validate_replicas(spec) + self.validate_template(spec, Selector.from_labels(selector))

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Allow all changes, as this old kind does."""
        return []


class StatefulSetStrategy(WorkloadStrategy):
    """StatefulSets."""

    def __init__(self, rules: ServerRules = KUBERNETES_1_37) -> None:
        self._is_declared = rules.declared_replicas

    status_zeros = {"replicas": 0, "availableReplicas": 0}
    CHANGEABLE = (
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    )

    def default_spec(self, spec: JsonObject) -> None:
        """Fill in order, updates and claims."""
        set_defaults(spec, replicas=1, podManagementPolicy="OrderedReady", revisionHistoryLimit=10)
        strategy = spec.setdefault("updateStrategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("partition", 0)
            if self._is_declared:
                rolling.setdefault("maxUnavailable", 1)
        claims = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        set_defaults(claims, whenDeleted="Retain", whenScaled="Retain")

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Allow changes of some fields only."""
        before, after = (
            {name: value for name, value in spec.items() if name not in self.CHANGEABLE}
            for spec in (old["spec"], obj["spec"])
        )
        if before == after:
            return []
        if self._is_declared:
            changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
            return [invalid_value(f"spec.{name}", after.get(name), IMMUTABLE) for name in changed]
        listed = ", ".join(f"'{name}'" for name in self.CHANGEABLE[:-1])
        detail = (
            f"updates to statefulset spec for fields other than {listed} and 'minReadySeconds' are forbidden"
        )
        return [forbidden_field("spec", detail)]


class DaemonSetStrategy(WorkloadStrategy):
    """DaemonSets."""

    status_zeros = dict.fromkeys(
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
    )

    def default_spec(self, spec: JsonObject) -> None:
        """Fill in the rolling update."""
        strategy = spec.setdefault("updateStrategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            set_defaults(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)
        spec.setdefault("revisionHistoryLimit", 10)

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
            detail = "minAvailable and maxUnavailable cannot be both set"
            errors.append(invalid_value("spec", spec, detail))
        for name in ("minAvailable", "maxUnavailable"):
            value = spec.get(name)
            if isinstance(value, int) and value < 0:
                errors.append(invalid_value(f"spec.{name}", value, NOT_NEGATIVE))
            elif isinstance(value, str) and not PERCENT.match(value):
                errors.append(invalid_value(f"spec.{name}", value, PERCENT_RULE))
        return errors


RESTART_POLICIES = ("OnFailure", "Never")


class JobStrategy(WorkloadStrategy):
    """Jobs, whose selector is generated and whose template is fixed."""

    #: Without a policy the pods stay, as in the first version of the API.
    default_propagation = "Orphan"
    restart_policies = RESTART_POLICIES

    def default_spec(self, spec: JsonObject) -> None:
        """Fill in counts and modes."""
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        set_defaults(
            spec,
            parallelism=1,
            backoffLimit=6,
            completionMode="NonIndexed",
            suspend=False,
            manualSelector=False,
            podReplacementPolicy="TerminatingOrFailed",
        )

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Select the job's pods by its uid."""
        super().prepare_for_create(obj, now)
        spec, meta = obj["spec"], obj["metadata"]
        if spec.get("manualSelector"):
            return
        uid, name = meta["uid"], meta.get("name", "")
        labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
        for prefix in ("batch.kubernetes.io/", ""):
            labels[f"{prefix}controller-uid"] = uid
            labels[f"{prefix}job-name"] = name
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        if not meta.get("labels"):
            meta["labels"] = dict(labels)

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Reject changes of what pods already run with."""
        fixed = ("selector", "template", "completionMode")
        return [
            invalid_value(f"spec.{name}", obj["spec"].get(name), IMMUTABLE)
            for name in fixed
            if obj["spec"].get(name) != old["spec"].get(name)
            and not (name == "template" and old["spec"].get("suspend"))
        ]

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        return {"status.successful": text_at(obj, "status", "succeeded") or "0"}


class CronJobStrategy(Strategy):
    """CronJobs."""

    def default(self, obj: JsonObject) -> None:
        """Fill in the schedule's settings and the template."""
        spec = obj.setdefault("spec", {})
        set_defaults(spec, concurrencyPolicy="Allow", suspend=False)
        set_defaults(spec, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
        job = spec.setdefault("jobTemplate", {})
        job.setdefault("metadata", {})
        default_template(job.setdefault("spec", {}))

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start with an empty status."""
        obj["status"] = {}

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check schedule and template."""
        spec = obj.get("spec", {})
        errors: list[FieldError] = []
        schedule = spec.get("schedule", "")
        parts = schedule.split()
        if not schedule:
            errors.append(required("spec.schedule"))
        elif not schedule.startswith("@") and len(parts) != 5:
            detail = f"expected exactly 5 fields, found {len(parts)}: {parts}"
            errors.append(invalid_value("spec.schedule", schedule, detail))
        pod_spec = spec.get("jobTemplate", {}).get("spec", {}).get("template", {}).get("spec", {})
        path = "spec.jobTemplate.spec.template.spec"
        errors += validate_pod_spec(pod_spec, path)
        if pod_spec.get("restartPolicy") == "Always":
            errors.append(unsupported_value(f"{path}.restartPolicy", "Always", RESTART_POLICIES))
        return errors
