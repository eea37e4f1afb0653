"""Requests whose answer was lost: the pod, read live, shows whether they were carried out.

Such a request keeps its place in the budget (`trimtab.decide.vertical.ledger`). The place is free again once the pod
shows that nothing was done, at a moment from which nothing can be done any more.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from trimtab.decide.vertical.update.disruption_ledger import Kind, Requested
from trimtab.decide.vertical.update.in_place.resize_note import has_resources
from trimtab.decide.vertical.update.loop_state import UpdaterState
from trimtab.model.core.pod import Pod

FIRST_READ: Final = timedelta(seconds=5)
"""How long after the loss a pod is read first: most requests that arrived are carried out by then."""
LAST_APPLIED: Final = timedelta(seconds=70)
"""How long after the loss a request may still be carried out. kube-apiserver ends writes after 34 s, and any request
after --request-timeout, a minute by default."""


def mark_lost(state: UpdaterState, lost: Mapping[str, datetime]) -> UpdaterState:
    """Return the state with the moments at which answers were lost, by pod uid."""
    marked = {
        uid: msgspec.structs.replace(state.requested[uid], lost_at=moment)
        for uid, moment in lost.items()
        if uid in state.requested
    }
    return _with_requests(state, {**state.requested, **marked}) if marked else state


def lost_requests(state: UpdaterState, now: datetime) -> frozenset[str]:
    """Return the uids of the pods that should be read now."""
    return frozenset(
        uid
        for uid, requested in state.requested.items()
        if (due := _due(requested)) is not None and due <= now
    )


def next_read(state: UpdaterState) -> datetime | None:
    """Return when the next pod should be read; None if no answer is missing."""
    return min((due for each in state.requested.values() if (due := _due(each)) is not None), default=None)


def judge_lost(state: UpdaterState, pods: Mapping[str, Pod | None], read_at: datetime) -> UpdaterState:
    """Return the state after pods were read live at a moment, by uid; None is a pod that does not exist any more.

    A pod that could not be read is left out, and its request stays as it is.
    """
    requests = dict(state.requested)
    for uid, pod in pods.items():
        requested = requests.get(uid)
        if requested is None or requested.lost_at is None:
            continue
        if _is_carried_out(requested, uid, pod):
            # The cache shows it soon; until then the pod counts as disturbed.
            requests[uid] = msgspec.structs.replace(requested, lost_at=None, is_read=False)
        elif read_at - requested.lost_at >= LAST_APPLIED:
            del requests[uid]
        else:
            requests[uid] = msgspec.structs.replace(requested, is_read=True)
    return _with_requests(state, requests)


def _is_carried_out(requested: Requested, uid: str, pod: Pod | None) -> bool:
    if pod is None or pod.metadata.uid != uid or pod.metadata.deletion_timestamp is not None:
        return True
    return requested.kind is not Kind.EVICTION and has_resources(pod, requested.resources)


def _due(requested: Requested) -> datetime | None:
    if requested.lost_at is None:
        return None
    return requested.lost_at + (LAST_APPLIED if requested.is_read else FIRST_READ)


def _with_requests(state: UpdaterState, requests: dict[str, Requested]) -> UpdaterState:
    return msgspec.structs.replace(state, requested=requests)
