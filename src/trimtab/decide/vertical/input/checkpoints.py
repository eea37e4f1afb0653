"""Saves the history of each container of a VPA as a checkpoint, and loads it after a restart."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import Aggregate
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.estimator_state import SavedEstimate, estimator_state
from trimtab.decide.vertical.cluster_state.profiles import merged_rows, profiles_of
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.histogram.int64_times import from_wire_time
from trimtab.decide.vertical.input.memory_windows import (
    WINDOWS_ANNOTATION,
    decode_windows,
    encode_windows,
    resume_windows,
    running_windows,
    save_windows,
)
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.times import SECOND_NS
from trimtab.model.vpa.defaults import recommender_of
from trimtab.model.vpa.types import (
    VerticalPodAutoscalerCheckpoint,
    VerticalPodAutoscalerCheckpointSpec,
    VerticalPodAutoscalerCheckpointStatus,
)

ESTIMATE_ANNOTATION: Final = "trimtab.dev/estimate"
"""On a checkpoint: the last answer and the memory of the estimator that its VPA names, as JSON."""
_BATCH: Final = 1024
"""VPAs saved per step: enough to make arrays worthwhile, few enough to keep copies small."""


def save_history(
    state: ClusterState, vpas: Sequence[VPAState], now_ns: int
) -> dict[tuple[str, str], VerticalPodAutoscalerCheckpointStatus]:
    """Return a checkpoint per VPA (by `namespace/name`) and container.

    Peaks of running memory windows are subtracted. After a restart the window continues, or is measured again, and
    would count twice.
    """
    saved: dict[tuple[str, str], VerticalPodAutoscalerCheckpointStatus] = {}
    for start in range(0, len(vpas), _BATCH):
        batch = vpas[start : start + _BATCH]
        profiles = [profile for vpa in batch for profile in profiles_of(vpa)]
        with merged_rows(state.table, profiles, copy=True) as rows:
            rows_by_owner = {
                (profile.vpa, profile.container): row for profile, row in zip(profiles, rows, strict=True)
            }
            _subtract_running_peaks(state, batch, rows_by_owner, now_ns)
            saved.update(zip(rows_by_owner, state.table.save(rows, now_ns), strict=True))
    return saved


def _subtract_running_peaks(
    state: ClusterState, vpas: Sequence[VPAState], rows_by_owner: dict[tuple[str, str], int], now_ns: int
) -> None:
    windows = running_windows(state, vpas, now_ns)
    rows = np.array([rows_by_owner[window.vpa, window.container] for window in windows], dtype=np.int64)
    running = np.array([window.row for window in windows], dtype=np.int64)
    state.table.subtract_memory(rows, state.containers.peaks(running), state.containers.window_end[running])


def save_checkpoints(
    state: ClusterState, vpas: Sequence[VPAState], now_ns: int
) -> tuple[VerticalPodAutoscalerCheckpoint, ...]:
    """Return the checkpoint objects of VPAs, named `<vpa>-<container>` as upstream's are."""
    saved = save_history(state, vpas, now_ns)
    notes = {owner: _estimate_note(state.vpas[owner[0]], owner[1]) for owner in saved}
    if not state.rules.ours:
        return tuple(
            _checkpoint(state.vpas[vpa], container, status, notes[vpa, container])
            for (vpa, container), status in saved.items()
        )
    windows = save_windows(state, vpas, now_ns)
    return tuple(
        # Also without running windows: the windows of an earlier checkpoint have ended and are in the history.
        _checkpoint(
            state.vpas[owner[0]],
            owner[1],
            status,
            {
                WINDOWS_ANNOTATION: encode_windows(windows.get(owner, {}), status.last_update_time),
                **notes[owner],
            },
        )
        for owner, status in saved.items()
    )


def _estimate_note(vpa: VPAState, container: str) -> dict[str, str]:
    """Return the annotation with the last answer and the memory of a VPA's estimator."""
    saved = vpa.estimator.saved.get(container) if vpa.estimator is not None else None
    return {} if saved is None else {ESTIMATE_ANNOTATION: msgspec.json.encode(saved).decode()}


