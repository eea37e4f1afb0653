"""Checkpoints in the cluster: read at start, written within the loop, removed when their VPA is gone.

Names are upstream's, `<vpa>-<container>`, and two pairs may share one. The spec tells whose a checkpoint is, so every
write tests the spec first: a history is never written over another's (fault F60).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from zlib import crc32

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import (
    Client,
    DeleteOptions,
    ListOptions,
    PatchType,
    Preconditions,
)
from trimtab.cluster.resource import Resource
from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint as Checkpoint
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpointSpec
from trimtab.operator.ownership import Ownership
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS

T = TypeVar("T")
log = logging.getLogger(__name__)
VPAKey = str
COLLECTING_SHARE = 0
"""Of several copies the one that holds this share removes what is left over: one list of everything is enough."""


class _LastSample(wire.Wire):
    last_sample_start: datetime | None = None


class OwnedCheckpoint(wire.Wire):
    """Of a checkpoint only whose it is, and how old."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VerticalPodAutoscalerCheckpointSpec = VerticalPodAutoscalerCheckpointSpec()
    status: _LastSample = _LastSample()

    @property
    def vpa(self) -> VPAKey:
        """Return the VPA that it belongs to, by `namespace/name`."""
        return _owner(self)


@dataclass
class WriteReport:
    """What came of writing checkpoints."""

    is_last: bool = False
    written: int = 0
    done: set[VPAKey] = field(default_factory=set)
    """VPAs of which a checkpoint was written, or found to be unchanged."""
    undone: set[VPAKey] = field(default_factory=set)
    """VPAs of which one could not be written."""
    failed: dict[str, str] = field(default_factory=dict)
    collisions: dict[VPAKey, str] = field(default_factory=dict)
    """Per VPA whose checkpoint name belongs to another's container: what to do."""


class Schedule:
    """When each VPA's history is saved: at once when it is new, then once per interval, each at a time of its own."""

    def __init__(self, clock: Clock, interval: float) -> None:
        self._clock = clock
        self._interval = interval
        self._due_at: dict[VPAKey, float] = {}

    def due(self, vpas: Iterable[VPAKey]) -> list[VPAKey]:
        """Return the VPAs whose turn it is."""
        now = self._clock.monotonic()
        return [vpa for vpa in vpas if self._due_at.get(vpa, now) <= now]

    def saved(self, vpas: Iterable[VPAKey]) -> None:
        """Take note that these were saved."""
        now = self._clock.monotonic()
        for vpa in vpas:
            # The first time they are all saved together; from then on each has its own place in the interval.
            is_first = vpa not in self._due_at
            share = 0.5 + crc32(vpa.encode()) / 2**33 if is_first else 1.0
            self._due_at[vpa] = now + self._interval * share

    def keep(self, vpas: Collection[VPAKey]) -> None:
        """Forget all others."""
        for vpa in [vpa for vpa in self._due_at if vpa not in vpas]:
            del self._due_at[vpa]


