"""Requests resizes, with an annotation and an event, and reports what the kubelet does with them."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from trimtab.decide.vertical.update.actions import Action, ActionResult, Resize
from trimtab.decide.vertical.update.disruption_ledger import Disruption, DisruptionKind, is_ready
from trimtab.decide.vertical.update.loop_state import POD, LoopState
from trimtab.decide.vertical.update.resize.annotation import (
    RESIZE_ANNOTATION,
    ResizeAnnotation,
    read_resize_annotation,
)
from trimtab.decide.vertical.update.resize.plan import ResizePlan
from trimtab.decide.vertical.update.resize.status import (
    WAITING,
    ResizeStatus,
    differs_from_status,
    kubelet_message,
    resize_condition,
    resize_status,
)
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler

REQUESTED_REASON = "InPlaceResizeRequested"
DONE_REASON = "InPlaceResizedByVPA"
DONE_MESSAGE = "Pod was resized in place by VPA Updater."
DEFERRED_REASON = "InPlaceResizeDeferred"
REFUSED_REASON = "InPlaceResizeRefused"
PROGRESS_REASONS = frozenset({DONE_REASON, DEFERRED_REASON, REFUSED_REASON})
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class ResizeRequest:
    """A resize to request."""

    pod: Pod
    vpa: VerticalPodAutoscaler
    plan: ResizePlan
    reason: str
    kind: DisruptionKind = DisruptionKind.RESIZE
    refusals: int = 0
    is_refused: bool = False
    """Whether the kubelet has just refused to lower a memory limit."""
    ends_boost: bool = False

    @property
    def vpa_key(self) -> str:
        """Return the `namespace/name` of the requesting VPA, or empty if there is none."""
        return self.vpa.key if self.vpa.metadata.name else ""

    def as_disruption(self, now: datetime) -> Disruption:
        """Return the request for the disruption ledger."""
        return Disruption(kind=self.kind, requested_at=now, vpa=self.vpa_key, resources=self.plan.resources)


def request_resize(request: ResizeRequest, state: LoopState) -> Generator[Action, ActionResult, ActionResult]:
    """Request one resize with its annotation, emit an event, and return the result."""
    now, pod, plan = state.context.now, request.pod, request.plan
    annotation = ResizeAnnotation(
        vpa=request.vpa_key,
        at=_annotated_at(pod, now),
        resources=plan.resources,
        refusals=request.refusals,
        refused_at=now if request.is_refused else None,
        ends_boost=request.ends_boost,
    )
    before = {**plan.annotations_before, RESIZE_ANNOTATION: wire.encode(annotation).decode()}
    result = yield Resize(pod, request.vpa, replace(plan, annotations_before=before), request.reason)
    if result is ActionResult.DONE:
        text = "Resize of the pod was requested by VPA Updater"
        if request.kind is DisruptionKind.REVERT:
            text = "A resize of the pod that waited was taken back by VPA Updater"
        state.emit(POD, pod.metadata.key, REQUESTED_REASON, f"{text}: {request.reason}.")
    return result


def _annotated_at(pod: Pod, now: datetime) -> datetime:
    """Return the time to annotate: a condition set in this very second is about an earlier request."""
    condition = resize_condition(pod)
    since = condition.last_transition_time if condition else None
    return since + _SECOND if since is not None and since == now.replace(microsecond=0) else now


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
