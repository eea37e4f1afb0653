"""The HPAs of a running operator: their states, records and history."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from trimtab.dashboard.auth.rights import EVENTS, PODS, USAGE, Kind, NamespaceRights, custom_metric
from trimtab.dashboard.pages.decision import (
    decision_view,
    view_readings,
    view_stored_readings,
    without_pods,
)
from trimtab.dashboard.pages.pods import view_pods
from trimtab.dashboard.pages.views import ConditionView, EventView, HorizontalPage, HorizontalRow
from trimtab.dashboard.pages.what_if import owners_unknown
from trimtab.dashboard.sources.history import PointHistory
from trimtab.decide.horizontal import Observation, Record, owners_to_find
from trimtab.decide.horizontal.explain import summary_of
from trimtab.decide.horizontal.from_status import NOT_ALLOWED, explain_from_status, forbidden_metric
from trimtab.decide.horizontal.observation.owners import OwnerLookup
from trimtab.decide.horizontal.reasons import ROWS, State
from trimtab.model.core.meta import Condition
from trimtab.model.hpa.metric_kinds import WAKING, measured_by, name_of, plain_names
from trimtab.model.hpa.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, MetricSpec
from trimtab.model.json import wire
from trimtab.operator.horizontal.hpa_state import HpaState

MAX_BUILT_ROWS: Final = 500
"""Rows that one call builds again, about 30 ms of work."""


class OperatorHorizontal:
    """Returns the HPAs of an operator or of a read-only copy in this process."""

    def __init__(
        self,
        hpa_states: Iterable[HpaState],
        history: PointHistory | None = None,
        events: Callable[[str], Awaitable[tuple[EventView, ...]]] | None = None,
        owners: Callable[[Observation], Awaitable[dict[str, OwnerLookup]]] | None = None,
        is_read_only: Callable[[], bool] = lambda: False,
    ) -> None:
        self._hpa_states = hpa_states
        self._history = history or PointHistory()
        self._events = events
        self._owners = owners
        self._is_read_only = is_read_only
        self._rows: dict[str, tuple[tuple[object, ...], HorizontalRow]] = {}

    def refresh(self) -> None:
        """Record the decisions since the last call."""
        self._history.refresh({hpa_state.uid: hpa_state.records for hpa_state in self._hpa_states})
        for hpa_state in self._hpa_states:
            recommendations = hpa_state.memory.own.recommendations
            if hpa_state.standing is not None and recommendations:
                # A skipped reconcile adds no record, but its recommendation gets a newer time.
                self._history.get(hpa_state.uid).extend_last(recommendations[-1].at)

    def rows(self) -> Sequence[HorizontalRow]:
        """Return every HPA, sorted by id. Only rows of HPAs with a new decision are built again.

        A batch decides about thousands of HPAs at once. To keep the event loop free, one call builds some hundred rows, and
        further HPAs keep their row until the next call.
        """
        rows: dict[str, tuple[tuple[object, ...], HorizontalRow]] = {}
        built = 0
        for hpa_state in self._hpa_states:
            inputs = _inputs(hpa_state)
            known = self._rows.get(hpa_state.uid)
            if known is None or (known[0] != inputs and built < MAX_BUILT_ROWS):
                known = (inputs, self._row(hpa_state))
                built += 1
            rows[hpa_state.uid] = known
        self._rows = rows
        return sorted((row for _, row in rows.values()), key=lambda row: row.id)

    async def record(self, identity: str) -> Record | None:
        """Return the newest decision about an HPA, with the owners of its pods if they can be found."""
        hpa_state = self._find(identity)
        record = hpa_state.newest_record() if hpa_state is not None else None
        return None if record is None else await self._with_owners(record)

    async def _with_owners(self, record: Record) -> Record:
        """Add the owners of the pods, which counting by labels does not find."""
        observation = record.observation
        if self._owners is None or not owners_to_find(
            observation.pods, observation.target, observation.owners
        ):
            return record
        owners = await self._owners(observation)
        return msgspec.structs.replace(
            record, observation=msgspec.structs.replace(observation, owners=owners)
        )

    async def page(self, identity: str, rights: NamespaceRights) -> HorizontalPage | None:
        """Return the parts of an HPA's page that a viewer may see, or None if there is no such HPA."""
        hpa_state = self._find(identity)
        if hpa_state is None:
            return None
        hpa, history, record = hpa_state.hpa, self._history.get(hpa_state.uid), hpa_state.newest_record()
        parts = await _visible_parts(hpa, rights)
        page = HorizontalPage(
            row=self._row(hpa_state),
            decision=None,
            track=history.track(),
            problem=hpa_state.problem,
            events=await self._list_events(identity, hpa_state) if parts.shows_events else (),
            spec=wire.to_builtins(hpa.spec),
            shows_pods=parts.shows_pods,
            shows_events=parts.shows_events,
            hidden=parts.hidden,
        )
        if record is None:
            return page
        if reason := self._forbidden(record):
            explanation = explain_from_status(hpa, reason)
            return msgspec.structs.replace(
                page,
                notice=". ".join((explanation.summary, *explanation.operator)),
                conditions=_view_conditions(hpa, hpa.status),
            )
        if record.decision.trace.extra_pods:
            record = await self._with_owners(record)
        page = _with_record(page, record, can_look_up=self._owners is not None)
        page = _with_pods(page, record, parts)
        if not self._is_read_only():
            return page
        # Another process acts, so the stored conditions apply. Those of this decision are never written.
        return msgspec.structs.replace(page, conditions=_view_conditions(hpa, hpa.status))

    async def _list_events(self, identity: str, hpa_state: HpaState) -> tuple[EventView, ...]:
        if self._events is not None:
            events = await self._events(identity)
        else:
            events = tuple(reversed(self._history.get(hpa_state.uid).events))
        return _with_short_names(hpa_state.hpa, events)

    def _forbidden(self, record: Record) -> str:
        """Return why this read-only process may not read a metric, which the operator may be allowed to read."""
        return forbidden_metric(record.observation) if self._is_read_only() else ""

    def _row(self, hpa_state: HpaState) -> HorizontalRow:
        row, record = _row(hpa_state), _last_record(hpa_state)
        reason = self._forbidden(record) if record is not None else ""
        if not reason:
            return row
        status = hpa_state.hpa.status
        return msgspec.structs.replace(
            row,
            current=status.current_replicas,
            desired=status.desired_replicas,
            state=State.WAITING,
            reason=NOT_ALLOWED,
            summary=explain_from_status(hpa_state.hpa, reason).summary,
            metrics=view_stored_readings(hpa_state.hpa),
            is_short=False,
        )

    def _find(self, identity: str) -> HpaState | None:
        return next((state for state in self._hpa_states if _identity(state) == identity), None)


