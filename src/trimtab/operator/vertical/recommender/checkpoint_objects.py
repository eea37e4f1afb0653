"""Checkpoint objects: which VPA they belong to, and where and how they are accessed.

Names are upstream's, `<vpa>-<container>`, so that two VPAs may collide. The spec names the owner.
"""

from dataclasses import dataclass, field
from datetime import datetime

from trimtab.cluster.cache.parts import Share
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.meta import NamespacedName, ObjectMeta
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint as Checkpoint
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpointSpec


@dataclass(frozen=True)
class CheckpointOptions:
    """Where and how checkpoints are accessed."""

    share: Share = field(default_factory=Share)
    """The watched namespaces, or those of the shards that are held."""
    workers: int = 10
    """Checkpoints written at the same time."""
    rules: Rules = Rules.TRIMTAB
    ignored_namespaces: frozenset[str] = frozenset()
    """Namespaces in which nothing is written or deleted."""


class _LastSample(wire.Wire):
    last_sample_start: datetime | None = None


class OwnedCheckpoint(wire.Wire):
    """A checkpoint reduced to its owner and the time of its last sample."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VerticalPodAutoscalerCheckpointSpec = VerticalPodAutoscalerCheckpointSpec()
    status: _LastSample = _LastSample()

    @property
    def vpa(self) -> NamespacedName:
        """Return the VPA that the checkpoint belongs to."""
        return owner_vpa(self)


def owner_vpa(checkpoint: Checkpoint | OwnedCheckpoint) -> NamespacedName:
    """Return the VPA that a checkpoint belongs to."""
    return NamespacedName(checkpoint.metadata.namespace, checkpoint.spec.vpa_object_name)
