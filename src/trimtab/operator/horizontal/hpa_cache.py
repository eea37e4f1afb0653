"""The HPAs that this process reconciles, by uid.

Watch events and our own writes replace the object of an HPA. Its parts that did not change stay the same Python
objects, to save memory: every write of a status returns the whole HPA, and the records keep 20 versions of it.
"""

from collections.abc import Callable, Iterator
from sys import intern
from typing import TypeGuard, TypeVar

import msgspec

from trimtab.cluster.cache.store import Delta, is_older
from trimtab.cluster.resource import Resource
from trimtab.decide.horizontal.from_status import stored_reason
from trimtab.model import hpa as hpa_rules
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.hpa import metric_annotations, replica_policies, selection_strategy
from trimtab.model.hpa.annotations import MEMORY_ANNOTATION, STORED
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    HpaCondition,
    HPAScalingRules,
)
from trimtab.model.json import wire
from trimtab.operator.horizontal.hpa_state import HpaState, RecordHistory
from trimtab.operator.horizontal.kinds import HpaCacheEntry, UndecodedHpa, known_cache_entry, to_cache_entry

V = TypeVar("V")

_NO_STATUS = HorizontalPodAutoscalerStatus()


class HpaCache:
    """All HPAs of the watched kinds and namespaces, with the state of each."""

    def __init__(
        self,
        *,
        records: int,
        on_change: Callable[[HpaState], None],
        on_delete: Callable[[HpaState], None],
    ) -> None:
        self._states: dict[str, HpaState] = {}
        self._records = records
        self._on_change = on_change
        self._on_delete = on_delete

    def __iter__(self) -> Iterator[HpaState]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    def get(self, uid: str) -> HpaState | None:
        """Return an HPA by uid."""
        return self._states.get(uid)

    def named(self, namespace: str, name: str) -> HpaState | None:
        """Return an HPA by name. The own kind wins over a native HPA of the same name."""
        key = f"{namespace}/{name}"
        found = [hpa_state for hpa_state in self._states.values() if hpa_state.key == key]
        return min(found, key=lambda hpa_state: hpa_state.is_native, default=None)

    def read(self, undecoded: UndecodedHpa) -> HpaCacheEntry:
        """Return the cache entry of a listed or watched HPA, decoded unless its version is known."""
        meta = undecoded.metadata
        known = self._states.get(meta.uid)
        if known is not None and known.hpa.metadata.resource_version == meta.resource_version:
            return known_cache_entry(meta)
        return to_cache_entry(undecoded.decode())

    def event_handler(
        self, resource: Resource[HorizontalPodAutoscaler]
    ) -> Callable[[Delta[HpaCacheEntry]], None]:
        """Return the subscriber that applies the watch events of one kind of HPA."""

        def handle(delta: Delta[HpaCacheEntry]) -> None:
            if delta.new is not None:
                if (new := delta.new.take()) is not None:
                    self._put(resource, new)
            elif delta.old is not None:
                self._drop(delta.old.metadata.uid)

        return handle

    def note_written(self, hpa_state: HpaState, written: HorizontalPodAutoscaler) -> None:
        """Apply the object that our own write or read returned, before its watch event arrives."""
        if is_older(hpa_state.hpa.metadata.resource_version, written.metadata.resource_version):
            hpa_state.memory.set_stored(stored_memory(written))
            self._replace(hpa_state, written)

    def note_dry_run(self, hpa_state: HpaState, status: HorizontalPodAutoscalerStatus) -> None:
        """Apply the status that a dry run would have written, until the object changes."""
        status = _reuse_unchanged_status(hpa_state.hpa.status, status)
        hpa_state.replace_hpa(msgspec.structs.replace(hpa_state.hpa, status=status), hpa_state.problem)

    def _put(self, resource: Resource[HorizontalPodAutoscaler], new: HorizontalPodAutoscaler) -> None:
        known = self._states.get(new.metadata.uid)
        if known is None:
            known = HpaState(resource, new, records=RecordHistory(self._records))
            self._replace(known, new, is_new=True)
            known.memory.set_stored(stored_memory(new))
            self._states[new.metadata.uid] = known
            self._on_change(known)
            return
        if is_older(new.metadata.resource_version, known.hpa.metadata.resource_version):
            return
        if new.metadata.resource_version == known.hpa.metadata.resource_version:
            return  # the version of our own write, which was applied while a list with it arrived
        known.update_stored_memory(stored_memory(new))
        before = known.hpa
        self._replace(known, new)
        if before.spec is not known.hpa.spec:
            self._on_change(known)

    def _drop(self, uid: str) -> None:
        deleted = self._states.pop(uid, None)
        if deleted is not None:
            deleted.mark_deleted()
            self._on_delete(deleted)

    def _replace(self, hpa_state: HpaState, new: HorizontalPodAutoscaler, *, is_new: bool = False) -> None:
        """Replace the object, with defaults and without its memory."""
        before, spec, problem = hpa_state.hpa, hpa_state.hpa.spec, hpa_state.problem
        metadata = _reuse_unchanged_metadata(before.metadata, new.metadata)
        if is_new or not _has_same_spec(before, new, metadata, is_native=hpa_state.is_native):
            spec, problem = _set_defaults(new, is_native=hpa_state.is_native)
            if not is_new and spec == before.spec:
                spec = before.spec
        status = _reuse_unchanged_status(_NO_STATUS if is_new else before.status, new.status)
        hpa_state.stored_reason = intern(stored_reason(new))
        hpa_state.replace_hpa(
            msgspec.structs.replace(new, metadata=metadata, spec=spec, status=status), problem
        )


