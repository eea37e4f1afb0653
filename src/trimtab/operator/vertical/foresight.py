"""What an update loop would do now, for those who explain or show it without being the updater."""

from collections.abc import Generator
from datetime import datetime

from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.decide.vertical.update.actions import Action, Evict, Outcome, Verdict
from trimtab.decide.vertical.update.loop import UpdateResult, update_loop
from trimtab.decide.vertical.update.loop_state import UpdaterState
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.replacement import Obstacle, ReplacementCheck
from trimtab.operator.vertical.settings import VerticalSettings
from trimtab.operator.vertical.updater import updater_settings


async def next_verdicts(
    client: Client,
    view: ClusterView,
    settings: VerticalSettings,
    now: datetime,
    *,
    sees_all_pods: bool = True,
) -> dict[str, Verdict]:
    """Return what a loop would do with each pod, by `namespace/name`, as far as nodes tell.

    Whether a replacement would be admitted is not asked: nobody creates pods to look at them.
    """
    observation = await view.observation(serves_resize=await view.serves_resize())
    loop = update_loop(observation, UpdaterState(), now, updater_settings(settings), view.gates, view.compat)
    check = None
    if view.compat.sizes_are_admissible and settings.node_fit != "none":
        check = ReplacementCheck(
            client, view, creates=False, node_fit=settings.node_fit, sees_all_pods=sees_all_pods
        )
    return await _foreseen(loop, check)


async def _foreseen(
    loop: Generator[Action, Outcome, UpdateResult], check: ReplacementCheck | None
) -> dict[str, Verdict]:
    kept: dict[str, Verdict] = {}
    outcome: Outcome | None = None
    try:
        while True:
            action = next(loop) if outcome is None else loop.send(outcome)
            found = await _obstacle(check, action)
            outcome = Outcome.DONE if found is None else Outcome.UNREPLACEABLE
            if found is not None:
                pod = action.pod.metadata.key
                kept[pod] = Verdict(pod=pod, vpa=action.vpa.key, action="none", reason=found.message)
    except StopIteration as end:
        result: UpdateResult = end.value
        return {verdict.pod: verdict for verdict in result.verdicts} | kept


async def _obstacle(check: ReplacementCheck | None, action: Action) -> Obstacle | None:
    """Return why a pod would not come back; None if who looks may not read what that takes."""
    if check is None or not isinstance(action, Evict):
        return None
    try:
        return await check.obstacle(action.pod, action.vpa)
    except errors.ClusterError:
        return None
