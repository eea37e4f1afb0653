"""VPA vectors: priority, eligibility, budgets, resizing in place, and whole update loops."""

from datetime import timedelta
from typing import Any

import msgspec

from tests.conformance.differences import differences
from tests.conformance.registry import checks
from tests.conformance.vpa_admission import container_resources, controller_key, gates
from tests.conformance.vpa_capping import limit_ranges, optional, shown, without_empty
from trimtab.decide.vertical.admission.patches import add_annotation, add_empty_annotations
from trimtab.decide.vertical.control.controllers import ControllerKey
from trimtab.decide.vertical.resources.capping import cap_for_pod
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import Action, ActionResult, Evict
from trimtab.decide.vertical.update.disruption_budget import (
    ReplicaGroup,
    assign_groups,
    by_creator,
    count_group,
)
from trimtab.decide.vertical.update.eligibility import (
    Priority,
    UpdateCandidate,
    UpdateThresholds,
    admits_eviction,
    check_eligibility,
    has_quick_oom,
    in_update_order,
    is_lower_anywhere,
    oom_threshold,
    update_priority,
)
from trimtab.decide.vertical.update.eviction_limits import NO_EVICTION_LIMITS
from trimtab.decide.vertical.update.loop import drive, update_loop
from trimtab.decide.vertical.update.loop_state import UpdaterSettings, UpdaterState
from trimtab.decide.vertical.update.observation import (
    ObservedController,
    ObservedVPA,
    UpdateObservation,
)
from trimtab.decide.vertical.update.resize.plan import plan_resize
from trimtab.decide.vertical.update.upstream_restrictions import (
    GroupStatus,
    InPlaceRequest,
    can_evict,
    decide_in_place,
)
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.objects import LimitRange, LimitRangeSpec
from trimtab.model.core.pod import Pod
from trimtab.model.json import wire
from trimtab.model.times import format_time, parse_time
from trimtab.model.vpa.types import (
    EvictionRequirement,
    RecommendedPodResources,
    UpdateMode,
    VerticalPodAutoscaler,
)


@checks("kind", "priority", stem="updater")
def priority(case):
    given = case["input"]
    found = update_priority(
        wire.convert(given["pod"], Pod), optional(given["recommendation"], RecommendedPodResources)
    )
    return differences(case["expect"], _shown_priority(found))


def _shown_priority(found: Priority) -> dict[str, Any]:
    return {
        "outsideRecommendedRange": found.is_outside_range,
        "scaleUp": found.is_scale_up,
        "resourceDiff": found.resource_diff,
    }


@checks("kind", "addPod", stem="updater")
def add_pod(case):
    given = case["input"]
    rank = given["priority"]
    found = Priority(rank["outsideRecommendedRange"], rank["scaleUp"], rank["resourceDiff"])
    processed = optional(given["processedRecommendation"], RecommendedPodResources)
    return differences(case["expect"], {"accepted": _accepts(given, given["pod"], found, processed)})


def _accepts(given, raw, rank, processed) -> bool:
    pod = wire.convert(raw, Pod)
    vpa = wire.convert(given["vpa"], VerticalPodAutoscaler)
    config = given["config"]
    thresholds = UpdateThresholds(
        config["minChangePriority"],
        timedelta(seconds=config["podLifetimeUpdateThresholdSeconds"]),
        timedelta(seconds=config["evictAfterOOMThresholdSeconds"]),
    )
    attempt = (given["infeasibleAttempts"] or {}).get(pod.metadata.uid)
    infeasible = optional(attempt, RecommendedPodResources) if _mode(vpa) == UpdateMode.IN_PLACE else None
    if infeasible is not None and not is_lower_anywhere(infeasible, processed):
        return False
    now = parse_time(given["now"])
    threshold = oom_threshold(vpa, thresholds.evict_after_oom, gates(given))
    is_quick_oom = has_quick_oom(pod, vpa, now, threshold)
    return check_eligibility(pod, rank, is_quick_oom=is_quick_oom, now=now, thresholds=thresholds).is_eligible


def _mode(vpa: VerticalPodAutoscaler) -> str:
    policy = vpa.spec.update_policy
    return policy.update_mode if policy and policy.update_mode else UpdateMode.RECREATE


@checks("kind", "order", stem="updater")
def order(case):
    given = case["input"]
    vpa = wire.convert(given["vpa"], VerticalPodAutoscaler)
    chosen: dict[str, UpdateCandidate] = {}
    for raw in given["pods"]:
        pod = wire.convert(raw, Pod)
        processed = cap_for_pod(vpa, pod, limit_ranges(given), Rules.VPA_1_8).recommendation
        rank = update_priority(pod, processed)
        if _accepts(given, raw, rank, processed):
            chosen[pod.name] = UpdateCandidate(pod, rank, processed)
    policy = vpa.spec.update_policy
    requirements = policy.eviction_requirements if policy else None
    got = {
        "accepted": {name: _shown_priority(candidate.priority) for name, candidate in chosen.items()},
        "order": [
            candidate.pod.name
            for candidate in in_update_order(chosen.values())
            if admits_eviction(candidate.pod, candidate.recommendation, requirements)
        ],
    }
    return differences(case["expect"], got)


