"""Defaults of a VPA, and what feature gates and the stored object allow in it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from trimtab.model.feature_gates import FeatureGates
from trimtab.model.vpa.types import (
    ContainerResourcePolicy,
    PodUpdatePolicy,
    UpdateMode,
    VerticalPodAutoscaler,
)

DEFAULT_RECOMMENDER = "default"


def default_patch(vpa: VerticalPodAutoscaler) -> list[dict[str, Any]]:
    """Return the JSON patch that adds the default update policy, if it is absent."""
    if vpa.spec.update_policy is not None:
        return []
    policy = {"updateMode": UpdateMode.RECREATE.value}
    return [{"op": "add", "path": "/spec/updatePolicy", "value": policy}]


def recommender_of(vpa: VerticalPodAutoscaler) -> str:
    """Return the name of the recommender that is responsible for a VPA."""
    return vpa.spec.recommenders[0].name if vpa.spec.recommenders else DEFAULT_RECOMMENDER


@dataclass(frozen=True)
class VPAOptions:
    """What validation allows, by default for a new object with every gate off."""

    is_create: bool = True
    allow_cpu_startup_boost: bool = False
    allow_per_vpa_config: bool = False
    allow_in_place: bool = False
    allow_vpa_scope: bool = False
    existing_controlled_resources: frozenset[str] = frozenset()
    checked_scopes: Collection[str] | None = None
    """Names of the scopes that exist, or None to leave the reference unchecked."""


def options_for(
    gates: FeatureGates,
    old: VerticalPodAutoscaler | None = None,
    *,
    is_create: bool | None = None,
    checked_scopes: Collection[str] | None = None,
) -> VPAOptions:
    """Return the options for creating a VPA, or for replacing `old`."""
    before = old or VerticalPodAutoscaler()
    update = before.spec.update_policy or PodUpdatePolicy()
    return VPAOptions(
        is_create=old is None if is_create is None else is_create,
        allow_cpu_startup_boost=gates.cpu_startup_boost or _has_startup_boost(before),
        allow_per_vpa_config=gates.per_vpa_config or _has_per_vpa_config(before),
        allow_in_place=gates.in_place or update.update_mode == UpdateMode.IN_PLACE,
        allow_vpa_scope=gates.vpa_selector_refinement or before.spec.vpa_scope is not None,
        existing_controlled_resources=frozenset(
            resource for policy in policies_of(before) for resource in policy.controlled_resources or ()
        ),
        checked_scopes=checked_scopes,
    )


def policies_of(vpa: VerticalPodAutoscaler) -> tuple[ContainerResourcePolicy, ...]:
    """Return the container policies of a VPA."""
    return vpa.spec.resource_policy.container_policies if vpa.spec.resource_policy else ()


def _has_startup_boost(vpa: VerticalPodAutoscaler) -> bool:
    return vpa.spec.startup_boost is not None or any(
        policy.startup_boost is not None for policy in policies_of(vpa)
    )


def _has_per_vpa_config(vpa: VerticalPodAutoscaler) -> bool:
    if vpa.spec.update_policy and vpa.spec.update_policy.evict_after_oom_seconds is not None:
        return True
    return any(per_vpa_config_fields(policy) for policy in policies_of(vpa))


def per_vpa_config_fields(policy: ContainerResourcePolicy) -> dict[str, object]:
    """Return the fields of a policy that are set and need the gate PerVPAConfig, in upstream's order."""
    fields = {
        "oomBumpUpRatio": policy.oom_bump_up_ratio,
        "oomMinBumpUp": policy.oom_min_bump_up,
        "memoryAggregationIntervalSeconds": policy.memory_aggregation_interval_seconds,
        "memoryAggregationIntervalCount": policy.memory_aggregation_interval_count,
    }
    return {name: value for name, value in fields.items() if value is not None}
