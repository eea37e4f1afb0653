"""Finds the topmost controller of a pod that a VPA can target."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from trimtab.model.core.meta import OwnerReference
from trimtab.model.core.pod import Pod

WELL_KNOWN = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)
"""Kinds that a VPA can target. Any other kind needs a scale subresource."""


class ControllerKey(NamedTuple):
    """A controller, as a `targetRef` or an owner reference names it."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Controller:
    """An existing controller: its own controller, and whether it has a scale subresource."""

    parent: ControllerKey | None = None
    is_scalable: bool = True


@dataclass(frozen=True)
class ControllerIndex:
    """All existing controllers. Results are cached, because thousands of pods share an owner."""

    controllers: Mapping[ControllerKey, Controller]
    _topmost: dict[ControllerKey, ControllerKey | None] = field(
        default_factory=dict, repr=False, compare=False
    )

    def topmost(self, key: ControllerKey) -> ControllerKey | None:
        """Return the topmost well-known or scalable controller from `key` upwards, or None.

        A well-known controller that does not exist, and a cycle of owners, give None. The target of the pod is then
        unknown, and an unknown target must not be autoscaled.
        """
        try:
            return self._topmost[key]
        except KeyError:
            top = self._topmost[key] = self._climb(key)
            return top

    def _climb(self, key: ControllerKey) -> ControllerKey | None:
        top: ControllerKey | None = None
        seen: set[ControllerKey] = set()
        current: ControllerKey | None = key
        while current is not None:
            if current in seen:
                return None
            seen.add(current)
            controller = self.controllers.get(current)
            if controller is None:
                # An owner of a kind without scale (an operator's custom resource) ends the chain.
                return None if current.kind in WELL_KNOWN else top
            if current.kind in WELL_KNOWN or controller.is_scalable:
                top = current
            current = controller.parent
        return top


def owner_of(pod: Pod) -> OwnerReference | None:
    """Return the pod's controller. Of several, the last counts, as in upstream."""
    for owner in reversed(pod.metadata.owner_references):
        if owner.controller:
            return owner
    return None


def creator_of(pod: Pod) -> ControllerKey | None:
    """Return the controller that created the pod and would replace it."""
    owner = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    return ControllerKey(pod.metadata.namespace, owner.kind, owner.name) if owner else None


def topmost_controller(pod: Pod, owners: ControllerIndex) -> ControllerKey | None:
    """Return the controller that a VPA must target to reach this pod."""
    owner = owner_of(pod)
    if owner is None:
        return None
    return owners.topmost(ControllerKey(pod.metadata.namespace, owner.kind, owner.name))
