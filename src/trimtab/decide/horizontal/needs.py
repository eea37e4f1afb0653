"""Whether a decision will look at any metric, so that nobody asks for what is not used."""

from trimtab.decide.horizontal.compat import Compat
from trimtab.decide.horizontal.zero import ceiling_of, floor_of, is_paused
from trimtab.model.core.workloads import Scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import ConditionType, HorizontalPodAutoscaler


def needs_metrics(hpa: HorizontalPodAutoscaler, scale: Scale, gates: FeatureGates, compat: Compat) -> bool:
    """Return whether metrics decide: not while paused at zero, nor outside of minReplicas and maxReplicas."""
    lowest, current = floor_of(hpa.spec, gates, compat), scale.spec.replicas
    if current:
        return lowest <= current <= ceiling_of(hpa.spec)
    condition = hpa.status.condition(ConditionType.SCALED_TO_ZERO)
    is_ours = gates.hpa_scale_to_zero and condition is not None and condition.status == "True"
    return not is_paused(hpa.spec, lowest, is_ours=is_ours)
