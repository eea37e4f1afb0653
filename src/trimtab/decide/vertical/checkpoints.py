"""Checkpoints: the history of each container of a VPA, saved as an object and loaded after a restart."""

from collections.abc import Iterable

from trimtab.decide.vertical.aggregate import Aggregate
from trimtab.decide.vertical.profiles import merged_copy, profiles_of
from trimtab.decide.vertical.state import ClusterState
from trimtab.decide.vertical.vpastate import VPAState
from trimtab.model.meta import ObjectMeta
from trimtab.model.vpa.types import (
    VerticalPodAutoscalerCheckpoint,
    VerticalPodAutoscalerCheckpointSpec,
    VerticalPodAutoscalerCheckpointStatus,
)


def save_history(
    state: ClusterState, vpa: VPAState, now_ns: int
) -> dict[str, VerticalPodAutoscalerCheckpointStatus]:
    """Return a checkpoint per container of a VPA.

    The peaks of memory windows that still run are taken out: after a restart the window is measured again, and
    would count twice.
    """
    saved: dict[str, VerticalPodAutoscalerCheckpointStatus] = {}
    for profile in profiles_of(vpa):
        with merged_copy(state.table, profile) as history:
            for peak, window_end_ns in _running_peaks(state, vpa, profile.container):
                if now_ns < window_end_ns:
                    history.memory.subtract(float(peak), 1.0, window_end_ns)
            saved[profile.container] = history.save(now_ns)
    return saved


def _running_peaks(state: ClusterState, vpa: VPAState, container: str) -> Iterable[tuple[int, int]]:
    pods = state.namespace(vpa.vpa.metadata.namespace).pods
    for pod in sorted(pods):
        tracked = pods[pod].containers.get(container)
        if tracked is not None and tracked.key in vpa.aggregates:
            yield tracked.history.max_peak, tracked.history.window_end_ns


def save_checkpoints(
    state: ClusterState, vpa: VPAState, now_ns: int
) -> tuple[VerticalPodAutoscalerCheckpoint, ...]:
    """Return the checkpoint objects of a VPA, named `<vpa>-<container>` as upstream's are."""
    metadata = vpa.vpa.metadata
    return tuple(
        VerticalPodAutoscalerCheckpoint(
            metadata=ObjectMeta(name=f"{metadata.name}-{container}", namespace=metadata.namespace),
            spec=VerticalPodAutoscalerCheckpointSpec(vpa_object_name=metadata.name, container_name=container),
            status=status,
        )
        for container, status in save_history(state, vpa, now_ns).items()
    )


def load_checkpoint(
    state: ClusterState, checkpoint: VerticalPodAutoscalerCheckpoint, now_ns: int
) -> str | None:
    """Make a saved history the initial one of its VPA's container; return why it was refused, if it was."""
    metadata, spec = checkpoint.metadata, checkpoint.spec
    # Names collide: VPA `a-b` with container `c` and VPA `a` with container `b-c` share one. The spec tells them apart.
    expected = f"{spec.vpa_object_name}-{spec.container_name}"
    if metadata.name and metadata.name != expected:
        return (
            f"checkpoint {metadata.key} says it belongs to container {spec.container_name!r} of VPA "
            f"{spec.vpa_object_name!r}, whose checkpoint is named {expected!r}; delete it"
        )
    vpa = state.vpas.get(f"{metadata.namespace}/{spec.vpa_object_name}")
    if vpa is None:
        return f"checkpoint {metadata.key} belongs to VPA {spec.vpa_object_name!r}, which is not known"
    return load_history(state, vpa, spec.container_name, checkpoint.status, now_ns)


def load_history(
    state: ClusterState,
    vpa: VPAState,
    container: str,
    status: VerticalPodAutoscalerCheckpointStatus,
    now_ns: int,
) -> str | None:
    """Replace the initial history of a container; a history that is refused leaves the last good one."""
    history = Aggregate(state.table, now_ns)
    refusal = history.load(status)
    if refusal:
        history.release()
        return f"cannot load checkpoint for VPA {vpa.key} container {container}: {refusal}"
    old = vpa.initial.pop(container, None)
    if old is not None:
        old.release()
    vpa.initial[container] = history
    return None


def find_collisions(checkpoints: Iterable[VerticalPodAutoscalerCheckpoint]) -> dict[str, str]:
    """Return, per checkpoint name that two containers would share, what to do about it."""
    owners: dict[str, tuple[str, str]] = {}
    collisions: dict[str, str] = {}
    for checkpoint in checkpoints:
        owner = checkpoint.spec.vpa_object_name, checkpoint.spec.container_name
        other = owners.setdefault(checkpoint.metadata.key, owner)
        if other != owner:
            collisions[checkpoint.metadata.key] = (
                f"container {other[1]!r} of VPA {other[0]!r} and container {owner[1]!r} of VPA {owner[0]!r} share "
                f"the checkpoint {checkpoint.metadata.key}; rename one of the VPAs"
            )
    return collisions
