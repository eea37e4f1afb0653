"""Workloads and their Scale, with the fields that autoscaling reads, and the rules of a Scale."""

from collections.abc import Mapping
from typing import Any

from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.metadata_validation import (
    NEGATIVE,
    WholeMeta,
    validate_managed_fields,
    validate_metadata,
)
from trimtab.model.core.pod import PodSpec
from trimtab.model.core.server_rules import KUBERNETES_1_36, ServerRules
from trimtab.model.field_errors import FieldError, FieldPath, invalid
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector


class PodTemplate(Wire):
    """The template of a workload's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class WorkloadSpec(Wire):
    """The fields that Deployment, ReplicaSet, StatefulSet and DaemonSet share."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class WorkloadStatus(Wire):
    """Replica counts, of a DaemonSet its node counts."""

    replicas: int = 0
    ready_replicas: int = 0
    observed_generation: int = 0
    desired_number_scheduled: int = 0


class Workload(Wire):
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ReplicationControllerSpec(Wire):
    """Like `WorkloadSpec`, with the older, equality-only selector."""

    replicas: int | None = None
    selector: dict[str, str] = {}
    template: PodTemplate = PodTemplate()


class ReplicationController(Wire):
    """A ReplicationController."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: WorkloadStatus = WorkloadStatus()


class JobSpec(Wire):
    """A Job's spec."""

    parallelism: int | None = None
    completions: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class Job(Wire):
    """A Job."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class ScaleSpec(Wire):
    """The desired replicas."""

    replicas: int = 0


class ScaleStatus(Wire):
    """The current replicas, and the text of the selector that finds their pods."""

    replicas: int = 0
    selector: str = ""


class Scale(Wire):
    """The scale of a workload, whose metadata has the uid of the workload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class _StoredScale(Wire):
    metadata: WholeMeta = WholeMeta()
    spec: ScaleSpec = ScaleSpec()


def validate_scale(data: Mapping[str, Any], rules: ServerRules = KUBERNETES_1_36) -> list[FieldError]:
    """Check an autoscaling/v1 Scale, as sent in a write, that has the right shape."""
    scale = wire.convert(data, _StoredScale)
    if rules.checks_scale_metadata:
        errors = validate_metadata(scale.metadata, rules=rules)
    else:
        errors = validate_managed_fields(scale.metadata, FieldPath("metadata").child("managedFields"), rules)
    if scale.spec.replicas < 0:
        errors.append(invalid(FieldPath("spec").child("replicas"), scale.spec.replicas, NEGATIVE))
    return errors
