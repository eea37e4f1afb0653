"""The state that the operator keeps of one HPA between reconciles.

The stored copy of the memory is always as the newest version of the object has it. `own` is valid in the epoch in which it was
made. The first decision of an epoch starts from what the stored copy is worth. Under the rules of Kubernetes nothing is stored.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf
from typing import overload
from zlib import crc32

import msgspec

from trimtab.cluster.leases.fence import Epoch
from trimtab.cluster.resource import Resource
from trimtab.decide.horizontal import memory as memories
from trimtab.decide.horizontal.memory import EMPTY, Memory, Owner, extend, owner_of
from trimtab.decide.horizontal.observation.owners import OwnerLookup
from trimtab.decide.horizontal.observation.samples import FetchFailure, MetricSamples
from trimtab.decide.horizontal.plugin_calls import names_plugins
from trimtab.decide.horizontal.records.compact import PackedRecord, pack, unpack
from trimtab.decide.horizontal.records.record import Fate, Record, decide_and_complete
from trimtab.decide.horizontal.standing import Standing, find_standing, find_standing_after_write, next_edge
from trimtab.metrics.queries import Query
from trimtab.model.hpa.dry_run import is_dry_run
from trimtab.model.hpa.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec
from trimtab.operator.horizontal.queries import MetricQueries


@dataclass(slots=True, eq=False)
class HpaMemory:
    """The stored memory and the own memory of one HPA."""

    own: Memory = EMPTY
    """The memory that the next decision in `epoch` starts from."""
    epoch: Epoch | None = None
    """The epoch of `own`. None before the first decision and when `own` must not be used again."""
    is_confirmed: bool = False
    """Whether the object was read in `epoch`. The watch may lack the last write of the last holder."""
    is_first_write: bool = True
    """Whether the stored memory is the first of `epoch`, which all HPAs write in one sync."""
    _is_untried: bool = True
    """Whether no decision of `epoch` was kept."""
    _is_in_doubt: bool = False
    """Whether the last scale may or may not have been written."""
    _text: str = ""
    _stored: Memory | None = EMPTY
    """What `_text` says, once it was parsed."""

    def load(self, epoch: Epoch, owner: Owner, replicas: int | None, quiet: float | None) -> bool:
        """Load `own` for an epoch and the current replicas, and return whether it changed.

        Without `quiet` nothing outlives an epoch, as upstream has it.
        """
        if self.epoch is not epoch:
            stored = EMPTY if quiet is None else self.read_stored()
            self.is_confirmed, self.is_first_write, self._is_untried = not epoch.follows, True, True
            if quiet is None:
                self.own, self.epoch = stored, epoch
            # An HPA whose target was edited starts afresh in its decision, which sees the old owner.
            elif replicas is None or (stored.owner != owner and stored.owner.uid == owner.uid):
                self.own, self.epoch = stored, None if replicas is None else epoch
            else:
                self.own, self.epoch = memories.resume(stored, owner, replicas, epoch.now(), quiet), epoch
            return True
        if self._is_in_doubt and replicas is not None and quiet is not None:
            self.own, self._is_in_doubt = memories.found(self.own, replicas, epoch.now()), False
            return True
        return False

    @property
    def is_first_decision(self) -> bool:
        """Return whether no decision of the epoch was kept yet."""
        return self._is_untried

    def reload(self) -> None:
        """Start the epoch again from the stored memory, unless a decision in it was already written."""
        if self._is_untried:
            self.epoch = None

    def contradicts(self, epoch: Epoch, replicas: int) -> bool:
        """Return whether a new epoch would start with other replicas than the last leader left."""
        return self.epoch is not epoch and self.read_stored().replicas not in (None, replicas)

    def read_stored(self) -> Memory:
        """Return the memory that the newest version of the object carries."""
        if self._stored is None:
            self._stored = memories.loads(self._text)
        return self._stored

    def set_stored(self, text: str) -> bool:
        """Replace the stored memory with what an event, a write or a read shows. Return whether it differs.

        `kubectl replace` drops the annotation of a native HPA. Then the next decision stores it again.
        """
        if text == self._text:
            return False
        self._text, self._stored = text, None
        return True

    def mark_confirmed(self) -> None:
        """Note that the object was read in this epoch."""
        self.is_confirmed = True

    def mark_written(self, memory: Memory, text: str) -> None:
        """Note that a memory was written with this text."""
        self.is_first_write, self.is_confirmed = self._is_untried, True
        if text and self._text == text:
            self._stored = memory  # shares its parts with `own`

    def preview(self, now: float) -> Memory:
        """Return the memory that the living operator has now, as far as its last status shows."""
        return memories.extend(self.read_stored(), now)

    def keep(self, memory: Memory) -> None:
        """Keep the memory of a decision that was written."""
        self.own, self._is_untried = memory, False

    def keep_in_doubt(self, memory: Memory) -> None:
        """Keep the memory of a decision whose scale may have been written.

        The next read of the replicas shows whether it was.
        """
        self.keep(memory)
        self._is_in_doubt = True


class RecordHistory(Sequence[Record]):
    """The last records of one HPA, oldest first, up to a capacity."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        # Not a deque: an empty one takes 760 bytes, and there is one for every HPA.
        self._packed: list[PackedRecord] = []
        self._last: Record | None = None

    def append(self, record: Record) -> None:
        """Add the newest record."""
        if self._last is not None and self._capacity > 1:
            self._packed.append(pack(self._last, self._packed[-1] if self._packed else None))
            if len(self._packed) >= self._capacity:
                del self._packed[0]
        self._last = record if self._capacity else None

    def newer_than(self, moment: float) -> list[Record]:
        """Return the records of decisions after this time, oldest first."""
        newer = [unpack(packed) for packed in self._packed if packed.now > moment]
        if self._last is not None and self._last.decision.now > moment:
            newer.append(self._last)
        return newer

    def __len__(self) -> int:
        return len(self._packed) + (self._last is not None)

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...

    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        """Return a record, or several."""
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self)))]
        position = place + len(self) if place < 0 else place
        if not 0 <= position < len(self):
            raise IndexError(place)
        if position < len(self._packed):
            return unpack(self._packed[position])
        assert self._last is not None
        return self._last


