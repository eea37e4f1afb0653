"""Carries decisions out: intent, scale, status, events, in this order.

Each write is made on the condition that its object is still what was decided on. If it is not, `DecideAgain` is raised:
the old number is never sent twice. After a lost answer the scale is read, because the write may have been done. If
that cannot be read either, `ScaleUnknown` is raised: neither the status nor an event may say yes or no.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from trimtab.cluster import errors
from trimtab.cluster.client import Client, Preconditions
from trimtab.cluster.events import EventRecorder
from trimtab.decide.horizontal import (
    Decision,
    Memory,
    Observation,
    Record,
    after_scale,
    after_status,
)
from trimtab.decide.horizontal.explain.wording import change_reason
from trimtab.decide.horizontal.status.dry_run import annotation_problem, as_dry_run, must_not_scale
from trimtab.model.core.objects import ObjectReference
from trimtab.model.hpa.types import ConditionType, HorizontalPodAutoscalerStatus
from trimtab.operator.horizontal.inputs.hpa_cache import HpaCache, HpaState, status_patch
from trimtab.operator.horizontal.inputs.targets import (
    ResolvedTarget,
    TargetBusyError,
    TargetCache,
    TargetChangedError,
)


class WriteSlots:
    """Lets a few writes go at a time: scales first, otherwise in the order of arrival."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._scales: deque[asyncio.Future[None]] = deque()
        self._statuses: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def for_scale(self) -> AsyncIterator[None]:
        """Wait for a slot before every status that waits."""
        await self._take(self._scales)
        try:
            yield
        finally:
            self._give_back()

    @asynccontextmanager
    async def for_status(self) -> AsyncIterator[None]:
        """Wait for a slot until no scale needs one."""
        await self._take(self._statuses)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, waiting: deque[asyncio.Future[None]]) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()  # the slot was given to us in the same moment
            raise

    def _give_back(self) -> None:
        for waiting in (self._scales, self._statuses):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1


log = logging.getLogger(__name__)


class DecideAgain(Exception):  # noqa: N818 - it is an instruction, not an error
    """The target or the autoscaler changed since it was observed."""


class ScaleUnknown(Exception):  # noqa: N818 - it is a state, not an error
    """The scale was sent, its answer was lost, and the scale cannot be read: it may have been written or not."""

    def __init__(self, decision: Decision, why: str) -> None:
        super().__init__(why)
        self.decision = decision


@dataclass(slots=True)
class WriteResult:
    """What became of a decision."""

    decision: Decision
    scale_error: str | None = None
    is_scale_lost: bool = False
    """Whether the answer to the scale was lost: what was not written when we looked may still come."""
    status_error: str | None = None
    is_dry_run: bool = False


