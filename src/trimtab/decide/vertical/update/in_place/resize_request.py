"""Requests of resizes: with a note on the pod, an event, and what the next loops must know of it."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trimtab.decide.vertical.resources.limits_in_use import present_sizes
from trimtab.decide.vertical.update.actions import Action, ActionResult, Resize
from trimtab.decide.vertical.update.disruption_ledger import (
    Kind,
    Requested,
    kubelet_message,
    resize_condition,
)
from trimtab.decide.vertical.update.in_place.resize import ResizePlan, plan_resize
from trimtab.decide.vertical.update.in_place.resize_note import NOTE_ANNOTATION, ResizeNote
from trimtab.decide.vertical.update.loop_state import POD, LoopState
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler

REQUESTED_REASON = "InPlaceResizeRequested"
_SECOND = timedelta(seconds=1)
NOT_ANSWERED = "resize not answered"
DEEDS = {ActionResult.DONE: "resized", ActionResult.WOULD: "would resize", ActionResult.UNKNOWN: NOT_ANSWERED}
"""The verdict about a pod whose resize is charged."""
Asking = Generator[Action, ActionResult, ActionResult]


@dataclass(frozen=True)
class Wish:
    """A resize to request."""

    pod: Pod
    vpa: VerticalPodAutoscaler
    plan: ResizePlan
    reason: str
    kind: Kind = Kind.RESIZE
    refusals: int = 0
    is_refused: bool = False
    """Whether the kubelet has just refused to lower a memory limit."""
    ends_boost: bool = False

    @property
    def asker(self) -> str:
        """Return the `namespace/name` of the VPA that asks; empty if that is none."""
        return self.vpa.key if self.vpa.metadata.name else ""


def request_resize(wish: Wish, state: LoopState) -> Asking:
    """Request one resize, with a note on the pod, and say so; returns the outcome."""
    now, pod, plan = state.context.now, wish.pod, wish.plan
    note = ResizeNote(
        vpa=wish.asker,
        at=_noted_at(pod, now),
        resources=plan.resources,
        refusals=wish.refusals,
        refused_at=now if wish.is_refused else None,
        ends_boost=wish.ends_boost,
    )
    noted = replace(plan, originals={**plan.originals, NOTE_ANNOTATION: wire.encode(note).decode()})
    outcome = yield Resize(pod, wish.vpa, noted, wish.reason)
    if outcome is ActionResult.DONE:
        text = "Resize of the pod was requested by VPA Updater"
        if wish.kind is Kind.RETURN:
            text = "A resize of the pod that waited was taken back by VPA Updater"
        state.tell(POD, pod.metadata.key, REQUESTED_REASON, f"{text}: {wish.reason}.")
    return outcome


def _noted_at(pod: Pod, now: datetime) -> datetime:
    """Return the moment to note: what the kubelet said in the same second is about an earlier request."""
    condition = resize_condition(pod)
    since = condition.last_transition_time if condition else None
    return since + _SECOND if since is not None and since == now.replace(microsecond=0) else now


def take_back(
    pod: Pod, vpa: VerticalPodAutoscaler, reason: str, state: LoopState
) -> Generator[Action, ActionResult, None]:
    """Ask a pod whose resize waits for the size that it has, so that nothing waits any more."""
    plan = plan_resize(pod, vpa, present_sizes(pod), state.context.now, state.context.compat)
    words = f"its resize waits ({kubelet_message(pod)}), and {reason}"
    if plan.refusal or not plan.operations:
        state.leave(pod, vpa.key, words)
        return
    wish = Wish(pod, vpa, plan, words, Kind.RETURN)
    outcome = yield from request_resize(wish, state)
    if outcome.is_charged:
        state.requested[pod.metadata.uid] = requested_by(wish, state)
        state.resizes_seen.pop(pod.metadata.key, None)
        action = NOT_ANSWERED if outcome is ActionResult.UNKNOWN else "resize taken back"
        state.note(pod, vpa.key, action, words)
    else:
        state.note(pod, vpa.key, "resize failed", words)


def requested_by(wish: Wish, state: LoopState) -> Requested:
    """Return what the next loops must know of a request."""
    return Requested(kind=wish.kind, at=state.context.now, vpa=wish.asker, resources=wish.plan.resources)
