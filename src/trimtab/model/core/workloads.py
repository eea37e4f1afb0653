"""Workload objects, as far as a scale, an owner chain or an update budget needs them."""

from collections.abc import Mapping
from typing import Any

from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.metadata_validation import NEGATIVE, WholeMeta, validate_metadata
from trimtab.model.core.pod import PodSpec
from trimtab.model.field_errors import FieldError, FieldPath, invalid
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector


class PodTemplate(Wire):
    """The pods that a workload makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class WorkloadSpec(Wire):
    """The fields that Deployment, ReplicaSet, StatefulSet and DaemonSet share."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class WorkloadStatus(Wire):
    """Replica counts; DaemonSets count nodes instead."""

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


class OwnerObject(Wire):
    """Any object seen only as a link in an owner chain."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()


class ScaleSpec(Wire):
    """How many replicas are wanted."""

    replicas: int = 0


class ScaleStatus(Wire):
    """How many there are, and the label query (as text) that finds them."""

    replicas: int = 0
    selector: str = ""


class Scale(Wire):
    """The scale of a workload; its metadata carries the workload's own uid."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class _StoredScale(Wire, frozen=True):
    metadata: WholeMeta = WholeMeta()
    spec: ScaleSpec = ScaleSpec()


def validate_scale(data: Mapping[str, Any]) -> list[FieldError]:
    """Check an autoscaling/v1 Scale of the right shape that someone writes."""
    scale = wire.convert(data, _StoredScale)
    errors = validate_metadata(scale.metadata)
    if scale.spec.replicas < 0:
        errors.append(invalid(FieldPath("spec").child("replicas"), scale.spec.replicas, NEGATIVE))
    return errors
