"""Shows the HPAs of a running operator: its book of autoscalers, their records, and the past we keep of them."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import msgspec

from trimtab.dashboard import states
from trimtab.dashboard.history import History
from trimtab.dashboard.naming import renamed
from trimtab.dashboard.pods import pods_of
from trimtab.dashboard.stories import story_of
from trimtab.dashboard.views import ConditionView, EventView, HorizontalPage, HorizontalRow
from trimtab.decide.horizontal import Record, explain
from trimtab.model import wire
from trimtab.model.meta import Condition
from trimtab.operator.horizontal.autoscalers import Autoscaler

MOST_TOLD: Final = 500
"""Rows that are told again in one call: about 30 ms of work."""


class OperatorHorizontal:
    """The source of HPAs for a dashboard beside an operator."""

    def __init__(
        self,
        autoscalers: Iterable[Autoscaler],
        history: History | None = None,
        events: Callable[[str], Awaitable[tuple[EventView, ...]]] | None = None,
    ) -> None:
        self._autoscalers = autoscalers
        self._history = history or History()
        self._events = events
        self._rows: dict[str, tuple[tuple[object, ...], HorizontalRow]] = {}

    def take(self) -> None:
        """Note what was decided since the last call."""
        self._history.take({one.uid: one.records for one in self._autoscalers})
        for one in self._autoscalers:
            confirmed = one.memory.recommendations
            if one.steady is not None and confirmed:
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
                known = (basis, _row(one))
                told += 1
            found[one.uid] = known
        self._rows = found
        return sorted((row for _, row in found.values()), key=lambda row: row.id)

    def record(self, identity: str) -> Record | None:
        """Return the last decision about an HPA."""
        found = self._find(identity)
        return _last(found) if found is not None else None

    async def page(self, identity: str) -> HorizontalPage | None:
        """Return everything about one HPA."""
        found = self._find(identity)
        if found is None:
            return None
        past, record = self._history.of(found.uid), _last(found)
        page = HorizontalPage(
            row=_row(found),
            story=None,
            track=past.track(),
            problem=found.problem,
            events=tuple(reversed(past.events)) if self._events is None else await self._events(identity),
            spec=wire.to_builtins(found.hpa.spec),
        )
        return page if record is None else _with_record(page, record)

    def _find(self, identity: str) -> Autoscaler | None:
        return next((one for one in self._autoscalers if _identity(one) == identity), None)


def _with_record(page: HorizontalPage, record: Record) -> HorizontalPage:
    seen = record.observation
    return msgspec.structs.replace(
        page,
        story=story_of(seen, record.decision),
        pods=pods_of(record),
        pods_total=len(seen.pods),
        conditions=conditions_of(record.decision.status.conditions),
        honours_tolerance=seen.gates.hpa_configurable_tolerance,
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


def _last(autoscaler: Autoscaler) -> Record | None:
    return autoscaler.records[-1] if autoscaler.records else None


def _identity(autoscaler: Autoscaler) -> str:
    return f"{'native' if autoscaler.is_native else 'hpa'}/{autoscaler.key}"


def _row(autoscaler: Autoscaler) -> HorizontalRow:
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
            row, state=states.PROBLEM, verdict="InvalidSpec", summary=autoscaler.problem
        )
    if record is None:
        return row
    story = explain(record.decision)
    return msgspec.structs.replace(
        row,
        current=story.current,
        desired=story.desired,
        state=states.state_of(story.verdict),
        verdict=str(story.verdict),
        summary=renamed(story.summary, record.observation, record.decision),
        at=record.decision.now,
        is_dry_run=autoscaler.is_dry_run or record.is_dry_run,
    )
