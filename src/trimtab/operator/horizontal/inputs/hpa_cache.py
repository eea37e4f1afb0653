"""Every HPA that this process acts on, with what it remembers and what it last decided."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeGuard

import msgspec

from trimtab.cluster.cache.store import is_older
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.resource import Resource
from trimtab.decide.horizontal import FetchFailure, Memory, Record
from trimtab.decide.horizontal import memory as memories
from trimtab.decide.horizontal.records.unchanged import Steady
from trimtab.decide.horizontal.records.usage_bands import Band
from trimtab.metrics.queries import Query
from trimtab.model import hpa as hpa_rules
from trimtab.model.hpa import metric_annotations, selection_strategy
from trimtab.model.hpa.dry_run import is_dry_run
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    HPAScalingRules,
)
from trimtab.model.json import wire
from trimtab.operator.horizontal.inputs.hpa_memory import HpaMemory
from trimtab.operator.horizontal.inputs.hpa_state import (
    MEMORY_ANNOTATION,
    RecordHistory,
    reuse_unchanged_metadata,
    reuse_unchanged_status,
)
from trimtab.operator.horizontal.inputs.kinds import HpaCacheEntry
from trimtab.operator.horizontal.inputs.metric_queries import MetricQueries
from trimtab.operator.horizontal.inputs.turn import Turn

_FIELDS = tuple(
    (name, said)
    for name, said in zip(
        HorizontalPodAutoscalerStatus.__struct_fields__,
        HorizontalPodAutoscalerStatus.__struct_encode_fields__,
        strict=True,
    )
    if name != "memory"
)
"""The fields of a status, by our name and the API's; the memory is written on its own."""


@dataclass(slots=True, eq=False)
class HpaState:
    """One HPA as the loop knows it."""

    resource: Resource[HorizontalPodAutoscaler]
    hpa: HorizontalPodAutoscaler
    """The newest version we know, defaulted, without its memory."""
    memory: HpaMemory = field(default_factory=HpaMemory)
    turn: Turn | None = None
    """Its turn in a sync, from the first look to the last write; whoever holds it ends it."""
    is_gone: bool = False
    ignored: str = ""
    """The fields without effect that were logged last."""
    misspelt: str = ""
    """The annotation of unknown value that was logged last."""
    problem: str = ""
    """Why the stored spec cannot be decided on; empty when it can."""
    questions: tuple[Query | FetchFailure, ...] = ()
    questions_for: tuple[HorizontalPodAutoscalerSpec, str] | None = None
    """The spec and the pod selector that `questions` were made for."""
    plan: MetricQueries | None = None
    """What to ask for, as long as neither the object nor its target changed."""
    steady: Steady | None = None
    """The last decision, if it holds until something changes; `memory.own` is then what it left."""
    scaled_at: float = -inf
    """When the scale was last written, on the monotonic clock."""
    not_before: float = -inf
    """Until when it is left out of rounds because it was scaled between two of them; -inf if it was not."""
    bands: tuple[Band, ...] = ()
    """Between which usage nothing has to be done, by the record `bands_for`; empty if that takes a decision."""
    bands_for: Record | None = None
    records: RecordHistory = field(default_factory=lambda: RecordHistory(20))

    @property
    def uid(self) -> str:
        """Return the HPA's uid; everything that is remembered hangs on it."""
        return self.hpa.metadata.uid

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return self.hpa.metadata.key

    @property
    def is_busy(self) -> bool:
        """Return whether a sync is still dealing with it."""
        return self.turn is not None

    @property
    def is_native(self) -> bool:
        """Return whether this is an object of autoscaling/v2 itself."""
        return self.resource.group == "autoscaling"

    @property
    def is_dry_run(self) -> bool:
        """Return whether the object asks not to be acted upon."""
        return is_dry_run(self.hpa)


