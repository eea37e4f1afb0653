"""Brings one HPA up to date: snapshot, decide, apply, and once more on fresh reads after a conflict.

There is one way in, which never waits. Syncs, edits and looks at usage between syncs take it, and so does a read that has ended.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.decide.horizontal.decide import decide
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.plugin_calls import decide_with_plugins
from trimtab.operator.horizontal.hpa_state import HpaState, ReconcileRequest, StatusWrite
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.horizontal.observe import NotRead, Snapshot, SnapshotBuilder, StaleObservation
from trimtab.operator.horizontal.queries import Samples
from trimtab.operator.horizontal.writer import PendingWrite, ScaleUnknown, Writer
from trimtab.plugins.guard import Guards

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

MOST_CONFLICTS = 3
"""How often one reconcile starts over on an HPA that keeps changing. The next sync comes soon enough."""


class Reconciler:
    """Reconciles HPAs, each independently of the others."""

    def __init__(
        self,
        clock: Clock,
        snapshots: SnapshotBuilder,
        writer: Writer,
        metrics: HpaControllerMetrics,
        guards: Guards,
    ) -> None:
        self._clock = clock
        self._snapshots = snapshots
        self._writer = writer
        self._metrics = metrics
        self._guards = guards
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_scaled: Callable[[HpaState], None] = lambda _: None
        """Called after each decision that changed a scale."""

    def reconcile(self, request: ReconcileRequest, samples: Samples | None = None) -> Decision | None:
        """Bring one HPA up to date without waiting. Reads and writes go on in the request's task.

        `samples` are the results of the request's queries, if they were fetched. Return the last decision if it still
        holds. The caller counts it.
        """
        try:
            snapshot = self._snapshots.snapshot(request, samples)
        except NotRead:
            if request.is_look:  # the sync reads it
                request.finish(self._clock.monotonic())
            else:
                self.start(self._read(request, samples), request)
            return None
        if isinstance(snapshot, Snapshot):
            write = self._decide(request, snapshot)
            if write is not None:
                self.start(self._apply(request, write), request)
            return None
        request.finish(self._clock.monotonic())
        return None if snapshot is None else snapshot.decision

    async def _read(self, request: ReconcileRequest, samples: Samples | None) -> None:
        """Read what is not cached, and reconcile with it."""
        samples = await self._snapshots.read(request, samples)
        last = self.reconcile(request, samples)
        if last is not None:
            self._metrics.count_unchanged((last,), self._seconds(request))

    def start(self, work: Coroutine[Any, Any, None], *requests: ReconcileRequest) -> None:
        """Run work in a task that holds these requests until it ends or passes them on."""
        task = asyncio.ensure_future(self._run(work, requests))
        for request in requests:
            request.task = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def attempt(
        self, hpa_state: HpaState, step: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R | None:
        """Run a step without waiting, so that an unexpected error ends this HPA's reconcile only."""
        try:
            return step(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the boundary of steps that do not wait
            self._fail([hpa_state], error)
            return None

    async def wait_idle(self) -> None:
        """Wait until all reconciles are done, with their writes."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Cancel all reconciles. Each write is complete in itself, so none is left half done."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _decide(self, request: ReconcileRequest, snapshot: Snapshot) -> PendingWrite | None:
        """Decide on a snapshot, and return what has to be written."""
        write = self._prepare(request.hpa_state, snapshot)
        status = StatusWrite.NOT_DUE if write.write_reason is None else StatusWrite.OWED
        if request.is_look and write.is_only_status:
            write.write_reason = None
        if not self._writer.has_nothing_to_write(write):
            return write
        self._complete(request, write, status)
        return None

    def _prepare(self, hpa_state: HpaState, snapshot: Snapshot) -> PendingWrite:
        if not hpa_state.names_plugins:
            decision = decide(snapshot.observation, snapshot.now)
            return self._writer.prepare(hpa_state, snapshot, decision)
        last = hpa_state.records[-1].observation if hpa_state.records else None
        observation, decision = decide_with_plugins(snapshot.observation, self._guards, snapshot.now, last)
        answered = Snapshot(snapshot.target, observation, snapshot.now, snapshot.epoch)
        return self._writer.prepare(hpa_state, answered, decision)

    async def _apply(self, request: ReconcileRequest, write: PendingWrite) -> None:
        """Write a decision and record it."""
        if write.decision.scale_to is not None and await self._snapshots.rivals.look(request.hpa_state):
            request.is_look = False
            self.reconcile(request)
            return
        try:
            await self._writer.apply(request.hpa_state, write)
        except StaleObservation as stale:
            await self._retry_on_conflict(request, stale)
        except ScaleUnknown as unknown:
            self._leave_in_doubt(request, write, unknown)
        except errors.Fenced:
            # Another replica may lead now. A scale that was written before counts if our epoch goes on.
            if write.decision.action != "none":
                request.hpa_state.memory.keep(write.decision.memory)
        else:
            is_failed = write.status_error is not None
            status = StatusWrite.NOT_DUE if write.write_reason is None else StatusWrite.DONE
            self._complete(request, write, StatusWrite.OWED if is_failed else status)

    def _complete(self, request: ReconcileRequest, write: PendingWrite, status: StatusWrite) -> None:
        hpa_state, shown_until = request.hpa_state, self._writer.shown_until(request.hpa_state)
        hpa_state.record_decision(
            write.record(), self._clock.monotonic(), shown_until=shown_until, status=status
        )
        if write.decision.action != "none":
            self.on_scaled(hpa_state)
            if request.is_look:
                self._metrics.early.inc()
        self._metrics.count_status_write(write.write_reason, is_deferred=write.is_status_deferred)
        request.finish(self._clock.monotonic())
        if not hpa_state.is_deleted:  # a gauge of an HPA that was deleted meanwhile would stay
            meta = hpa_state.hpa.metadata
            self._metrics.count_decision(meta.namespace, meta.name, write.decision, self._seconds(request))

    async def _retry_on_conflict(self, request: ReconcileRequest, stale: StaleObservation) -> None:
        """Read the HPA again and reconcile anew, unless it changed too often."""
        hpa_state = request.hpa_state
        self._metrics.decided_again.inc()
        request.conflicts, request.is_look = request.conflicts + 1, False
        if hpa_state.is_deleted:
            return
        if request.conflicts >= MOST_CONFLICTS:
            log.warning(
                "hpa %s: not decided in this sync: it changed %d times: %s",
                hpa_state.key,
                request.conflicts,
                stale,
            )
            return
        hpa_state.memory.reload()
        try:
            await self._writer.read_again(hpa_state)
        except errors.ClusterError as error:
            self._metrics.stale_skips.labels(hpa_state.resource.group, hpa_state.resource.plural).inc()
            log.warning("hpa %s: not decided in this sync: it cannot be read again: %s", hpa_state.key, error)
            return
        self.reconcile(request)

    def _leave_in_doubt(self, request: ReconcileRequest, write: PendingWrite, unknown: ScaleUnknown) -> None:
        """Leave the status as it is. The next read of the target shows whether the scale was written."""
        hpa_state, decision = request.hpa_state, write.decision
        hpa_state.memory.keep_in_doubt(decision.memory)
        self._writer.record_events(hpa_state, decision)
        self._metrics.failures.inc()
        log.warning(
            "hpa %s: it is not known whether the scale %d was written; it is read again in the next sync: %s",
            hpa_state.key,
            decision.desired,
            unknown,
        )

    async def _run(self, work: Coroutine[Any, Any, None], requests: tuple[ReconcileRequest, ...]) -> None:
        task = asyncio.current_task()
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the error boundary of reconciles: no HPA stops another
            self._fail([request.hpa_state for request in requests if request.task is task], error)
        finally:
            for request in requests:
                if request.task is task:
                    request.finish(self._clock.monotonic())

    def _fail(self, hpa_states: list[HpaState], error: Exception) -> None:
        """Count and log HPAs that an unexpected error stopped. The next sync reconciles them again."""
        for hpa_state in hpa_states:
            self._metrics.failures.inc()
            if hpa_state.request is not None:
                hpa_state.request.finish(self._clock.monotonic())
        keys = ", ".join(hpa_state.key for hpa_state in hpa_states) or "-"
        log.error("not decided in this sync: hpa %s: %s", keys, error, exc_info=error)

    def _seconds(self, request: ReconcileRequest) -> float:
        return self._clock.monotonic() - request.started_at