def _resume_estimate(vpa: VPAState, container: str, text: str) -> str | None:
    """Load the last answer and the memory of an estimator. Return an error if they cannot be read."""
    try:
        saved = msgspec.json.decode(text, type=SavedEstimate)
    except msgspec.MsgspecError as error:
        return f"the annotation {ESTIMATE_ANNOTATION} cannot be read: {error}; the estimator starts without its memory"
    if saved.estimator == recommender_of(vpa.vpa):
        estimator_state(vpa, saved.estimator).saved[container] = saved
    return None


def _checkpoint(
    vpa: VPAState,
    container: str,
    status: VerticalPodAutoscalerCheckpointStatus,
    annotations: dict[str, str],
) -> VerticalPodAutoscalerCheckpoint:
    namespace, name = vpa.vpa.metadata.namespaced_name
    return VerticalPodAutoscalerCheckpoint(
        api_version=vpa.vpa.api_version,
        metadata=ObjectMeta(name=f"{name}-{container}", namespace=namespace, annotations=annotations),
        spec=VerticalPodAutoscalerCheckpointSpec(vpa_object_name=name, container_name=container),
        status=status,
    )


def load_checkpoint(
    state: ClusterState, checkpoint: VerticalPodAutoscalerCheckpoint, now_ns: int
) -> str | None:
    """Load a checkpoint into its VPA. Return an error if it is rejected."""
    metadata, spec = checkpoint.metadata, checkpoint.spec
    # Names collide: VPA `a-b` with container `c` and VPA `a` with container `b-c` share a name. The spec is unambiguous.
    expected = f"{spec.vpa_object_name}-{spec.container_name}"
    if metadata.name and metadata.name != expected:
        return (
            f"checkpoint {metadata.key} says it belongs to container {spec.container_name!r} of VPA "
            f"{spec.vpa_object_name!r}, whose checkpoint is named {expected!r}; delete it"
        )
    vpa = state.vpas.get(f"{metadata.namespace}/{spec.vpa_object_name}")
    if vpa is None:
        return f"checkpoint {metadata.key} belongs to VPA {spec.vpa_object_name!r}, which is not known"
    error = load_history(state, vpa, spec.container_name, checkpoint.status, now_ns)
    estimate = metadata.annotations.get(ESTIMATE_ANNOTATION)
    if error is None and estimate is not None:
        problem = _resume_estimate(vpa, spec.container_name, estimate)
        error = problem and f"checkpoint {metadata.key}: {problem}"
    text = metadata.annotations.get(WINDOWS_ANNOTATION)
    if error or text is None or not state.rules.ours:
        return error
    windows = decode_windows(text, checkpoint.status.last_update_time)
    if isinstance(windows, str):
        return f"checkpoint {metadata.key}: {windows}; its memory is measured anew"
    resume_windows(state, vpa, spec.container_name, windows, now_ns)
    return None


def has_history(state: ClusterState, vpa: str, checkpoint: VerticalPodAutoscalerCheckpoint) -> bool:
    """Return whether the cluster state already has the samples of a checkpoint.

    This happens if a VPA is deleted and created again. Upstream loads checkpoints only at its start, so any sample
    counts there.
    """
    container, vpa_state = checkpoint.spec.container_name, state.vpas[vpa]
    histories = [aggregate for key, aggregate in vpa_state.aggregates.items() if key.container == container]
    if container in vpa_state.initial:
        histories.append(vpa_state.initial[container])
    firsts = [history.first_sample_ns for history in histories if not history.is_empty]
    if not firsts or not state.rules.ours:
        return bool(firsts)
    return min(firsts) < from_wire_time(checkpoint.status.first_sample_start) + SECOND_NS


def load_history(
    state: ClusterState,
    vpa: VPAState,
    container: str,
    status: VerticalPodAutoscalerCheckpointStatus,
    now_ns: int,
) -> str | None:
    """Replace the loaded history of a container. An invalid history changes nothing."""
    history = Aggregate(state.table, now_ns)
    error = history.load(status)
    if error:
        history.release()
        return f"cannot load checkpoint for VPA {vpa.key} container {container}: {error}"
    old = vpa.initial.pop(container, None)
    if old is not None:
        old.release()
    vpa.initial[container] = history
    return None