@checks("kind", "admit", stem="updater")
def admit(case):
    given = case["input"]
    requirements = None
    if given["hasRequirements"]:
        requirements = [
            wire.convert(entry, EvictionRequirement) for entry in given["evictionRequirements"] or ()
        ]
    pod = wire.convert(given["pod"], Pod)
    recommendation = optional(given["recommendation"], RecommendedPodResources)
    return differences(case["expect"], {"admit": admits_eviction(pod, recommendation, requirements)})


@checks("kind", "creatorMaps", stem="updater")
def creator_maps(case):
    given = case["input"]
    vpa = wire.convert(given["vpa"], VerticalPodAutoscaler)
    pods = [wire.convert(raw, Pod) for raw in given["pods"]]
    groups: dict[ControllerKey, ReplicaGroup] = {}
    for creator, members in by_creator(pods, Rules.VPA_1_8).items():
        counted = count_group(
            creator, members, _replicas(given, creator), given["evictionToleranceFraction"], Rules.VPA_1_8
        )
        if counted is not None:
            groups[creator] = counted
    policy = vpa.spec.update_policy
    required = policy.min_replicas if policy and policy.min_replicas is not None else given["minReplicas"]
    in_place = _mode(vpa) in {UpdateMode.IN_PLACE, UpdateMode.IN_PLACE_OR_RECREATE}
    found = assign_groups(
        pods,
        required,
        minimum_is_waived=in_place and given["inPlaceSkipDisruptionBudget"],
        known=groups,
        rules=Rules.VPA_1_8,
    )
    used = set(found.creators.values())
    got = {
        "groups": {
            str(creator): _shown_group(group, creator in found.below_minimum)
            for creator, group in groups.items()
            if creator in used
        },
        "podGroups": {pod: str(creator) for pod, creator in found.creators.items()},
    }
    return differences(case["expect"], got)


def _replicas(given: dict[str, Any], creator: ControllerKey) -> int | None:
    wanted = (creator.kind, creator.namespace, creator.name)
    for entry in given["controllers"] or ():
        if (entry["kind"], entry["namespace"], entry["name"]) == wanted:
            replicas: int | None = entry["replicas"]
            return replicas
    return None


def _shown_group(group: ReplicaGroup, is_below: bool) -> dict[str, Any]:
    return {
        "configured": group.configured,
        "pending": group.pending,
        "running": group.running,
        "evictionTolerance": group.tolerance,
        "evicted": group.evicted,
        "inPlaceUpdateOngoing": group.resizing,
        "inPlaceUpdateInitiated": group.resized,
        "belowMinReplicas": is_below,
    }


def _standing(given: dict[str, Any]) -> GroupStatus:
    stats = given["stats"]
    if stats is None:
        return GroupStatus(given["inGroup"], None)
    group = ReplicaGroup(
        configured=stats["configured"],
        tolerance=stats["evictionTolerance"],
        pending=stats["pending"],
        running=stats["running"],
        resizing=stats["inPlaceUpdateOngoing"],
        evicted=stats["evicted"],
        resized=stats["inPlaceUpdateInitiated"],
    )
    return GroupStatus(given["inGroup"], group, stats["belowMinReplicas"])


def _moment(text: str | None) -> Any:
    return None if text is None else parse_time(text)


@checks("kind", "canEvict", stem="updater")
def evicts(case):
    given, expect = case["input"], case["expect"]
    pod = wire.convert(given["pod"], Pod)
    now = parse_time(given["now"])
    is_allowed, seen = can_evict(pod, _standing(given), _moment(given["lastInPlaceAttempt"]), now)
    got = {"canEvict": is_allowed, "lastInPlaceAttempt": _text(expect["lastInPlaceAttempt"], seen)}
    return differences(expect, got)


@checks("kind", "canInPlaceUpdate", stem="updater")
def resizes(case):
    given, expect = case["input"], case["expect"]
    pod = wire.convert(given["pod"], Pod)
    vpa = wire.convert(given["vpa"], VerticalPodAutoscaler)
    policy = vpa.spec.update_policy
    attempt = (given["infeasibleAttempts"] or {}).get(pod.metadata.uid)
    request = InPlaceRequest(
        pod=pod,
        mode=policy.update_mode if policy and policy.update_mode is not None else UpdateMode.RECREATE,
        group_status=_standing(given),
        recommendation=vpa.status.recommendation,
        infeasible=optional(attempt, RecommendedPodResources),
        first_seen=_moment(given["lastInPlaceAttempt"]),
        is_mode_allowed=gates(given).in_place,
        skips_budget=given["inPlaceSkipDisruptionBudget"],
    )
    answer = decide_in_place(request, parse_time(given["now"]))
    got = {
        "decision": str(answer.decision),
        "lastInPlaceAttempt": _text(expect["lastInPlaceAttempt"], answer.first_seen),
    }
    return differences(expect, got)


