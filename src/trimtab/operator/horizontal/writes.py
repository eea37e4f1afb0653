"""Carries decisions out: intent, scale, status, events, in this order.

Each write carries the version that was decided on. A conflict raises `DecideAgain`: the old number is never sent
twice. An answer that got lost is looked up before anything else happens, because the write may have been done.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.patching import Preconditions
from trimtab.decide.horizontal import Decision, Memory, Observation, Record, after_scale, after_status
from trimtab.decide.horizontal.dryrun import only_told
from trimtab.model.event import ObjectReference
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus
from trimtab.operator.horizontal.autoscalers import Autoscaler, Autoscalers, status_patch
from trimtab.operator.horizontal.targets import Aim, Targets

log = logging.getLogger(__name__)


class DecideAgain(Exception):  # noqa: N818 - it is an instruction, not an error
    """The target or the autoscaler changed since it was observed."""


@dataclass(slots=True)
class Outcome:
    """What became of a decision."""

    decision: Decision
    scale_error: str | None = None
    status_error: str | None = None
    is_dry_run: bool = False


class Writer:
    """Writes what was decided; `client_for` an HPA is fenced: who may have lost its lease writes nothing for it."""

    def __init__(
        self,
        client_for: Callable[[str], Client],
        targets: Targets,
        autoscalers: Autoscalers,
        recorder: EventRecorder,
        *,
        dry_run: bool,
    ) -> None:
        self._client_for = client_for
        self._targets = targets
        self._autoscalers = autoscalers
        self._recorder = recorder
        self._dry_run = dry_run

    def is_quiet(self, decision: Decision) -> bool:
        """Return whether nothing has to be written or told."""
        return decision.scale_to is None and not decision.status_changed and not decision.events

    def begin(self, autoscaler: Autoscaler, seen: Observation, decision: Decision) -> Outcome:
        """Return what is to be carried out: of a dry run, only what it tells."""
        is_dry_run = self._dry_run or autoscaler.is_dry_run
        return Outcome(only_told(seen, decision) if is_dry_run else decision, is_dry_run=is_dry_run)

    async def finish(self, autoscaler: Autoscaler, seen: Observation, outcome: Outcome) -> None:
        """Write the status and tell the events, once the scale is dealt with."""
        autoscaler.memory = outcome.decision.memory
        if outcome.decision.status_changed:
            await self._status(autoscaler, seen, outcome)
        self._tell(autoscaler, outcome.decision)

    async def read_again(self, autoscaler: Autoscaler) -> None:
        """Take in the object as the server has it now, without waiting for the watch."""
        meta = autoscaler.hpa.metadata
        try:
            found = await self._client_for(autoscaler.key).get(autoscaler.resource, meta.name, meta.namespace)
        except errors.NotFound:
            return  # the watch will say so
        if found.metadata.uid == meta.uid:
            self._autoscalers.note_written(autoscaler, found)

    async def scale(self, autoscaler: Autoscaler, aim: Aim, seen: Observation, outcome: Outcome) -> None:
        """Write the scale, and complete the decision with what became of it."""
        decision = outcome.decision
        assert decision.scale_to is not None
        namespace = autoscaler.hpa.metadata.namespace
        try:
            if decision.intent is not None:
                # The condition comes first: after a crash between the two writes it still says whose zero it is.
                await self._patch_status(autoscaler, decision.intent, decision.memory)
            if autoscaler.is_gone or autoscaler.hpa.spec is not seen.hpa.spec:
                raise DecideAgain("the autoscaler was changed since it was looked at")
            await self._targets.write(self._client_for(autoscaler.key), aim, namespace, decision.scale_to)
        except errors.Conflict as error:
            raise DecideAgain(str(error)) from error
        except (errors.TransportError, errors.ServerError) as error:
            if not await self._was_written(autoscaler, decision.scale_to):
                outcome.scale_error = str(error)
        except errors.ApiError as error:
            outcome.scale_error = error.message or str(error)
        outcome.decision = after_scale(seen, decision, outcome.scale_error)
        self._log(autoscaler, outcome)

    async def _was_written(self, autoscaler: Autoscaler, replicas: int) -> bool:
        """Look whether a write whose answer was lost took place (fault F18)."""
        hpa = autoscaler.hpa
        aim = await self._targets.read(hpa.spec.scale_target_ref, hpa.metadata.namespace)
        return aim.scale is not None and aim.scale.spec.replicas == replicas

    async def _status(self, autoscaler: Autoscaler, seen: Observation, outcome: Outcome) -> None:
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
        self, autoscaler: Autoscaler, status: HorizontalPodAutoscalerStatus, memory: Memory
    ) -> None:
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

    def _tell(self, autoscaler: Autoscaler, decision: Decision) -> None:
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

    def _log(self, autoscaler: Autoscaler, outcome: Outcome) -> None:
        decision = outcome.decision
        facts = {
            "hpa": autoscaler.key,
            "target": str(autoscaler.hpa.spec.scale_target_ref),
            "from": decision.current,
            "to": decision.desired,
            "reason": decision.reason,
        }
        if outcome.scale_error is None:
            log.info("scaled", extra={"facts": facts})
        else:
            log.warning("not scaled", extra={"facts": facts | {"error": outcome.scale_error}})


def record_of(seen: Observation, outcome: Outcome) -> Record:
    """Return the record of a decision and its fate."""
    return Record(
        observation=seen,
        decision=outcome.decision,
        scale_error=outcome.scale_error,
        status_error=outcome.status_error,
        is_dry_run=outcome.is_dry_run,
    )
