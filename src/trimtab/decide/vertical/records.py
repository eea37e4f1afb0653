"""Records of vertical decisions: the whole input and the whole result, as JSON that replays.

`replay_update` and `replay_admission` decide again from the record alone. An unchanged program gives the same bytes; a
changed one shows where it decides differently.
"""

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from trimtab.decide.vertical.admission.admit import AdmissionContext, PodAdmission, admit_pod
from trimtab.decide.vertical.admission.patches import Operation
from trimtab.decide.vertical.resources.limit_ranges import NamespaceRanges
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import Action, ActionResult, Evict, PodUpdateResult, UpdateEvent
from trimtab.decide.vertical.update.loop import UpdateLoop, UpdateResult, update_loop
from trimtab.decide.vertical.update.loop_state import DEFAULT_SETTINGS, UpdaterSettings, UpdaterState
from trimtab.decide.vertical.update.observation import UpdateObservation
from trimtab.decide.vertical.update.resize.plan import ResizePlan
from trimtab.model.author import Author
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity

VERSION = 3
_DEFAULT_GATES = FeatureGates()


class RecordedAction(Wire):
    """One action of a loop, and its result."""

    kind: str
    pod: str
    vpa: str
    reason: str
    result: ActionResult
    operations: tuple[Operation, ...] = ()
    annotations_before: dict[str, str] = msgspec.field(default_factory=dict)
    annotations_after: dict[str, str | None] = msgspec.field(default_factory=dict)


class UpdateRecord(Wire):
    """One update loop: its whole input, the actions with their results, and its whole result."""

    version: int
    now: datetime
    observation: UpdateObservation
    state_before: UpdaterState
    settings: UpdaterSettings
    gates: FeatureGates
    rules: Rules
    actions: tuple[RecordedAction, ...]
    state_after: UpdaterState
    events: tuple[UpdateEvent, ...]
    pod_results: tuple[PodUpdateResult, ...]
    author: Author | None = None
    """The replica that performed the actions; None if it performed none."""


class AdmissionRecord(Wire):
    """The admission of one pod: the raw pod, the cluster, and the patch."""

    version: int
    pod: Any
    namespace: str
    observation: UpdateObservation
    gates: FeatureGates
    rules: Rules
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
    rules: Rules = Rules.TRIMTAB,
) -> Generator[Action, ActionResult, RecordedResult]:
    """Run `update_loop` and record its actions with their results."""
    actions: list[RecordedAction] = []
    loop = update_loop(observation, state, now, settings, gates, rules)
    result = yield from _recording(loop, actions)
    record = UpdateRecord(
        version=VERSION,
        now=now,
        observation=observation,
        state_before=state,
        settings=settings,
        gates=gates,
        rules=rules,
        actions=tuple(actions),
        state_after=result.state,
        events=result.events,
        pod_results=result.pod_results,
    )
    return RecordedResult(result, record)


def _recording(loop: UpdateLoop, actions: list[RecordedAction]) -> UpdateLoop:
    try:
        action = next(loop)
        while True:
            result = yield action
            actions.append(_recorded(action, result))
            action = loop.send(result)
    except StopIteration as end:
        update: UpdateResult = end.value
        return update


def _recorded(action: Action, result: ActionResult) -> RecordedAction:
    plan = ResizePlan() if isinstance(action, Evict) else action.plan
    return RecordedAction(
        kind="evict" if isinstance(action, Evict) else "resize",
        pod=action.pod.metadata.key,
        vpa=action.vpa.key,
        reason=action.reason,
        result=result,
        operations=plan.operations,
        annotations_before=plan.annotations_before,
        annotations_after=plan.annotations_after,
    )


def replay_update(record: UpdateRecord) -> UpdateRecord:
    """Decide again with the recorded results of actions.

    Actions beyond the recorded ones succeed.
    """
    loop = recorded_loop(
        record.observation, record.state_before, record.now, record.settings, record.gates, record.rules
    )
    try:
        next(loop)
        for action in record.actions:
            loop.send(action.result)
        while True:
            loop.send(ActionResult.DONE)
    except StopIteration as end:
        replayed: RecordedResult = end.value
        return msgspec.structs.replace(replayed.record, author=record.author)


def record_admission(
    pod: object,
    namespace: str,
    observation: UpdateObservation,
    gates: FeatureGates = _DEFAULT_GATES,
    rules: Rules = Rules.TRIMTAB,
    max_boost_cpu: Quantity = Quantity.zero,
) -> tuple[PodAdmission, AdmissionRecord]:
    """Admit a pod and record everything that the patch depends on."""
    ranges = NamespaceRanges(observation.limit_ranges)
    names = {namespace, *(limit_range.metadata.namespace for limit_range in observation.limit_ranges)}
    admission = admit_pod(
        pod,
        namespace,
        AdmissionContext(
            observation.index(gates, rules),
            observation.owners(),
            observation.nodes,
            {name: ranges.of(name) for name in names},
            gates,
            rules,
            max_boost_cpu,
            observation.serves_resize,
            observation.server_rules,
        ),
    )
    record = AdmissionRecord(
        version=VERSION,
        pod=pod,
        namespace=namespace,
        observation=observation,
        gates=gates,
        rules=rules,
        max_boost_cpu=max_boost_cpu,
        operations=admission.operations,
        controlled_by=admission.control.key,
        reason=admission.reason,
        error=admission.error,
    )
    return admission, record


def replay_admission(record: AdmissionRecord) -> AdmissionRecord:
    """Admit the recorded pod again."""
    _, again = record_admission(
        record.pod, record.namespace, record.observation, record.gates, record.rules, record.max_boost_cpu
    )
    return again


def to_json(record: UpdateRecord | AdmissionRecord) -> bytes:
    """Return the record as JSON."""
    return wire.encode(record)


def read_update(data: bytes) -> UpdateRecord:
    """Read a record of an update loop."""
    _check_version(data)
    return wire.decode(data, UpdateRecord)


def read_admission(data: bytes) -> AdmissionRecord:
    """Read a record of an admission."""
    _check_version(data)
    return wire.decode(data, AdmissionRecord)


class _Versioned(Wire):
    version: int


def _check_version(data: bytes) -> None:
    version = wire.decode(data, _Versioned).version
    if version != VERSION:
        raise wire.WireError(
            f"the record has version {version}, this program reads version {VERSION}; use the program that wrote it"
        )
