"""Events about requested resizes: deferred, refused and done, with the kubelet's own message."""

import msgspec

from trimtab.decide.vertical.update.disruption_ledger import Disruption, DisruptionKind, is_ready
from trimtab.decide.vertical.update.loop_state import POD, LoopState
from trimtab.decide.vertical.update.resize.annotation import read_resize_annotation
from trimtab.decide.vertical.update.resize.status import (
    WAITING,
    ResizeStatus,
    differs_from_status,
    kubelet_message,
    resize_status,
)
from trimtab.model.core.pod import Pod

DONE_REASON = "InPlaceResizedByVPA"
DONE_MESSAGE = "Pod was resized in place by VPA Updater."
DEFERRED_REASON = "InPlaceResizeDeferred"
REFUSED_REASON = "InPlaceResizeRefused"
PROGRESS_REASONS = frozenset({DONE_REASON, DEFERRED_REASON, REFUSED_REASON})


def report_progress(state: LoopState) -> None:
    """Emit an event when the status of a requested resize changes, and drop finished resizes."""
    for pod in state.context.live:
        resize = state.disruptions.get(pod.metadata.uid) or _earlier_request(pod, state)
        if resize is not None and resize.kind is not DisruptionKind.EVICTION and resize.is_observed:
            _report(pod, resize, state)


def _earlier_request(pod: Pod, state: LoopState) -> Disruption | None:
    """Return the unfinished request of an earlier updater process, from the pod's annotation."""
    last = read_resize_annotation(pod)
    status = resize_status(pod, state.context.now)
    if last.at is None or status is ResizeStatus.NONE or not last.matches_spec(pod):
        return None
    return Disruption(
        kind=DisruptionKind.RESIZE,
        requested_at=last.at,
        vpa=last.vpa,
        resources=last.resources,
        is_observed=True,
    )


def _report(pod: Pod, resize: Disruption, state: LoopState) -> None:
    uid, key = pod.metadata.uid, pod.metadata.key
    status = resize_status(pod, state.context.now)
    if status is ResizeStatus.NONE and not differs_from_status(pod):
        if is_ready(pod):
            state.disruptions.pop(uid, None)
            if resize.kind is DisruptionKind.RESIZE:
                state.emit(POD, key, DONE_REASON, DONE_MESSAGE)
        return
    if status in WAITING and resize.reported_status != status:
        reason = DEFERRED_REASON if status is ResizeStatus.DEFERRED else REFUSED_REASON
        subject = (
            f"The resize that VPA {resize.vpa} requested" if resize.vpa else "The end of its startup boost"
        )
        state.emit(POD, key, reason, f"{subject} waits: {kubelet_message(pod)}")
    reported = status.value if status in WAITING else ""
    state.disruptions[uid] = msgspec.structs.replace(resize, reported_status=reported)
