"""What the updater is told to do, and what it remembers from one loop to the next."""

from datetime import datetime, timedelta

import msgspec

from trimtab.decide.vertical.brake import NO_BRAKES, BrakeSettings, BrakeState
from trimtab.decide.vertical.eligibility import UpdateThresholds
from trimtab.decide.vertical.ledger import Requested
from trimtab.model.json.wire import Wire
from trimtab.model.vpa.types import RecommendedPodResources


class Infeasible(Wire):
    """A recommendation that a pod's node could not hold, and whose it was."""

    vpa: str
    recommendation: RecommendedPodResources


class UpdaterState(Wire):
    """What the updater remembers between loops."""

    resizes_seen: dict[str, datetime] = msgspec.field(default_factory=dict)
    """By pod `namespace/name`: when a resize under way was first seen."""
    infeasible: dict[str, Infeasible] = msgspec.field(default_factory=dict)
    """By pod uid."""
    requested: dict[str, Requested] = msgspec.field(default_factory=dict)
    """Resizes and evictions that are not done, by pod uid."""
    brake: BrakeState = BrakeState()
    conflicts_told: tuple[tuple[str, str, str], ...] = ()
    """Pairs of VPAs whose scopes overlap on a pod, for which both were warned already."""


class UpdaterSettings(Wire):
    """Settings of the updater."""

    min_replicas: int = 2
    """Least number of live pods a VPA must have to act, unless its own minReplicas says otherwise."""
    eviction_tolerance: float = 0.5
    """Share of a creator's replicas that may be down at once."""
    min_change: float = 0.1
    lifetime_seconds: float = 43_200
    evict_after_oom_seconds: float = 600
    skips_budget_in_place: bool = False
    """Whether resizes that restart nothing need neither budget nor minimum of replicas."""
    ignored_namespaces: tuple[str, ...] = ()
    brake: BrakeSettings = BrakeSettings()

    @property
    def thresholds(self) -> UpdateThresholds:
        """Return how far off, and how old, a pod must be."""
        return UpdateThresholds(
            self.min_change,
            timedelta(seconds=self.lifetime_seconds),
            timedelta(seconds=self.evict_after_oom_seconds),
        )


DEFAULT_SETTINGS = UpdaterSettings()

UPSTREAM_SETTINGS = UpdaterSettings(brake=NO_BRAKES)
"""Upstream's defaults: there is a budget per group and no other brake."""
