"""Syncs of many HPAs at once: those that wait for the same answers are decided together.

A sync asks each distinct question once. A batch is decided in one go as soon as its answers are there, so a slow
source delays the HPAs that use it and no others. An HPA whose turn still goes on when the next sync comes is left out
of that sync.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from trimtab.clock import Clock
from trimtab.decide.horizontal import Decision, FetchFailure
from trimtab.operator.horizontal.inputs.hpa_cache import HpaState
from trimtab.operator.horizontal.inputs.metric_queries import (
    MetricQueries,
    Wanted,
    namespaces_of,
)
from trimtab.operator.horizontal.inputs.pod_usage import ALL_NAMESPACES
from trimtab.operator.horizontal.inputs.targets import TargetCache
from trimtab.operator.horizontal.inputs.turn import Turn, begin_turn
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.horizontal.reconciler import Answers, Reconciler
from trimtab.operator.horizontal.snapshot import SnapshotBuilder
from trimtab.operator.horizontal.writer import DecideAgain
from trimtab.operator.ownership import Ownership

AT_ONCE = 200
"""Decisions in a row before anything else has a turn on the event loop: about ten milliseconds."""


@dataclass(frozen=True, slots=True)
class Due:
    """An HPA that waits for answers; they are of use only while its spec is the one of the plan."""

    turn: Turn
    plan: MetricQueries


class Batches:
    """Begins the turns of HPAs, all or some, and hands each to the reconciler."""

    def __init__(
        self,
        clock: Clock,
        ownership: Ownership,
        targets: TargetCache,
        observer: SnapshotBuilder,
        reconciler: Reconciler,
        telemetry: HpaControllerMetrics,
    ) -> None:
        self._clock = clock
        self._ownership = ownership
        self._targets = targets
        self._observer = observer
        self._reconciler = reconciler
        self._telemetry = telemetry
        self.questions = observer.questions
        self._whole = observer.questions.whole

    def begin(self, autoscalers: Iterable[HpaState], beside: Iterable[HpaState] = ()) -> None:
        """Begin a sync of those whose last turn has ended; what others ask for is asked `beside` it."""
        started = self._clock.monotonic()
        due: list[Due] = []
        for autoscaler in [idle for idle in autoscalers if not idle.is_busy]:
            autoscaler.not_before = -inf
            turn = begin_turn(autoscaler, started, self)
            plan = self.plan(autoscaler)
            if plan is None:
                self._reconciler.start(self._reconciler.reconcile(turn), [turn])
            else:
                due.append(Due(turn, plan))
        for questions, batch in self._grouped(due, beside).items():
            self._start(questions, batch)
        self._telemetry.cycles.inc()

    def register_foreign_targets(self, autoscalers: Iterable[HpaState]) -> None:
        """Take in the targets of HPAs that another replica decides: both notice when two claim the same pods."""
        for autoscaler in autoscalers:
            hpa = autoscaler.hpa
            aim = self._targets.cached(hpa.spec.scale_target_ref, hpa.metadata.namespace)
            if aim is not None:
                self._observer.aimed(autoscaler, aim)

    def plan(self, autoscaler: HpaState) -> MetricQueries | None:
        """Return what to ask for an HPA; None if that, or its target, has to be looked up."""
        hpa = autoscaler.hpa
        try:
            aim = self._targets.cached(hpa.spec.scale_target_ref, hpa.metadata.namespace)
            return None if aim is None else self._observer.plan(autoscaler, aim)
        except Exception:  # noqa: BLE001 - the reconciler meets it again, where it ends this HPA's turn alone
            return None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that holds no turn; it ends with the reconciler's own work."""
        self._reconciler.start(work)

    def scale_early(self, autoscaler: HpaState, plan: MetricQueries, answers: Answers) -> None:
        """Decide out of turn, and write it only if it scales."""
        turn = begin_turn(autoscaler, self._clock.monotonic(), self)
        try:
            decided = self._reconciler.decide_early(autoscaler, plan, answers)
        except Exception as error:  # noqa: BLE001 - one bad object stops no other
            self._reconciler.fail([turn], error)
            return
        if decided is None:
            turn.end()
            return
        autoscaler.steady = None
        self._reconciler.start(self._reconciler.reconcile(turn, decided), [turn])
        self._telemetry.early.inc()

    def _start(self, questions: Wanted, batch: list[Due]) -> None:
        self._reconciler.start(self._decide_batch(questions, batch), [due.turn for due in batch])

    async def _decide_batch(self, questions: Wanted, batch: list[Due]) -> None:
        answers = await self._reconciler.ask(questions)
        everywhere = answers.get(ALL_NAMESPACES)
        if isinstance(everywhere, FetchFailure):
            self._whole.failed(everywhere.message)
            self._ask_by_namespace(batch)
            return
        if everywhere is not None:
            self._whole.worked()
        repeated: list[Decision] = []
        for first in range(0, len(batch), AT_ONCE):
            self._decide_some(batch[first : first + AT_ONCE], answers, repeated)
            if first + AT_ONCE < len(batch):
                await asyncio.sleep(0)
        taken = self._clock.monotonic() - batch[0].turn.started
        self._telemetry.repeated(repeated, taken)
        self._telemetry.cycle_duration.observe(taken)

    def _ask_by_namespace(self, batch: list[Due]) -> None:
        """Ask what one list for all did not answer, in this same sync: no HPA stays blind for a list too long."""
        apart: dict[Wanted, list[Due]] = {}
        for due in batch:
            apart.setdefault(due.plan.wanted, []).append(due)
        for questions, part in apart.items():
            self._start(questions, part)

    def _grouped(self, batch: Sequence[Due], beside: Iterable[HpaState]) -> dict[Wanted, list[Due]]:
        """Put HPAs that wait for the same answers together; what others ask for as well is asked for together."""
        plans = [*(due.plan for due in batch), *filter(None, map(self.plan, beside))]
        whole = self._whole.pays(namespaces_of(plans))
        groups: dict[Wanted, list[Due]] = {}
        for due in batch:
            groups.setdefault(due.plan.wanted_whole if whole else due.plan.wanted, []).append(due)
        return groups

    def _decide_some(self, batch: Sequence[Due], answers: Answers, repeated: list[Decision]) -> None:
        """Decide about HPAs whose answers are there; what takes more than that goes on beside."""
        epochs = self._ownership.epochs()
        reconciler, observer = self._reconciler, self._observer
        for due in batch:
            turn, plan = due.turn, due.plan
            autoscaler = turn.autoscaler
            try:
                if autoscaler.hpa.spec is not plan.spec:
                    # What the old spec asked for says nothing about the new one's metrics.
                    reconciler.start(reconciler.reconcile(turn), [turn])
                    continue
                sight = observer.look(autoscaler)
                if observer.needs_owners(autoscaler, sight):
                    # Owners may have to be asked for; no other HPA waits for that.
                    reconciler.start(reconciler.reconcile_with_owners(turn, plan, sight, answers), [turn])
                    continue
                decided = reconciler.decide(turn, plan, sight, answers, {}, epochs)
            except DecideAgain:
                reconciler.start(reconciler.reconcile(turn), [turn])
                continue
            except Exception as error:  # noqa: BLE001 - one bad object stops no other
                reconciler.fail([turn], error)
                continue
            if isinstance(decided, Decision):
                repeated.append(decided)
            elif decided is not None:
                reconciler.start(reconciler.reconcile(turn, decided), [turn])
