"""Takes one HPA through its turn: observe, decide, write, and on a conflict once more on fresh reads."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.leases.epoch import Epoch
from trimtab.decide.horizontal import Decision, Observation, decide
from trimtab.decide.horizontal.records.unchanged import continued, steady
from trimtab.metrics.queries import Query
from trimtab.operator.horizontal.inputs.hpa_cache import HpaState
from trimtab.operator.horizontal.inputs.metric_queries import (
    Answer,
    MetricQueries,
    queries_for_hpa,
)
from trimtab.operator.horizontal.inputs.owners import Found
from trimtab.operator.horizontal.inputs.targets import ResolvedTarget, TargetCache
from trimtab.operator.horizontal.inputs.turn import Turn
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.horizontal.snapshot import MatchedPods, SnapshotBuilder
from trimtab.operator.horizontal.writer import (
    DecideAgain,
    ScaleUnknown,
    Writer,
    WriteResult,
    record_of,
)
from trimtab.operator.ownership import Ownership

log = logging.getLogger(__name__)

Answers = Mapping[Query, Answer]

MOST_TRIES = 3
"""How often one turn decides anew about an object that keeps changing; the next sync comes soon enough."""


class Decided(msgspec.Struct, frozen=True):
    """A decision that has something to write, and what it was made on."""

    aim: ResolvedTarget
    seen: Observation
    outcome: WriteResult


class Reconciler:
    """Decides about one HPA at a time and carries the decision out; many turns go on side by side."""

    def __init__(
        self,
        clock: Clock,
        ownership: Ownership,
        targets: TargetCache,
        observer: SnapshotBuilder,
        writer: Writer,
        telemetry: HpaControllerMetrics,
    ) -> None:
        self._clock = clock
        self._ownership = ownership
        self._targets = targets
        self._observer = observer
        self._writer = writer
        self._telemetry = telemetry
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], turns: Iterable[Turn] = ()) -> None:
        """Start work that holds these turns: when it ends, however it ends, so does each turn it still holds."""
        held = tuple(turns)
        holder = object()
        for turn in held:
            turn.holder = holder
        task = asyncio.ensure_future(self._hold(work, held, holder))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hold(self, work: Coroutine[Any, Any, None], turns: tuple[Turn, ...], holder: object) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the one boundary: one bad object or answer stops no other
            self.fail([turn for turn in turns if turn.holder is holder], error)
        finally:
            for turn in turns:
                if turn.holder is holder:
                    turn.end()

    def fail(self, turns: Iterable[Turn], error: Exception) -> None:
        """End turns that an unexpected error stopped; each is counted, logged, and taken up again in the next sync."""
        keys = []
        for turn in turns:
            keys.append(turn.autoscaler.key)
            self._telemetry.failures.inc()
            turn.end()
        log.error("not decided in this sync: hpa %s: %s", ", ".join(keys) or "-", error, exc_info=error)

    async def settle(self) -> None:
        """Wait until everything that was started is done, writes included."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Drop what is under way; nothing is left half written, because every write stands for itself."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def reconcile(self, turn: Turn, decided: Decided | None = None) -> None:
        """Take an HPA to the end of its turn; what was `decided` already is written first."""
        while True:
            try:
                decided = decided or await self._decide_alone(turn)
                if decided is None:
                    return
                await self._writer.apply(turn.autoscaler, decided.aim, decided.seen, decided.outcome)
            except errors.Fenced:
                self._leave_to_the_next(turn, decided)
                return
            except ScaleUnknown as why:
                self._leave_in_doubt(turn, why)
                return
            except DecideAgain as why:
                if not await self._refresh(turn, why):
                    return
                decided = None
            else:
                self.complete(turn, decided)
                return

    async def reconcile_with_owners(
        self, turn: Turn, plan: MetricQueries, sight: MatchedPods, answers: Answers
    ) -> None:
        """Look up the owners of the pods, decide, and write."""
        autoscaler = turn.autoscaler
        owners = await self._observer.find_owners(autoscaler, sight)
        if autoscaler.hpa.spec is not plan.spec:
            await self.reconcile(turn)
            return
        try:
            decided = self.decide(turn, plan, sight, answers, owners, self._ownership.epochs())
        except DecideAgain:
            await self.reconcile(turn)
            return
        if isinstance(decided, Decision):
            self._telemetry.repeated((decided,), self._clock.monotonic() - turn.started)
        elif decided is not None:
            await self.reconcile(turn, decided)

    def decide(
        self,
        turn: Turn,
        plan: MetricQueries,
        sight: MatchedPods,
        answers: Answers,
        owners: dict[str, Found],
        epochs: Mapping[int, Epoch],
    ) -> Decided | Decision | None:
        """Decide about one HPA: return what is to be written, or the last decision if this one would repeat it.

        None: nothing is left to do, because there is nothing to write or because another process decides now. It
        raises `DecideAgain` if the target has to be read first.
        """
        autoscaler = turn.autoscaler
        epoch = epochs.get(self._ownership.share(autoscaler.key))
        if epoch is None or autoscaler.is_gone:
            turn.end()
            return None
        now = self._clock.now()
        moment = now.timestamp()
        self._remember(autoscaler, epoch, plan.aim, moment)
        if not owners and self._observer.repeats(autoscaler, plan, sight, answers, moment):
            return self._repeat(turn, moment)
        seen = self._observer.observe(autoscaler, plan.aim, sight, answers, owners)
        if autoscaler.steady is not None and autoscaler.steady.covers(seen, moment):
            return self._repeat(turn, moment)
        autoscaler.steady = None
        decided = Decided(plan.aim, seen, self._writer.begin(autoscaler, seen, decide(seen, now)))
        if self._writer.is_quiet(decided.outcome.decision) and not autoscaler.memory.must_store:
            self.complete(turn, decided)
            return None
        return decided

    def decide_early(self, autoscaler: HpaState, plan: MetricQueries, answers: Answers) -> Decided | None:
        """Decide between two syncs; return the decision only if it scales: everything else is for the next sync."""
        sight = self._observer.look(autoscaler)
        epoch = self._ownership.epochs().get(self._ownership.share(autoscaler.key))
        owners = self._observer.known_owners(autoscaler, sight)
        if epoch is None or autoscaler.memory.epoch is not epoch or owners is None:
            return None
        now = self._clock.now()
        self._follow_wall_clock(autoscaler, now.timestamp())
        seen = self._observer.observe(autoscaler, plan.aim, sight, answers, owners)
        outcome = self._writer.begin(autoscaler, seen, decide(seen, now))
        return Decided(plan.aim, seen, outcome) if outcome.decision.scale_to is not None else None

    def complete(self, turn: Turn, decided: Decided) -> None:
        """Keep what a decision leaves behind, and end the turn."""
        autoscaler, decision = turn.autoscaler, decided.outcome.decision
        autoscaler.memory.keep(decision.memory)
        autoscaler.records.append(record_of(decided.seen, decided.outcome))
        if decision.action != "none":
            autoscaler.scaled_at = self._clock.monotonic()
        autoscaler.steady = steady(decided.seen, decision)
        turn.end()
        meta = autoscaler.hpa.metadata
        self._telemetry.decided(meta.namespace, meta.name, decision, self._clock.monotonic() - turn.started)

    async def find_target(self, autoscaler: HpaState) -> ResolvedTarget:
        """Return the target of an HPA, from a watch where that can be believed."""
        hpa = autoscaler.hpa
        reference, namespace = hpa.spec.scale_target_ref, hpa.metadata.namespace
        cached = self._targets.cached(reference, namespace)
        if cached is not None and not self._observer.must_read(autoscaler, cached):
            return cached
        return await self._targets.read(reference, namespace)

    async def _decide_alone(self, turn: Turn) -> Decided | None:
        """Decide about one HPA, whatever has to be looked up for it; None if nothing is left to do."""
        autoscaler = turn.autoscaler
        while not autoscaler.is_gone:
            spec = autoscaler.hpa.spec
            aim = await self.find_target(autoscaler)
            self._observer.aimed(autoscaler, aim)
            plan = queries_for_hpa(autoscaler.hpa, aim, await self._observer.find_questions(autoscaler, aim))
            answers = await self.ask(plan.wanted)
            sight = self._observer.look(autoscaler)
            owners: dict[str, Found] = {}
            if self._observer.needs_owners(autoscaler, sight):
                owners = await self._observer.find_owners(autoscaler, sight)
            if autoscaler.hpa.spec is not spec:
                continue  # what the old spec asked for says nothing about the new one's metrics
            decided = self.decide(turn, plan, sight, answers, owners, self._ownership.epochs())
            if isinstance(decided, Decision):
                self._telemetry.repeated((decided,), self._clock.monotonic() - turn.started)
                return None
            return decided
        return None

    async def ask(self, questions: Iterable[Query]) -> dict[Query, Answer]:
        """Ask each question once, all at the same time."""
        asked = list(questions)
        answers = await asyncio.gather(*(self._observer.questions.ask(query) for query in asked))
        return dict(zip(asked, answers, strict=True))

    async def _refresh(self, turn: Turn, why: DecideAgain) -> bool:
        """Read everything afresh after a conflict; return whether the HPA is to be decided anew in this turn."""
        autoscaler = turn.autoscaler
        self._telemetry.decided_again.inc()
        turn.tries += 1
        if autoscaler.is_gone or turn.tries >= MOST_TRIES:
            if not autoscaler.is_gone:
                log.warning(
                    "hpa %s: not decided in this sync: it changed %d times: %s",
                    autoscaler.key,
                    turn.tries,
                    why,
                )
            return False
        autoscaler.memory.start_over()
        try:
            await self._writer.read_again(autoscaler)
        except errors.ClusterError as error:
            log.warning(
                "hpa %s: not decided in this sync: it cannot be read again: %s", autoscaler.key, error
            )
            return False
        return True

    def _leave_to_the_next(self, turn: Turn, decided: Decided | None) -> None:
        """Stop, because another may lead now; a scale that was written before counts should the epoch go on."""
        decision = None if decided is None else decided.outcome.decision
        if decision is not None and decision.action != "none":
            turn.autoscaler.memory.keep(decision.memory)

    def _leave_in_doubt(self, turn: Turn, why: ScaleUnknown) -> None:
        """Leave the status alone: the next look at the target tells whether the scale was written."""
        autoscaler, decision = turn.autoscaler, why.decision
        autoscaler.memory.doubt(decision.memory, decision.now)
        self._writer.tell(autoscaler, decision)
        self._telemetry.failures.inc()
        log.warning(
            "hpa %s: it is not known whether the scale %d was written; it is read again in the next sync: %s",
            autoscaler.key,
            decision.desired,
            why,
        )

    def _remember(self, autoscaler: HpaState, epoch: Epoch, aim: ResolvedTarget, now: float) -> None:
        current = None if aim.scale is None else aim.scale.spec.replicas
        if current is not None and not aim.is_read and autoscaler.memory.contradicts(epoch, current):
            self._targets.doubt(aim)
            raise DecideAgain("the target may be older than what the last leader left behind")
        if autoscaler.memory.begin(epoch, current, now, self._clock.monotonic()):
            autoscaler.steady = None
        self._follow_wall_clock(autoscaler, now)

    def _follow_wall_clock(self, autoscaler: HpaState, now: float) -> None:
        if autoscaler.memory.follow_wall_clock(now, self._clock.monotonic()):
            autoscaler.steady = None

    def _repeat(self, turn: Turn, now: float) -> Decision:
        """Leave everything as the last decision left it, only later, and return that decision."""
        autoscaler = turn.autoscaler
        assert autoscaler.steady is not None
        autoscaler.memory.own = continued(autoscaler.memory.own, now)
        turn.end()
        return autoscaler.steady.decision
