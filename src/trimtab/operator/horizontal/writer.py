"""Writes decisions: intent, scale, status, events, in this order.

Each write has the observed version of its object as its precondition. If the object changed, `StaleObservation` is
raised, and the old replicas are never sent again. If the response to a scale is lost, the scale is read, because the
write may have been applied. If the scale cannot be read either, `ScaleUnknown` is raised, and neither status nor events
say whether it was written.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any
from zlib import crc32

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, Preconditions
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.leases.fence import Epoch
from trimtab.decide.horizontal import memory as memories
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.explain import change_reason
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.records.record import Record
from trimtab.decide.horizontal.standing import SLACK_SECONDS, Stored, WriteReason, must_write
from trimtab.decide.horizontal.status.after_write import after_scale, after_status
from trimtab.decide.horizontal.status.conditions import as_dry_run
from trimtab.decide.horizontal.status.ignored_fields import annotation_problem
from trimtab.model.author import Author
from trimtab.model.core.objects import ObjectReference
from trimtab.model.hpa.annotations import MEMORY_ANNOTATION, REASON_ANNOTATION
from trimtab.model.hpa.metric_kinds import targets_text
from trimtab.model.hpa.types import ConditionType, HorizontalPodAutoscalerStatus
from trimtab.operator.horizontal.hpa_cache import HpaCache
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.observe import Snapshot, StaleObservation
from trimtab.operator.horizontal.targets import (
    ResolvedTarget,
    TargetBusyError,
    TargetCache,
    TargetChangedError,
    server_message,
)
from trimtab.operator.horizontal.write_slots import WriteSlots

log = logging.getLogger(__name__)

_STATUS_FIELDS = tuple(
    (name, api_name)
    for name, api_name in zip(
        HorizontalPodAutoscalerStatus.__struct_fields__,
        HorizontalPodAutoscalerStatus.__struct_encode_fields__,
        strict=True,
    )
    if name not in ("memory", "reason", "targets")
)
"""The fields of a status, by our name and the API's. Those that native HPAs lack are written separately."""


class ScaleUnknown(Exception):  # noqa: N818 - it is a state, not an error
    """It is unknown whether a scale was written: its response was lost and it cannot be read."""


@dataclass(slots=True)
class PendingWrite:
    """A decision to write, and the result of each write."""

    target: ResolvedTarget
    observation: Observation
    decision: Decision
    epoch: Epoch
    is_dry_run: bool = False
    scale_error: str | None = None
    is_scale_lost: bool = False
    """Whether the response to the scale was lost. If it was not applied yet, it may still be."""
    status_error: str | None = None
    write_reason: WriteReason | None = None
    """Why the status is written now. None if it is not."""
    scaled_at: float | None = None
    """When the answer to the scale came."""
    author: Author | None = None
    """The replica that writes it; None while nothing is written."""

    @property
    def is_only_status(self) -> bool:
        """Return whether neither a scale nor an event is written."""
        return self.decision.scale_to is None and not self.decision.events

    @property
    def is_status_deferred(self) -> bool:
        """Return whether the stored status is not the newest one, which waits for a later sync."""
        return self.write_reason is None and self.decision.status_changed

    def record(self) -> Record:
        """Return the record of the decision and of its writes."""
        return Record(
            observation=self.observation,
            decision=self.decision,
            scale_error=self.scale_error,
            status_error=self.status_error,
            is_dry_run=self.is_dry_run,
            author=self.author,
            scaled_at=self.scaled_at,
        )


@dataclass(frozen=True, slots=True)
class WriteRules:
    """How many writes are in progress at once, and which are left out."""

    slots: WriteSlots
    dry_run: bool = False
    max_age: float | None = None
    """How old stored values may be. None: every change is written in every sync."""


