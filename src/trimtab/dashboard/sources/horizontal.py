"""Shows the HPAs of a running operator: its book of autoscalers, their records, and the past we keep of them."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import msgspec

from trimtab.dashboard.pages import decision as states
from trimtab.dashboard.pages.decision import decision_view
from trimtab.dashboard.pages.pods import pods_of
from trimtab.dashboard.pages.views import (
    ConditionView,
    EventView,
    HorizontalPage,
    HorizontalRow,
)
from trimtab.dashboard.pages.what_if import owners_unknown
from trimtab.dashboard.sources.history import PointHistory
from trimtab.decide.horizontal import Observation, Record, owners_to_find, reason_for
from trimtab.decide.horizontal.explain.explanation import summary_of
from trimtab.decide.horizontal.explain.from_status import (
    NOT_ALLOWED,
    explain_from_status,
    forbidden_metric,
)
from trimtab.decide.horizontal.observation.owners import OwnerLookup
from trimtab.model.core.meta import Condition
from trimtab.model.hpa.metric_names import plain_names
from trimtab.model.json import wire
from trimtab.operator.horizontal.inputs.hpa_state import HpaState

MOST_TOLD: Final = 500
"""Rows that are told again in one call: about 30 ms of work."""


class OperatorHorizontal:
    """The source of HPAs for a dashboard beside an operator."""

    def __init__(
        self,
        autoscalers: Iterable[HpaState],
        history: PointHistory | None = None,
        events: Callable[[str], Awaitable[tuple[EventView, ...]]] | None = None,
        owners: Callable[[Observation], Awaitable[dict[str, OwnerLookup]]] | None = None,
        looks: Callable[[], bool] = lambda: False,
    ) -> None:
        self._autoscalers = autoscalers
        self._history = history or PointHistory()
        self._events = events
        self._owners = owners
        self._looks = looks
        self._rows: dict[str, tuple[tuple[object, ...], HorizontalRow]] = {}

    def take(self) -> None:
        """Note what was decided since the last call."""
        self._history.take({one.uid: one.records for one in self._autoscalers})
        for one in self._autoscalers:
            confirmed = one.memory.own.recommendations
            if one.unchanged is not None and confirmed:
                # A decision that would only repeat itself leaves no record, just a younger recommendation.
                self._history.of(one.uid).lasts(confirmed[-1].at)

    def rows(self) -> Sequence[HorizontalRow]:
        """Return every HPA, by id; only those that were decided about again are told again.

        A round decides about thousands at once. The program that is shown has other things to do than to tell them
        all in the same moment, so those beyond the first few hundred keep their row until the next call.
        """
        found: dict[str, tuple[tuple[object, ...], HorizontalRow]] = {}
        told = 0
        for one in self._autoscalers:
            basis = (id(one.hpa), id(_last(one)), one.problem)
            known = self._rows.get(one.uid)
            if known is None or (known[0] != basis and told < MOST_TOLD):
                known = (basis, self._row(one))
                told += 1
            found[one.uid] = known
        self._rows = found
        return sorted((row for _, row in found.values()), key=lambda row: row.id)

    async def record(self, identity: str) -> Record | None:
        """Return the last decision about an HPA, with the owners of its pods where they can be looked up."""
        found = self._find(identity)
        record = _last(found) if found is not None else None
        return None if record is None else await self._with_owners(record)

    async def _with_owners(self, record: Record) -> Record:
        """Add the owners: counting by labels needs none, a person who looks wants to know them."""
        seen = record.observation
        if self._owners is None or not owners_to_find(seen.pods, seen.target, seen.owners):
            return record
        owners = await self._owners(seen)
        return msgspec.structs.replace(record, observation=msgspec.structs.replace(seen, owners=owners))

    async def page(self, identity: str) -> HorizontalPage | None:
        """Return everything about one HPA."""
        found = self._find(identity)
        if found is None:
            return None
        past, record = self._history.of(found.uid), _last(found)
        page = HorizontalPage(
            row=self._row(found),
            story=None,
            track=past.track(),
            problem=found.problem,
            events=_plain(
                found, tuple(reversed(past.events)) if self._events is None else await self._events(identity)
            ),
            spec=wire.to_builtins(found.hpa.spec),
        )
        if record is None:
            return page
        if why := self._forbidden(record):
            told = explain_from_status(found.hpa, why)
            return msgspec.structs.replace(
                page,
                notice=". ".join((told.summary, *told.operator)),
                conditions=conditions_of(found.hpa.status.conditions),
            )
        if record.decision.trace.extra_pods:
            record = await self._with_owners(record)
        page = _with_record(page, record, can_look_up=self._owners is not None)
        if not self._looks():
            return page
        # Another process acts. What it stored is true; what this page would store is never written.
        return msgspec.structs.replace(page, conditions=conditions_of(found.hpa.status.conditions))

    def _forbidden(self, record: Record) -> str:
        """Return why this program, which only looks, may not read a metric that the operator may well read."""
        return forbidden_metric(record.observation) if self._looks() else ""

    def _row(self, autoscaler: HpaState) -> HorizontalRow:
        row, record = _row(autoscaler), _last(autoscaler)
        why = self._forbidden(record) if record is not None else ""
        if not why:
            return row
        status = autoscaler.hpa.status
        return msgspec.structs.replace(
            row,
            current=status.current_replicas,
            desired=status.desired_replicas,
            state=states.WAITING,
            reason=NOT_ALLOWED,
            summary=explain_from_status(autoscaler.hpa, why).summary,
        )

    def _find(self, identity: str) -> HpaState | None:
        return next((one for one in self._autoscalers if _identity(one) == identity), None)


def _with_record(page: HorizontalPage, record: Record, *, can_look_up: bool) -> HorizontalPage:
    seen = record.observation
    return msgspec.structs.replace(
        page,
        story=decision_view(record),
        pods=pods_of(record),
        pods_total=len(seen.pods),
        conditions=conditions_of(record.decision.status.conditions),
        honours_tolerance=seen.gates.hpa_configurable_tolerance,
        owners_unknown=owners_unknown(seen, can_look_up=can_look_up),
    )


def conditions_of(conditions: Iterable[Condition]) -> tuple[ConditionView, ...]:
    """Return the conditions of a status."""
    return tuple(
        ConditionView(
            type=one.type,
            status=one.status,
            reason=one.reason,
            message=one.message,
            since=one.last_transition_time.timestamp() if one.last_transition_time else None,
        )
        for one in conditions
    )


def _plain(autoscaler: HpaState, events: Iterable[EventView]) -> tuple[EventView, ...]:
    """Return events with metrics called by their short names; the cluster's own keep upstream's wording."""
    metrics = autoscaler.hpa.spec.metrics
    return tuple(
        msgspec.structs.replace(event, message=plain_names(event.message, metrics)) for event in events
    )


def _last(autoscaler: HpaState) -> Record | None:
    return autoscaler.records[-1] if autoscaler.records else None


def _identity(autoscaler: HpaState) -> str:
    return f"{'native' if autoscaler.is_native else 'hpa'}/{autoscaler.key}"


def _row(autoscaler: HpaState) -> HorizontalRow:
    hpa, record = autoscaler.hpa, _last(autoscaler)
    reference = hpa.spec.scale_target_ref
    low = hpa.spec.min_replicas
    row = HorizontalRow(
        id=_identity(autoscaler),
        namespace=hpa.metadata.namespace,
        name=hpa.metadata.name,
        target=f"{reference.kind}/{reference.name}",
        low=1 if low is None else low,
        high=hpa.spec.max_replicas,
        is_dry_run=autoscaler.is_dry_run,
    )
    if autoscaler.problem:
        return msgspec.structs.replace(
            row, state=states.PROBLEM, reason="InvalidSpec", summary=autoscaler.problem
        )
    if record is None:
        return row
    decision, reason = record.decision, reason_for(record.decision)
    return msgspec.structs.replace(
        row,
        current=decision.current,
        desired=decision.desired,
        state=states.state_of(reason),
        reason=str(reason),
        summary=summary_of(record.observation, decision),
        at=record.decision.now,
        is_dry_run=autoscaler.is_dry_run or record.is_dry_run,
    )
