"""calculator.jsonl: the replica calculator, its parts, and the reading of the metrics APIs."""

from typing import Any

from tests.conformance.differences import differences
from tests.conformance.hpa_readings import (
    external_reading,
    object_reading,
    pods_reading,
    reading_of,
    resource_reading,
)
from tests.conformance.hpa_values import moment, read_by_go, settings_of, text_of
from tests.conformance.int64 import wrapped
from tests.conformance.registry import checks
from tests.conformance.versions import current
from trimtab.decide.horizontal.metrics.kinds import Failure, propose_replicas, resource_quantity
from trimtab.decide.horizontal.metrics.pods import (
    Context,
    Groups,
    Tolerance,
    UnusableMetric,
    Usage,
    group_pods,
    requests_of,
)
from trimtab.decide.horizontal.observation.pods import PodSnapshot, snapshot_pod
from trimtab.decide.horizontal.observation.samples import FetchFailure, Sample
from trimtab.decide.horizontal.observation.staleness import ANYTHING_GOES
from trimtab.model.core.pod import Pod
from trimtab.model.hpa.types import MetricSpec
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.quantity import Quantity


def facts_of(case):
    gate = case["featureGates"]["PodLevelResources"]
    return tuple(snapshot_pod(wire.convert(pod, Pod), pod_level_resources=gate) for pod in case["pods"])


def selected(case, namespace, selector):
    """Return the facts of the namespace's pods that match, as a lister would."""
    chosen = Selector.parse(selector)
    pods = [pod for pod in case["pods"] if pod["metadata"].get("namespace", "") == namespace]
    return tuple(pod for pod in facts_of(case | {"pods": pods}) if chosen.matches(pod.labels))


def scene_of(case):
    args = case["args"]
    pods = selected(case, args["namespace"], args["selector"]) if "selector" in args else ()
    tolerances = args["tolerances"]
    return Context(
        namespace=args["namespace"],
        now=moment(case["now"]),
        current=args.get("currentReplicas", args.get("statusReplicas")),
        status_replicas=args.get("statusReplicas", args.get("currentReplicas")),
        pods=pods,
        has_pods=bool(pods),
        tolerance=Tolerance(up=tolerances["scaleUp"], down=tolerances["scaleDown"]),
        settings=settings_of(case["settings"]),
        rules=current().rules,
        limits=ANYTHING_GOES,
        averages_strays=True,
    )


def milli(number):
    return str(Quantity.from_milli(number))


def spec_of(case):
    """Write the metric spec that makes the controller call the case's function with the case's arguments."""
    args, function = case["args"], case["function"]
    metric = {"name": args.get("metricName"), "selector": args.get("metricSelector")}
    per_pod = {
        "type": "AverageValue",
        "averageValue": milli(args.get("targetAverageUsage", args.get("targetUsage", 0))),
    }
    value = {"type": "Value", "value": milli(args.get("targetUsage", 0))}
    if function in {"GetResourceReplicas", "GetRawResourceReplicas"}:
        utilization = {"type": "Utilization", "averageUtilization": args.get("targetUtilization")}
        source = {
            "name": args["resource"],
            "target": utilization if function == "GetResourceReplicas" else per_pod,
        }
        if args["container"]:
            return {
                "type": "ContainerResource",
                "containerResource": source | {"container": args["container"]},
            }
        return {"type": "Resource", "resource": source}
    if function == "GetMetricReplicas":
        return {"type": "Pods", "pods": {"metric": metric, "target": per_pod}}
    target = per_pod if "PerPod" in function else value
    if "External" in function:
        return {"type": "External", "external": {"metric": metric, "target": target}}
    return {
        "type": "Object",
        "object": {"metric": metric, "target": target, "describedObject": args["objectRef"]},
    }


@checks(
    "function",
    "GetResourceReplicas",
    "GetRawResourceReplicas",
    "GetMetricReplicas",
    "GetObjectMetricReplicas",
    "GetObjectPerPodMetricReplicas",
    "GetExternalMetricReplicas",
    "GetExternalPerPodMetricReplicas",
)
def replicas(case):
    case = case | {"pods": read_by_go(case["pods"]), "metrics": read_by_go(case["metrics"])}
    args, expect = case["args"], dict(case["expect"])
    expect.pop("outOfRangeConversion", None)
    spec = wire.convert(spec_of(case), MetricSpec)
    reading = reading_of(spec, case["metrics"], args["namespace"], args.get("selector", ""))
    result = propose_replicas(spec, reading, scene_of(case))
    if isinstance(result, Failure):
        return error_difference(expect, result.message)
    if case["function"] in {"GetObjectMetricReplicas", "GetExternalMetricReplicas"}:
        expect.pop("timestamp", None)  # upstream forgets it on the way; nothing depends on it
    answer = {"replicas": result.replicas, "timestamp": text_of(result.timestamp)}
    if case["function"] == "GetResourceReplicas":
        shown: Any = result.status.resource or result.status.container_resource
        answer |= {
            "utilization": result.value,
            "rawUtilization": shown.current.average_value.milli_value(),
        }
    else:
        answer["usage"] = result.value
    return differences(
        expect, {key: value for key, value in answer.items() if key != "timestamp" or key in expect}
    )