class Writer:
    """Writes decisions with the fenced client of each HPA."""

    def __init__(
        self,
        clock: Clock,
        client_for: Callable[[str], Client],
        targets: TargetCache,
        hpas: HpaCache,
        recorder: EventRecorder,
        rules: WriteRules,
        author_for: Callable[[str], Author] = lambda _key: Author(),
    ) -> None:
        self._clock = clock
        self._author_for = author_for
        self._client_for = client_for
        self._targets = targets
        self._hpas = hpas
        self._recorder = recorder
        self._slots = rules.slots
        self._dry_run = rules.dry_run
        # A dry run costs no request, so its status is always the newest.
        self._max_age = None if rules.dry_run else rules.max_age

    def prepare(self, hpa_state: HpaState, snapshot: Snapshot, decision: Decision) -> PendingWrite:
        """Return what has to be written, which for a dry run is no scale."""
        observation = snapshot.observation
        problem = annotation_problem(observation.hpa, observation.gates)
        _log_warnings(hpa_state, observation, decision, problem)
        is_dry_run = self._dry_run or bool(problem) or hpa_state.is_dry_run
        written = as_dry_run(observation, decision) if is_dry_run else decision
        write = PendingWrite(snapshot.target, observation, written, snapshot.epoch, is_dry_run)
        self._plan_status(hpa_state, write)
        return write

    def has_nothing_to_write(self, write: PendingWrite) -> bool:
        """Return whether the decision needs no request and no event."""
        return write.is_only_status and write.write_reason is None

    def shown_until(self, hpa_state: HpaState) -> float:
        """Return until when the stored values may be shown instead of newer ones."""
        max_age = self._max_age_of(hpa_state)
        return -inf if max_age is None else hpa_state.memory.read_stored().at + max_age - SLACK_SECONDS

    def _max_age_of(self, hpa_state: HpaState) -> float | None:
        if self._max_age is None or not hpa_state.memory.is_first_write:
            return self._max_age
        # All HPAs, which a new leader writes in its first sync, would be written again in the same sync each time.
        return self._max_age * (1 - crc32(hpa_state.uid.encode()) / 2**32)

    def _plan_status(self, hpa_state: HpaState, write: PendingWrite) -> None:
        """Decide whether the status is written now, or waits for a later sync."""
        observation = write.observation
        write.write_reason = must_write(
            Stored(
                observation.hpa.status,
                hpa_state.memory.read_stored,
                hpa_state.memory.is_first_decision,
                self._has_other_reason(hpa_state, write.decision),
            ),
            write.decision,
            keeps_memory=observation.rules.ours and not self._dry_run,
            max_age=self._max_age_of(hpa_state),
        )

    def _has_other_reason(self, hpa_state: HpaState, decision: Decision) -> bool:
        """Return whether the stored reason is not that of a decision. A dry run stores none."""
        return not self._dry_run and hpa_state.stored_reason != decision.reason.code

    async def apply(self, hpa_state: HpaState, write: PendingWrite) -> None:
        """Write the scale, then the status, record the events, and complete `write`."""
        if not self._dry_run:
            scale = write.target.scale
            base = scale.metadata.resource_version if scale is not None else ""
            write.author = msgspec.structs.replace(self._author_for(hpa_state.key), base_version=base)
        if write.decision.scale_to is not None:
            async with self._slots.for_scale(hpa_state.hpa.metadata.namespace):
                await self._apply_scale(hpa_state, write)
            self._plan_status(hpa_state, write)
        if write.write_reason is not None:
            async with self._slots.for_status(hpa_state.hpa.metadata.namespace):
                await self._apply_status(hpa_state, write)
        self.record_events(hpa_state, write.decision)

    async def read_again(self, hpa_state: HpaState) -> None:
        """Read the HPA from the server, without waiting for the watch."""
        meta = hpa_state.hpa.metadata
        try:
            hpa = await self._client_for(hpa_state.key).get(hpa_state.resource, meta.name, meta.namespace)
        except errors.NotFound:
            return  # the watch will deliver the deletion
        if hpa.metadata.uid == meta.uid:
            self._hpas.note_written(hpa_state, hpa)

    def record_events(self, hpa_state: HpaState, decision: Decision) -> None:
        """Record the events of a decision."""
        if not decision.events:
            return
        meta = hpa_state.hpa.metadata
        reference = ObjectReference(
            kind=hpa_state.resource.kind,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            api_version=hpa_state.resource.api_version,
            resource_version=meta.resource_version,
        )
        for event in decision.events:
            self._recorder.event(reference, event.type, event.reason, event.message)

    async def _apply_scale(self, hpa_state: HpaState, write: PendingWrite) -> None:
        decision, observation = write.decision, write.observation
        if decision.intent is not None:
            # The condition is written first. After a crash between the two writes it shows who scaled to zero.
            write.scale_error = await self._write_intent(hpa_state, write)
        else:
            write.scale_error = await self._confirm(hpa_state, observation)
        if write.scale_error is None:
            if hpa_state.is_deleted or hpa_state.hpa.spec is not observation.hpa.spec:
                raise StaleObservation("the HPA changed since it was read")
            write.scale_error = await self._write_scale(hpa_state, write)
        # Rates run from the answer: with a slow API server it may come long after the decision.
        write.scaled_at = write.epoch.now() if observation.rules.ours else None
        write.decision = after_scale(
            observation, decision, write.scale_error, is_lost=write.is_scale_lost, at=write.scaled_at
        )
        _log_scale(hpa_state, write)

    async def _write_intent(self, hpa_state: HpaState, write: PendingWrite) -> str | None:
        """Write the status that announces a scale, and return the error if that fails."""
        assert write.decision.intent is not None
        try:
            await self._patch_status(hpa_state, write.decision.intent, write)
        except errors.Fenced:
            raise
        except errors.ClusterError as error:
            return server_message(error)
        return None

    async def _confirm(self, hpa_state: HpaState, observation: Observation) -> str | None:
        """Read the HPA before the first scale of an epoch, and return the error if that fails.

        The watch may lack the last write of the last holder.
        """
        if hpa_state.memory.is_confirmed:
            return None
        try:
            await self.read_again(hpa_state)
        except errors.ClusterError as error:
            return f"the autoscaler itself cannot be read before its first scale: {server_message(error)}"
        if hpa_state.hpa.metadata.resource_version != observation.hpa.metadata.resource_version:
            raise StaleObservation("the last leader wrote a newer version of the HPA")
        hpa_state.memory.mark_confirmed()
        return None

    async def _write_scale(self, hpa_state: HpaState, write: PendingWrite) -> str | None:
        """Write the replicas, and return the error if that fails."""
        target, replicas = write.target, write.decision.scale_to
        assert replicas is not None
        try:
            await self._targets.write(
                self._client_for(hpa_state.key), target, hpa_state.hpa.metadata.namespace, replicas
            )
        except TargetChangedError as error:
            raise StaleObservation(str(error)) from error
        except TargetBusyError as error:
            return str(error)
        except (errors.TransportError, errors.ServerError) as error:
            is_written = await self._is_written(hpa_state, target, replicas)
            if is_written is None:
                self._targets.doubt(target)
                raise ScaleUnknown(str(error)) from error
            write.is_scale_lost = True
            return None if is_written else server_message(error)
        except errors.Fenced:
            raise
        except errors.ApiError as error:
            return server_message(error)
        return None

    async def _is_written(self, hpa_state: HpaState, target: ResolvedTarget, replicas: int) -> bool | None:
        """Return whether a scale whose response was lost was applied, or None if it cannot be read (fault F18)."""
        hpa = hpa_state.hpa
        now = await self._targets.read(hpa.spec.scale_target_ref, hpa.metadata.namespace)
        if now.scale is None or target.scale is None:
            return None
        return now.scale.metadata.uid == target.scale.metadata.uid and now.scale.spec.replicas == replicas

    async def _apply_status(self, hpa_state: HpaState, write: PendingWrite) -> None:
        decision = write.decision
        if decision.action == "none" and self._clock.monotonic() < hpa_state.next_status_at:
            # A later sync writes it. The event of the failure is recorded already.
            write.status_error = "not tried again yet: the API server failed to write the last status"
            return
        try:
            await self._patch_status(hpa_state, decision.status, write)
        except StaleObservation:
            if decision.action == "none":
                raise
            # The scale is written. The next decision, on the newer object, writes the whole status.
            write.status_error = "the autoscaler was changed meanwhile"
        except errors.Fenced:
            raise
        except errors.ClusterError as error:
            if isinstance(error, errors.ServerError):
                hpa_state.note_status_failure(self._clock.monotonic())
            write.status_error = str(error)
            write.decision = after_status(write.observation, decision, write.status_error)
        else:
            hpa_state.note_status_written()
            if log.isEnabledFor(logging.DEBUG):
                facts = {
                    "hpa": hpa_state.key,
                    "why": write.write_reason,
                    **(write.author.facts if write.author is not None else {}),
                }
                log.debug("status written", extra={"facts": facts})

    async def _patch_status(
        self, hpa_state: HpaState, status: HorizontalPodAutoscalerStatus, write: PendingWrite
    ) -> None:
        if self._dry_run:
            # A live operator resumes from the stored status, so a dry run keeps its own to itself.
            self._hpas.note_dry_run(hpa_state, status)
            return
        meta, decision = hpa_state.hpa.metadata, write.decision
        text = memories.dumps(decision.memory).decode() if write.observation.rules.ours else ""
        try:
            written = await self._client_for(hpa_state.key).patch(
                hpa_state.resource,
                meta.name,
                meta.namespace,
                status_patch(hpa_state, status, decision, text),
                preconditions=Preconditions(resource_version=meta.resource_version),
                subresource="status",
            )
        except (errors.Conflict, errors.NotFound) as error:
            raise StaleObservation(str(error)) from error
        self._hpas.note_written(hpa_state, written)
        hpa_state.memory.mark_written(decision.memory, text)


