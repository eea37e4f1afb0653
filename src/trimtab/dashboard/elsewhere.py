"""What the vertical loops of another process know, as far as the cluster tells it."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.dashboard.events import ClusterEvents
from trimtab.dashboard.views import EventView
from trimtab.decide.vertical.update.actions import Verdict
from trimtab.operator.settings.published import Found
from trimtab.operator.vertical.cluster_view import ClusterView, Standings
from trimtab.operator.vertical.explain import Learned, SavedHistory, next_verdicts

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class InTheCluster:
    """Checkpoints for what the recommender learned, a trial loop for what the updater would do, stored events."""

    clock: Clock
    client: Client
    view: ClusterView
    followed: Callable[[], Found]
    """Returns the settings of recommender and updater, as far as they are known at the moment."""

    async def learned(self, vpa: str, standings: Standings) -> Learned | None:
        """Return what the recommender saved about a VPA."""
        try:
            saved = SavedHistory(self.clock, self.client, self.view, self.followed().settings)
            return await saved.of(vpa, standings)
        except errors.ClusterError as error:
            log.info("the saved history of %s cannot be read: %s", vpa, error)
            return None

    async def verdicts(self) -> Mapping[str, Verdict]:
        """Return what the next update loop would do with each pod."""
        found = self.followed()
        try:
            return await next_verdicts(
                self.client,
                self.view,
                found.settings,
                self.clock.now(),
                sees_all_pods=found.updater_sees_all_pods,
            )
        except errors.ClusterError as error:
            log.info("what the updater would do cannot be foreseen: %s", error)
            return {}

    async def events(self, identity: str) -> tuple[EventView, ...]:
        """Return what was told about a VPA, by its id."""
        return await ClusterEvents(self.client).about(identity)
