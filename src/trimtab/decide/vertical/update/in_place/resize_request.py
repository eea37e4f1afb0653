"""The request of one resize, with its annotation on the pod and its event."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trimtab.decide.vertical.update.actions import Action, ActionResult, Resize
from trimtab.decide.vertical.update.disruption_ledger import Disruption, DisruptionKind
from trimtab.decide.vertical.update.loop_state import POD, LoopState
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION, ResizeAnnotation
from trimtab.decide.vertical.update.resize.plan import ResizePlan
from trimtab.decide.vertical.update.resize.status import resize_condition
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler

REQUESTED_REASON = "InPlaceResizeRequested"
RESIZE_ACTIONS = {
    ActionResult.DONE: "resized",
    ActionResult.DRY_RUN: "would resize",
    ActionResult.UNKNOWN: "resize not answered",
}
"""The action of the pod's result, if the resize counts as a disruption."""
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
