"""The rules of workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, and the budgets that guard them."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trimtab.lab.apiserver.errors import (
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from trimtab.lab.resources.pod_spec import default_pod_spec, validate_labels, validate_pod_spec
from trimtab.lab.resources.strategy import Strategy, keep_from, text_at
from trimtab.lab.storage.codec import JsonObject
from trimtab.model.field_errors import FieldError
from trimtab.model.json.wire import WireError, convert
from trimtab.model.labels.selector import NOTHING, LabelSelector, Selector, SelectorError

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"
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


class WorkloadStrategy(Strategy):
    """What all kinds with a pod template share."""

    #: Fields of `status` that are always written, as the typed API has them.
    status_zeros: Mapping[str, Any] = {}
    #: The restart policies that the template may have.
    restart_policies: tuple[str, ...] = ("Always",)

    def default(self, obj: JsonObject) -> None:
        """Fill in the spec and its template."""
        spec = obj.setdefault("spec", {})
        self.default_spec(spec)
        template = spec.setdefault("template", {})
        default_pod_spec(template.setdefault("spec", {}))
        template.setdefault("metadata", {})

    def default_spec(self, spec: JsonObject) -> None:
        """Fill in what is particular to the kind."""

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start with an empty status."""
        obj["status"] = dict(self.status_zeros)

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Write the counts that are always there."""
        obj["status"] = {**self.status_zeros, **(obj.get("status") or {})}

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Return what is wrong with a workload."""
        spec = obj.get("spec", {})
        found = self.validate_replicas(spec)
        selector = spec.get("selector")
        wrong = validate_selector(selector, "spec.selector") if selector else []
        if selector is None:
            found.append(required("spec.selector"))
        elif not (selector.get("matchLabels") or selector.get("matchExpressions")):
            kind = obj["kind"].lower()
            found.append(invalid_value("spec.selector", selector, f"empty selector is invalid for {kind}"))
        found += wrong
        return found + self.validate_template(spec, NOTHING if wrong else selector_of(selector))

    @staticmethod
    def validate_replicas(spec: JsonObject) -> list[FieldError]:
        """Refuse a negative number of replicas."""
        replicas = spec.get("replicas", 0)
        return [invalid_value("spec.replicas", replicas, NOT_NEGATIVE)] if replicas < 0 else []

    def validate_template(self, spec: JsonObject, selector: Selector) -> list[FieldError]:
        """Return what is wrong with the pod template."""
        template = spec.get("template") or {}
        labels = template.get("metadata", {}).get("labels")
        found: list[FieldError] = []
        if not selector.matches(labels or {}):
            detail = "`selector` does not match template `labels`"
            found.append(invalid_value("spec.template.metadata.labels", labels, detail))
        found += validate_labels(labels, "spec.template.metadata.labels")
        pod = template.get("spec", {})
        found += validate_pod_spec(pod, "spec.template.spec")
        policy = pod.get("restartPolicy", "")
        if policy not in self.restart_policies:
            found.append(unsupported_value("spec.template.spec.restartPolicy", policy, self.restart_policies))
        return found

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Keep the selector."""
        if obj["spec"].get("selector") != old["spec"].get("selector"):
            return [invalid_value("spec.selector", obj["spec"].get("selector"), IMMUTABLE)]
        return []


class DeploymentStrategy(WorkloadStrategy):
    """Deployments."""

    def default_spec(self, spec: JsonObject) -> None:
        """Fill in replicas and the rolling update."""
        spec.setdefault("replicas", 1)
        strategy = spec.setdefault("strategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", QUARTER)
            rolling.setdefault("maxSurge", QUARTER)
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Keep the labels, which a status write may not touch here."""
        super().prepare_for_status(obj, old)
        keep_from(obj["metadata"], old["metadata"], "labels")

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check the update strategy too."""
        found = super().validate(obj)
        strategy = obj["spec"].get("strategy", {})
        kind = strategy.get("type")
        if kind not in ("Recreate", "RollingUpdate"):
            seen = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
            found.append(unsupported_value("spec.strategy", seen, ("Recreate", "RollingUpdate")))
        elif kind == "Recreate" and strategy.get("rollingUpdate"):
            detail = "may not be specified when strategy `type` is 'Recreate'"
            found.append(forbidden_field("spec.strategy.rollingUpdate", detail))
        return found


class ReplicaSetStrategy(WorkloadStrategy):
    """ReplicaSets."""

    status_zeros = {"replicas": 0}

    def default_spec(self, spec: JsonObject) -> None:
        """Fill in replicas."""
        spec.setdefault("replicas", 1)

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return what field selectors may use."""
        return {"status.replicas": text_at(obj, "status", "replicas")}


class ReplicationControllerStrategy(ReplicaSetStrategy):
    """ReplicationControllers, whose selector is a plain map."""

    default_propagation = "Orphan"

    def default(self, obj: JsonObject) -> None:
        """Take selector and labels from the template."""
        super().default(obj)
        spec = obj["spec"]
        labels = (spec.get("template") or {}).get("metadata", {}).get("labels")
        if labels and not spec.get("selector"):
            spec["selector"] = dict(labels)
        if labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check replicas, selector and template."""
        spec = obj.get("spec", {})
        if not spec.get("selector"):
            return [required("spec.selector")]
        return self.validate_replicas(spec) + self.validate_template(
            spec, Selector.from_labels(spec["selector"])
        )

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Allow everything, as this old kind does."""
        return []