class Writer:
    """Writes what was decided; `client_for` an HPA is fenced: who may have lost its lease writes nothing for it."""

    def __init__(
        self,
        client_for: Callable[[str], Client],
        targets: TargetCache,
        autoscalers: HpaCache,
        recorder: EventRecorder,
        *,
        slots: WriteSlots,
        dry_run: bool,
    ) -> None:
        self._client_for = client_for
        self._targets = targets
        self._autoscalers = autoscalers
        self._recorder = recorder
        self._slots = slots
        self._dry_run = dry_run

    def is_quiet(self, decision: Decision) -> bool:
        """Return whether nothing has to be written or told."""
        return decision.scale_to is None and not decision.status_changed and not decision.events

    def begin(self, autoscaler: HpaState, seen: Observation, decision: Decision) -> WriteResult:
        """Return what is to be carried out: of a dry run, only what it tells."""
        self._log_ignored(autoscaler, decision)
        self._log_misspelt(autoscaler, seen)
        is_dry_run = self._dry_run or must_not_scale(seen.hpa, seen.gates)
        return WriteResult(as_dry_run(seen, decision) if is_dry_run else decision, is_dry_run=is_dry_run)

    async def apply(
        self, autoscaler: HpaState, aim: ResolvedTarget, seen: Observation, outcome: WriteResult
    ) -> None:
        """Write the scale, then the status, and emit the events; complete the outcome with what became of each."""
        if outcome.decision.scale_to is not None:
            async with self._slots.for_scale():
                await self._scale(autoscaler, aim, seen, outcome)
        if outcome.decision.status_changed or autoscaler.memory.must_store:
            async with self._slots.for_status():
                await self._status(autoscaler, seen, outcome)
        self.tell(autoscaler, outcome.decision)

    async def read_again(self, autoscaler: HpaState) -> None:
        """Take in the object as the server has it now, without waiting for the watch."""
        meta = autoscaler.hpa.metadata
        try:
            found = await self._client_for(autoscaler.key).get(autoscaler.resource, meta.name, meta.namespace)
        except errors.NotFound:
            return  # the watch will say so
        if found.metadata.uid == meta.uid:
            self._autoscalers.note_written(autoscaler, found)

    async def _confirm(self, autoscaler: HpaState, seen: Observation) -> str | None:
        """Read the object before the first scale of an epoch: our watch may lack the last holder's last write.

        Return why it cannot be read, or None.
        """
        if autoscaler.memory.is_confirmed:
            return None
        try:
            await self.read_again(autoscaler)
        except errors.ClusterError as error:
            return f"the autoscaler itself cannot be read before its first scale: {_said(error)}"
        if autoscaler.hpa.metadata.resource_version != seen.hpa.metadata.resource_version:
            raise DecideAgain("the last leader wrote more than was known of it")
        autoscaler.memory.is_confirmed = True
        return None

    async def _scale(
        self, autoscaler: HpaState, aim: ResolvedTarget, seen: Observation, outcome: WriteResult
    ) -> None:
        decision = outcome.decision
        assert decision.scale_to is not None
        if decision.intent is not None:
            # The condition comes first: after a crash between the two writes it still says whose zero it is.
            await self._patch_intent(autoscaler, decision.intent, decision.memory, outcome)
        else:
            outcome.scale_error = await self._confirm(autoscaler, seen)
        if outcome.scale_error is None:
            if autoscaler.is_gone or autoscaler.hpa.spec is not seen.hpa.spec:
                raise DecideAgain("the autoscaler was changed since it was looked at")
            outcome.scale_error = await self._write_scale(autoscaler, aim, outcome)
        outcome.decision = after_scale(seen, decision, outcome.scale_error, is_lost=outcome.is_scale_lost)
        self._log(autoscaler, seen, outcome)

    async def _patch_intent(
        self,
        autoscaler: HpaState,
        intent: HorizontalPodAutoscalerStatus,
        memory: Memory,
        outcome: WriteResult,
    ) -> None:
        try:
            await self._patch_status(autoscaler, intent, memory)
        except errors.Fenced:
            raise
        except errors.ClusterError as error:
            outcome.scale_error = _said(error)

    async def _write_scale(
        self, autoscaler: HpaState, aim: ResolvedTarget, outcome: WriteResult
    ) -> str | None:
        """Write the replicas; return why they are not written, or None if they are."""
        namespace, replicas = autoscaler.hpa.metadata.namespace, outcome.decision.scale_to
        assert replicas is not None
        try:
            await self._targets.write(self._client_for(autoscaler.key), aim, namespace, replicas)
        except TargetChangedError as error:
            raise DecideAgain(str(error)) from error
        except TargetBusyError as error:
            return str(error)
        except (errors.TransportError, errors.ServerError) as error:
            written = await self._is_written(autoscaler, aim, replicas)
            if written is None:
                self._targets.doubt(aim)
                raise ScaleUnknown(outcome.decision, str(error)) from error
            outcome.is_scale_lost = True
            return None if written else _said(error)
        except errors.Fenced:
            raise
        except errors.ApiError as error:
            return _said(error)
        return None

    async def _is_written(self, autoscaler: HpaState, aim: ResolvedTarget, replicas: int) -> bool | None:
        """Look whether a write whose answer was lost took place (fault F18); None if nobody can tell."""
        hpa = autoscaler.hpa
        found = await self._targets.read(hpa.spec.scale_target_ref, hpa.metadata.namespace)
        if found.scale is None or aim.scale is None:
            return None
        return found.scale.metadata.uid == aim.scale.metadata.uid and found.scale.spec.replicas == replicas

    async def _status(self, autoscaler: HpaState, seen: Observation, outcome: WriteResult) -> None:
        decision = outcome.decision
        try:
            await self._patch_status(autoscaler, decision.status, decision.memory)
        except DecideAgain:
            if decision.action != "none":
                # The scale is written; the next decision, on the newer object, tells the whole status.
                outcome.status_error = "the autoscaler was changed meanwhile"
            else:
                raise
        except errors.Fenced:
            raise
        except errors.ClusterError as error:
            outcome.status_error = str(error)
            outcome.decision = after_status(seen, decision, outcome.status_error)

    async def _patch_status(
        self, autoscaler: HpaState, status: HorizontalPodAutoscalerStatus, memory: Memory
    ) -> None:
        if self._dry_run:
            # A live operator resumes from what a status says: a dry run keeps its own to itself.
            self._autoscalers.note_told(autoscaler, status)
            autoscaler.memory.must_store = False
            return
        meta = autoscaler.hpa.metadata
        try:
            written = await self._client_for(autoscaler.key).patch(
                autoscaler.resource,
                meta.name,
                meta.namespace,
                status_patch(autoscaler, status, memory),
                preconditions=Preconditions(resource_version=meta.resource_version),
                subresource="status",
            )
        except (errors.Conflict, errors.NotFound) as error:
            raise DecideAgain(str(error)) from error
        self._autoscalers.note_written(autoscaler, written)
        autoscaler.memory.is_confirmed, autoscaler.memory.must_store = True, False

    def tell(self, autoscaler: HpaState, decision: Decision) -> None:
        """Emit the events of a decision; what its memory notes as told is told."""
        meta = autoscaler.hpa.metadata
        about = ObjectReference(
            kind=autoscaler.resource.kind,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            api_version=autoscaler.resource.api_version,
            resource_version=meta.resource_version,
        )
        for told in decision.events:
            self._recorder.event(about, told.type, told.reason, told.message)

    def _log_ignored(self, autoscaler: HpaState, decision: Decision) -> None:
        """Log the fields of a spec that have no effect, once per process and spec."""
        found = decision.status.condition(ConditionType.FIELDS_IGNORED)
        ignored = found.message if found is not None else ""
        if ignored != autoscaler.ignored:
            autoscaler.ignored = ignored
            if ignored:
                log.warning("fields ignored", extra={"facts": {"hpa": autoscaler.key, "fields": ignored}})

    def _log_misspelt(self, autoscaler: HpaState, seen: Observation) -> None:
        """Log an annotation whose value is not known, once per process and value."""
        problem = annotation_problem(seen.hpa, seen.gates)
        if problem != autoscaler.misspelt:
            autoscaler.misspelt = problem
            if problem:
                log.warning("nothing is scaled", extra={"facts": {"hpa": autoscaler.key, "why": problem}})

    def _log(self, autoscaler: HpaState, seen: Observation, outcome: WriteResult) -> None:
        decision = outcome.decision
        facts = {
            "hpa": autoscaler.key,
            "target": str(autoscaler.hpa.spec.scale_target_ref),
            "from": decision.current,
            "to": decision.desired,
            "reason": change_reason(seen, decision),
        }
        if outcome.scale_error is None:
            log.info("scaled", extra={"facts": facts})
        else:
            log.warning("not scaled", extra={"facts": facts | {"error": outcome.scale_error}})


def record_of(seen: Observation, outcome: WriteResult) -> Record:
    """Return the record of a decision and its fate."""
    return Record(
        observation=seen,
        decision=outcome.decision,
        scale_error=outcome.scale_error,
        status_error=outcome.status_error,
        is_dry_run=outcome.is_dry_run,
    )


def _said(error: errors.ClusterError) -> str:
    """Return the server's own words where it has any."""
    return (error.message if isinstance(error, errors.ApiError) else "") or str(error)
