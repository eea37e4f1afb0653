"""Records of vertical decisions: everything one depended on and what came of it, as JSON that replays.

`replay_update` and `replay_admission` decide again from the record alone; an unchanged program gives the same
bytes, a changed one shows exactly where it decides otherwise.
"""

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from trimtab.decide.vertical.admission.admit import AdmissionContext, PodAdmission, admit_pod
from trimtab.decide.vertical.admission.patches import Operation
from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.decide.vertical.update.actions import (
    Action,
    ActionResult,
    Evict,
    PodUpdateResult,
    UpdateEvent,
)
from trimtab.decide.vertical.update.loop import UpdateLoop, UpdateResult, update_loop
from trimtab.decide.vertical.update.loop_state import (
    DEFAULT_SETTINGS,
    UpdaterSettings,
    UpdaterState,
)
from trimtab.decide.vertical.update.observation import NamespaceRanges, UpdateObservation
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity

VERSION = 1
_DEFAULT_GATES = FeatureGates()


class RecordedAction(Wire):
    """One action of a loop, and what became of it."""

    kind: str
    pod: str
    vpa: str
    reason: str
    outcome: ActionResult
    operations: tuple[Operation, ...] = ()
    originals: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str | None] = msgspec.field(default_factory=dict)


class UpdateRecord(Wire):
    """One update loop: its whole input, the actions with their outcomes, and its whole result."""

    version: int
    now: datetime
    observation: UpdateObservation
    before: UpdaterState
    settings: UpdaterSettings
    gates: FeatureGates
    compat: VpaCompat
    actions: tuple[RecordedAction, ...]
    after: UpdaterState
    events: tuple[UpdateEvent, ...]
    verdicts: tuple[PodUpdateResult, ...]


class AdmissionRecord(Wire):
    """The admission of one pod: the raw pod, what was known, and the patch."""

    version: int
    pod: Any
    namespace: str
    observation: UpdateObservation
    gates: FeatureGates
    compat: VpaCompat
    max_boost_cpu: Quantity
    operations: tuple[Operation, ...]
    controlled_by: str | None
    reason: str
    error: str = ""


@dataclass(frozen=True)
class RecordedResult:
    """A loop's result with its record."""

    result: UpdateResult
    record: UpdateRecord


def recorded_loop(
    observation: UpdateObservation,
    state: UpdaterState,
    now: datetime,
    settings: UpdaterSettings = DEFAULT_SETTINGS,
    gates: FeatureGates = _DEFAULT_GATES,
    compat: VpaCompat = DEFAULT,
) -> Generator[Action, ActionResult, RecordedResult]:
    """Run `update_loop` and write down what it asked and was told."""
    actions: list[RecordedAction] = []
    loop = update_loop(observation, state, now, settings, gates, compat)
    result = yield from _watched(loop, actions)
    record = UpdateRecord(
        version=VERSION,
        now=now,
        observation=observation,
        before=state,
        settings=settings,
        gates=gates,
        compat=compat,
        actions=tuple(actions),
        after=result.state,
        events=result.events,
        verdicts=result.verdicts,
    )
    return RecordedResult(result, record)


def _watched(loop: UpdateLoop, actions: list[RecordedAction]) -> UpdateLoop:
    try:
        action = next(loop)
        while True:
            outcome = yield action
            actions.append(_recorded(action, outcome))
            action = loop.send(outcome)
    except StopIteration as end:
        result: UpdateResult = end.value
        return result


def _recorded(action: Action, outcome: ActionResult) -> RecordedAction:
    kind = "evict" if isinstance(action, Evict) else "resize"
    return RecordedAction(
        kind=kind,
        pod=action.pod.metadata.key,
        vpa=action.vpa.key,
        reason=action.reason,
        outcome=outcome,
        operations=() if isinstance(action, Evict) else action.operations,
        originals={} if isinstance(action, Evict) else action.plan.originals,
        annotations={} if isinstance(action, Evict) else action.plan.annotations,
    )


def replay_update(record: UpdateRecord) -> UpdateRecord:
    """Decide again; the outcomes are those recorded, in order, and beyond them every action succeeds."""
    told = [action.outcome for action in record.actions]
    loop = recorded_loop(
        record.observation, record.before, record.now, record.settings, record.gates, record.compat
    )
    try:
        next(loop)
        for outcome in told:
            loop.send(outcome)
        while True:
            loop.send(ActionResult.DONE)
    except StopIteration as end:
        found: RecordedResult = end.value
        return found.record


def record_admission(
    pod: object,
    namespace: str,
    observation: UpdateObservation,
    gates: FeatureGates = _DEFAULT_GATES,
    compat: VpaCompat = DEFAULT,
    max_boost_cpu: Quantity = Quantity.zero,
) -> tuple[PodAdmission, AdmissionRecord]:
    """Admit a pod and write down everything that the answer depends on."""
    ranges = NamespaceRanges(observation.limit_ranges)
    names = {namespace, *(limit_range.metadata.namespace for limit_range in observation.limit_ranges)}
    answer = admit_pod(
        pod,
        namespace,
        AdmissionContext(
            observation.index(gates, compat),
            observation.owners(),
            observation.nodes,
            {name: ranges.of(name) for name in names},
            gates,
            compat,
            max_boost_cpu,
            observation.serves_resize,
        ),
    )
    record = AdmissionRecord(
        version=VERSION,
        pod=pod,
        namespace=namespace,
        observation=observation,
        gates=gates,
        compat=compat,
        max_boost_cpu=max_boost_cpu,
        operations=answer.operations,
        controlled_by=answer.control.key,
        reason=answer.reason,
        error=answer.error,
    )
    return answer, record


def replay_admission(record: AdmissionRecord) -> AdmissionRecord:
    """Admit the recorded pod again."""
    _, again = record_admission(
        record.pod, record.namespace, record.observation, record.gates, record.compat, record.max_boost_cpu
    )
    return again


def to_json(record: UpdateRecord | AdmissionRecord) -> bytes:
    """Return the record as JSON."""
    return wire.encode(record)


def read_update(data: bytes) -> UpdateRecord:
    """Read a record of an update loop."""
    return wire.decode(data, UpdateRecord)


def read_admission(data: bytes) -> AdmissionRecord:
    """Read a record of an admission."""
    return wire.decode(data, AdmissionRecord)
