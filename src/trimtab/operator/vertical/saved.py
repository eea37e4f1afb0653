"""What the recommender saved of its history, for those who explain or show it without being the recommender.

Its own memory cannot be reached from another process. The checkpoints can: what they lack is what was learnt since they
were saved.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from trimtab.clock import Clock
from trimtab.cluster.client import Client, Selection
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.input.checkpoints import load_checkpoint
from trimtab.decide.vertical.recommend.recommender import VPARecommendation, recommend_vpas
from trimtab.decide.vertical.update.node_fit import rooms_of
from trimtab.model import times
from trimtab.operator.vertical.cluster_view import ClusterView, Standings
from trimtab.operator.vertical.estimation import aggregation_of, estimation_of, post_processing_of
from trimtab.operator.vertical.follow import Unusable, is_served_by, usable_selector
from trimtab.operator.vertical.kinds import CHECKPOINTS
from trimtab.operator.vertical.settings import VerticalSettings


@dataclass(frozen=True)
class Learned:
    """A model that holds one VPA's saved history, and what follows from it."""

    state: ClusterState
    recommended: VPARecommendation
    saved_at: datetime | None = None
    """When the last of it was saved; None if nothing is."""

    def model_of(self, vpa: str) -> ClusterState | None:
        """Return the model, if it is about this VPA, by `namespace/name`."""
        return self.state if vpa in self.state.vpas else None

    def recommendation(self, vpa: str) -> VPARecommendation | None:
        """Return the recommendation, by `namespace/name`."""
        return self.recommended if vpa in self.state.vpas else None


class SavedHistory:
    """Reads checkpoints and derives recommendations from them, by the recommender's settings; writes nothing."""

    def __init__(self, clock: Clock, client: Client, view: ClusterView, settings: VerticalSettings) -> None:
        self._clock = clock
        self._recommender = settings.recommender_name
        self._aggregation = aggregation_of(settings)
        self._estimation = estimation_of(settings)
        self._post = post_processing_of(settings)
        self._client = client
        self._view = view

    async def of(self, key: str, standings: Standings) -> Learned | None:
        """Return what is saved about a VPA, by `namespace/name`; None if it can learn nothing as it is.

        Nothing is derived for a VPA of another recommender: its numbers follow from rules that are not known here.
        """
        one = next((one for one in standings.vpas if one.vpa.key == key), None)
        selector = None if one is None else usable_selector(one, standings)
        if one is None or selector is None or isinstance(selector, Unusable):
            return None
        if not is_served_by(one.vpa, self._recommender):
            return None
        state = ClusterState(
            self._aggregation, compat=self._view.compat, per_vpa_config=self._view.gates.per_vpa_config
        )
        vpa = state.add_or_update_vpa(one.vpa, selector)
        now_ns = times.to_ns(self._clock.now())
        saved = await self._client.list(CHECKPOINTS, Selection(one.vpa.metadata.namespace))
        ours = [item for item in saved.items if item.spec.vpa_object_name == one.vpa.metadata.name]
        for checkpoint in ours:
            load_checkpoint(state, checkpoint, now_ns)
        dates = [item.status.last_update_time for item in ours if item.status.last_update_time is not None]
        rooms = tuple(rooms_of(self._view.nodes)) if self._view.compat.sizes_are_admissible else ()
        post = replace(self._post, rooms=rooms)
        recommended = recommend_vpas(state, [vpa], self._estimation, post, now_ns)[0]
        return Learned(state, recommended, max(dates, default=None))
