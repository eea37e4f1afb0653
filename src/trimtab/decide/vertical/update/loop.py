"""One update loop: resize pods in place, evict pods, and give a reason for every other pod.

The next action depends on the result of the last one: a failed resize may become an eviction, and a refused eviction
leaves its budget to another pod. So the loop is a generator. It yields each action, receives the action's result by
`send`, and returns an `UpdateResult`. It does no I/O, and with the same results it yields the same actions.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trimtab.decide.vertical.admission.startup_boost import is_boosted
from trimtab.decide.vertical.control.control import (
    CONFLICT_REASON,
    ScopeConflict,
    control_of,
    unreported_conflicts,
)
from trimtab.decide.vertical.control.controllers import ControllerKey
from trimtab.decide.vertical.resources.limit_ranges import NamespaceRanges
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import Action, ActionResult, PodUpdateResult, UpdateEvent
from trimtab.decide.vertical.update.in_place.boost_end import end_startup_boosts
from trimtab.decide.vertical.update.in_place.resize_request import report_progress
from trimtab.decide.vertical.update.in_place.reverts import has_waiting_request, revert_resize
from trimtab.decide.vertical.update.loop_state import (
    DEFAULT_SETTINGS,
    LoopContext,
    LoopState,
    UpdaterSettings,
    UpdaterState,
)
from trimtab.decide.vertical.update.observation import UpdateObservation
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION, read_resize_annotation
from trimtab.decide.vertical.update.vpa_pods import Step, VpaPods
from trimtab.decide.vertical.update.vpa_update import effective_mode, update_vpa
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.pod import Pod
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.vpa.types import VerticalPodAutoscaler

_DEFAULT_GATES = FeatureGates()


@dataclass(frozen=True)
class UpdateResult:
    """The result of one loop: the new state, the events in order, and a result per live pod."""

    state: UpdaterState
    events: tuple[UpdateEvent, ...]
    pod_results: tuple[PodUpdateResult, ...]
    short_of_budget: frozenset[ControllerKey] = frozenset()
    """Creators of which a pod with a role waits until another pod is up again."""
    requeue_at: datetime | None = None
    """When an update is due before the next loop, or None if none is."""
    to_evict: frozenset[str] = frozenset()
    """Pods that should be evicted, by `namespace/name`, whether they could be or not."""
    inadmissible: Mapping[str, str] = field(default_factory=dict)
    """Pods that stay because their replacement would break a rule of the API server, and the rule."""


UpdateLoop = Generator[Action, ActionResult, UpdateResult]


def update_loop(
    observation: UpdateObservation,
    state: UpdaterState,
    now: datetime,
    settings: UpdaterSettings = DEFAULT_SETTINGS,
    gates: FeatureGates = _DEFAULT_GATES,
    rules: Rules = Rules.TRIMTAB,
) -> UpdateLoop:
    """Decide about every live pod: yield actions, receive their results, return the result."""
    live = tuple(
        pod for pod in observation.pods if pod.metadata.deletion_timestamp is None and not pod.is_finished
    )
    ranges = NamespaceRanges(observation.limit_ranges)
    context = LoopContext(observation, now, settings, gates, rules, live, ranges)
    loop = LoopState(context, state)
    yield from _run(context, loop)
    return UpdateResult(
        loop.freeze(),
        tuple(loop.events),
        tuple(loop.pod_results.values()),
        frozenset(loop.short_of_budget),
        loop.requeue_at,
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
    updates, uncontrolled = _assign(context, loop)
    if context.rules.ours:
        report_progress(loop)
    loop.count_groups(context.live)
    loop.evaluate_trials({pod.metadata.key: key for key, update in updates.items() for pod in update.pods})
    # Roles first: a new leader should not wait for the shared budget behind its followers. Then by name, so that the
    # same cluster gives the same actions.
    for update in sorted(updates.values(), key=lambda update: (-update.claim.level, update.claim.key)):
        yield from update_vpa(update)
    yield from end_startup_boosts(context, loop)
    for pod in uncontrolled:
        yield from _revert_uncontrolled(pod, loop)


def _revert_uncontrolled(pod: Pod, loop: LoopState) -> Step:
    """Revert a waiting request of Trimtab on a pod that no VPA controls any more."""
    if is_boosted(pod) or not has_waiting_request(pod, loop.context.now):
        return
    key = read_resize_annotation(pod).vpa
    namespace, _, name = key.partition("/")
    former_vpa = VerticalPodAutoscaler(metadata=ObjectMeta(name=name, namespace=namespace))
    yield from revert_resize(pod, former_vpa, f"VPA {key} does not control it any more", loop)


def _assign(context: LoopContext, loop: LoopState) -> tuple[dict[str, VpaPods], list[Pod]]:
    """Assign live pods to VPAs. Return also uncontrolled pods with a resize annotation."""
    observation = context.observation
    ignored = frozenset(context.settings.ignored_namespaces)
    index = observation.index(context.gates, context.rules).for_updater()
    owners = observation.owners()
    updates: dict[str, VpaPods] = {}
    conflicts: list[ScopeConflict] = []
    uncontrolled: list[Pod] = []
    for pod in context.live:
        if pod.metadata.namespace in ignored:
            loop.skip(pod, None, f"no pod of namespace {pod.metadata.namespace} is changed")
            continue
        control = control_of(pod, index, owners, observation.nodes)
        conflicts.extend(control.conflicts)
        if (claim := control.claim) is None:
            loop.skip(pod, None, control.reason)
            is_noted = RESIZE_ANNOTATION in pod.metadata.annotations
            if context.rules.ours and is_noted and not control.undecided:
                uncontrolled.append(pod)
            continue
        if claim.key not in updates:
            updates[claim.key] = VpaPods(claim, context, loop, effective_mode(claim, context))
        updates[claim.key].pods.append(pod)
    _warn(loop, conflicts)
    return updates, uncontrolled


def _warn(loop: LoopState, conflicts: Iterable[ScopeConflict]) -> None:
    fresh, loop.reported_conflicts = unreported_conflicts(conflicts, loop.reported_conflicts)
    for conflict in fresh:
        for key in (conflict.winner, conflict.loser):
            loop.warn(key, CONFLICT_REASON, conflict.message)
