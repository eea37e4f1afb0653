"""A small workload to decide about: StatefulSet `db` in namespace `shop`, VPAs and scopes for its roles.

Every builder has sane defaults, so that a test names only what matters to it.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from trimtab.decide.vertical.control.claims import VPAIndex
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import Action, ActionResult, Evict
from trimtab.decide.vertical.update.loop import UpdateResult, drive, update_loop
from trimtab.decide.vertical.update.loop_state import DEFAULT_SETTINGS, UpdaterState
from trimtab.decide.vertical.update.observation import (
    ObservedController,
    ObservedVPA,
    UpdateObservation,
)
from trimtab.model.core.meta import Condition
from trimtab.model.core.objects import LimitRange, LimitRangeItem
from trimtab.model.core.pod import ContainerResizePolicy, Pod
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.vpa.types import RecommendedContainerResources, VerticalPodAutoscaler, VPAScope

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
ALL_GATES = FeatureGates(vpa_selector_refinement=True, in_place=True, per_vpa_config=True)
LEADER = {"role": "leader"}
FOLLOWER = {"role": "follower"}


def pod(
    name="db-0", labels=None, *, owner="StatefulSet/db", cpu="100m", memory="1Gi", limits=None, **more
) -> Pod:
    """Make a running pod of one container `app`; `more` goes into metadata, spec or status by its name."""
    return wire.convert(
        raw_pod(name, labels, owner=owner, cpu=cpu, memory=memory, limits=limits, **more), Pod
    )


def raw_pod(
    name="db-0",
    labels=None,
    *,
    owner="StatefulSet/db",
    cpu="100m",
    memory="1Gi",
    limits=None,
    node="",
    phase="Running",
    uid="",
    conditions=(),
    statuses=(),
    created=NOW - timedelta(days=30),
    annotations=None,
    affinity=None,
    namespace="shop",
) -> dict[str, Any]:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    kind, _, owner_name = (owner or "").partition("/")
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "labels": {"app": "db", **(labels or {})},
        "creationTimestamp": created.isoformat(),
    }
    if annotations is not None:
        metadata["annotations"] = annotations
    if owner:
        metadata["ownerReferences"] = [{"kind": kind, "name": owner_name, "controller": True}]
    return {
        "metadata": metadata,
        "spec": {
            "nodeName": node,
            "affinity": affinity,
            "containers": [{"name": "app", "resources": {"requests": requests, "limits": limits or {}}}],
        },
        "status": {
            "phase": phase,
            "startTime": created.isoformat(),
            "conditions": [*ready_conditions(phase, conditions, created), *conditions],
            "containerStatuses": list(statuses),
        },
    }


def ready_conditions(phase, conditions, since) -> list[dict[str, str]]:
    """Return condition Ready of a running pod, unless the test sets it."""
    if phase != "Running" or any(condition["type"] == "Ready" for condition in conditions):
        return []
    return [{"type": "Ready", "status": "True", "lastTransitionTime": since.isoformat()}]


def restarting(member):
    """Return the pod with a container that a change of memory restarts."""
    (container,) = member.spec.containers
    policy = (ContainerResizePolicy(resource_name="memory", restart_policy="RestartContainer"),)
    containers = (msgspec.structs.replace(container, resize_policy=policy),)
    return msgspec.structs.replace(member, spec=msgspec.structs.replace(member.spec, containers=containers))


def resize_condition(kind="PodResizePending", reason="Deferred") -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": reason}


def recommended(
    memory=None, cpu=None, *, lower=None, upper=None, container="app"
) -> RecommendedContainerResources:
    """Recommend exactly this, with bounds that call anything else out of range unless given."""
    target = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    data = {
        "containerName": container,
        "target": target,
        "lowerBound": lower or target,
        "upperBound": upper or target,
        "uncappedTarget": target,
    }
    return wire.convert(data, RecommendedContainerResources)


def vpa(
    name="base",
    recommendation=None,
    *,
    mode="Recreate",
    scope=None,
    age_days=1,
    target="StatefulSet/db",
    min_replicas=None,
    policies=(),
    generation=1,
    observed=1,
    namespace="shop",
    **update_policy,
) -> VerticalPodAutoscaler:
    kind, _, target_name = target.partition("/")
    data: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "generation": generation,
            "creationTimestamp": (NOW - timedelta(days=age_days)).isoformat(),
        },
        "spec": {
            "targetRef": {"kind": kind, "name": target_name, "apiVersion": "apps/v1"},
            "updatePolicy": {"updateMode": mode, "minReplicas": min_replicas, **update_policy},
            "vpaScope": {"name": scope} if scope else None,
            "resourcePolicy": {"containerPolicies": list(policies)} if policies else None,
        },
        "status": {"observedGeneration": observed},
    }
    if recommendation is not None:
        data["status"]["recommendation"] = {"containerRecommendations": [wire.to_builtins(recommendation)]}
    return wire.convert(data, VerticalPodAutoscaler)


def scope(name="leader", pods=None, nodes=None) -> VPAScope:
    spec: dict[str, Any] = {}
    if pods is not None:
        spec["podSelector"] = {"matchLabels": pods}
    if nodes is not None:
        spec["nodeSelector"] = {"matchLabels": nodes}
    return wire.convert({"metadata": {"name": name, "namespace": "shop"}, "spec": spec}, VPAScope)


def with_computed_for(owner: VerticalPodAutoscaler, reason: str) -> VerticalPodAutoscaler:
    """Return a VPA whose amounts were computed for this."""
    kept = [entry for entry in owner.status.conditions if entry.type != "ComputedFor"]
    conditions = (*kept, Condition(type="ComputedFor", status="True", reason=reason))
    return msgspec.structs.replace(owner, status=msgspec.structs.replace(owner.status, conditions=conditions))


def as_computed(seen: UpdateObservation) -> UpdateObservation:
    """Return the same observation after the recommender wrote what the amounts are for."""
    claims = {claim.key: claim for claims in index(seen).by_target.values() for claim in claims}
    vpas = (
        msgspec.structs.replace(entry, vpa=with_computed_for(entry.vpa, claims[entry.vpa.key].computed_for))
        if entry.vpa.status.recommendation is not None and entry.vpa.key in claims
        else entry
        for entry in seen.vpas
    )
    return msgspec.structs.replace(seen, vpas=tuple(vpas))


def world(
    vpas=(), pods=(), scopes=(), *, replicas=None, nodes=None, ranges=(), controllers=None
) -> UpdateObservation:
    """Observe the workload: as many replicas as pods, and amounts that are for the present scopes, unless said otherwise."""
    return as_computed(
        observed(vpas, pods, scopes, replicas=replicas, nodes=nodes, ranges=ranges, controllers=controllers)
    )


def observed(
    vpas=(), pods=(), scopes=(), *, replicas=None, nodes=None, ranges=(), controllers=None
) -> UpdateObservation:
    """Observe the workload with its statuses as they are."""
    known = {"StatefulSet/shop/db": ObservedController(replicas=len(pods) if replicas is None else replicas)}
    return UpdateObservation(
        vpas=tuple(ObservedVPA(vpa=entry, selector="app=db") for entry in vpas),
        scopes=tuple(scopes),
        pods=tuple(pods),
        controllers=controllers or known,
        nodes=nodes or {},
        limit_ranges=tuple(ranges),
    )


def limit_range(kind="Container", **item) -> LimitRange:
    data = {"metadata": {"name": "bounds", "namespace": "shop"}, "spec": {"limits": [{"type": kind, **item}]}}
    return wire.convert(data, LimitRange)


def limit_range_item(**item) -> LimitRangeItem:
    return wire.convert(item, LimitRangeItem)


def index(seen: UpdateObservation, gates=ALL_GATES, rules=Rules.TRIMTAB) -> VPAIndex:
    return seen.index(gates, rules)


class Recorder:
    """An API that does what it is asked (or what `outcomes` say for a pod), and remembers it in order."""

    def __init__(self, **outcomes: ActionResult) -> None:
        self.outcomes = {name.replace("_", "-"): outcome for name, outcome in outcomes.items()}
        self.asked: list[tuple[str, str]] = []
        self.actions: list[Action] = []

    def __call__(self, action: Action) -> ActionResult:
        self.asked.append(("evict" if isinstance(action, Evict) else "resize", action.pod.name))
        self.actions.append(action)
        return self.outcomes.get(action.pod.name, ActionResult.DONE)


def run(
    seen: UpdateObservation,
    state: UpdaterState | None = None,
    *,
    now=NOW,
    settings=DEFAULT_SETTINGS,
    gates=ALL_GATES,
    rules=Rules.TRIMTAB,
    api: Recorder | None = None,
) -> tuple[list[tuple[str, str]], UpdateResult]:
    """Run one update loop; return what was asked of the API, and the result."""
    api = api or Recorder()
    result = drive(update_loop(seen, state or UpdaterState(), now, settings, gates, rules), api)
    return api.asked, result


def why(result: UpdateResult, name: str) -> str:
    """Return what the loop says about one pod."""
    return next(entry.reason for entry in result.pod_results if entry.pod == f"shop/{name}")