FIRST_STATUS_RETRY = 1.0
LONGEST_STATUS_RETRY = 30.0
"""Seconds before a status that the server failed to write is tried again. They double with each failure."""


class StatusWrite(Enum):
    """What became of the status of a decision."""

    NOT_DUE = auto()
    DONE = auto()
    OWED = auto()
    """It failed, or waits for the sync although it is due."""


@dataclass(slots=True, eq=False)
class ReconcileRequest:
    """One reconcile of one HPA, from the first read to the last write.

    An HPA has at most one. The task that holds it finishes it, however the task ends.
    """

    hpa_state: "HpaState"
    started_at: float
    """When it started, on the monotonic clock."""
    queries: MetricQueries | None = None
    """The metric queries that it waits for. None until they are known."""
    task: asyncio.Task[None] | None = None
    """The task that holds it."""
    conflicts: int = 0
    """How often it started over because an object had changed meanwhile."""
    is_sync: bool = False
    """Whether it is the regular one, and no answer to a change."""
    is_look: bool = False
    """Whether it only looks at usage between two syncs. A status that it would write waits for the sync."""
    owners: dict[str, OwnerLookup] = field(default_factory=dict)
    """The owners of pods that were read for it."""

    def finish(self, now: float) -> None:
        """Let the next sync reconcile the HPA again."""
        if self.hpa_state.request is self:
            self.hpa_state.request = None
            if self.is_sync:
                self.hpa_state.synced_at = now


