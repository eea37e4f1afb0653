"""How events name the objects they are about."""

from trimtab.model.core.objects import ObjectReference
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.vertical.kinds import VPAS


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