@dataclass(frozen=True)
class _VisibleParts:
    """The parts of an HPA's page that a viewer may see."""

    shows_pods: bool
    shows_events: bool
    hidden_samples: frozenset[int]
    """The indexes of metrics whose samples of single pods are hidden."""
    hidden: tuple[str, ...]


async def _visible_parts(hpa: HorizontalPodAutoscaler, rights: NamespaceRights) -> _VisibleParts:
    sample_kinds = {
        index: kind for index, metric in enumerate(hpa.spec.metrics) if (kind := _samples_of(metric))
    }
    allowed = await rights.allowed((PODS, EVENTS, *sample_kinds.values()))
    named = {PODS: "Pods", EVENTS: "Events"}
    if PODS in allowed:
        named |= {
            kind: f"Samples of each pod ({kind.subresource or 'usage'})" for kind in sample_kinds.values()
        }
    return _VisibleParts(
        shows_pods=PODS in allowed,
        shows_events=EVENTS in allowed,
        hidden_samples=frozenset(index for index, kind in sample_kinds.items() if kind not in allowed),
        hidden=tuple(
            rights.explain_missing(part, kind) for kind, part in named.items() if kind not in allowed
        ),
    )


def _samples_of(metric: MetricSpec) -> Kind | None:
    """Return the kind that holds a metric's samples of single pods, or None if it has none."""
    if metric.type in WAKING:
        return None
    return USAGE if measured_by(metric).resource else custom_metric(name_of(metric))