@dataclass(slots=True, eq=False)
class HpaState:
    """One HPA with its memory, its last decisions and its next sync. Only its own methods change it."""

    resource: Resource[HorizontalPodAutoscaler]
    hpa: HorizontalPodAutoscaler
    """The newest known version, with defaults and without its memory."""
    memory: HpaMemory = field(default_factory=HpaMemory)
    records: RecordHistory = field(default_factory=lambda: RecordHistory(20))
    stored_reason: str = ""
    """The code of the stored reason."""
    problem: str = ""
    """Why no decision can be made on the stored spec. Empty if one can."""
    is_deleted: bool = False
    request: ReconcileRequest | None = None
    """The reconcile that is in progress."""
    queries: MetricQueries | None = None
    """The metric queries for the registered target. None until they are built."""
    _query_per_metric: tuple[HorizontalPodAutoscalerSpec, str, tuple[Query | FetchFailure, ...]] | None = None
    """The spec, the pod selector, and the query of each metric that they lead to."""
    standing: Standing | None = None
    """The last decision, if it holds until an input changes. `memory.own` is then what it left."""
    edge_at: float = inf
    """When a window or a rate of the last decision ends, on the monotonic clock. The HPA is due then."""
    _newer_samples: tuple[MetricSamples, ...] = ()
    """Samples with other values than those of the last decision, which leave the same."""
    scaled_at: float = -inf
    """When the scale was last written, on the monotonic clock."""
    next_sync_at: float = -inf
    """The time before which syncs skip the HPA because it was just scaled. -inf if it was not."""
    synced_at: float = -inf
    """When its last sync ended, on the monotonic clock."""
    status_failures: int = 0
    """How often in a row the server failed to write the status."""
    next_status_at: float = -inf
    """The time before which a failed status is not tried again, on the monotonic clock."""
    _logged: tuple[str, ...] = ()
    uid: str = field(init=False)
    key: str = field(init=False)
    """`namespace/name`."""
    is_native: bool = field(init=False)
    """Whether the object is of the group autoscaling."""
    names_plugins: bool = field(init=False)
    """Whether the spec names plug-ins, which are called before each decision."""
    phase: int = field(init=False)
    """A number that the HPAs of a namespace share, and that says when in the period they are due."""

    def __post_init__(self) -> None:
        # Each sync looks at these for every HPA, and they never change.
        meta = self.hpa.metadata
        self.uid, self.key = meta.uid, meta.key
        self.is_native = self.resource.group == "autoscaling"
        self.names_plugins = names_plugins(self.hpa.spec)
        self.phase = crc32(meta.namespace.encode())

    @property
    def is_busy(self) -> bool:
        """Return whether a reconcile is in progress."""
        return self.request is not None

    @property
    def is_dry_run(self) -> bool:
        """Return whether the object asks for a dry run."""
        return is_dry_run(self.hpa)

    def replace_hpa(self, hpa: HorizontalPodAutoscaler, problem: str) -> None:
        """Replace the object with a newer version, and what is wrong with its spec."""
        if hpa.spec is not self.hpa.spec:
            self.names_plugins = names_plugins(hpa.spec)
        self.hpa, self.problem = hpa, problem

    def mark_deleted(self) -> None:
        """Note that the object was deleted."""
        self.is_deleted = True

    def start_reconcile(
        self, now: float, *, is_sync: bool = False, is_look: bool = False
    ) -> ReconcileRequest:
        """Start a reconcile. None may be in progress."""
        if self.edge_at <= now:
            self.edge_at = inf  # the decision that follows sets the next
        self.request = ReconcileRequest(self, now, is_sync=is_sync, is_look=is_look)
        return self.request

    def query_per_metric(
        self, spec: HorizontalPodAutoscalerSpec, selector: str
    ) -> tuple[Query | FetchFailure, ...] | None:
        """Return the query of each metric, if it was kept for this spec and pod selector."""
        kept = self._query_per_metric
        return kept[2] if kept is not None and kept[0] is spec and kept[1] == selector else None

    def keep_query_per_metric(
        self, spec: HorizontalPodAutoscalerSpec, selector: str, queries: tuple[Query | FetchFailure, ...]
    ) -> None:
        """Keep the query of each metric, unless a query failed: its kind may be installed later."""
        is_final = not any(isinstance(query, FetchFailure) for query in queries)
        self._query_per_metric = (spec, selector, queries) if is_final else None

    def keep_queries(self, queries: MetricQueries | None) -> None:
        """Keep the queries for the registered target, or drop them."""
        self.queries = queries

    def load_memory(self, epoch: Epoch, replicas: int | None, quiet: float | None) -> None:
        """Load the memory for a decision. Without `quiet`, memories do not outlive an epoch."""
        if self.memory.load(epoch, owner_of(self.hpa), replicas, quiet):
            self.standing = None

    def update_stored_memory(self, stored: str) -> None:
        """Replace the stored memory with what a watch event carries."""
        if self.memory.set_stored(stored):
            self.standing = None

    def invalidate(self) -> None:
        """Drop the last decision, so that the next reconcile decides anew."""
        self.standing = None

    def extend_decision(self, now: float, samples: tuple[MetricSamples, ...]) -> Standing:
        """Leave everything as the last decision left it, only later, and return it.

        `samples` are shown from now on, or those of the decision if there are none.
        """
        assert self.standing is not None
        self.memory.own, self._newer_samples = extend(self.memory.own, now), samples
        return self.standing

    def newest_record(self) -> Record | None:
        """Return the last record, or what it would be with the newest samples while it holds. None if there is none."""
        if not self.records:
            return None
        last, own = self.records[-1], self.memory.own
        if self.standing is None or not self._newer_samples:
            return last
        seen = msgspec.structs.replace(last.observation, samples=self._newer_samples, memory=own)
        return decide_and_complete(seen, own.at, Fate(is_dry_run=last.is_dry_run, author=last.author))

    def record_decision(
        self,
        record: Record,
        monotonic: float,
        *,
        shown_until: float = -inf,
        status: StatusWrite = StatusWrite.NOT_DUE,
    ) -> None:
        """Keep what a decision leaves after it was written."""
        seen, decision = record.observation, record.decision
        self.memory.keep(decision.memory)
        self.records.append(record)
        if decision.action != "none":
            self.scaled_at = monotonic
        self._newer_samples, self.standing = (), None
        if status is StatusWrite.DONE:
            self.standing = find_standing_after_write(seen, decision, self.hpa, shown_until)
        elif status is StatusWrite.NOT_DUE:
            self.standing = find_standing(seen, decision, shown_until)
        if seen.rules.ours:
            self.edge_at = monotonic + next_edge(seen, decision) - decision.now

    def schedule_next(self, at: float = -inf) -> None:
        """Let syncs skip the HPA until that time."""
        self.next_sync_at = at

    def note_status_failure(self, now: float) -> None:
        """Let the next try wait, longer with each failure in a row."""
        delay = min(FIRST_STATUS_RETRY * 2**self.status_failures, LONGEST_STATUS_RETRY)
        self.status_failures, self.next_status_at = self.status_failures + 1, now + delay

    def note_status_written(self) -> None:
        """Let the next status be written at once."""
        self.status_failures, self.next_status_at = 0, -inf

    def new_warnings(self, *texts: str) -> tuple[str, ...]:
        """Return those of the warnings that differ from the last ones, and empty texts in the place of the others."""
        before, self._logged = self._logged or ("",) * len(texts), texts
        return tuple([text if text != old else "" for text, old in zip(texts, before, strict=True)])
