"""Reads and writes checkpoint objects.

Two VPAs may have a checkpoint of one name. Every write tests the spec first, so that no checkpoint overwrites another owner's.
"""

import asyncio
import itertools
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from trimtab.cluster import errors
from trimtab.cluster.cache.parts import list_part
from trimtab.cluster.client import Client, PatchType, Preconditions
from trimtab.cluster.resource import Resource
from trimtab.model.core.meta import NamespacedName
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint as Checkpoint
from trimtab.operator.vertical.kinds import OWN, VpaKind, kind_of
from trimtab.operator.vertical.recommender.checkpoint_objects import CheckpointOptions, owner_vpa
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates

log = logging.getLogger(__name__)


@dataclass
class WriteReport:
    """The outcome of writing checkpoints."""

    is_last: bool = False
    done: set[NamespacedName] = field(default_factory=set)
    """VPAs with a checkpoint that was written or is unchanged."""
    undone: set[NamespacedName] = field(default_factory=set)
    """VPAs with a checkpoint that could not be written."""
    failed: dict[str, str] = field(default_factory=dict)
    collisions: dict[NamespacedName, str] = field(default_factory=dict)
    """What to do about a VPA whose checkpoint name another owner has."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The last attempt to write a checkpoint."""

    vpa: NamespacedName
    at: float
    content: int | None
    """A digest of the checkpoint as last stored, to skip equal writes."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """A checkpoint on the server."""

    has_annotations: bool
    preconditions: Preconditions

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        """Return what the next write depends on."""
        meta = checkpoint.metadata
        return cls(bool(meta.annotations), Preconditions(resource_version=meta.resource_version or None))


class CheckpointStore:
    """Accesses the checkpoint objects of the watched namespaces."""

    def __init__(
        self, client: Client, states: ShardedClusterStates, options: CheckpointOptions | None = None
    ) -> None:
        self._clock = client.clock
        self._client = client
        self._states = states
        self._options = options or CheckpointOptions()
        self._written: dict[str, _Written] = {}
        """The last write of each checkpoint of our VPAs, by key."""
        self._present: dict[str, _Stored] = {}
        """The existing checkpoints as last read or written, by key."""
        self.refused: dict[str, str] = {}
        """Why the server refused the last read, by namespace."""

    @property
    def may_write(self) -> bool:
        """Return whether checkpoints may be written. A dry run writes none."""
        return not self._client.is_dry_run

    async def read(self, vpas: Collection[NamespacedName]) -> dict[NamespacedName, list[Checkpoint]]:
        """Read the checkpoints of some VPAs, or raise ClusterError if a list fails.

        Other parts of the share are not listed, and a watched namespace that may not be listed is noted in `refused`: one
        that was deleted with its rights stops no other.
        """
        wanted = frozenset(vpas)
        share = self._options.share
        homes = {share.part_of(vpa.namespace) for vpa in wanted}
        listed: list[Checkpoint] = []
        self.refused = {}
        kinds = dict.fromkeys(map(self._kind_of, wanted))
        parts = [part for name, part in share.parts.items() if name in homes]
        for kind, part in itertools.product(kinds, parts):
            try:
                found = await list_part(self._client, kind.checkpoints, part)
                # An own VPA and a native one of one name have checkpoints of one name.
                listed += [item for item in found if self._kind_of(owner_vpa(item)) is kind]
            except errors.Forbidden as error:
                if not part.namespace:
                    raise
                self.refused[part.namespace] = str(error)
        self._forget_present(homes)
        self._present |= {item.metadata.key: _Stored.of(item) for item in listed}
        stored: dict[NamespacedName, list[Checkpoint]] = {}
        for checkpoint in listed:
            owner = owner_vpa(checkpoint)
            if owner in wanted:
                stored.setdefault(owner, []).append(checkpoint)
                # Another replica may have written it since.
                self._written.pop(checkpoint.metadata.key, None)
        return stored

    def _kind_of(self, name: NamespacedName) -> VpaKind:
        state = self._states.vpa(name)
        return kind_of(state.vpa.api_version) if state is not None else OWN

    def keep(self, vpas: Collection[NamespacedName]) -> None:
        """Drop what is kept of the checkpoints of all other VPAs."""
        for key in [key for key, written in self._written.items() if written.vpa not in vpas]:
            del self._written[key]
            self._present.pop(key, None)

    def forget(self, key: str) -> None:
        """Drop a checkpoint that was deleted, so that the next write creates it."""
        self._present.pop(key, None)

    def _forget_present(self, listed: Collection[str]) -> None:
        """Drop the checkpoints of parts that were listed again, or are no longer watched."""
        share = self._options.share
        kept = share.parts.keys() - set(listed)
        self._present = {
            key: stored
            for key, stored in self._present.items()
            if share.part_of(key.partition("/")[0]) in kept
        }

    async def write(
        self, checkpoints: Iterable[Checkpoint], deadline_seconds: float, *, is_last: bool = False
    ) -> WriteReport:
        """Write checkpoints until the deadline, the oldest first.

        `is_last` allows writes for a shard that is being handed over.
        """
        report = WriteReport(is_last=is_last)
        until = self._clock.monotonic() + deadline_seconds
        waiting = iter(sorted(checkpoints, key=self._last_written))

        async def work() -> None:
            for checkpoint in waiting:
                await self._write_change(checkpoint, report)
                vpa = owner_vpa(checkpoint)
                (report.undone if checkpoint.metadata.key in report.failed else report.done).add(vpa)
                if self._clock.monotonic() >= until:
                    return  # after the deadline; every worker writes at least one checkpoint

        await asyncio.gather(*(work() for _ in range(self._options.workers)))
        return report

    def _last_written(self, checkpoint: Checkpoint) -> tuple[float, str]:
        key = checkpoint.metadata.key
        written = self._written.get(key)
        return written.at if written else float("-inf"), key

    async def _write_change(self, checkpoint: Checkpoint, report: WriteReport) -> None:
        key = checkpoint.metadata.key
        # Memory windows are left out: they change only with samples, and every sample changes the histogram.
        content = hash(wire.encode(msgspec.structs.replace(checkpoint.status, last_update_time=None)))
        before = self._written.get(key)
        stored = before.content if before else None
        if stored != content:
            await self._write(checkpoint, report)
            stored = stored if key in report.failed else content
        self._written[key] = _Written(owner_vpa(checkpoint), self._clock.monotonic(), stored)

    async def _write(self, checkpoint: Checkpoint, report: WriteReport) -> None:
        meta = checkpoint.metadata
        try:
            with self._states.writing(owner_vpa(checkpoint), is_last=report.is_last) as client:
                try:
                    self._present[meta.key] = await self._store(client, checkpoint)
                except errors.Conflict:
                    # A user changed it. Another replica cannot have: then the fence stops the second try.
                    self._present.pop(meta.key, None)
                    stored = await client.get(_resource(checkpoint), meta.name, meta.namespace)
                    self._present[meta.key] = _Stored.of(stored)
                    self._present[meta.key] = await self._store(client, checkpoint)
        except errors.Invalid as error:
            await self._explain_refusal(checkpoint, error, report)
        except errors.Fenced as error:
            report.failed[meta.key] = str(error)  # another replica has the VPA now, and saves its history
        except errors.ClusterError as error:
            report.failed[meta.key] = str(error)
            log.warning("checkpoint %s is not written, the last good one stays: %s", meta.key, error)

    async def _store(self, client: Client, checkpoint: Checkpoint) -> "_Stored":
        meta, body, resource = checkpoint.metadata, wire.to_builtins(checkpoint), _resource(checkpoint)
        known = self._present.get(meta.key)
        if known is None:
            created = await _create(client, checkpoint, body)
            if created is not None:
                return created
            known = _Stored.of(await client.get(resource, meta.name, meta.namespace))
        operations = [
            {"op": "test", "path": "/spec", "value": body["spec"]},
            {"op": "add", "path": "/status", "value": body["status"]},
            *(_annotate(meta.annotations) if known.has_annotations else ()),
        ]
        try:
            written = await client.patch(
                resource,
                meta.name,
                meta.namespace,
                operations,
                how=PatchType.JSON,
                preconditions=known.preconditions,
            )
            if meta.annotations and not known.has_annotations:
                # JSON patch cannot add to a map that may be absent; a merge patch keeps annotations of others.
                notes = {"metadata": {"annotations": meta.annotations}}
                same = _Stored.of(written).preconditions
                written = await client.patch(resource, meta.name, meta.namespace, notes, preconditions=same)
        except errors.NotFound:
            return await _create(client, checkpoint, body) or known
        return _Stored.of(written)

    async def _explain_refusal(
        self, checkpoint: Checkpoint, error: errors.Invalid, report: WriteReport
    ) -> None:
        meta, spec = checkpoint.metadata, checkpoint.spec
        report.failed[meta.key] = str(error)
        try:
            stored = await self._client.get(_resource(checkpoint), meta.name, meta.namespace)
        except errors.ClusterError:
            return
        self._present[meta.key] = _Stored.of(stored)
        other = stored.spec
        if other != spec:
            report.collisions[owner_vpa(checkpoint)] = (
                f"checkpoint {meta.name} of container {spec.container_name!r} cannot be saved: the name belongs to "
                f"container {other.container_name!r} of VPA {other.vpa_object_name!r}; rename one of the VPAs"
            )


def _resource(checkpoint: Checkpoint) -> Resource[Checkpoint]:
    return kind_of(checkpoint.api_version).checkpoints


async def _create(client: Client, checkpoint: Checkpoint, body: dict[str, Any]) -> _Stored | None:
    """Create a checkpoint and return it, or None if the name is taken."""
    resource = _resource(checkpoint)
    named = {"apiVersion": resource.api_version, "kind": resource.kind}
    try:
        return _Stored.of(await client.create(resource, body | named, checkpoint.metadata.namespace))
    except errors.AlreadyExists:
        return None


def _annotate(annotations: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {"op": "add", "path": f"/metadata/annotations/{name.replace('/', '~1')}", "value": text}
        for name, text in annotations.items()
    ]
