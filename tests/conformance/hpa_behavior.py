"""behavior.jsonl: windows, bounds and rate policies, as functions and as sequences through time."""

from tests.conformance.differences import differences
from tests.conformance.hpa_values import history, history_of, moment, same_keys, settings_of
from tests.conformance.registry import checks
from tests.conformance.versions import current
from trimtab.decide.horizontal.behavior import normalize, rate_limits, stabilization
from trimtab.decide.horizontal.memory import Memory, seed_recommendations
from trimtab.model.hpa.types import HorizontalPodAutoscalerBehavior, HPAScalingRules
from trimtab.model.json import wire


def wanted(args, behavior=None):
    return normalize.NormalizeInput(
        current=args["currentReplicas"],
        desired=args["desiredReplicas"],
        lowest=args["minReplicas"],
        highest=args["maxReplicas"],
        behavior=behavior,
    )


def behavior_of(args):
    rules = {name: args[name] for name in ("scaleUp", "scaleDown") if args.get(name) is not None}
    return wire.convert(rules, HorizontalPodAutoscalerBehavior)


def given_behavior(fields):
    """Return the behavior that a spec or arguments give; absent and null are none, which is not an empty one."""
    behavior = fields.get("behavior")
    return None if behavior is None else wire.convert(behavior, HorizontalPodAutoscalerBehavior)


def limited_answer(limited):
    return {
        "replicas": limited.replicas,
        "reason": limited.reason,
        "message": normalize.MESSAGES[limited.reason],
    }


@checks("function", "convertDesiredReplicasWithRules")
def with_rules(case):
    args = case["args"]
    limited = normalize.limit_by_rules(
        wanted(args), args["desiredReplicas"], settings_of(case.get("settings", {}))
    )
    return compared(case, limited_answer(limited))


@checks("function", "convertDesiredReplicasWithBehaviorRate")
def with_behavior_rate(case):
    args = case["args"]
    limited = normalize.limit_by_behavior(
        wanted(args, behavior_of(args)),
        args["desiredReplicas"],
        history_of(case["state"]),
        moment(case["now"]),
        current().rules,
    )
    return compared(case, limited_answer(limited))


@checks("function", "stabilizeRecommendationWithBehaviors")
def stabilize_with_behaviors(case):
    args, memory = case["args"], history_of(case["state"])
    stabilized = normalize.stabilize_with_behavior(
        wanted(args, behavior_of(args)), memory, moment(case["now"]), settings_of({}), current().rules
    )
    # Upstream tells a reason even where nothing was held back; its caller then leaves it out, as ours does.
    direction = args["desiredReplicas"] >= args["currentReplicas"]
    reason = stabilized.reason or (
        stabilization.SCALE_UP_STABILIZED if direction else stabilization.SCALE_DOWN_STABILIZED
    )
    answer = {
        "replicas": stabilized.replicas,
        "reason": reason,
        "message": stabilization.MESSAGES[reason],
        "state": history(memory, recommendations=stabilized.recommendations),
    }
    return compared(case, answer)


@checks("function", "stabilizeRecommendation")
def stabilize_recommendation(case):
    memory = history_of(case["state"])
    stabilized = stabilization.stabilize(
        memory.recommendations or (),
        case["args"]["desiredReplicas"],
        moment(case["now"]),
        settings_of(case["settings"]).downscale_stabilization,
        compact=False,
    )
    answer = {
        "replicas": stabilized.replicas,
        "state": history(memory, recommendations=stabilized.recommendations),
    }
    return compared(case, answer)


@checks("function", "calculateScaleUpLimitWithScalingRules", "calculateScaleDownLimitWithBehaviors")
def rate_limit(case):
    is_up = case["function"] == "calculateScaleUpLimitWithScalingRules"
    limit = (rate_limits.scale_up_limit if is_up else rate_limits.scale_down_limit)(
        case["args"]["currentReplicas"],
        history_of(case["state"]),
        wire.convert(case["args"]["rules"], HPAScalingRules),
        moment(case["now"]),
        current().rules,
    )
    return compared(case, {"limit": limit.replicas})


@checks("function", "getReplicasChangePerPeriod")
def change_per_period(case):
    events = history_of({"scaleUpEvents": case["state"]["scaleEvents"]}).scale_up
    changed = rate_limits.change_within(case["args"]["periodSeconds"], events, moment(case["now"]))
    return compared(case, {"replicas": changed})


@checks("function", "storeScaleEvent")
def store_scale_event(case):
    args, memory = case["args"], history_of(case["state"])
    up, down = rate_limits.scale_events(
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
    now, replicas = moment(step["now"]), step["currentReplicas"]
    behavior = given_behavior(spec)
    memory = seed_recommendations(memory, replicas, now)
    result = normalize.normalize(wanted(step | spec, behavior), memory, now, settings, current().rules)
    up, down = memory.scale_up, memory.scale_down
    if result.replicas != replicas:
        up, down = rate_limits.scale_events(memory, behavior, replicas, result.replicas, now, compact=False)
    memory = Memory(recommendations=result.stabilized.recommendations, scale_up=up, scale_down=down)
    held = result.stabilized.reason
    able = {
        "status": "True",
        "reason": held or "ReadyForNewScale",
        "message": stabilization.MESSAGES[held] if held else "recommended size matches current size",
    }
    limited = {
        "status": str(result.is_limited),
        "reason": result.limited.reason,
        "message": normalize.MESSAGES[result.limited.reason],
    }
    return memory, {"replicas": result.replicas, "ableToScale": able, "scalingLimited": limited}


def compared(case, answer):
    want = {key: value for key, value in case["expect"].items() if key != "outOfRangeConversion"}
    if "state" in answer:
        answer["state"] = same_keys(want["state"], answer["state"])
    return differences(want, answer)