def _with_record(page: HorizontalPage, record: Record, *, can_look_up: bool) -> HorizontalPage:
    observation = record.observation
    return msgspec.structs.replace(
        page,
        decision=decision_view(record),
        conditions=_view_conditions(observation.hpa, record.decision.status),
        honours_tolerance=observation.gates.hpa_configurable_tolerance,
        owners_unknown=owners_unknown(observation, can_look_up=can_look_up),
    )


def _with_pods(page: HorizontalPage, record: Record, parts: _VisibleParts) -> HorizontalPage:
    if not parts.shows_pods:
        return msgspec.structs.replace(page, decision=without_pods(page.decision) if page.decision else None)
    pods = view_pods(record, parts.hidden_samples)
    return msgspec.structs.replace(page, pods=pods, pods_total=len(record.observation.pods))


def view_conditions(conditions: Iterable[Condition]) -> tuple[ConditionView, ...]:
    """Return the views of a status's conditions."""
    return tuple(
        ConditionView(
            type=condition.type,
            status=condition.status,
            reason=condition.reason,
            message=condition.message,
            since=condition.last_transition_time.timestamp() if condition.last_transition_time else None,
        )
        for condition in conditions
    )


def _view_conditions(
    hpa: HorizontalPodAutoscaler, status: HorizontalPodAutoscalerStatus
) -> tuple[ConditionView, ...]:
    """Return the conditions of an HPA with short metric names. The status keeps upstream's wording."""
    return tuple(
        msgspec.structs.replace(view, message=plain_names(view.message, hpa.spec.metrics))
        for view in view_conditions(status.conditions)
    )


def _with_short_names(hpa: HorizontalPodAutoscaler, events: Iterable[EventView]) -> tuple[EventView, ...]:
    """Return the events with short metric names. Stored events keep upstream's wording."""
    return tuple(
        msgspec.structs.replace(event, message=plain_names(event.message, hpa.spec.metrics))
        for event in events
    )


def _last_record(hpa_state: HpaState) -> Record | None:
    return hpa_state.records[-1] if hpa_state.records else None


def _inputs(hpa_state: HpaState) -> tuple[object, ...]:
    """Return what distinguishes two rows of an HPA. A new object may have the address of one that is gone."""
    hpa, record = hpa_state.hpa, _last_record(hpa_state)
    decided_at = None if record is None else record.decision.now
    return id(hpa), hpa.metadata.resource_version, id(record), decided_at, hpa_state.problem


def _identity(hpa_state: HpaState) -> str:
    return f"{'native' if hpa_state.is_native else 'hpa'}/{hpa_state.key}"


def _row(hpa_state: HpaState) -> HorizontalRow:
    hpa, record = hpa_state.hpa, _last_record(hpa_state)
    reference = hpa.spec.scale_target_ref
    low = hpa.spec.min_replicas
    row = HorizontalRow(
        id=_identity(hpa_state),
        namespace=hpa.metadata.namespace,
        name=hpa.metadata.name,
        target=f"{reference.kind}/{reference.name}",
        low=1 if low is None else low,
        high=hpa.spec.max_replicas,
        metrics=view_stored_readings(hpa),
        is_dry_run=hpa_state.is_dry_run,
    )
    if hpa_state.problem:
        return msgspec.structs.replace(
            row, state=State.PROBLEM, reason="InvalidSpec", summary=hpa_state.problem
        )
    if record is None:
        return row
    decision = record.decision
    state = ROWS[decision.reason.code].state
    return msgspec.structs.replace(
        row,
        current=decision.current if decision.knows_replicas else None,
        desired=decision.desired if decision.knows_replicas else None,
        state=state,
        reason=str(decision.reason.code),
        summary=summary_of(record.observation, decision),
        metrics=view_readings(record),
        at=record.decision.now,
        is_dry_run=hpa_state.is_dry_run or record.is_dry_run,
        is_short=state is State.HELD and (decision.trace.recommended or 0) > decision.desired,
    )
