"""Events about resizes that were requested: deferred, refused, and done, with the kubelet's own message."""

import msgspec

from trimtab.decide.vertical.update.disruption_ledger import (
    WAITING,
    Kind,
    Requested,
    differs_from_status,
    is_ready,
    kubelet_message,
    phase_of,
)
from trimtab.decide.vertical.update.in_place.group_status import Resizing
from trimtab.decide.vertical.update.in_place.resize_note import read_note
from trimtab.decide.vertical.update.loop_state import POD, LoopState
from trimtab.model.core.pod import Pod

DONE_REASON = "InPlaceResizedByVPA"
DONE_MESSAGE = "Pod was resized in place by VPA Updater."
DEFERRED_REASON = "InPlaceResizeDeferred"
REFUSED_REASON = "InPlaceResizeRefused"
PROGRESS_REASONS = frozenset({DONE_REASON, DEFERRED_REASON, REFUSED_REASON})


def tell_progress(state: LoopState) -> None:
    """Say once how far each requested resize is; one that is done is forgotten."""
    for pod in state.context.live:
        requested = state.requested.get(pod.metadata.uid) or _taken_over(pod, state)
        if requested is not None and requested.kind is not Kind.EVICTION and requested.is_seen:
            _tell(pod, requested, state)


def _taken_over(pod: Pod, state: LoopState) -> Requested | None:
    """Return the request of an earlier updater that the pod's note tells of, while it is under way."""
    note = read_note(pod)
    if note.at is None or phase_of(pod, state.context.now) is Resizing.NONE or not note.is_asked_of(pod):
        return None
    return Requested(kind=Kind.RESIZE, at=note.at, vpa=note.vpa, resources=note.resources, is_seen=True)


def _tell(pod: Pod, requested: Requested, state: LoopState) -> None:
    uid, key = pod.metadata.uid, pod.metadata.key
    phase = phase_of(pod, state.context.now)
    if phase is Resizing.NONE and not differs_from_status(pod):
        if is_ready(pod):
            state.requested.pop(uid, None)
            if requested.kind is Kind.RESIZE:
                state.tell(POD, key, DONE_REASON, DONE_MESSAGE)
        return
    if phase in WAITING and requested.told != phase:
        reason = DEFERRED_REASON if phase is Resizing.DEFERRED else REFUSED_REASON
        what = (
            f"The resize that VPA {requested.vpa} requested"
            if requested.vpa
            else "The end of its startup boost"
        )
        state.tell(POD, key, reason, f"{what} waits: {kubelet_message(pod)}")
    state.requested[uid] = msgspec.structs.replace(requested, told=phase.value if phase in WAITING else "")
