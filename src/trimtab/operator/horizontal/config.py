"""The settings, feature gates and rules of every horizontal decision of this process.

They also limit how often a status is written.
"""

from dataclasses import dataclass
from math import inf

from trimtab.decide.horizontal.rules import HpaSettings, Rules
from trimtab.decide.horizontal.status.writes import EVERY_SYNC, StatusLimits
from trimtab.model.feature_gates import FeatureGates
from trimtab.operator.settings.compat import kubernetes_version
from trimtab.operator.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class DecisionConfig:
    """The part of an observation that is the same for all HPAs."""

    settings: HpaSettings
    gates: FeatureGates
    rules: Rules
    status_limits: StatusLimits = EVERY_SYNC


def decision_config(settings: Settings) -> DecisionConfig:
    """Build the configuration of decisions, or raise ValueError for an invalid setting."""
    rules = Rules(kubernetes_version(settings.compat) or "trimtab")
    for flag, value in {
        "--metrics-max-age": settings.metrics.metrics_max_age.total_seconds(),
        "--metrics-max-age-windows": settings.metrics.metrics_max_age_windows,
        "--metrics-max-ahead": settings.metrics.metrics_max_ahead.total_seconds(),
    }.items():
        if not 0 <= value < inf:
            raise ValueError(f"{flag}: {value:g} is negative or no number")
    hpa_settings = HpaSettings(
        tolerance=settings.horizontal.tolerance,
        cpu_initialization_period=settings.horizontal.cpu_initialization_period.total_seconds(),
        initial_readiness_delay=settings.horizontal.initial_readiness_delay.total_seconds(),
        downscale_stabilization=settings.horizontal.downscale_stabilization.total_seconds(),
        stale_after=settings.metrics.metrics_max_age.total_seconds(),
        stale_windows=settings.metrics.metrics_max_age_windows,
        ahead_limit=settings.metrics.metrics_max_ahead.total_seconds(),
    )
    return DecisionConfig(hpa_settings, settings.gates, rules, _status_limits(settings))


def _status_limits(settings: Settings) -> StatusLimits:
    horizontal = settings.horizontal
    if kubernetes_version(settings.compat):
        return EVERY_SYNC
    return StatusLimits(
        max_age=horizontal.status_max_age.total_seconds(),
        visible_change=horizontal.status_visible_change,
        sync_period=horizontal.sync_period.total_seconds(),
    )
