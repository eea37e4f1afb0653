"""The resources that the vertical components watch, decoded into the fields they need."""

from typing import Any

from trimtab.cluster.resource import DAEMON_SETS, JOBS, Resource
from trimtab.model.core.objects import ObjectReference
from trimtab.model.core.pod import Pod
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector
from trimtab.model.vpa.types import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint, VPAScope
from trimtab.operator.horizontal.kinds import CACHED_TARGETS, SlimMeta, SlimWorkload

GROUP, VERSION = "autoscaling.k8s.io", "v1"
VPAS = Resource(GROUP, VERSION, "verticalpodautoscalers", "VerticalPodAutoscaler", VerticalPodAutoscaler)
SCOPES = Resource(GROUP, VERSION, "vpascopes", "VPAScope", VPAScope)
CHECKPOINTS = Resource(
    GROUP,
    VERSION,
    "verticalpodautoscalercheckpoints",
    "VerticalPodAutoscalerCheckpoint",
    VerticalPodAutoscalerCheckpoint,
)


class _Labelled(Wire):
    labels: dict[str, str] = {}


class _Template(Wire):
    metadata: _Labelled = _Labelled()


class _JobSpec(Wire):
    template: _Template = _Template()


class _JobTemplate(Wire):
    spec: _JobSpec = _JobSpec()


class SlimCronJobSpec(Wire):
    """The labels of a CronJob's pods."""

    job_template: _JobTemplate = _JobTemplate()


class SlimCronJob(Wire):
    """A CronJob, whose pods are selected by the labels of their template."""

    metadata: SlimMeta = SlimMeta()
    spec: SlimCronJobSpec = SlimCronJobSpec()

    @property
    def selector(self) -> LabelSelector | None:
        """Return a selector of the pods' labels, or None without labels."""
        labels = self.spec.job_template.spec.template.metadata.labels
        return LabelSelector(match_labels=labels) if labels else None


WORKLOADS: dict[str, Resource[Any]] = {
    **{kind: resource for (_, kind), resource in CACHED_TARGETS.items()},
    "DaemonSet": DAEMON_SETS.into(SlimWorkload),
    "Job": JOBS.into(SlimWorkload),
    "CronJob": Resource("batch", "v1", "cronjobs", "CronJob", SlimCronJob),
}
"""The well-known kinds of controllers, all watched."""


def vpa_reference(vpa: VerticalPodAutoscaler) -> ObjectReference:
    """Return the reference to a VPA."""
    meta = vpa.metadata
    return ObjectReference(
        kind=VPAS.kind, api_version=VPAS.api_version, namespace=meta.namespace, name=meta.name, uid=meta.uid
    )


def pod_reference(pod: Pod) -> ObjectReference:
    """Return the reference to a pod."""
    meta = pod.metadata
    return ObjectReference(
        kind="Pod", api_version="v1", namespace=meta.namespace, name=meta.name, uid=meta.uid
    )
