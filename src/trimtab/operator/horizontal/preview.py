"""Decides about HPAs as a sync would, and writes nothing: for `explain` on the spot and for the dashboard."""

import logging
from collections.abc import AsyncIterator, Iterable, Sequence

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.decide.horizontal import FetchFailure, Observation, Record, decide
from trimtab.decide.horizontal.status.dry_run import as_dry_run, must_not_scale
from trimtab.operator.horizontal.inputs.hpa_cache import HpaState
from trimtab.operator.horizontal.inputs.targets import ResolvedTarget
from trimtab.operator.horizontal.reconciler import Answers, Reconciler
from trimtab.operator.horizontal.snapshot import SnapshotBuilder

log = logging.getLogger(__name__)


class Preview:
    """Makes the decisions that whoever acts would make, from the memory that the objects carry."""

    def __init__(self, clock: Clock, observer: SnapshotBuilder, reconciler: Reconciler) -> None:
        self._clock = clock
        self._observer = observer
        self._reconciler = reconciler

    async def one(self, autoscaler: HpaState, everyone: Iterable[HpaState]) -> Record:
        """Decide about one HPA."""
        aims = await self._aims(everyone)
        if autoscaler.uid not in aims:
            aims[autoscaler.uid] = await self._reconciler.find_target(
                autoscaler
            )  # raises why it was left out
        answers = await self._answers([autoscaler], aims)
        seen = await self._seen(autoscaler, aims[autoscaler.uid], answers)
        return Record(
            observation=seen, decision=as_dry_run(seen, decide(seen, self._clock.now())), is_dry_run=True
        )

    async def all(self, everyone: Sequence[HpaState]) -> AsyncIterator[tuple[HpaState, Record]]:
        """Decide about every HPA, and ask each question once."""
        aims = await self._aims(everyone)
        aimed = [autoscaler for autoscaler in everyone if autoscaler.uid in aims]
        answers = await self._answers(aimed, aims)
        for autoscaler in aimed:
            try:
                seen = await self._seen(autoscaler, aims[autoscaler.uid], answers)
                decision = decide(seen, self._clock.now())
            except (errors.ClusterError, ValueError, KeyError) as error:
                # A KeyError is a spec that changed since its questions were asked: the next look asks its own.
                log.warning("%s cannot be looked at: %s", autoscaler.key, error)
                continue
            is_dry_run = must_not_scale(seen.hpa, seen.gates)
            told = as_dry_run(seen, decision) if is_dry_run else decision
            yield autoscaler, Record(observation=seen, decision=told, is_dry_run=is_dry_run)

    async def _aims(self, everyone: Iterable[HpaState]) -> dict[str, ResolvedTarget]:
        """Find out what all of them scale: a decision about one depends on the targets of the others."""
        aims: dict[str, ResolvedTarget] = {}
        for autoscaler in everyone:
            try:
                aims[autoscaler.uid] = await self._reconciler.find_target(autoscaler)
            except errors.ClusterError as error:
                log.warning("%s cannot be looked at: %s", autoscaler.key, error)
                continue
            self._observer.aimed(autoscaler, aims[autoscaler.uid])
        return aims

    async def _answers(self, autoscalers: Iterable[HpaState], aims: dict[str, ResolvedTarget]) -> Answers:
        questions = [
            question
            for autoscaler in autoscalers
            for question in await self._observer.find_questions(autoscaler, aims[autoscaler.uid])
            if not isinstance(question, FetchFailure)
        ]
        return await self._reconciler.ask(dict.fromkeys(questions))

    async def _seen(self, autoscaler: HpaState, aim: ResolvedTarget, answers: Answers) -> Observation:
        sight = self._observer.look(autoscaler)
        owners = await self._observer.find_owners(autoscaler, sight)
        current = None if aim.scale is None else aim.scale.spec.replicas
        memory = autoscaler.memory.preview(current, self._clock.now().timestamp())
        return self._observer.observe(autoscaler, aim, sight, answers, owners, memory)