class CheckpointStore:
    """The only code that touches checkpoint objects; it reads no namespace besides the watched ones."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        ownership: Ownership,
        namespaces: Sequence[str] = (),
        workers: int = 10,
        *,
        compat: VpaCompat = DEFAULT,
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        self._ignored = ignored
        """Namespaces in which nothing is written, and so nothing deleted."""
        self._clock = clock
        self._needs_a_vpa = compat.orphans_need_a_vpa
        self._client = client
        self._ownership = ownership
        self._namespaces = tuple(namespaces)
        self._workers = workers
        self._written_at: dict[str, float] = {}
        self._content: dict[str, int] = {}
        """Per checkpoint a digest of what was last written, so that the same is not written again."""
        self._present: dict[str, bool] = {}
        """Checkpoints that are there, as far as we know, and whether they have annotations: the others are made."""
        self._orphans: set[str] = set()

    @property
    def may_write(self) -> bool:
        """Return whether histories may be saved at all: a dry run saves none."""
        return not self._client.is_dry_run

    async def read(self, vpas: Collection[VPAKey]) -> dict[VPAKey, list[Checkpoint]]:
        """Read the checkpoints of some VPAs; raises if the list is not complete."""
        listed = await self._list(CHECKPOINTS)
        self._present = {found.metadata.key: bool(found.metadata.annotations) for found in listed}
        wanted = frozenset(vpas)
        stored: dict[VPAKey, list[Checkpoint]] = {}
        for found in listed:
            owner = _owner(found)
            if owner in wanted:
                stored.setdefault(owner, []).append(found)
                self._content.pop(found.metadata.key, None)  # another may have written it since we did
        return stored

    async def _list(self, resource: Resource[T]) -> list[T]:
        """List the checkpoints of the watched namespaces."""
        listings = [
            await self._client.list(resource, ListOptions(namespace or None))
            for namespace in self._namespaces or ("",)
        ]
        return [item for listing in listings for item in listing.items]

    async def write(
        self, checkpoints: Iterable[Checkpoint], deadline_seconds: float, *, is_last: bool = False
    ) -> WriteReport:
        """Write as many checkpoints as fit into the time, those not written for longest first.

        The last ones before a share is handed over are written while decisions about it are closed already.
        """
        report = WriteReport(is_last=is_last)
        until = self._clock.monotonic() + deadline_seconds
        waiting = iter(sorted(checkpoints, key=self._turn))

        async def work() -> None:
            for checkpoint in waiting:
                await self._write_change(checkpoint, report)
                vpa = _owner(checkpoint)
                (report.undone if checkpoint.metadata.key in report.failed else report.done).add(vpa)
                self._written_at[checkpoint.metadata.key] = self._clock.monotonic()
                if self._clock.monotonic() >= until:
                    return  # every worker writes at least one, however late it is

        await asyncio.gather(*(work() for _ in range(self._workers)))
        return report

    def _turn(self, checkpoint: Checkpoint) -> tuple[float, str]:
        key = checkpoint.metadata.key
        return self._written_at.get(key, float("-inf")), key

    async def _write_change(self, checkpoint: Checkpoint, report: WriteReport) -> None:
        key = checkpoint.metadata.key
        # Windows change only with samples, and every sample changes the history.
        content = hash(wire.encode(msgspec.structs.replace(checkpoint.status, last_update_time=None)))
        if self._content.get(key) == content:
            return
        await self._write(checkpoint, report)
        if key not in report.failed:
            self._content[key] = content

    async def _write(self, checkpoint: Checkpoint, report: WriteReport) -> None:
        meta = checkpoint.metadata
        share = self._ownership.share(_owner(checkpoint))
        try:
            with self._ownership.writing(share, is_last=report.is_last) as client:
                await self._store(client, checkpoint)
            self._present[meta.key] = self._present.get(meta.key, False) or bool(meta.annotations)
            report.written += 1
        except errors.Invalid as error:
            await self._explain_refusal(checkpoint, error, report)
        except errors.Fenced as error:
            report.failed[meta.key] = str(error)  # whoever has the VPA now saves its history
        except errors.ClusterError as error:
            report.failed[meta.key] = str(error)
            log.warning("checkpoint %s is not written, the last good one stays: %s", meta.key, error)

    async def _store(self, client: Client, checkpoint: Checkpoint) -> None:
        meta, body = checkpoint.metadata, wire.to_builtins(checkpoint)
        has_annotations = self._present.get(meta.key, False)
        operations = [
            {"op": "test", "path": "/spec", "value": body["spec"]},
            {"op": "add", "path": "/status", "value": body["status"]},
            *(_annotate(meta.annotations) if has_annotations else ()),
        ]
        if meta.key not in self._present and await _create(client, checkpoint, body):
            return
        try:
            await client.patch(CHECKPOINTS, meta.name, meta.namespace, operations, how=PatchType.JSON)
            if meta.annotations and not has_annotations:
                # None can be added to a map that may not be there, and the whole map may be another's by now.
                notes = {"metadata": {"annotations": meta.annotations}}
                await client.patch(CHECKPOINTS, meta.name, meta.namespace, notes)
        except errors.NotFound:
            await _create(client, checkpoint, body)

    async def _explain_refusal(
        self, checkpoint: Checkpoint, error: errors.Invalid, report: WriteReport
    ) -> None:
        meta, spec = checkpoint.metadata, checkpoint.spec
        report.failed[meta.key] = str(error)
        try:
            found = await self._client.get(CHECKPOINTS, meta.name, meta.namespace)
        except errors.ClusterError:
            return
        self._present[meta.key] = bool(found.metadata.annotations)
        other = found.spec
        if other != spec:
            report.collisions[f"{meta.namespace}/{spec.vpa_object_name}"] = (
                f"checkpoint {meta.name} of container {spec.container_name!r} cannot be saved: the name belongs to "
                f"container {other.container_name!r} of VPA {other.vpa_object_name!r}; rename one of the VPAs"
            )

    async def collect_orphans(
        self, vpas: frozenset[VPAKey], is_left_over: Callable[[OwnedCheckpoint], bool] = lambda _: False
    ) -> list[str]:
        """Delete checkpoints whose VPA was missing twice in a row; by default never when no VPA is known at all.

        So are those that are left over, twice in a row, by a container that was renamed or taken away.

        An empty list is more often a mistake (a new CRD, a stale server) than the end of all VPAs, and a deleted
        history is gone for good. For the same reason the server is asked for the VPA itself before its history goes.
        """
        if (self._needs_a_vpa and not vpas) or self._client.is_dry_run:
            self._orphans = set()
            return []
        listed = await self._list(CHECKPOINTS.into(OwnedCheckpoint))
        orphans = {
            found.metadata.uid: found
            for found in listed
            if found.metadata.namespace not in self._ignored
            and (found.vpa not in vpas or is_left_over(found))
        }
        doomed = [found for uid, found in orphans.items() if uid in self._orphans]
        self._orphans = set(orphans)
        return [
            found.metadata.key
            for found in doomed
            if (found.vpa in vpas or await self._is_gone(found)) and await self._delete(found)
        ]

    async def _is_gone(self, found: OwnedCheckpoint) -> bool:
        """Return whether the server says that the VPA of a checkpoint does not exist."""
        try:
            await self._client.get(VPAS, found.spec.vpa_object_name, found.metadata.namespace)
        except errors.NotFound:
            return True
        except (errors.ClusterError, ValueError) as error:
            log.warning("checkpoint %s is kept: its VPA cannot be read: %s", found.metadata.key, error)
        return False

    async def _delete(self, found: OwnedCheckpoint) -> bool:
        meta = found.metadata
        options = DeleteOptions(Preconditions(uid=meta.uid, resource_version=meta.resource_version))
        try:
            with self._ownership.writing(COLLECTING_SHARE) as client:
                await client.delete(CHECKPOINTS, meta.name, meta.namespace, options=options)
        except errors.ClusterError as error:
            log.warning("orphaned checkpoint %s is not deleted: %s", meta.key, error)
            return False
        log.info("deleted checkpoint %s: its VPA or container is gone", meta.key)
        return True


async def _create(client: Client, checkpoint: Checkpoint, body: dict[str, Any]) -> bool:
    """Make a checkpoint; return False if there is one of that name."""
    named = {"apiVersion": CHECKPOINTS.api_version, "kind": CHECKPOINTS.kind}
    try:
        await client.create(CHECKPOINTS, body | named, checkpoint.metadata.namespace)
    except errors.AlreadyExists:
        return False
    return True


def _annotate(annotations: Mapping[str, str]) -> list[dict[str, Any]]:
    """Set annotations beside those that others set."""
    return [
        {"op": "add", "path": f"/metadata/annotations/{name.replace('/', '~1')}", "value": text}
        for name, text in annotations.items()
    ]


def _owner(checkpoint: Checkpoint | OwnedCheckpoint) -> VPAKey:
    return f"{checkpoint.metadata.namespace}/{checkpoint.spec.vpa_object_name}"
