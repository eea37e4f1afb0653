"""Checkpoints: the history of each container of a VPA, saved as an object and loaded after a restart."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import Aggregate
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.profiles import merged_rows, profiles_of
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.histogram.int64_times import from_wire_time
from trimtab.decide.vertical.input.memory_windows import (
    WINDOWS_ANNOTATION,
    decode_windows,
    encode_windows,
    resume_windows,
    running_containers,
    save_windows,
)
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.times import SECOND_NS
from trimtab.model.vpa.types import (
    VerticalPodAutoscalerCheckpoint,
    VerticalPodAutoscalerCheckpointSpec,
    VerticalPodAutoscalerCheckpointStatus,
)

_AT_ONCE: Final = 1024
"""VPAs saved in one step: enough for arrays to pay, few enough to keep copies small."""


def save_history(
    state: ClusterState, vpas: Sequence[VPAState], now_ns: int
) -> dict[tuple[str, str], VerticalPodAutoscalerCheckpointStatus]:
    """Return a checkpoint per VPA (by `namespace/name`) and container.

    The peaks of memory windows that still run are taken out: after a restart the window goes on, or is measured
    again, and would count twice.
    """
    saved: dict[tuple[str, str], VerticalPodAutoscalerCheckpointStatus] = {}
    for start in range(0, len(vpas), _AT_ONCE):
        some = vpas[start : start + _AT_ONCE]
        profiles = [profile for vpa in some for profile in profiles_of(vpa)]
        with merged_rows(state.table, profiles, copy=True) as rows:
            places = {
                (profile.vpa, profile.container): row for profile, row in zip(profiles, rows, strict=True)
            }
            _take_out_running_peaks(state, some, places, now_ns)
            saved.update(zip(places, state.table.save(rows, now_ns), strict=True))
    return saved


def _take_out_running_peaks(
    state: ClusterState, vpas: Sequence[VPAState], places: dict[tuple[str, str], int], now_ns: int
) -> None:
    found = running_containers(state, vpas, now_ns)
    rows = np.array([places[one.vpa, one.container] for one in found], dtype=np.int64)
    running = np.array([one.row for one in found], dtype=np.int64)
    state.table.subtract_memory(rows, state.containers.peaks(running), state.containers.window_end[running])


def save_checkpoints(
    state: ClusterState, vpas: Sequence[VPAState], now_ns: int
) -> tuple[VerticalPodAutoscalerCheckpoint, ...]:
    """Return the checkpoint objects of some VPAs, named `<vpa>-<container>` as upstream's are."""
    saved = save_history(state, vpas, now_ns)
    if not state.compat.windows_survive_restarts:
        return tuple(_checkpoint(*owner, status, {}) for owner, status in saved.items())
    windows = save_windows(state, vpas, now_ns)
    return tuple(
        # Also if none runs: those that an earlier save names are over, and in the history.
        _checkpoint(
            *owner,
            status,
            {WINDOWS_ANNOTATION: encode_windows(windows.get(owner, {}), status.last_update_time)},
        )
        for owner, status in saved.items()
    )


def _checkpoint(
    vpa: str, container: str, status: VerticalPodAutoscalerCheckpointStatus, notes: dict[str, str]
) -> VerticalPodAutoscalerCheckpoint:
    namespace, _, name = vpa.partition("/")
    return VerticalPodAutoscalerCheckpoint(
        metadata=ObjectMeta(name=f"{name}-{container}", namespace=namespace, annotations=notes),
        spec=VerticalPodAutoscalerCheckpointSpec(vpa_object_name=name, container_name=container),
        status=status,
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
    refusal = load_history(state, vpa, spec.container_name, checkpoint.status, now_ns)
    text = metadata.annotations.get(WINDOWS_ANNOTATION)
    if refusal or text is None or not state.compat.windows_survive_restarts:
        return refusal
    windows = decode_windows(text, checkpoint.status.last_update_time)
    if isinstance(windows, str):
        return f"checkpoint {metadata.key}: {windows}; its memory is measured anew"
    resume_windows(state, vpa, spec.container_name, windows, now_ns)
    return None


def knows_history(state: ClusterState, vpa: str, checkpoint: VerticalPodAutoscalerCheckpoint) -> bool:
    """Return whether the model has the samples of a checkpoint itself, as of a VPA that was deleted and made again.

    Upstream loads checkpoints at its start only, so that there any sample means that they are known.
    """
    container, known = checkpoint.spec.container_name, state.vpas[vpa]
    histories = [one for key, one in known.aggregates.items() if key.container == container]
    if container in known.initial:
        histories.append(known.initial[container])
    firsts = [one.first_sample_ns for one in histories if not one.is_empty]
    if not firsts or not state.compat.history_survives_selectors:
        return bool(firsts)
    return min(firsts) < from_wire_time(checkpoint.status.first_sample_start) + SECOND_NS


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
