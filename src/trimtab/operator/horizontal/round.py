"""One loop for all HPAs.

A round asks each distinct question once. Autoscalers that wait for the same answers form a group; a group is decided
in one go as soon as its answers are there, so a slow source delays those who asked it and nobody else. Decisions
that need writes go to a few writers, scales first. An autoscaler that is still being dealt with when the next round
comes is left out of it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from math import inf
from typing import Any

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.decide.horizontal import Decision, Failed, Observation, Record, decide
from trimtab.decide.horizontal.dryrun import only_told
from trimtab.decide.horizontal.memory import retimed
from trimtab.decide.horizontal.resume import resumed
from trimtab.decide.horizontal.steady import continued, steady
from trimtab.metrics.queries import Query
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec
from trimtab.operator.horizontal.autoscalers import Autoscaler
from trimtab.operator.horizontal.observe import Observer, Sight
from trimtab.operator.horizontal.owners import Found
from trimtab.operator.horizontal.plans import Plan, Wanted, namespaces_of, plan_of
from trimtab.operator.horizontal.questions import Answer
from trimtab.operator.horizontal.queueing import WriteQueue
from trimtab.operator.horizontal.targets import Aim, Targets
from trimtab.operator.horizontal.telemetry import Telemetry
from trimtab.operator.horizontal.usage import EVERYWHERE
from trimtab.operator.horizontal.writes import DecideAgain, Outcome, Writer, record_of

log = logging.getLogger(__name__)

Answers = dict[Query, Answer]

MOST_TRIES = 3
"""How often one round decides anew about an object that keeps changing; the next round comes soon enough."""

AT_ONCE = 200
"""Decisions in a row before anybody else has a turn: about ten milliseconds."""

CLOCK_JUMP_SECONDS = 1.0
"""A wall clock that gains or loses more than this between two decisions was set; less is its usual drift."""


class Due(msgspec.Struct, frozen=True):
    """An autoscaler that waits for answers; they are of use only while its spec is the one they were asked for."""

    autoscaler: Autoscaler
    spec: HorizontalPodAutoscalerSpec
    plan: Plan
    started: float
    tries: int = 0


class Job(msgspec.Struct, frozen=True):
    """A decision on its way to the writers."""

    due: Due
    seen: Observation
    outcome: Outcome


class Round:
    """Decides about autoscalers, all or some, and carries the decisions out."""

    def __init__(
        self,
        clock: Clock,
        targets: Targets,
        observer: Observer,
        writer: Writer,
        telemetry: Telemetry,
        *,
        writers: int,
    ) -> None:
        self._clock = clock
        self._targets = targets
        self._observer = observer
        self.questions = observer.questions
        self._writer = writer
        self._telemetry = telemetry
        self._whole = observer.questions.whole
        self._tasks: set[asyncio.Task[None]] = set()
        self._writes = WriteQueue(self._write, self._start, writers=writers)
        self.last_alive: float | None = None
        """When somebody last decided before we did; None: when we start."""

    def begin(self, autoscalers: Iterable[Autoscaler], beside: Iterable[Autoscaler] = ()) -> None:
        """Start a round over those that are not still busy with the last one; others are looked at `beside` it."""
        started = self._clock.monotonic()
        ready: list[Due] = []
        for one in [one for one in autoscalers if not one.is_busy]:
            one.is_busy, one.not_before = True, -inf
            plan = self.plan(one)
            if plan is None:
                self._start(self._look_up(one, None, started))
            else:
                ready.append(Due(one, one.hpa.spec, plan, started))
        for questions, group in self._grouped(ready, beside).items():
            self._start(self._decide_group(questions, group))
        self._telemetry.cycles.inc()

    def notice(self, autoscalers: Iterable[Autoscaler]) -> None:
        """Take in where those aim that another copy decides: two that claim the same pods are noticed by both."""
        for one in autoscalers:
            aim = self._targets.cached(one.hpa.spec.scale_target_ref, one.hpa.metadata.namespace)
            if aim is not None:
                self._observer.aimed(one, aim)

    def plan(self, autoscaler: Autoscaler) -> Plan | None:
        """Return what to ask for an autoscaler; None if that, or its target, has to be looked up."""
        hpa = autoscaler.hpa
        aim = self._targets.cached(hpa.spec.scale_target_ref, hpa.metadata.namespace)
        return None if aim is None else self._observer.plan(autoscaler, aim)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done beside; it ends with the round's own work."""
        self._start(work)

    def scale_early(self, autoscaler: Autoscaler, plan: Plan, answers: Answers) -> None:
        """Decide out of turn, and carry it out only if it scales: everything else is for the next round."""
        try:
            sight = self._observer.look(autoscaler)
            if self._observer.needs_owners(autoscaler, sight):
                return
            now = self._clock.now()
            self._follow_wall_clock(autoscaler, now.timestamp())
            seen = self._observer.observe(autoscaler, plan.aim, sight, answers, {})
            outcome = self._writer.begin(autoscaler, seen, decide(seen, now))
        except Exception as error:  # noqa: BLE001 - one bad object stops no other
            self._failed(autoscaler, error)
            return
        if outcome.decision.scale_to is not None:
            autoscaler.is_busy, autoscaler.steady = True, None
            due = Due(autoscaler, autoscaler.hpa.spec, plan, self._clock.monotonic())
            self._writes.put(Job(due, seen, outcome), is_urgent=True)
            self._telemetry.early.inc()

    async def only_decide(self, autoscaler: Autoscaler, everyone: Iterable[Autoscaler]) -> Record:
        """Decide about one autoscaler as a round would, and write nothing."""
        aims = await self._aims(everyone)
        if autoscaler.uid not in aims:
            aims[autoscaler.uid] = await self._find(autoscaler)  # raises why it was left out
        answers = await self._answers([autoscaler], aims)
        seen = await self._seen(autoscaler, aims[autoscaler.uid], answers)
        return Record(
            observation=seen, decision=only_told(seen, decide(seen, self._clock.now())), is_dry_run=True
        )

    async def look_on(self, everyone: Sequence[Autoscaler]) -> AsyncIterator[tuple[Autoscaler, Record]]:
        """Decide about every autoscaler as a round would, write nothing, and ask each question once."""
        aims = await self._aims(everyone)
        aimed = [one for one in everyone if one.uid in aims]
        answers = await self._answers(aimed, aims)
        for one in aimed:
            try:
                seen = await self._seen(one, aims[one.uid], answers)
                decision = decide(seen, self._clock.now())
            except (errors.ClusterError, ValueError, KeyError) as error:
                # A KeyError is a spec that changed since its questions were asked: the next look asks its own.
                log.warning("%s cannot be looked at: %s", one.key, error)
                continue
            told = only_told(seen, decision) if one.is_dry_run else decision
            yield one, Record(observation=seen, decision=told, is_dry_run=one.is_dry_run)

    async def _aims(self, everyone: Iterable[Autoscaler]) -> dict[str, Aim]:
        """Find out what all of them scale: a decision about one depends on the targets of the others."""
        aims: dict[str, Aim] = {}
        for one in everyone:
            try:
                aims[one.uid] = await self._find(one)
            except errors.ClusterError as error:
                log.warning("%s cannot be looked at: %s", one.key, error)
                continue
            self._observer.aimed(one, aims[one.uid])
        return aims

    async def _answers(self, autoscalers: Iterable[Autoscaler], aims: dict[str, Aim]) -> dict[Query, Answer]:
        questions = [
            question
            for one in autoscalers
            for question in await self._observer.find_questions(one, aims[one.uid])
            if not isinstance(question, Failed)
        ]
        distinct = list(dict.fromkeys(questions))
        return dict(
            zip(distinct, await asyncio.gather(*(self.questions.ask(one) for one in distinct)), strict=True)
        )

    async def _seen(self, autoscaler: Autoscaler, aim: Aim, answers: dict[Query, Answer]) -> Observation:
        sight = self._observer.look(autoscaler)
        owners = await self._observer.find_owners(autoscaler, sight)
        self._resume(autoscaler, aim)
        return self._observer.observe(autoscaler, aim, sight, answers, owners)

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

    async def _look_up(self, autoscaler: Autoscaler, aim: Aim | None, started: float, tries: int = 0) -> None:
        """Prepare one autoscaler whose target or questions are not in any cache."""
        spec = autoscaler.hpa.spec
        try:
            aim = aim or await self._find(autoscaler)
            self._observer.aimed(autoscaler, aim)
            plan = plan_of(autoscaler.hpa, aim, await self._observer.find_questions(autoscaler, aim))
        except Exception as error:  # noqa: BLE001 - one bad object stops no other
            self._failed(autoscaler, error)
            return
        await self._decide_group(plan.wanted, [Due(autoscaler, spec, plan, started, tries)])

    async def _decide_group(self, questions: Wanted, group: list[Due]) -> None:
        ordered = list(questions)
        answers = dict(
            zip(ordered, await asyncio.gather(*(self.questions.ask(one) for one in ordered)), strict=True)
        )
        everywhere = answers.get(EVERYWHERE)
        if isinstance(everywhere, Failed):
            self._whole.failed(everywhere.message)
            self._ask_by_namespace(group)
            return
        if everywhere is not None:
            self._whole.worked()
        repeated: list[Decision] = []
        for number, due in enumerate(group, start=1):
            self._decide(due, answers, repeated)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        taken = self._clock.monotonic() - group[0].started
        self._telemetry.repeated(repeated, taken)
        self._telemetry.cycle_duration.observe(taken)

    def _ask_by_namespace(self, group: list[Due]) -> None:
        """Ask what one list for all did not answer, in this same round: nobody stays blind for a list too long."""
        apart: dict[Wanted, list[Due]] = {}
        for due in group:
            apart.setdefault(due.plan.wanted, []).append(due)
        for questions, part in apart.items():
            self._start(self._decide_group(questions, part))

    def _grouped(self, due: Sequence[Due], beside: Iterable[Autoscaler]) -> dict[Wanted, list[Due]]:
        """Put those that wait for the same answers together; what others ask for as well is asked for together."""
        plans = [*(one.plan for one in due), *filter(None, map(self.plan, beside))]
        whole = self._whole.pays(namespaces_of(plans))
        groups: dict[Wanted, list[Due]] = {}
        for one in due:
            groups.setdefault(one.plan.wanted_whole if whole else one.plan.wanted, []).append(one)
        return groups

    def _decide(self, due: Due, answers: Answers, repeated: list[Decision]) -> None:
        autoscaler = due.autoscaler
        if autoscaler.is_gone:
            autoscaler.is_busy = False
            return
        if autoscaler.hpa.spec is not due.spec:
            # What the old spec asked for says nothing about the new one's metrics.
            self._start(self._look_up(autoscaler, None, due.started, due.tries))
            return
        try:
            sight = self._observer.look(autoscaler)
            if self._observer.needs_owners(autoscaler, sight):
                # Owners may have to be asked for; nobody else waits for that.
                self._start(self._decide_with_owners(due, sight, answers))
            else:
                last = self._decide_one(due, sight, answers, {})
                if last is not None:
                    repeated.append(last)
        except Exception as error:  # noqa: BLE001 - one bad object stops no other
            self._failed(autoscaler, error)

    async def _decide_with_owners(self, due: Due, sight: Sight, answers: Answers) -> None:
        try:
            owners = await self._observer.find_owners(due.autoscaler, sight)
            if due.autoscaler.hpa.spec is not due.spec:
                self._start(self._look_up(due.autoscaler, None, due.started, due.tries))
                return
            last = self._decide_one(due, sight, answers, owners)
            if last is not None:
                self._telemetry.repeated((last,), self._clock.monotonic() - due.started)
        except Exception as error:  # noqa: BLE001 - one bad object stops no other
            self._failed(due.autoscaler, error)

    def _decide_one(
        self, due: Due, sight: Sight, answers: Answers, owners: dict[str, Found]
    ) -> Decision | None:
        """Decide and have it carried out; return the last decision instead if this would only repeat it."""
        autoscaler = due.autoscaler
        self._resume(autoscaler, due.plan.aim)
        now = self._clock.now()
        moment = now.timestamp()
        self._follow_wall_clock(autoscaler, moment)
        if not owners and self._observer.repeats(autoscaler, due.plan, sight, answers, moment):
            return self._repeat(autoscaler, moment)
        seen = self._observer.observe(autoscaler, due.plan.aim, sight, answers, owners)
        if autoscaler.steady is not None and autoscaler.steady.covers(seen, moment):
            return self._repeat(autoscaler, moment)
        autoscaler.steady = None
        decision = decide(seen, now)
        job = Job(due, seen, self._writer.begin(autoscaler, seen, decision))
        if self._writer.is_quiet(decision):
            self._finish(job)
        else:
            self._writes.put(job, is_urgent=job.outcome.decision.scale_to is not None)
        return None

    def _repeat(self, autoscaler: Autoscaler, now: float) -> Decision:
        """Leave everything as the last decision left it, only later, and return that decision."""
        assert autoscaler.steady is not None
        autoscaler.memory = continued(autoscaler.memory, now)
        autoscaler.is_busy = False
        return autoscaler.steady.decision

    async def _write(self, job: Job) -> None:
        """Carry out the next step of a decision: its scale, and when it is its turn again, its status and events."""
        autoscaler = job.due.autoscaler
        try:
            if job.outcome.decision.scale_to is not None:
                await self._writer.scale(autoscaler, job.due.plan.aim, job.seen, job.outcome)
                self._writes.put(job, is_urgent=False)
                return
            await self._writer.finish(autoscaler, job.seen, job.outcome)
        except DecideAgain as why:
            self._start(self._decide_again(job.due, why))
        except errors.Fenced:
            autoscaler.is_busy = False  # another leads now; what we decided no longer matters
        except Exception as error:  # noqa: BLE001 - one bad object stops no other
            self._failed(autoscaler, error)
        else:
            self._finish(job)

    async def _decide_again(self, due: Due, why: DecideAgain) -> None:
        """Look at everything afresh and decide anew; the old number is never sent again (fault F15)."""
        self._telemetry.decided_again.inc()
        autoscaler = due.autoscaler
        if autoscaler.is_gone or due.tries + 1 >= MOST_TRIES:
            log.debug("%s keeps changing, left for the next round: %s", autoscaler.key, why)
            autoscaler.is_busy = False
            return
        try:
            await self._writer.read_again(autoscaler)
            hpa = autoscaler.hpa
            aim = await self._targets.read(hpa.spec.scale_target_ref, hpa.metadata.namespace)
        except Exception as error:  # noqa: BLE001 - one bad object stops no other
            self._failed(autoscaler, error)
            return
        await self._look_up(autoscaler, aim, due.started, due.tries + 1)

    def _resume(self, autoscaler: Autoscaler, aim: Aim) -> None:
        if autoscaler.is_resumed or aim.scale is None:
            return
        known = autoscaler.last_alive if autoscaler.last_alive is not None else self.last_alive
        alive = self._clock.now().timestamp() if known is None else known
        autoscaler.memory = resumed(autoscaler.memory, aim.scale.spec.replicas, alive)
        autoscaler.is_resumed = True
        autoscaler.steady = None

    def _follow_wall_clock(self, autoscaler: Autoscaler, now: float) -> None:
        """Move what is remembered along when somebody sets the wall clock, so that no window moves (fault F27)."""
        offset = now - self._clock.monotonic()
        jump = 0.0 if autoscaler.clock_offset is None else offset - autoscaler.clock_offset
        if abs(jump) > CLOCK_JUMP_SECONDS:
            autoscaler.memory = retimed(autoscaler.memory, lambda at: at + jump)
            autoscaler.steady = None
        autoscaler.clock_offset = offset

    def _finish(self, job: Job) -> None:
        autoscaler, decision = job.due.autoscaler, job.outcome.decision
        autoscaler.memory = decision.memory
        autoscaler.records.append(record_of(job.seen, job.outcome))
        if decision.action != "none":
            autoscaler.scaled_at = self._clock.monotonic()
        autoscaler.steady = steady(job.seen, decision)
        autoscaler.is_busy = False
        meta = autoscaler.hpa.metadata
        self._telemetry.decided(
            meta.namespace, meta.name, decision, self._clock.monotonic() - job.due.started
        )

    def _failed(self, autoscaler: Autoscaler, error: Exception) -> None:
        """One autoscaler that cannot be decided stops no other; it is tried again in the next round."""
        autoscaler.is_busy = False
        self._telemetry.failures.inc()
        log.error("hpa %s: not decided in this round: %s", autoscaler.key, error, exc_info=error)