def _text(want: str | None, got: Any) -> str | None:
    """Return the moment as text, or as recorded if it is the same to the microsecond that a datetime holds."""
    if got is not None and _moment(want) == got:
        return want
    return None if got is None else format_time(got)


@checks("kind", "inPlacePatches", stem="updater")
def in_place_patches(case):
    given = case["input"]
    plan = plan_resize(
        wire.convert(given["pod"], Pod),
        wire.convert(given["vpa"], VerticalPodAutoscaler),
        container_resources(given["containersResources"]),
        parse_time(given["now"]),
        Rules.VPA_1_8,
    )
    return differences(case["expect"], {"patches": list(plan.operations), "error": None})


@checks("kind", "runOnce", stem="updater")
def run_once(case):
    given = case["input"]
    settings = _settings(given["config"])
    base = _observation(given)
    state = UpdaterState()
    pods: list[Any] = []
    loops = []
    for step in given["loops"]:
        pods = pods if step["pods"] is None else [wire.convert(raw, Pod) for raw in step["pods"]]
        seen = msgspec.structs.replace(base, pods=tuple(pods))
        cluster = _Cluster(step)
        result = drive(
            update_loop(seen, state, parse_time(step["now"]), settings, gates(given), Rules.VPA_1_8),
            cluster.perform,
        )
        state = result.state
        loops.append(cluster.shown(result))
    want = [
        {**loop, "infeasibleAttempts": without_empty(loop["infeasibleAttempts"])}
        for loop in case["expect"]["loops"]
    ]
    return differences(want, loops)


def _settings(config: dict[str, Any]) -> UpdaterSettings:
    return UpdaterSettings(
        min_replicas=config["minReplicas"],
        eviction_tolerance=config["evictionToleranceFraction"],
        min_change=config["updateThreshold"],
        lifetime_seconds=config["podLifetimeUpdateThresholdSeconds"],
        evict_after_oom_seconds=config["evictAfterOOMThresholdSeconds"],
        skips_budget_in_place=config["inPlaceSkipDisruptionBudget"],
        ignored_namespaces=tuple(config["ignoredNamespaces"] or ()),
        eviction_limits=NO_EVICTION_LIMITS,
    )


def _observation(given: dict[str, Any]) -> UpdateObservation:
    controllers = {
        name: ObservedController(parent=owner or None, replicas=_replicas(given, controller_key(name)))
        for name, owner in given["parents"].items()
    }
    ranges = limit_ranges(given)
    namespaces = {entry["vpa"]["metadata"].get("namespace", "") for entry in given["vpas"]}
    items = [
        {**wire.to_builtins(item), "type": kind}
        for item, kind in ((ranges.container, "Container"), (ranges.pod, "Pod"))
        if item is not None
    ]
    spec = wire.convert({"limits": items}, LimitRangeSpec)
    return UpdateObservation(
        vpas=tuple(
            ObservedVPA(vpa=wire.convert(entry["vpa"], VerticalPodAutoscaler), selector=entry["selector"])
            for entry in given["vpas"]
        ),
        controllers=controllers,
        limit_ranges=tuple(
            LimitRange(metadata=ObjectMeta(name="case", namespace=namespace), spec=spec)
            for namespace in sorted(namespaces)
        ),
    )


class _Cluster:
    """An API that refuses what the case says, and writes down what it was asked."""

    def __init__(self, step: dict[str, Any]) -> None:
        self.refused_evictions = set(step["failEvictions"] or ())
        self.refused_resizes = step["failResizes"] or {}
        self.lists: dict[str, list[Any]] = {
            name: []
            for name in ("evictions", "failedEvictions", "resizes", "failedResizes", "annotationPatches")
        }

    def perform(self, action: Action) -> ActionResult:
        key = action.pod.metadata.key
        if isinstance(action, Evict):
            is_refused = key in self.refused_evictions
            self.lists["failedEvictions" if is_refused else "evictions"].append(key)
            return ActionResult.FAILED if is_refused else ActionResult.DONE
        refusal = self.refused_resizes.get(key)
        self.lists["failedResizes" if refusal else "resizes"].append(
            {"pod": key, "patch": list(action.operations)}
        )
        if refusal:
            return ActionResult.INFEASIBLE if refusal == "infeasible" else ActionResult.FAILED
        # Upstream sends a JSON patch, ours is a merge patch: both say the same.
        is_bare = not action.pod.metadata.annotations
        patch = [
            *([add_empty_annotations()] if is_bare else []),
            *(
                add_annotation(name, value)
                for name, value in action.plan.annotations_after.items()
                if value is not None
            ),
        ]
        self.lists["annotationPatches"].append({"pod": key, "patch": patch})
        return ActionResult.DONE

    def shown(self, result) -> dict[str, Any]:
        return {
            **self.lists,
            "events": [f"{event.type} {event.reason} {event.message}" for event in result.events],
            "lastInPlaceAttempts": {
                key: format_time(at) for key, at in result.state.resizes_first_seen.items()
            },
            "infeasibleAttempts": {
                uid: shown(found.recommendation) for uid, found in result.state.infeasible.items()
            },
        }
