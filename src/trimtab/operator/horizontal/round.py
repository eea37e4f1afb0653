"""One loop for all HPAs.

A round asks each distinct question once. Autoscalers that wait for the same answers form a group; a group is decided
in one go as soon as its answers are there, so a slow source delays those who asked it and nobody else. Decisions
that need writes go to a few writers, scales first. An autoscaler that is still being dealt with when the next round
comes is left out of it.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.decide.horizontal import Decision, Failed, Observation, Record, decide
from trimtab.decide.horizontal.dryrun import only_told
from trimtab.decide.horizontal.resume import resumed
from trimtab.metrics.queries import Query
from trimtab.operator.horizontal.autoscalers import Autoscaler
from trimtab.operator.horizontal.observe import Observer
from trimtab.operator.horizontal.owners import Found
from trimtab.operator.horizontal.questions import Answer, Questions
from trimtab.operator.horizontal.targets import Aim, Targets
from trimtab.operator.horizontal.telemetry import Telemetry
from trimtab.operator.horizontal.writes import DecideAgain, Outcome, Writer, record_of

log = logging.getLogger(__name__)

MOST_TRIES = 3
"""How often one round decides anew about an object that keeps changing; the next round comes soon enough."""


@dataclass(frozen=True, slots=True)
class Job:
    """A decision on its way to the writers."""

    autoscaler: Autoscaler
    aim: Aim
    seen: Observation
    decision: Decision
    answers: dict[Query, Answer]
    started: float
    tries: int = 0


class Round:
    """Decides about autoscalers, all or some, and carries the decisions out."""

    def __init__(
        self,
        clock: Clock,
        targets: Targets,
        observer: Observer,
        questions: Questions,
        writer: Writer,
        telemetry: Telemetry,
        *,
        writers: int,
    ) -> None:
        self._clock = clock
        self._targets = targets
        self._observer = observer
        self._questions = questions
        self._writer = writer
        self._telemetry = telemetry
        self._tasks: set[asyncio.Task[None]] = set()
        self._urgent: asyncio.Queue[Job] = asyncio.Queue()
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()
        self._free = asyncio.Semaphore(writers)
        self.last_alive: float | None = None
        """When somebody last decided before we did; None: when we start."""

    def begin(self, autoscalers: Iterable[Autoscaler]) -> None:
        """Start a round over those that are not still busy with the last one."""
        started = self._clock.monotonic()
        due = [one for one in autoscalers if not one.is_busy]
        ready: list[tuple[Autoscaler, Aim]] = []
        for one in due:
            one.is_busy = True
            aim = self._targets.cached(one.hpa.spec.scale_target_ref, one.hpa.metadata.namespace)
            if aim is None or self._observer.known_questions(one, aim) is None:
                self._start(self._look_up(one, aim, started))
            else:
                ready.append((one, aim))
        for one, aim in ready:
            self._observer.aimed(one, aim)
        for questions, group in _grouped(ready, self._observer).items():
            self._start(self._decide_group(questions, group, started))
        self._telemetry.cycles.inc()

    async def only_decide(self, autoscaler: Autoscaler, everyone: Iterable[Autoscaler]) -> Record:
        """Decide about one autoscaler as a round would, and write nothing."""
        aims = {one.uid: await self._find(one) for one in everyone}
        for one in everyone:
            self._observer.aimed(one, aims[one.uid])
        aim = aims[autoscaler.uid]
        questions = await self._observer.find_questions(autoscaler, aim)
        answers = {one: await self._questions.ask(one) for one in questions if not isinstance(one, Failed)}
        sight = self._observer.look(autoscaler)
        owners = await self._observer.find_owners(autoscaler, sight)
        self._resume(autoscaler, aim)
        seen = self._observer.observe(autoscaler, aim, sight, answers, owners)
        decision = only_told(seen, decide(seen, self._clock.now()))
        return Record(observation=seen, decision=decision, is_dry_run=True)

    async def _find(self, autoscaler: Autoscaler) -> Aim:
        reference, namespace = autoscaler.hpa.spec.scale_target_ref, autoscaler.hpa.metadata.namespace
        return self._targets.cached(reference, namespace) or await self._targets.read(reference, namespace)

    async def settle(self) -> None:
        """Wait until everything that was started is done, writes included."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Drop what is under way; nothing is left half written, because every write stands for itself."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look_up(self, autoscaler: Autoscaler, aim: Aim | None, started: float) -> None:
        """Prepare one autoscaler whose target or questions are not in any cache."""
        try:
            aim = aim or await self._find(autoscaler)
            self._observer.aimed(autoscaler, aim)
            questions = await self._observer.find_questions(autoscaler, aim)
        except Exception as error:  # noqa: BLE001 - one bad object stops no other
            self._failed(autoscaler, error)
            return
        wanted = frozenset(one for one in questions if not isinstance(one, Failed))
        await self._decide_group(wanted, [(autoscaler, aim)], started)

    async def _decide_group(
        self, questions: frozenset[Query], group: list[tuple[Autoscaler, Aim]], started: float
    ) -> None:
        ordered = list(questions)
        answers = dict(
            zip(ordered, await asyncio.gather(*(self._questions.ask(one) for one in ordered)), strict=True)
        )
        for autoscaler, aim in group:
            await self._decide_one(autoscaler, aim, answers, started)
        self._telemetry.cycle_duration.observe(self._clock.monotonic() - started)

    async def _decide_one(
        self, autoscaler: Autoscaler, aim: Aim, answers: dict[Query, Answer], started: float, tries: int = 0
    ) -> None:
        try:
            sight = self._observer.look(autoscaler)
            owners: dict[str, Found] = {}
            if self._observer.needs_owners(autoscaler, sight):
                owners = await self._observer.find_owners(autoscaler, sight)
            self._resume(autoscaler, aim)
            seen = self._observer.observe(autoscaler, aim, sight, answers, owners)
            decision = decide(seen, self._clock.now())
        except Exception as error:  # noqa: BLE001 - one bad object stops no other
            self._failed(autoscaler, error)
            return
        if self._writer.is_quiet(autoscaler, decision):
            self._finish(Job(autoscaler, aim, seen, decision, answers, started), Outcome(decision))
            return
        job = Job(autoscaler, aim, seen, decision, answers, started, tries)
        (self._waiting if decision.scale_to is None else self._urgent).put_nowait(job)
        self._start(self._write_next())

    async def _write_next(self) -> None:
        """Take a free writer and carry out the most urgent decision: scales before statuses."""
        async with self._free:
            queue = self._waiting if self._urgent.empty() else self._urgent
            job = queue.get_nowait()
            try:
                outcome = await self._writer.apply(job.autoscaler, job.aim, job.seen, job.decision)
            except DecideAgain as why:
                await self._decide_again(job, why)
            except errors.Fenced:
                job.autoscaler.is_busy = False  # another leads now; what we decided no longer matters
            except Exception as error:  # noqa: BLE001 - one bad object stops no other
                self._failed(job.autoscaler, error)
            else:
                self._finish(job, outcome)

    async def _decide_again(self, job: Job, why: DecideAgain) -> None:
        """Look at the object afresh and decide anew; the old number is never sent again (fault F15)."""
        self._telemetry.decided_again.inc()
        autoscaler = job.autoscaler
        if job.tries + 1 >= MOST_TRIES:
            log.debug("%s keeps changing, left for the next round: %s", autoscaler.key, why)
            autoscaler.is_busy = False
            return
        hpa = autoscaler.hpa
        aim = await self._targets.read(hpa.spec.scale_target_ref, hpa.metadata.namespace)
        self._observer.aimed(autoscaler, aim)
        await self._decide_one(autoscaler, aim, job.answers, job.started, job.tries + 1)

    def _resume(self, autoscaler: Autoscaler, aim: Aim) -> None:
        if autoscaler.is_resumed or aim.scale is None:
            return
        alive = self._clock.now().timestamp() if self.last_alive is None else self.last_alive
        autoscaler.memory = resumed(autoscaler.memory, aim.scale.spec.replicas, alive)
        autoscaler.is_resumed = True

    def _finish(self, job: Job, outcome: Outcome) -> None:
        autoscaler, decision = job.autoscaler, outcome.decision
        autoscaler.memory = decision.memory
        autoscaler.records.append(record_of(job.seen, outcome))
        autoscaler.is_busy = False
        meta = autoscaler.hpa.metadata
        self._telemetry.decided(meta.namespace, meta.name, decision, self._clock.monotonic() - job.started)

    def _failed(self, autoscaler: Autoscaler, error: Exception) -> None:
        """One autoscaler that cannot be decided stops no other; it is tried again in the next round."""
        autoscaler.is_busy = False
        self._telemetry.failures.inc()
        log.error("hpa %s: not decided in this round: %s", autoscaler.key, error, exc_info=error)


def _grouped(
    ready: Collection[tuple[Autoscaler, Aim]], observer: Observer
) -> dict[frozenset[Query], list[tuple[Autoscaler, Aim]]]:
    """Put those that wait for the same answers together."""
    groups: dict[frozenset[Query], list[tuple[Autoscaler, Aim]]] = {}
    for autoscaler, aim in ready:
        questions = observer.known_questions(autoscaler, aim) or ()
        wanted = frozenset(one for one in questions if not isinstance(one, Failed))
        groups.setdefault(wanted, []).append((autoscaler, aim))
    return groups