class HpaCache:
    """The book of HPAs, kept by the watches and by our own writes."""

    def __init__(
        self,
        *,
        records: int,
        on_change: Callable[[HpaState], None],
        on_delete: Callable[[HpaState], None],
    ) -> None:
        self._book: dict[str, HpaState] = {}
        self._records = records
        self._on_change = on_change
        self._on_delete = on_delete

    def __iter__(self) -> Iterator[HpaState]:
        yield from self._book.values()

    def __len__(self) -> int:
        return len(self._book)

    def get(self, uid: str) -> HpaState | None:
        """Return an autoscaler by uid."""
        return self._book.get(uid)

    def named(self, namespace: str, name: str) -> HpaState | None:
        """Return an autoscaler by name; of an own and a native one of the same name, the own."""
        key = f"{namespace}/{name}"
        found = [one for one in self._book.values() if one.key == key]
        return min(found, key=lambda one: one.is_native, default=None)

    def follow(self, resource: Resource[HorizontalPodAutoscaler]) -> Callable[[Delta[HpaCacheEntry]], None]:
        """Return the subscriber that keeps the book for one kind of HPA."""

        def take(delta: Delta[HpaCacheEntry]) -> None:
            if delta.new is not None:
                self._put(resource, delta.new.take())
            elif delta.old is not None:
                self._drop(delta.old.metadata.uid)

        return take

    def note_written(self, autoscaler: HpaState, written: HorizontalPodAutoscaler) -> None:
        """Take in the object as our own write left it, before the watch tells us."""
        if is_older(autoscaler.hpa.metadata.resource_version, written.metadata.resource_version):
            autoscaler.memory.stored = stored_memory(written)
            autoscaler.hpa = self._known(autoscaler, written)

    def note_told(self, autoscaler: HpaState, status: HorizontalPodAutoscalerStatus) -> None:
        """Take in the status that a dry run would have written, until the object changes."""
        autoscaler.hpa = msgspec.structs.replace(
            autoscaler.hpa, status=reuse_unchanged_status(autoscaler.hpa.status, status)
        )

    def _put(self, resource: Resource[HorizontalPodAutoscaler], seen: HorizontalPodAutoscaler) -> None:
        known = self._book.get(seen.metadata.uid)
        if known is None:
            fresh = HpaState(resource, seen, records=RecordHistory(self._records))
            fresh.hpa = self._known(fresh, seen, is_new=True)
            fresh.memory.stored = stored_memory(seen)
            self._book[seen.metadata.uid] = fresh
            self._on_change(fresh)
            return
        if is_older(seen.metadata.resource_version, known.hpa.metadata.resource_version):
            return
        if seen.metadata.resource_version == known.hpa.metadata.resource_version:
            return  # the echo of our own write, whose answer we have taken in already
        if known.memory.take_stored(stored_memory(seen)):
            known.steady = None
        before = known.hpa
        known.hpa = self._known(known, seen)
        if before.spec is not known.hpa.spec:
            self._on_change(known)

    def _drop(self, uid: str) -> None:
        gone = self._book.pop(uid, None)
        if gone is not None:
            gone.is_gone = True
            self._on_delete(gone)

    def _known(
        self, autoscaler: HpaState, seen: HorizontalPodAutoscaler, *, is_new: bool = False
    ) -> HorizontalPodAutoscaler:
        """Return the object with defaults and without memory; an unchanged spec is not defaulted again."""
        before = autoscaler.hpa
        same = (
            not is_new
            and before.metadata.generation == seen.metadata.generation
            and _spec_annotations(before) == _spec_annotations(seen)
            and seen.metadata.generation > 0
        )
        spec = before.spec if same else self._defaulted(autoscaler, seen)
        if not is_new and spec == before.spec:
            # Native HPAs have no generation: only the content tells whether the spec changed.
            spec = before.spec
        return msgspec.structs.replace(
            seen,
            metadata=reuse_unchanged_metadata(before.metadata, seen.metadata),
            spec=spec,
            status=reuse_unchanged_status(before.status, seen.status),
        )

    def _defaulted(self, autoscaler: HpaState, seen: HorizontalPodAutoscaler) -> HorizontalPodAutoscalerSpec:
        """Fill in what an API server would; a spec that breaks the rules is kept as it is, with its problem."""
        spec = selection_strategy.with_annotation(seen.spec, seen.metadata.annotations)
        plain = HorizontalPodAutoscaler(metadata=seen.metadata, spec=spec)
        if autoscaler.is_native:
            spec = metric_annotations.apply_annotations(plain.spec, seen.metadata.annotations)
            plain = msgspec.structs.replace(plain, spec=spec)
        if _is_whole(plain.spec):
            autoscaler.problem = ""
            return plain.spec
        try:
            whole = wire.convert(hpa_rules.default(plain), HorizontalPodAutoscaler)
        except ValueError as error:
            autoscaler.problem = str(error)
            return plain.spec
        autoscaler.problem = ""
        return whole.spec


def _spec_annotations(hpa: HorizontalPodAutoscaler) -> tuple[str | None, ...]:
    """Return the annotations that stand for fields of the spec."""
    annotations = hpa.metadata.annotations
    return selection_strategy.annotated_strategy(annotations), *metric_annotations.annotation_texts(
        annotations
    )


def _is_whole(spec: HorizontalPodAutoscalerSpec) -> bool:
    """Return whether an API server has filled in the defaults already: those that an HPA can have are looked at."""
    if spec.min_replicas is None or not spec.metrics:
        return False
    if spec.behavior is None:
        return True
    up, down = spec.behavior.scale_up, spec.behavior.scale_down
    return _is_complete(up) and _is_complete(down) and up.stabilization_window_seconds is not None


def _is_complete(rules: HPAScalingRules | None) -> TypeGuard[HPAScalingRules]:
    """Return whether rules for one direction name what any direction has a default for."""
    return rules is not None and rules.select_policy is not None and bool(rules.policies)


def stored_memory(seen: HorizontalPodAutoscaler) -> str:
    """Return the memory that an object carries, as it is stored."""
    return seen.status.memory or seen.metadata.annotations.get(MEMORY_ANNOTATION, "")


def status_patch(autoscaler: HpaState, new: HorizontalPodAutoscalerStatus, memory: Memory) -> dict[str, Any]:
    """Return the merge patch that turns the known status into `new`, with the memory beside it."""
    old = autoscaler.hpa.status
    status: dict[str, Any] = {
        said: _merged(value) for name, said in _FIELDS if (value := getattr(new, name)) != getattr(old, name)
    }
    text = memories.dumps(memory).decode()
    if autoscaler.is_native:
        return {"metadata": {"annotations": {MEMORY_ANNOTATION: text}}, "status": status}
    # These two have no omitempty upstream: a reader may rely on them from the first write on.
    status.setdefault("desiredReplicas", new.desired_replicas)
    status["memory"] = text
    return {"status": status}


def _merged(value: Any) -> Any:
    """Return a field for a merge patch: an empty list is removed by null, a number is always said."""
    return None if value == () else value
