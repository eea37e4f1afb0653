"""The rules of Jobs and CronJobs."""

from collections.abc import Mapping
from datetime import datetime

from trimtab.model.field_errors import FieldError
from trimtab_lab.apiserver.errors import invalid_value, required, unsupported_value
from trimtab_lab.resources.pod_spec import validate_pod_spec
from trimtab_lab.resources.strategy import Strategy, set_defaults, text_at
from trimtab_lab.resources.workloads import IMMUTABLE, WorkloadStrategy, default_template
from trimtab_lab.storage.codec import JsonObject

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
        """Return the values that field selectors compare."""
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
