"""The kinds that the HPA controller watches, each reduced to the fields that it reads."""

from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from trimtab.cluster import errors
from trimtab.cluster.access_reviews import ResourceAttributes, may_self
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.resource import (
    DEPLOYMENTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from trimtab.model.core.meta import ObjectMeta, OwnerReference
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.json import wire
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
INSTALL_CRDS: Final = "trimtab install --only=crds | kubectl apply --server-side -f -"
"""What to type where the cluster does not serve a kind of ours."""


class SlimMeta(Wire):
    """Metadata without annotations, which may be large and are not read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class UndecodedHpa(Wire):
    """An HPA of which only the metadata is decoded.

    Most watch events show a version that we wrote ourselves, and need no more.
    """

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")

    def decode(self) -> HorizontalPodAutoscaler:
        """Return the whole HPA. Raise WireError if it does not fit its type."""
        text = b'{"spec":' + bytes(self.spec) + b',"status":' + bytes(self.status) + b"}"
        return msgspec.structs.replace(wire.decode(text, HorizontalPodAutoscaler), metadata=self.metadata)


class HpaCacheEntry(msgspec.Struct, gc=False):
    """Cache entry that keeps only metadata, because `HpaCache` keeps the object (5 KB)."""

    metadata: SlimMeta
    whole: HorizontalPodAutoscaler | None
    """The object until `HpaCache` takes it. None if `HpaCache` had this version already."""

    def take(self) -> HorizontalPodAutoscaler | None:
        """Return the object and drop it."""
        whole, self.whole = self.whole, None
        return whole


def to_cache_entry(hpa: HorizontalPodAutoscaler) -> HpaCacheEntry:
    """Return the cache entry of an HPA."""
    return HpaCacheEntry(_slim(hpa.metadata), hpa)


def known_cache_entry(meta: ObjectMeta) -> HpaCacheEntry:
    """Return the cache entry of a version that `HpaCache` has."""
    return HpaCacheEntry(_slim(meta), None)


def _slim(meta: ObjectMeta) -> SlimMeta:
    return SlimMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        owner_references=meta.owner_references,
    )


class SlimSpec(Wire):
    """The fields of a workload's spec that its scale shows."""

    replicas: int | None = None
    selector: LabelSelector | None = None


class SlimStatus(Wire):
    """The fields of a workload's status that count its pods."""

    replicas: int = 0
    desired_number_scheduled: int = 0


class SlimWorkload(Wire):
    """A Deployment, ReplicaSet or StatefulSet without its template."""

    metadata: SlimMeta = SlimMeta()
    spec: SlimSpec = SlimSpec()
    status: SlimStatus = SlimStatus()


class SlimControllerSpec(Wire):
    """The spec of a ReplicationController, whose selector is a plain map."""

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
"""Kinds whose scale is computed from a watched object, without a GET."""

KUBE_CONTROLLER_MANAGER = "kube-controller-manager"
RECENT = timedelta(minutes=5)


class FieldManager(Wire):
    """A client that wrote some fields of an object, and when."""

    manager: str = ""
    time: str = ""


class WrittenMeta(Wire):
    """The metadata that names the writers of an object."""

    name: str = ""
    namespace: str = ""
    managed_fields: tuple[FieldManager, ...] = ()


class WrittenHpa(Wire):
    """An HPA without all but its writers. To decode a whole one takes five times as long."""

    metadata: WrittenMeta = WrittenMeta()


class RivalControllerError(Exception):
    """kube-controller-manager reconciles the same HPAs. The message says how to stop it."""


async def ensure_hpa_controller_is_off(
    client: Client, namespaces: Sequence[str], now: datetime
) -> dict[str, str]:
    """Raise if kube-controller-manager wrote to an HPA of these namespaces recently.

    No namespaces means all. Return the server's answer for each namespace that it refuses to list: a deleted namespace
    loses its RoleBindings. If it refuses all of them, or if a list fails otherwise, the ClusterError is raised.
    """
    refused: dict[str, str] = {}
    asked = namespaces or ("",)
    for namespace in asked:
        try:
            listed = await client.list(NATIVE_HPAS.into(WrittenHpa), ListOptions(namespace or None))
        except (errors.Forbidden, errors.NotFound) as error:
            refused[namespace] = str(error)
            if len(refused) == len(asked):
                raise
            continue
        for hpa in listed.items:
            _ensure_not_written(hpa.metadata, now)
    return refused


def _ensure_not_written(meta: WrittenMeta, now: datetime) -> None:
    times = [
        parse_time(written.time)
        for written in meta.managed_fields
        if written.manager == KUBE_CONTROLLER_MANAGER and written.time
    ]
    written = max(times, default=None)
    if written is not None and now - written < RECENT:
        raise RivalControllerError(
            f"kube-controller-manager's HPA controller wrote to {meta.namespace}/{meta.name} at "
            f"{written:%H:%M:%S} UTC: two controllers on one object fight. Start kube-controller-manager with "
            "--controllers=*,-horizontal-pod-autoscaler-controller, or run without --native-hpas and move "
            "your HPAs to autoscaling.trimtab.dev/v2"
        )


async def find_native_hpa(client: Client, namespaces: Sequence[str]) -> str:
    """Return the key of a native HPA in these namespaces, or "" if there is none that may be listed."""
    for namespace in namespaces or ("",):
        attributes = ResourceAttributes("list", NATIVE_HPAS.group, NATIVE_HPAS.plural, namespace)
        if not await may_self(client, attributes):
            continue  # an installation without native HPAs has no rights over them
        async with aclosing(
            client.pages(NATIVE_HPAS.into(UndecodedHpa), ListOptions(namespace or None), limit=1)
        ) as pages:
            async for page in pages:
                if page.items:
                    return page.items[0].metadata.key
                break
    return ""
