"""One update loop: which pods are resized in place, which are evicted, and why the others are left alone.

What happens next depends on whether the API accepted what was asked before (a failed resize may become an
eviction, a refused eviction leaves the budget to another pod). So the loop is a generator: it yields each action,
is told the outcome by `send`, and returns the result. It does no I/O itself, and with the same outcomes it asks
for the same actions.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.decide.vertical.control.control import (
    CONFLICT_REASON,
    ScopeConflict,
    controlling_vpa,
    unreported_conflicts,
)
from trimtab.decide.vertical.control.controllers import ControllerKey
from trimtab.decide.vertical.update.actions import (
    Action,
    ActionResult,
    PodUpdateResult,
    UpdateEvent,
)
from trimtab.decide.vertical.update.disruption_budget import is_boosted
from trimtab.decide.vertical.update.in_place.progress import tell_progress
from trimtab.decide.vertical.update.in_place.resize_note import NOTE_ANNOTATION, read_note
from trimtab.decide.vertical.update.in_place.resize_request import take_back
from trimtab.decide.vertical.update.in_place.unboost import unboost
from trimtab.decide.vertical.update.in_place.withdraw import is_waiting_request
from trimtab.decide.vertical.update.loop_state import (
    DEFAULT_SETTINGS,
    LoopContext,
    LoopState,
    UpdaterSettings,
    UpdaterState,
)
from trimtab.decide.vertical.update.observation import NamespaceRanges, UpdateObservation
from trimtab.decide.vertical.update.vpa_update import Step, VPAUpdate
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.pod import Pod
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.vpa.types import VerticalPodAutoscaler

_DEFAULT_GATES = FeatureGates()


@dataclass(frozen=True)
class UpdateResult:
    """What one loop did: the new state, the events in order, and a verdict for every pod it looked at."""

    state: UpdaterState
    events: tuple[UpdateEvent, ...]
    verdicts: tuple[PodUpdateResult, ...]
    short_of_budget: frozenset[ControllerKey] = frozenset()
    """Creators of which a pod with a role waits until another pod is up again."""
    again_at: datetime | None = None
    """When something is due before the next loop; None if nothing is."""
    to_evict: frozenset[str] = frozenset()
    """Pods that should be evicted, by `namespace/name`, whether they could be or not."""
    inadmissible: Mapping[str, str] = field(default_factory=dict)
    """Pods that stay because their replacement would break a rule of the API server, and which rule."""


UpdateLoop = Generator[Action, ActionResult, UpdateResult]


def update_loop(
    observation: UpdateObservation,
    state: UpdaterState,
    now: datetime,
    settings: UpdaterSettings = DEFAULT_SETTINGS,
    gates: FeatureGates = _DEFAULT_GATES,
    compat: VpaCompat = DEFAULT,
) -> UpdateLoop:
    """Decide about every live pod; yields actions, is sent their outcomes, returns what came of it."""
    live = tuple(
        pod for pod in observation.pods if pod.metadata.deletion_timestamp is None and not pod.is_finished
    )
    ranges = NamespaceRanges(observation.limit_ranges)
    context = LoopContext(observation, now, settings, gates, compat, live, ranges)
    loop = LoopState(context, state)
    yield from _run(context, loop)
    return UpdateResult(
        loop.frozen(),
        tuple(loop.events),
        tuple(loop.verdicts.values()),
        frozenset(loop.short_of_budget),
        loop.again_at,
        frozenset(loop.to_evict),
        loop.inadmissible,
    )


def drive(loop: UpdateLoop, perform: Callable[[Action], ActionResult]) -> UpdateResult:
    """Run a loop to its end with `perform` carrying out each action."""
    try:
        action = next(loop)
        while True:
            action = loop.send(perform(action))
    except StopIteration as end:
        result: UpdateResult = end.value
        return result


def _run(context: LoopContext, loop: LoopState) -> Step:
    updates, loose = _assign(context, loop)
    if context.compat.disruptions_last_until_ready:
        tell_progress(loop)
    loop.count(context.live)
    loop.judge_trials({pod.metadata.key: key for key, update in updates.items() for pod in update.pods})
    # Roles before the rest: a new leader should not wait for the shared budget behind its followers. Then by
    # name, so that the same cluster gives the same actions.
    for update in sorted(updates.values(), key=lambda update: (-update.claim.level, update.claim.key)):
        yield from update.run()
    yield from unboost(context, loop)
    for pod in loose:
        yield from _take_back_loose(pod, loop)


def _take_back_loose(pod: Pod, loop: LoopState) -> Step:
    """Take back a request of ours that waits on a pod which no VPA controls any more."""
    if is_boosted(pod) or not is_waiting_request(pod, loop.context.now):
        return
    note = read_note(pod)
    namespace, _, name = note.vpa.partition("/")
    asking = VerticalPodAutoscaler(metadata=ObjectMeta(name=name, namespace=namespace))
    yield from take_back(pod, asking, f"VPA {note.vpa} does not control it any more", loop)


def _assign(context: LoopContext, loop: LoopState) -> tuple[dict[str, VPAUpdate], list[Pod]]:
    """Give each live pod to the VPA that controls it; return also those that no VPA controls."""
    observation = context.observation
    ignored = frozenset(context.settings.ignored_namespaces)
    index = observation.index(context.gates, context.compat).for_updater()
    owners = observation.owners()
    updates: dict[str, VPAUpdate] = {}
    conflicts: list[ScopeConflict] = []
    loose: list[Pod] = []
    for pod in context.live:
        if pod.metadata.namespace in ignored:
            loop.leave(pod, None, f"no pod of namespace {pod.metadata.namespace} is changed")
            continue
        control = controlling_vpa(pod, index, owners, observation.nodes)
        conflicts.extend(control.conflicts)
        if control.claim is None:
            loop.leave(pod, None, control.reason)
            if context.compat.disruptions_last_until_ready and NOTE_ANNOTATION in pod.metadata.annotations:
                loose.append(pod)
        else:
            update = updates.setdefault(control.claim.key, VPAUpdate(control.claim, context, loop))
            update.pods.append(pod)
    _warn(loop, conflicts)
    return updates, loose


def _warn(loop: LoopState, conflicts: Iterable[ScopeConflict]) -> None:
    fresh, loop.conflicts_told = unreported_conflicts(conflicts, loop.conflicts_told)
    for conflict in fresh:
        for key in (conflict.winner, conflict.loser):
            loop.warn(key, CONFLICT_REASON, conflict.message)
