"""Workload objects, as far as a scale, an owner chain or an update budget needs them."""

from trimtab.model.meta import ObjectMeta
from trimtab.model.pod import PodSpec
from trimtab.model.selector import LabelSelector
from trimtab.model.wire import Wire


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
