"""Requests that wait on pods whose VPA resizes nothing in place: they are taken back.

Such a request comes from the VPA of another role, or from the time before the VPA's mode was edited. The kubelet
could still carry it out at any moment.
"""

from collections.abc import Generator
from datetime import datetime
from typing import TYPE_CHECKING

from trimtab.decide.vertical.resources.limits_in_use import as_requested
from trimtab.decide.vertical.update.actions import Action, ActionResult
from trimtab.decide.vertical.update.disruption_budget import is_boosted, is_resizing
from trimtab.decide.vertical.update.disruption_ledger import WAITING, phase_of
from trimtab.decide.vertical.update.eligibility import update_priority
from trimtab.decide.vertical.update.in_place.resize_note import NOTE_ANNOTATION, read_note
from trimtab.decide.vertical.update.in_place.resize_request import take_back
from trimtab.decide.vertical.update.replacement_refusals import REFUSAL_ANNOTATION
from trimtab.model.core.pod import Pod

if TYPE_CHECKING:
    from trimtab.decide.vertical.update.vpa_update import VPAUpdate

UNWANTED = "what it asks for is not recommended any more"


def is_unwanted(pod: Pod, update: "VPAUpdate") -> bool:
    """Return whether what a pod's spec asks for is too far from what its VPA recommends now."""
    rank = update_priority(as_requested(pod), update.sizing(pod).recommendation)
    return rank.is_outside_range or rank.resource_diff >= update.context.settings.min_change


def take_back_all(update: "VPAUpdate", reason: str) -> Generator[Action, ActionResult, None]:
    """Take back every request of ours that waits on the VPA's pods."""
    for pod in update.pods:
        if _waits(pod, update):
            yield from take_back(pod, update.vpa, reason, update.state)


def take_back_unwanted(update: "VPAUpdate") -> Generator[Action, ActionResult, frozenset[str]]:
    """Take back what the VPA does not recommend; returns the keys of those pods, whose turn is over."""
    returned = set()
    if update.vpa.status.recommendation is None:
        return frozenset()
    for pod in update.pods:
        if _waits(pod, update) and is_unwanted(pod, update):
            returned.add(pod.metadata.key)
            yield from take_back(pod, update.vpa, UNWANTED, update.state)
    return frozenset(returned)


def _waits(pod: Pod, update: "VPAUpdate") -> bool:
    if not update.context.compat.disruptions_last_until_ready or is_boosted(pod):
        return False
    return is_waiting_request(pod, update.context.now)


def is_left_behind(pod: Pod) -> bool:
    """Return whether the pod has a boost, a waiting request or a note, which end also where no VPA is left."""
    if is_boosted(pod) or REFUSAL_ANNOTATION in pod.metadata.annotations:
        return True
    return NOTE_ANNOTATION in pod.metadata.annotations and is_resizing(pod)


def is_waiting_request(pod: Pod, now: datetime) -> bool:
    """Return whether a request of ours waits on the pod, other than the end of a boost."""
    note = read_note(pod)
    return not note.ends_boost and note.is_asked_of(pod) and phase_of(pod, now) in WAITING
