"""The kinds that the horizontal loop watches, each read into no more than it needs.

A cluster has a hundred times more pods than HPAs, so what is kept of a pod decides how much memory we take.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import (
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Json,
    Resource,
)
from trimtab.model.core.meta import OwnerReference
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector
from trimtab.model.times import parse_time

OWN_HPAS = Resource(
    "autoscaling.trimtab.dev",
    "v2",
    "horizontalpodautoscalers",
    "HorizontalPodAutoscaler",
    HorizontalPodAutoscaler,
)
NATIVE_HPAS = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", HorizontalPodAutoscaler
)


class SlimMeta(Wire):
    """Metadata without annotations, which may be large and decide nothing here."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class HpaCacheEntry(msgspec.Struct, gc=False):
    """An HPA in the cache, which hands the object on and keeps what tells its versions apart.

    The book of autoscalers has the object already, as the last write left it: 5 KB with its conditions and metrics.
    """

    metadata: SlimMeta
    whole: HorizontalPodAutoscaler | None

    def take(self) -> HorizontalPodAutoscaler:
        """Return the object; once, to the book."""
        whole, self.whole = self.whole, None
        assert whole is not None, f"{self.metadata.key} was handed on before"
        return whole


def to_cache_entry(hpa: HorizontalPodAutoscaler) -> HpaCacheEntry:
    """Return an HPA for the cache."""
    meta = hpa.metadata
    slim = SlimMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        owner_references=meta.owner_references,
    )
    return HpaCacheEntry(slim, hpa)


class SlimSpec(Wire):
    """The scale of a workload as its spec has it."""

    replicas: int | None = None
    selector: LabelSelector | None = None


class SlimStatus(Wire):
    """The scale of a workload as its status has it; a DaemonSet counts nodes instead."""

    replicas: int = 0
    desired_number_scheduled: int = 0


class SlimWorkload(Wire):
    """A Deployment, ReplicaSet or StatefulSet without its template."""

    metadata: SlimMeta = SlimMeta()
    spec: SlimSpec = SlimSpec()
    status: SlimStatus = SlimStatus()


class SlimControllerSpec(Wire):
    """The scale of a ReplicationController, whose selector is a plain map."""

    replicas: int | None = None
    selector: dict[str, str] = msgspec.field(default_factory=dict)


class SlimController(Wire):
    """A ReplicationController without its template."""

    metadata: SlimMeta = SlimMeta()
    spec: SlimControllerSpec = SlimControllerSpec()
    status: SlimStatus = SlimStatus()


CACHED_TARGETS: dict[tuple[str, str], Resource[Any]] = {
    ("apps", "Deployment"): DEPLOYMENTS.into(SlimWorkload),
    ("apps", "ReplicaSet"): REPLICA_SETS.into(SlimWorkload),
    ("apps", "StatefulSet"): STATEFUL_SETS.into(SlimWorkload),
    ("", "ReplicationController"): REPLICATION_CONTROLLERS.into(SlimController),
}
"""Kinds whose scale we know from a watch, so that no GET is needed."""


RIVAL = "kube-controller-manager"
LATELY = timedelta(minutes=5)


class RivalControllerError(Exception):
    """The cluster's own HPA controller acts on the same objects; the message says what to do."""


async def ensure_hpa_controller_is_off(client: Client, namespaces: Sequence[str], now: datetime) -> None:
    """Raise if kube-controller-manager wrote to an HPA of these namespaces lately; none means all.

    A list that fails raises its ClusterError: without it nothing is known about a rival.
    """
    for namespace in namespaces or ("",):
        listed = await client.list(NATIVE_HPAS.untyped(), ListOptions(namespace or None))
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