def status_patch(
    hpa_state: HpaState, new: HorizontalPodAutoscalerStatus, decision: Decision, memory: str
) -> dict[str, Any]:
    """Return the merge patch from the known status to `new`, with the memory and the texts of columns of a decision.

    An empty memory is not stored.
    """
    old = hpa_state.hpa.status
    status: dict[str, Any] = {
        api_name: None if value == () else value  # null removes an empty list
        for name, api_name in _STATUS_FIELDS
        if (value := getattr(new, name)) != getattr(old, name)
    }
    reason = str(decision.reason.code)
    if hpa_state.is_native:
        annotations = {MEMORY_ANNOTATION: memory} if memory else {}
        return {"metadata": {"annotations": {**annotations, REASON_ANNOTATION: reason}}, "status": status}
    # This field has no omitempty upstream, so readers may rely on it from the first decision on. Until then the number is
    # not known, and `kubectl get thpa` would print DESIRED 0 for a target that is missing.
    if decision.observed_desired is not None:
        status.setdefault("desiredReplicas", new.desired_replicas)
    status["reason"] = reason
    status["targets"] = targets_text(hpa_state.hpa.spec.metrics, new.current_metrics)
    status |= {"memory": memory} if memory else {}
    return {"status": status}


def _log_warnings(hpa_state: HpaState, observation: Observation, decision: Decision, problem: str) -> None:
    """Log ignored fields, a misspelt annotation and a missing right to the target, once per process and text."""
    condition, failure = decision.status.condition(ConditionType.FIELDS_IGNORED), observation.scale_failure
    ignored, misspelt, forbidden, beside, unseen = hpa_state.new_warnings(
        condition.message if condition is not None else "",
        problem,
        f"{failure.message}; {failure.advice}" if failure is not None and failure.advice else "",
        str(observation.rivals) if observation.rivals.hpas else "",
        observation.rivals.unseen,
    )
    if ignored:
        log.warning("fields ignored", extra={"facts": {"hpa": hpa_state.key, "fields": ignored}})
    if misspelt:
        log.warning("nothing is scaled", extra={"facts": {"hpa": hpa_state.key, "why": misspelt}})
    if forbidden:
        log.warning("scale cannot be read", extra={"facts": {"hpa": hpa_state.key, "why": forbidden}})
    if beside:
        log.warning("beside a native HPA", extra={"facts": {"hpa": hpa_state.key, "why": beside}})
    if unseen:
        log.warning("native HPAs cannot be seen", extra={"facts": {"hpa": hpa_state.key, "why": unseen}})


def _log_scale(hpa_state: HpaState, write: PendingWrite) -> None:
    decision = write.decision
    facts = {
        "hpa": hpa_state.key,
        "target": str(hpa_state.hpa.spec.scale_target_ref),
        "from": decision.current,
        "to": decision.desired,
        "reason": change_reason(write.observation, decision),
        **(write.author.facts if write.author is not None else {}),
    }
    if write.scale_error is None:
        log.info("scaled", extra={"facts": facts})
    else:
        log.warning("not scaled", extra={"facts": facts | {"error": write.scale_error}})