class StatefulSetStrategy(WorkloadStrategy):
    """StatefulSets."""

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
        spec.setdefault("replicas", 1)
        spec.setdefault("podManagementPolicy", "OrderedReady")
        strategy = spec.setdefault("updateStrategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
        spec.setdefault("revisionHistoryLimit", 10)
        policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        policy.setdefault("whenDeleted", "Retain")
        policy.setdefault("whenScaled", "Retain")

    def validate_change(self, obj: JsonObject, old: JsonObject) -> list[FieldError]:
        """Allow only the fields that a running set can follow."""
        before = {name: value for name, value in old["spec"].items() if name not in self.CHANGEABLE}
        after = {name: value for name, value in obj["spec"].items() if name not in self.CHANGEABLE}
        if before == after:
            return []
        listed = ", ".join(f"'{name}'" for name in self.CHANGEABLE[:-1])
        detail = (
            f"updates to statefulset spec for fields other than {listed} and 'minReadySeconds' are forbidden"
        )
        return [forbidden_field("spec", detail)]


class DaemonSetStrategy(WorkloadStrategy):
    """DaemonSets."""

    status_zeros = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }

    def default_spec(self, spec: JsonObject) -> None:
        """Fill in the rolling update."""
        strategy = spec.setdefault("updateStrategy", {})
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
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


class JobStrategy(WorkloadStrategy):
    """Jobs, which choose their own selector and keep their template."""

    #: Kept from the first API: without a policy the pods stay.
    default_propagation = "Orphan"
    restart_policies = ("OnFailure", "Never")

    def default_spec(self, spec: JsonObject) -> None:
        """Fill in counts and modes."""
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("manualSelector", False)
        spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Select the job's own pods by its uid."""
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
        """Keep what pods already run with."""
        fixed = (
            ("selector", "completionMode")
            if old["spec"].get("suspend")
            else ("selector", "template", "completionMode")
        )
        return [
            invalid_value(f"spec.{name}", obj["spec"].get(name), IMMUTABLE)
            for name in fixed
            if obj["spec"].get(name) != old["spec"].get(name)
        ]

    def fields(self, obj: JsonObject) -> Mapping[str, str]:
        """Return what field selectors may use."""
        return {"status.successful": text_at(obj, "status", "succeeded") or "0"}


class CronJobStrategy(Strategy):
    """CronJobs."""

    def default(self, obj: JsonObject) -> None:
        """Fill in the schedule's settings and the template."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        job = spec.setdefault("jobTemplate", {})
        job.setdefault("metadata", {})
        template = job.setdefault("spec", {}).setdefault("template", {})
        template.setdefault("metadata", {})
        default_pod_spec(template.setdefault("spec", {}))

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start with an empty status."""
        obj["status"] = {}

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check schedule and template."""
        spec = obj.get("spec", {})
        found: list[FieldError] = []
        schedule = spec.get("schedule", "")
        if not schedule:
            found.append(required("spec.schedule"))
        elif not schedule.startswith("@") and len(schedule.split()) != 5:
            detail = f"expected exactly 5 fields, found {len(schedule.split())}: {schedule.split()}"
            found.append(invalid_value("spec.schedule", schedule, detail))
        pod = spec.get("jobTemplate", {}).get("spec", {}).get("template", {}).get("spec", {})
        path = "spec.jobTemplate.spec.template.spec"
        found += validate_pod_spec(pod, path)
        if pod.get("restartPolicy") == "Always":
            found.append(unsupported_value(f"{path}.restartPolicy", "Always", ("OnFailure", "Never")))
        return found


class BudgetStrategy(Strategy):
    """PodDisruptionBudgets."""

    needs_version_on_update = True

    ZEROS = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}

    def prepare_for_create(self, obj: JsonObject, now: datetime) -> None:
        """Start with nothing observed."""
        obj["status"] = dict(self.ZEROS)

    def prepare_for_status(self, obj: JsonObject, old: JsonObject) -> None:
        """Write the counts that are always there."""
        obj["status"] = {**self.ZEROS, **(obj.get("status") or {})}

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check that one of the two limits is set."""
        spec = obj.get("spec", {})
        found = validate_selector(spec.get("selector"), "spec.selector") if spec.get("selector") else []
        if "minAvailable" in spec and "maxUnavailable" in spec:
            detail = "minAvailable and maxUnavailable cannot be both set"
            found.append(invalid_value("spec", spec, detail))
        for name in ("minAvailable", "maxUnavailable"):
            value = spec.get(name)
            if isinstance(value, int) and value < 0:
                found.append(invalid_value(f"spec.{name}", value, NOT_NEGATIVE))
            elif isinstance(value, str) and not PERCENT.match(value):
                found.append(invalid_value(f"spec.{name}", value, PERCENT_RULE))
        return found
