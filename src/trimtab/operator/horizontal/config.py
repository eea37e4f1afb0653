"""The settings, feature gates and rules of every horizontal decision of this process.

They also limit how often a status is written.
"""

from dataclasses import dataclass
from datetime import timedelta

from trimtab.decide.horizontal.rules import HpaSettings, Rules
from trimtab.decide.horizontal.status.writes import EVERY_SYNC, StatusLimits
from trimtab.model.feature_gates import FeatureGates
from trimtab.operator.settings.compat import kubernetes_version
from trimtab.operator.settings.declare import reject_bad_values
from trimtab.operator.settings.settings import Settings, declared


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
    reject_bad_values(settings.horizontal)
    reject_bad_values(settings.metrics)
    limits = StatusLimits(
        max_age=settings.horizontal.status_max_age.total_seconds(),
        visible_change=settings.horizontal.status_visible_change,
        sync_period=settings.horizontal.sync_period.total_seconds(),
    )
    return DecisionConfig(_numbers(settings), settings.gates, rules, limits)


def _numbers(settings: Settings) -> HpaSettings:
    """Return the numbers of decisions: the settings that have the name of a field."""
    values = {name: settings.value(name) for name in HpaSettings.__struct_fields__ if name in _NAMES}
    return HpaSettings(
        **{
            name: value.total_seconds() if isinstance(value, timedelta) else value
            for name, value in values.items()
        }
    )


_NAMES = frozenset(each.name for each in declared())
