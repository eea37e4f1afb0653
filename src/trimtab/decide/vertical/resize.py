"""The JSON patch for a pod's `resize` subresource."""

from collections.abc import Sequence
from datetime import datetime

from trimtab.decide.vertical.boost import expired_boosts, resources_before_boost
from trimtab.decide.vertical.budget import BOOST_PREFIX
from trimtab.decide.vertical.compat import DEFAULT, Compat
from trimtab.decide.vertical.patches import Existing, Operation, changes, resource_operations
from trimtab.decide.vertical.sizing import NOTHING, ContainerResources
from trimtab.model.pod import Pod
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler


def resize_operations(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    resources: Sequence[ContainerResources],
    now: datetime,
    compat: Compat = DEFAULT,
) -> list[Operation]:
    """Return the operations that resize the pod in place; containers that are boosted right now are left alone."""
    mode = vpa.spec.update_policy.update_mode if vpa.spec.update_policy else None
    is_off = mode == UpdateMode.OFF
    expired = expired_boosts(pod, vpa, now)
    operations: list[Operation] = []
    for index, container in enumerate(pod.spec.containers):
        recommended = NOTHING if is_off else resources[index]
        if container.name in expired:
            wanted = resources_before_boost(pod.metadata.annotations, container.name, recommended)
        elif is_off or BOOST_PREFIX + container.name in pod.metadata.annotations:
            continue
        else:
            wanted = recommended
        if compat.resizes_only_changes:
            wanted = changes(wanted, container)
            if not (wanted.requests or wanted.limits):
                continue
        operations.extend(resource_operations(index, Existing.of(container), wanted))
    return operations
