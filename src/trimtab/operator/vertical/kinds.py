"""The resources that the vertical components watch, decoded into the fields they need."""

from dataclasses import dataclass
from typing import Any, Self

from trimtab.cluster.resource import DAEMON_SETS, JOBS, Resource
from trimtab.model.core.meta import group_of
from trimtab.model.core.objects import ObjectReference
from trimtab.model.core.pod import Pod
from trimtab.model.groups import NATIVE_VPA_GROUP, OWN_GROUP, VPA_GROUPS, VPA_VERSION
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector
from trimtab.model.vpa.types import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint, VPAScope
from trimtab.operator.horizontal.kinds import CACHED_TARGETS, SlimMeta, SlimWorkload
from trimtab.operator.settings.settings import Settings


@dataclass(frozen=True)
class VpaKind:
    """A kind of VPAs, and where the history of its objects is saved."""

    vpas: Resource[VerticalPodAutoscaler]
    checkpoints: Resource[VerticalPodAutoscalerCheckpoint]

    @classmethod
    def of_group(cls, group: str) -> Self:
        """Return the kinds of an API group."""
        vpa, checkpoint = VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint
        return cls(
            Resource(group, VPA_VERSION, "verticalpodautoscalers", vpa.__name__, vpa),
            Resource(group, VPA_VERSION, "verticalpodautoscalercheckpoints", checkpoint.__name__, checkpoint),
        )


_KINDS = {group: VpaKind.of_group(group) for group in VPA_GROUPS}
OWN, NATIVE = _KINDS[OWN_GROUP], _KINDS[NATIVE_VPA_GROUP]
VPAS, CHECKPOINTS = OWN.vpas, OWN.checkpoints
SCOPES = Resource(OWN_GROUP, VPA_VERSION, "vpascopes", "VPAScope", VPAScope)


def kinds_of(settings: Settings) -> tuple[VpaKind, ...]:
    """Return the kinds that these settings act on, the own one first."""
    return (OWN, NATIVE) if settings.native_vpas else (OWN,)


def kind_of(api_version: str) -> VpaKind:
    """Return the kinds in the group of a VPA or a checkpoint."""
    return _KINDS[group_of(api_version)]


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
        kind=vpa.kind, api_version=vpa.api_version, namespace=meta.namespace, name=meta.name, uid=meta.uid
    )


def pod_reference(pod: Pod) -> ObjectReference:
    """Return the reference to a pod."""
    meta = pod.metadata
    return ObjectReference(
        kind="Pod", api_version="v1", namespace=meta.namespace, name=meta.name, uid=meta.uid
    )
