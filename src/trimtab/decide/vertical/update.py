"""One update loop: which pods are resized in place, which are evicted, and why the others are left alone.

What happens next depends on whether the API accepted what was asked before (a failed resize may become an
eviction, a refused eviction leaves the budget to another pod). So the loop is a generator: it yields each action,
is told the outcome by `send`, and returns the result. It does no I/O itself, and with the same outcomes it asks
for the same actions.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from datetime import datetime

from trimtab.decide.vertical.actions import Action, Outcome, UpdateEvent, Verdict
from trimtab.decide.vertical.compat import DEFAULT, Compat
from trimtab.decide.vertical.control import CONFLICT_REASON, Conflict, controlling_vpa, new_conflicts
from trimtab.decide.vertical.loop_state import LoopContext, LoopState
from trimtab.decide.vertical.observation import NamespaceRanges, Observation
from trimtab.decide.vertical.updater_state import DEFAULT_SETTINGS, UpdaterSettings, UpdaterState
from trimtab.decide.vertical.vpa_update import Step, VPAUpdate
from trimtab.model.gates import FeatureGates

_DEFAULT_GATES = FeatureGates()


@dataclass(frozen=True)
class UpdateResult:
    """What one loop did: the new state, the events in order, and a verdict for every pod it looked at."""

    state: UpdaterState
    events: tuple[UpdateEvent, ...]
    verdicts: tuple[Verdict, ...]


UpdateLoop = Generator[Action, Outcome, UpdateResult]


def update_loop(
    observation: Observation,
    state: UpdaterState,
    now: datetime,
    settings: UpdaterSettings = DEFAULT_SETTINGS,
    gates: FeatureGates = _DEFAULT_GATES,
    compat: Compat = DEFAULT,
) -> UpdateLoop:
    """Decide about every live pod; yields actions, is sent their outcomes, returns what came of it."""
    live = tuple(
        pod for pod in observation.pods if pod.metadata.deletion_timestamp is None and not pod.is_finished
    )
    ranges = NamespaceRanges(observation.limit_ranges)
    context = LoopContext(observation, now, settings, gates, compat, live, ranges)
    loop = LoopState(context, state)
    yield from _run(context, loop)
    return UpdateResult(loop.frozen(), tuple(loop.events), tuple(loop.verdicts.values()))


def drive(loop: UpdateLoop, perform: Callable[[Action], Outcome]) -> UpdateResult:
    """Run a loop to its end with `perform` carrying out each action."""
    try:
        action = next(loop)
        while True:
            action = loop.send(perform(action))
    except StopIteration as end:
        result: UpdateResult = end.value
        return result


def _run(context: LoopContext, loop: LoopState) -> Step:
    updates = _assign(context, loop)
    loop.count(context.live)
    loop.judge_trials({pod.metadata.key: key for key, update in updates.items() for pod in update.pods})
    # Roles before the rest: a new leader should not wait for the shared budget behind its followers. Then by
    # name, so that the same cluster gives the same actions.
    for update in sorted(updates.values(), key=lambda update: (-update.claim.level, update.claim.key)):
        yield from update.run()


def _assign(context: LoopContext, loop: LoopState) -> dict[str, VPAUpdate]:
    """Give each live pod to the VPA that controls it."""
    observation = context.observation
    ignored = frozenset(context.settings.ignored_namespaces)
    index = observation.index(context.gates, context.compat).for_updater()
    owners = observation.owners()
    updates: dict[str, VPAUpdate] = {}
    conflicts: list[Conflict] = []
    for pod in context.live:
        if pod.metadata.namespace in ignored:
            loop.leave(pod, None, f"namespace {pod.metadata.namespace} is ignored")
            continue
        control = controlling_vpa(pod, index, owners, observation.nodes)
        conflicts.extend(control.conflicts)
        if control.claim is None:
            loop.leave(pod, None, control.reason)
        else:
            update = updates.setdefault(control.claim.key, VPAUpdate(control.claim, context, loop))
            update.pods.append(pod)
    _warn(loop, conflicts)
    return updates


def _warn(loop: LoopState, conflicts: Iterable[Conflict]) -> None:
    fresh, loop.conflicts_told = new_conflicts(conflicts, loop.conflicts_told)
    for conflict in fresh:
        for key in (conflict.winner, conflict.loser):
            loop.warn(key, CONFLICT_REASON, conflict.message)
