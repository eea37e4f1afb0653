"""Decides about HPAs as a sync would, and writes nothing: for `explain` on the spot and for the dashboard."""

import logging
from collections.abc import AsyncIterator, Iterable, Sequence

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.decide.horizontal import Failed, Observation, Record, decide
from trimtab.decide.horizontal.decision import is_only_told, only_told
from trimtab.operator.horizontal.inputs.hpa_cache import Autoscaler
from trimtab.operator.horizontal.inputs.targets import Aim
from trimtab.operator.horizontal.reconciler import Answers, Reconciler
from trimtab.operator.horizontal.snapshot import Observer

log = logging.getLogger(__name__)


class Preview:
    """Makes the decisions that whoever acts would make, from the memory that the objects carry."""

    def __init__(self, clock: Clock, observer: Observer, reconciler: Reconciler) -> None:
        self._clock = clock
        self._observer = observer
        self._reconciler = reconciler

    async def one(self, autoscaler: Autoscaler, everyone: Iterable[Autoscaler]) -> Record:
        """Decide about one HPA."""
        aims = await self._aims(everyone)
        if autoscaler.uid not in aims:
            aims[autoscaler.uid] = await self._reconciler.find_target(
                autoscaler
            )  # raises why it was left out
        answers = await self._answers([autoscaler], aims)
        seen = await self._seen(autoscaler, aims[autoscaler.uid], answers)
        return Record(
            observation=seen, decision=only_told(seen, decide(seen, self._clock.now())), is_dry_run=True
        )

    async def all(self, everyone: Sequence[Autoscaler]) -> AsyncIterator[tuple[Autoscaler, Record]]:
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
            is_dry_run = is_only_told(seen)
            told = only_told(seen, decision) if is_dry_run else decision
            yield autoscaler, Record(observation=seen, decision=told, is_dry_run=is_dry_run)

    async def _aims(self, everyone: Iterable[Autoscaler]) -> dict[str, Aim]:
        """Find out what all of them scale: a decision about one depends on the targets of the others."""
        aims: dict[str, Aim] = {}
        for autoscaler in everyone:
            try:
                aims[autoscaler.uid] = await self._reconciler.find_target(autoscaler)
            except errors.ClusterError as error:
                log.warning("%s cannot be looked at: %s", autoscaler.key, error)
                continue
            self._observer.aimed(autoscaler, aims[autoscaler.uid])
        return aims

    async def _answers(self, autoscalers: Iterable[Autoscaler], aims: dict[str, Aim]) -> Answers:
        questions = [
            question
            for autoscaler in autoscalers
            for question in await self._observer.find_questions(autoscaler, aims[autoscaler.uid])
            if not isinstance(question, Failed)
        ]
        return await self._reconciler.ask(dict.fromkeys(questions))

    async def _seen(self, autoscaler: Autoscaler, aim: Aim, answers: Answers) -> Observation:
        sight = self._observer.look(autoscaler)
        owners = await self._observer.find_owners(autoscaler, sight)
        current = None if aim.scale is None else aim.scale.spec.replicas
        memory = autoscaler.memory.preview(current, self._clock.now().timestamp())
        return self._observer.observe(autoscaler, aim, sight, answers, owners, memory)
