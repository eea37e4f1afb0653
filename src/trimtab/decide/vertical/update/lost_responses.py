"""Requests whose response was lost: the pod, read live, shows whether they were carried out.

Such a request uses the disruption budget (`disruption_ledger`). The budget is free again once the pod shows that nothing
was done, at a time after which the API server can no longer carry out the request.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from trimtab.decide.vertical.update.disruption_ledger import Disruption, DisruptionKind
from trimtab.decide.vertical.update.loop_state import UpdaterState
from trimtab.decide.vertical.update.resize.annotation import has_resources
from trimtab.model.core.pod import Pod

FIRST_CHECK: Final = timedelta(seconds=5)
"""How long after the loss the pod is read first. Most requests that arrived are carried out by then."""
LAST_CHECK: Final = timedelta(seconds=70)
"""How long after the loss a request may still be carried out. kube-apiserver ends writes after 34 s, and any request
after --request-timeout, a minute by default."""


def mark_lost(state: UpdaterState, lost: Mapping[str, datetime]) -> UpdaterState:
    """Return the state with the times at which responses were lost, by pod uid."""
    marked = {
        uid: msgspec.structs.replace(state.disruptions[uid], response_lost_at=moment)
        for uid, moment in lost.items()
        if uid in state.disruptions
    }
    return _with_disruptions(state, {**state.disruptions, **marked}) if marked else state


def due_checks(state: UpdaterState, now: datetime) -> frozenset[str]:
    """Return the uids of the pods to read now."""
    return frozenset(
        uid
        for uid, disruption in state.disruptions.items()
        if (due := _due(disruption)) is not None and due <= now
    )


def next_check(state: UpdaterState) -> datetime | None:
    """Return when to read the next pod, or None if no response is missing."""
    checks = (_due(disruption) for disruption in state.disruptions.values())
    return min((due for due in checks if due is not None), default=None)


def resolve_lost(state: UpdaterState, pods: Mapping[str, Pod | None], read_at: datetime) -> UpdaterState:
    """Return the state after pods were read live, by uid.

    None is a deleted pod. Leave out a pod that could not be read; its request then stays as it is.
    """
    disruptions = dict(state.disruptions)
    for uid, pod in pods.items():
        disruption = disruptions.get(uid)
        if disruption is None or disruption.response_lost_at is None:
            continue
        if _is_carried_out(disruption, uid, pod):
            # The cache shows it soon. Until then the pod counts as disrupted.
            disruptions[uid] = msgspec.structs.replace(disruption, response_lost_at=None, is_checked=False)
        elif read_at - disruption.response_lost_at >= LAST_CHECK:
            del disruptions[uid]
        else:
            disruptions[uid] = msgspec.structs.replace(disruption, is_checked=True)
    return _with_disruptions(state, disruptions)


def _is_carried_out(disruption: Disruption, uid: str, pod: Pod | None) -> bool:
    if pod is None or pod.metadata.uid != uid or pod.metadata.deletion_timestamp is not None:
        return True
    return disruption.kind is not DisruptionKind.EVICTION and has_resources(pod, disruption.resources)


def _due(disruption: Disruption) -> datetime | None:
    if disruption.response_lost_at is None:
        return None
    return disruption.response_lost_at + (LAST_CHECK if disruption.is_checked else FIRST_CHECK)


def _with_disruptions(state: UpdaterState, disruptions: dict[str, Disruption]) -> UpdaterState:
    return msgspec.structs.replace(state, disruptions=disruptions)
