"""What an update loop would do now, for those who explain or show it without being the updater."""

from datetime import datetime

from trimtab.decide.vertical.actions import Action, Outcome, Verdict
from trimtab.decide.vertical.update import drive, update_loop
from trimtab.decide.vertical.updater_state import UpdaterState
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.settings import VerticalSettings
from trimtab.operator.vertical.updater import updater_settings


async def next_verdicts(view: ClusterView, settings: VerticalSettings, now: datetime) -> dict[str, Verdict]:
    """Return what a loop would do with each pod, by `namespace/name`, if nothing were in its way."""
    pods = await view.discovery.served("", "v1", "pods")
    serves_resize = pods is not None and "resize" in pods.subresources
    observation = await view.observation(serves_resize=serves_resize)
    loop = update_loop(observation, UpdaterState(), now, updater_settings(settings), view.gates, view.compat)
    return {verdict.pod: verdict for verdict in drive(loop, _would_succeed).verdicts}


def _would_succeed(_: Action) -> Outcome:
    return Outcome.DONE
