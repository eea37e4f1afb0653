"""behavior.jsonl: windows, bounds and rate policies, as functions and as sequences through time."""

from tests.conformance.differences import differences
from tests.conformance.hpa_values import history, history_of, moment, same_keys, settings_of
from tests.conformance.registry import checks
from tests.conformance.versions import current
from trimtab.decide.horizontal import limits
from trimtab.decide.horizontal.memory import Memory, seed_recommendations
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.reasons import (
    DOWN_STABILIZED,
    READY,
    ROWS,
    UP_STABILIZED,
    WITHIN_RANGE,
    Code,
    Count,
    Reason,
)
from trimtab.decide.horizontal.rules import HpaSettings
from trimtab.model.core.workloads import Scale, ScaleSpec
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerSpec,
    HPAScalingRules,
)
from trimtab.model.json import wire


def seen_with(behavior, current_replicas, settings=HpaSettings()):  # noqa: B008 - frozen
    return Observation(
        hpa=HorizontalPodAutoscaler(spec=HorizontalPodAutoscalerSpec(behavior=behavior)),
        scale=Scale(spec=ScaleSpec(replicas=current_replicas)),
        settings=settings,
        rules=current().rules,
    )


def asked(replicas):
    return Count(replicas, Reason(code=Code.ENOUGH))


def bounds_of(args):
    return limits.Bounds(args["minReplicas"], args["maxReplicas"])


def behavior_of(args):
    rules = {name: args[name] for name in ("scaleUp", "scaleDown") if args.get(name) is not None}
    return wire.convert(rules, HorizontalPodAutoscalerBehavior)


def given_behavior(fields):
    """Return the behavior that a spec or arguments give; absent and null are none, which is not an empty one."""
    behavior = fields.get("behavior")
    return None if behavior is None else wire.convert(behavior, HorizontalPodAutoscalerBehavior)


def limited_by(before, after):
    """Return the condition of the step that limited the replicas, or that nothing did."""
    return WITHIN_RANGE if after is before else ROWS[after.why.code].conditions[0]


def limited_answer(before, after):
    condition = limited_by(before, after)
    return {"replicas": after.replicas, "reason": condition.reason, "message": condition.message}


@checks("function", "convertDesiredReplicasWithRules")
def with_rules(case):
    args, settings = case["args"], settings_of(case.get("settings", {}))
    count = asked(args["desiredReplicas"])
    after = limits.limit_by_rules(count, args["currentReplicas"], bounds_of(args), settings)
    return compared(case, limited_answer(count, after))


@checks("function", "convertDesiredReplicasWithBehaviorRate")
def with_behavior_rate(case):
    args, count = case["args"], asked(case["args"]["desiredReplicas"])
    seen = seen_with(behavior_of(args), args["currentReplicas"])
    memory, now = history_of(case["state"]), moment(case["now"])
    after = limits.limit_by_behavior(count, seen, bounds_of(args), memory, now)
    return compared(case, limited_answer(count, after))


@checks("function", "stabilizeRecommendationWithBehaviors")
def stabilize_with_behaviors(case):
    args, memory, now = case["args"], history_of(case["state"]), moment(case["now"])
    seen, desired = seen_with(behavior_of(args), args["currentReplicas"]), args["desiredReplicas"]
    # Upstream gives a reason even where nothing was held back; its caller then leaves it out, as ours does.
    held = UP_STABILIZED if desired >= args["currentReplicas"] else DOWN_STABILIZED
    answer = {
        "replicas": limits.within_windows(asked(desired), seen, memory, now).replicas,
        "reason": held.reason,
        "message": held.message,
        "state": history(memory, recommendations=limits.recommendations_after(seen, memory, desired, now)),
    }
    return compared(case, answer)


@checks("function", "stabilizeRecommendation")
def stabilize_recommendation(case):
    memory, now, desired = history_of(case["state"]), moment(case["now"]), case["args"]["desiredReplicas"]
    seen = seen_with(None, 0, settings_of(case["settings"]))
    answer = {
        "replicas": limits.within_windows(asked(desired), seen, memory, now).replicas,
        "state": history(memory, recommendations=limits.recommendations_after(seen, memory, desired, now)),
    }
    return compared(case, answer)


@checks("function", "calculateScaleUpLimitWithScalingRules", "calculateScaleDownLimitWithBehaviors")
def rate_limit(case):
    rate = limits.rate_limit(
        case["args"]["currentReplicas"],
        history_of(case["state"]),
        wire.convert(case["args"]["rules"], HPAScalingRules),
        moment(case["now"]),
        current().rules,
        is_up=case["function"] == "calculateScaleUpLimitWithScalingRules",
    )
    return compared(case, {"limit": rate.replicas})


@checks("function", "getReplicasChangePerPeriod")
def change_per_period(case):
    events = history_of({"scaleUpEvents": case["state"]["scaleEvents"]}).scale_up
    changed = limits.change_within(case["args"]["periodSeconds"], events, moment(case["now"]))
    return compared(case, {"replicas": changed})


@checks("function", "storeScaleEvent")
def store_scale_event(case):
    args, memory = case["args"], history_of(case["state"])
    up, down = limits.scale_events(
        memory,
        given_behavior(args),
        args["prevReplicas"],
        args["newReplicas"],
        moment(case["now"]),
        compact=False,
    )
    return compared(case, {"state": history(memory, scale_up=up, scale_down=down)})


@checks("function", "sequence")
def sequence(case):
    spec, settings = case["spec"], settings_of(case["settings"])
    memory, steps = history_of(case["state"]), []
    for step in case["steps"]:
        spec = step.get("spec", spec)
        memory, answer = one_step(step, spec, memory, settings)
        steps.append(answer)
    return compared(case, {"state": history(memory), "steps": steps})


def one_step(step, spec, memory, settings):
    now, replicas, count = moment(step["now"]), step["currentReplicas"], asked(step["desiredReplicas"])
    behavior = given_behavior(spec)
    seen, memory = seen_with(behavior, replicas, settings), seed_recommendations(memory, replicas, now)
    steady = limits.within_windows(count, seen, memory, now)
    allowed = limits.within_bounds_and_rates(steady, seen, bounds_of(step | spec), memory, now)
    known = limits.recommendations_after(seen, memory, count.replicas, now)
    up, down = memory.scale_up, memory.scale_down
    if allowed.replicas != replicas:
        up, down = limits.scale_events(memory, behavior, replicas, allowed.replicas, now, compact=False)
    able = READY if steady is count else ROWS[steady.why.code].conditions[0]
    answer = {
        "replicas": allowed.replicas,
        "ableToScale": shown(able),
        "scalingLimited": shown(limited_by(steady, allowed)),
    }
    return Memory(recommendations=known, scale_up=up, scale_down=down), answer


def shown(condition):
    return {"status": condition.status, "reason": condition.reason, "message": condition.message}


def compared(case, answer):
    want = {key: value for key, value in case["expect"].items() if key != "outOfRangeConversion"}
    if "state" in answer:
        answer["state"] = same_keys(want["state"], answer["state"])
    return differences(want, answer)