def error_difference(expect, error):
    """Compare errors; the calculator's own text is what follows the controller's `failed to get cpu usage: `."""
    wanted = expect.get("errorAnyOf", [expect.get("error", "no error")])
    return None if any(error.endswith(text) for text in wanted) else f"error: want {wanted}, got {error!r}"


def samples_of(case):
    return {
        name: Sample(one["value"], moment(one["timestamp"]), float(one.get("windowSeconds", 0)))
        for name, one in case["podMetrics"].items()
    }


@checks("function", "groupPods")
def grouping(case):
    groups = group_pods(
        facts_of(case),
        samples_of(case),
        moment(case["now"]),
        settings_of(case["settings"]),
        is_cpu=case["args"]["resource"] == "cpu",
    )
    answer = {
        "readyPodCount": len(groups.ready),
        "unreadyPods": sorted(pod.name for pod in groups.unready),
        "missingPods": sorted(pod.name for pod in groups.missing),
        "ignoredPods": sorted(pod.name for pod in groups.ignored),
    }
    return differences(case["expect"], answer)


@checks("function", "calculateRequests", "calculatePodRequestsFromContainers")
def requests(case):
    args = case["args"]
    case = case | {"pods": read_by_go(case["pods"])}
    if case["function"] == "calculatePodRequestsFromContainers":
        case = case | {"featureGates": {"PodLevelResources": False}}  # this part knows of containers only
    try:
        found = requests_of(
            facts_of(case),
            args["resource"],
            args["container"],
            current().rules,
        )
    except UnusableMetric as error:
        return error_difference(case["expect"], str(error))
    if case["function"] == "calculateRequests":
        return differences(case["expect"], {"requests": found})
    return differences(case["expect"], {"request": next(iter(found.values()))})


def measured(case, names):
    """Group the named pods as ready, with their samples."""
    groups = Groups()
    groups.ready = [PodSnapshot(name=name) for name in names]
    groups.values = [case["podMetrics"][name]["value"] for name in names]
    return groups


@checks("function", "GetResourceUtilizationRatio")
def utilization_ratio(case):
    args = case["args"]
    groups = measured(case, [name for name in case["podMetrics"] if name in args["requests"]])
    try:
        usage = Usage(groups, args["targetUtilization"], args["requests"])
    except UnusableMetric as error:
        return error_difference(case["expect"], str(error))
    answer = {"ratio": usage.ratio, "current": usage.value, "rawAverageValue": usage.average}
    return differences(case["expect"], answer)


@checks("function", "GetMetricUsageRatio")
def usage_ratio(case):
    usage = Usage(measured(case, list(case["podMetrics"])), case["args"]["targetUsage"])
    return differences(case["expect"], {"ratio": usage.ratio, "current": usage.average})


@checks("function", "GetResourceMetric", "GetRawMetric", "GetObjectMetric", "GetExternalMetric")
def metric_reading(case):
    args, answers, namespace = case["args"], read_by_go(case["metrics"]), case["args"]["namespace"]
    metric, selector = args.get("metricName"), args.get("metricLabelSelector", "")
    if case["function"] == "GetResourceMetric":
        reading = resource_reading(answers, namespace, args["selector"], args["resource"], args["container"])
    elif case["function"] == "GetRawMetric":
        reading = pods_reading(answers, namespace, args["selector"], metric, selector)
    elif case["function"] == "GetObjectMetric":
        reading = object_reading(answers, namespace, args["objectRef"], metric, selector)
    else:
        reading = external_reading(answers, namespace, metric, selector)
    if isinstance(reading, FetchFailure):
        return error_difference(case["expect"], reading.message)
    return differences(case["expect"], reading_answer(case["function"], reading))


def reading_answer(function, reading):
    if function in {"GetResourceMetric", "GetRawMetric"}:
        return {
            "podMetrics": {
                name: {
                    "value": wrapped(one.value),
                    "timestamp": text_of(one.timestamp) or "0001-01-01T00:00:00Z",
                    "windowSeconds": one.window,
                }
                for name, one in reading.samples.items()
            },
            "timestamp": text_of(reading.timestamp),
        }
    timestamp = text_of(reading.samples[0].timestamp)
    if function == "GetObjectMetric":
        return {"value": wrapped(reading.samples[0].value), "timestamp": timestamp}
    return {"values": [wrapped(one.value) for one in reading.samples], "timestamp": timestamp}


@checks("function", "buildQuantity")
def build_quantity(case):
    quantity = resource_quantity(case["args"]["resource"], case["args"]["rawMilliValue"])
    return differences(case["expect"], {"quantity": str(quantity), "format": quantity.format})
