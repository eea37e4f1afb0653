"""Keeps us from fighting the cluster's own HPA controller over native objects.

kube-controller-manager signs what it writes in managedFields. If it wrote the status of any HPA lately, it is running,
and two controllers on one object would undo each other's work for ever.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from trimtab.cluster.client import Client, Selection
from trimtab.cluster.resource import Json
from trimtab.model.times import parse_time
from trimtab.operator.horizontal.kinds import NATIVE_HPAS

RIVAL = "kube-controller-manager"
LATELY = timedelta(minutes=5)


class RivalControllerError(Exception):
    """The cluster's own HPA controller acts on the same objects; the message says what to do."""


async def refuse_rival_controller(client: Client, namespaces: Sequence[str], now: datetime) -> None:
    """Raise if kube-controller-manager wrote to an HPA of these namespaces lately; none means all.

    A list that fails raises its ClusterError: without it nothing is known about a rival.
    """
    for namespace in namespaces or ("",):
        listed = await client.list(NATIVE_HPAS.untyped(), Selection(namespace or None))
        for hpa in listed.items:
            _refuse(hpa.get("metadata", {}), now)


def _refuse(meta: Json, now: datetime) -> None:
    written = _last_written_by_rival(meta.get("managedFields") or [])
    if written is not None and now - written < LATELY:
        raise RivalControllerError(
            f"kube-controller-manager's HPA controller wrote to {meta.get('namespace')}/{meta.get('name')} at "
            f"{written:%H:%M:%S} UTC: two controllers on one object fight. Start kube-controller-manager with "
            "--controllers=*,-horizontal-pod-autoscaler-controller, or run without --native-hpas and move "
            "your HPAs to autoscaling.trimtab.dev/v2"
        )


def _last_written_by_rival(entries: list[dict[str, str]]) -> datetime | None:
    times = [
        parse_time(entry["time"]) for entry in entries if entry.get("manager") == RIVAL and "time" in entry
    ]
    return max(times, default=None)