def stored_memory(hpa: HorizontalPodAutoscaler) -> str:
    """Return the memory that an object carries, as it is stored."""
    return hpa.status.memory or hpa.metadata.annotations.get(MEMORY_ANNOTATION, "")


def _has_same_spec(
    before: HorizontalPodAutoscaler, new: HorizontalPodAutoscaler, metadata: ObjectMeta, *, is_native: bool
) -> bool:
    """Return whether the spec certainly leads to the spec that is known, with its defaults and annotations."""
    if metadata.annotations is not before.metadata.annotations:
        return False
    generation = metadata.generation
    # Native HPAs have a generation since Kubernetes 1.37. An older server keeps the one that a client or a newer server
    # wrote and does not raise it, so for them only the content shows whether the spec changed.
    if not is_native and generation > 0 and generation == before.metadata.generation:
        return True
    return new.spec == before.spec


def _set_defaults(
    new: HorizontalPodAutoscaler, *, is_native: bool
) -> tuple[HorizontalPodAutoscalerSpec, str]:
    """Return the spec with the defaults of an API server, and the problem if it is invalid."""
    spec = selection_strategy.with_annotation(new.spec, new.metadata.annotations)
    if is_native:
        spec = metric_annotations.apply_annotations(spec, new.metadata.annotations)
        spec = replica_policies.apply_annotation(spec, new.metadata.annotations)
    if _has_defaults(spec):
        return spec, ""
    plain = HorizontalPodAutoscaler(metadata=new.metadata, spec=spec)
    try:
        return wire.convert(hpa_rules.default(plain), HorizontalPodAutoscaler).spec, ""
    except ValueError as error:
        return spec, str(error)


def _has_defaults(spec: HorizontalPodAutoscalerSpec) -> bool:
    """Return whether an API server has already set every default that an HPA can have."""
    if spec.min_replicas is None or not spec.metrics:
        return False
    if spec.behavior is None:
        return True
    up, down = spec.behavior.scale_up, spec.behavior.scale_down
    return _is_complete(up) and _is_complete(down) and up.stabilization_window_seconds is not None


def _is_complete(rules: HPAScalingRules | None) -> TypeGuard[HPAScalingRules]:
    """Return whether the rules of a direction have every field with a default in both directions."""
    return rules is not None and rules.select_policy is not None and bool(rules.policies)


def _reuse_unchanged_metadata(before: ObjectMeta, new: ObjectMeta) -> ObjectMeta:
    """Return the new metadata without memory and reason, with the old values where they are equal."""
    annotations = new.annotations
    if not STORED.isdisjoint(annotations):
        annotations = {key: text for key, text in annotations.items() if key not in STORED}
    return msgspec.structs.replace(
        new,
        name=_reuse(before.name, new.name),
        namespace=_reuse(before.namespace, new.namespace),
        uid=_reuse(before.uid, new.uid),
        creation_timestamp=_reuse(before.creation_timestamp, new.creation_timestamp),
        labels=_reuse(before.labels, new.labels),
        annotations=_reuse(before.annotations, annotations),
    )


def _reuse_unchanged_status(
    before: HorizontalPodAutoscalerStatus, new: HorizontalPodAutoscalerStatus
) -> HorizontalPodAutoscalerStatus:
    """Return the new status without memory and texts of columns, with the old conditions where they are equal."""
    return msgspec.structs.replace(
        new,
        memory="",
        reason="",
        targets="",
        last_scale_time=_reuse(before.last_scale_time, new.last_scale_time),
        current_metrics=_reuse(before.current_metrics, new.current_metrics),
        conditions=_reuse_conditions(before.conditions, new.conditions),
    )


def _reuse_conditions(
    before: tuple[HpaCondition, ...], new: tuple[HpaCondition, ...]
) -> tuple[HpaCondition, ...]:
    if before == new:
        return before
    known = {condition.type: condition for condition in before}
    return tuple(
        [
            kept if (kept := known.get(condition.type)) == condition else _share_texts(condition)
            for condition in new
        ]
    )


def _share_texts(condition: HpaCondition) -> HpaCondition:
    """Return the condition with texts that equal conditions of other HPAs share. Nearly all HPAs have the same."""
    return msgspec.structs.replace(
        condition,
        type=intern(condition.type),
        status=intern(condition.status),
        reason=intern(condition.reason),
        message=intern(condition.message),
    )


def _reuse(before: V, new: V) -> V:
    return before if before == new else new
