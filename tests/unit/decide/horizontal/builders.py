"""Builders with sane defaults: a test names only what matters to it."""

from datetime import UTC, datetime, timedelta

import msgspec

from trimtab.decide.horizontal import (
    FetchFailure,
    HpaSettings,
    Memory,
    Observation,
    PodSamples,
    PodSnapshot,
    Record,
    Rules,
    Sample,
    Series,
    after_scale,
    decide,
    explain,
)
from trimtab.decide.horizontal.memory import Owner as MemoryOwner
from trimtab.decide.horizontal.memory import Recommendation
from trimtab.decide.horizontal.observation.requests import ContainerRequests
from trimtab.decide.horizontal.selection.selection import select_pods
from trimtab.model.core.meta import (
    CrossVersionObjectReference,
    ObjectMeta,
    OwnerReference,
)
from trimtab.model.core.workloads import Scale, ScaleSpec, ScaleStatus
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    HpaCondition,
    HPAScalingPolicy,
    HPAScalingRules,
    MetricLoss,
    MetricSpec,
)
from trimtab.model.json.wire import convert
from trimtab.model.quantity import Quantity

NOW = datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC)
T = NOW.timestamp()
EVERY_GATE = FeatureGates(
    hpa_selection_strategy=True, hpa_configurable_tolerance=True, hpa_scale_to_zero=True
)
UPSTREAM = Rules.KUBERNETES_1_37
NO_WINDOW = HpaSettings(downscale_stabilization=0.0)
TARGET_UID = "uid-of-web"
REPLICA_SET = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web-7f9", uid="uid-of-web-7f9")
DEPLOYMENT = OwnerReference(api_version="apps/v1", kind="Deployment", name="web", uid=TARGET_UID)
JOB = OwnerReference(api_version="batch/v1", kind="Job", name="scrape", uid="uid-of-scrape")


def pod(name="web-1", *, cpu=100, ready="True", phase="Running", owners=(), age=3600.0, **facts):
    """Make a pod that has been ready for an hour; `cpu` is its request in thousandths, None for no request."""
    requests = {} if cpu is None else {"cpu": cpu, "memory": 1_000_000}
    given = {
        "labels": {"app": "web"},
        "phase": phase,
        "ready": ready,
        "ready_since": T - age,
        "started": T - age,
        "requests": requests,
        "containers": (ContainerRequests(name="main", requests=requests),),
        "owners": tuple(owners),
    }
    return PodSnapshot(name=name, **(given | facts))


def pods(number, **facts):
    return tuple(pod(f"web-{index}", **facts) for index in range(1, number + 1))


def samples(values, *, age=20.0, window=15.0):
    """Make the reading of a metric of each pod: `{pod: thousandths}`."""
    taken = {name: Sample(value, T - age, window) for name, value in values.items()}
    return PodSamples(samples=taken, timestamp=T - age)


def usage_of(chosen, milli, **how):
    """Make a reading in which each of these pods uses the same."""
    return samples({one.name: milli for one in chosen}, **how)


def series(*units, age=20.0, window=0.0):
    """Make the reading of an object or external metric, in whole units."""
    return Series(samples=tuple(Sample(round(unit * 1000), T - age, window) for unit in units))


def unreadable(text="something went wrong"):
    return FetchFailure(message=text)


def cpu(percent=50):
    return spec("Resource", resource={"name": "cpu", "target": utilization(percent)})


def cpu_value(quantity):
    return spec("Resource", resource={"name": "cpu", "target": average(quantity)})


def memory(percent=50):
    return spec("Resource", resource={"name": "memory", "target": utilization(percent)})


def memory_value(quantity):
    return spec("Resource", resource={"name": "memory", "target": average(quantity)})


def container_cpu(container, percent=50):
    source = {"name": "cpu", "container": container, "target": utilization(percent)}
    return spec("ContainerResource", containerResource=source)


def pods_metric(quantity, name="qps", selector=None):
    return spec("Pods", pods={"metric": identifier(name, selector), "target": average(quantity)})


def object_metric(target, name="rps", selector=None, kind="Ingress"):
    described = {"apiVersion": "networking.k8s.io/v1", "kind": kind, "name": "main"}
    return spec(
        "Object",
        object={"metric": identifier(name, selector), "target": target, "describedObject": described},
    )


def external(target, name="queue", selector=None):
    return spec("External", external={"metric": identifier(name, selector), "target": target})


def losing(metric, policy, **fields):
    """Give a metric a loss policy."""
    return msgspec.structs.replace(metric, on_loss=MetricLoss(policy=policy, **fields))


def spec(kind, **source):
    return convert({"type": kind, **source}, MetricSpec)


def identifier(name, selector):
    return {"name": name} if selector is None else {"name": name, "selector": selector}


def utilization(percent):
    return {"type": "Utilization", "averageUtilization": percent}


def value(quantity):
    return {"type": "Value", "value": str(quantity)}


def average(quantity):
    return {"type": "AverageValue", "averageValue": str(quantity)}


def rules(*policies, window=None, select="Max", tolerance=None):
    """Make scaling rules; a policy is `(type, value, period in seconds)`."""
    return HPAScalingRules(
        stabilization_window_seconds=window,
        select_policy=select,
        policies=tuple(
            HPAScalingPolicy(type=kind, value=much, period_seconds=per) for kind, much, per in policies
        ),
        tolerance=None if tolerance is None else Quantity.parse(str(tolerance)),
    )


UP = rules(("Pods", 4, 15), ("Percent", 100, 15), window=0)
DOWN = rules(("Percent", 100, 15))


def behavior(up=UP, down=DOWN):
    return HorizontalPodAutoscalerBehavior(scale_up=up, scale_down=down)


def tolerant(up=None, down=None, window=None):
    """Make a behaviour that differs from the default in its tolerances (and the scale-down window) only."""
    return behavior(
        rules(("Pods", 4000, 15), window=0, tolerance=up),
        rules(("Percent", 100, 15), window=window, tolerance=down),
    )


def hpa(*metrics, low=1, high=10, status=None, **fields):
    meta = {"name": "web", "namespace": "shop", "uid": "uid-of-hpa", "generation": 1}
    return HorizontalPodAutoscaler(
        metadata=ObjectMeta(**(meta | fields.pop("metadata", {}))),
        spec=HorizontalPodAutoscalerSpec(
            scale_target_ref=CrossVersionObjectReference(
                api_version="apps/v1", kind="Deployment", name="web"
            ),
            min_replicas=low,
            max_replicas=high,
            metrics=metrics or (cpu(),),
            **fields,
        ),
        status=status or HorizontalPodAutoscalerStatus(observed_generation=1),
    )


def own(autoscaler):
    """Return the same as an object of our own kind."""
    return msgspec.structs.replace(autoscaler, api_version="autoscaling.trimtab.dev/v2")


def scale(replicas, *, seen=None, selector="app=web", uid=TARGET_UID):
    """Make a scale; `seen` are the replicas of its status."""
    return Scale(
        metadata=ObjectMeta(name="web", namespace="shop", uid=uid),
        spec=ScaleSpec(replicas=replicas),
        status=ScaleStatus(replicas=replicas if seen is None else seen, selector=selector),
    )


def marked(status="True"):
    """Make a status in which `ScaledToZero` has this status; None leaves the condition out."""
    if status is None:
        return HorizontalPodAutoscalerStatus(observed_generation=1)
    reason = "ScaledToZero" if status == "True" else "NotScaledToZero"
    condition = HpaCondition(
        type="ScaledToZero", status=status, reason=reason, last_transition_time=NOW - timedelta(hours=1)
    )
    return HorizontalPodAutoscalerStatus(observed_generation=1, conditions=(condition,))


def observe(autoscaler=None, replicas=1, *readings, **fields):
    """Make an observation: an autoscaler, the replicas of its target, and a reading per metric."""
    given = {
        "scale": scale(replicas),
        "pods": pods(min(replicas, 200)),
        "memory": settled(replicas),
        "gates": EVERY_GATE,
        "rules": Rules.TRIMTAB,
    }
    return Observation(hpa=autoscaler or hpa(), samples=readings, **(given | fields))


def select_by(strategy, chosen, target, lookups):
    """Select the pods of a target by a strategy, with these results of owner lookups."""
    reference = CrossVersionObjectReference(
        api_version=target.api_version, kind=target.kind, name=target.name
    )
    autoscaler = hpa(selection_strategy=strategy)
    spec_of_target = msgspec.structs.replace(autoscaler.spec, scale_target_ref=reference)
    autoscaler = msgspec.structs.replace(autoscaler, spec=spec_of_target)
    seen = observe(autoscaler, 1, pods=tuple(chosen), owners=lookups, scale=scale(1, uid=target.uid))
    return select_pods(seen, strategy)


def settled(replicas):
    """Remember one sync, 15 seconds ago, that asked for the current replicas."""
    return remembering((Recommendation(replicas, T - 15),), replicas=replicas)


OWNER = MemoryOwner("uid-of-hpa", "apps", "Deployment", "web")
"""The owner of the memories of `hpa()`."""


def remembering(recommendations, **fields):
    """Make the memory of `hpa()`, whose last sync was 15 seconds ago."""
    given = {"owner": OWNER, "at": T - 15, "is_asking": True, "recommendations": recommendations}
    return Memory(**(given | fields))


def run(seen, now=NOW, error=None):
    """Decide, let the scale be written (or fail with `error`), and complete the decision."""
    return after_scale(seen, decide(seen, now), error)


def explained(seen, error=None):
    """Decide, and explain the decision."""
    return explain(Record(observation=seen, decision=run(seen, error=error)))


def later(seen, decision, seconds=15, **changes):
    """Return the next observation: what was decided is written, and some things changed."""
    replicas = changes.pop("replicas", decision.desired)
    autoscaler = changes.pop("hpa", seen.hpa)
    kept = {
        "hpa": msgspec.structs.replace(autoscaler, status=decision.status),
        "memory": decision.memory,
        "scale": scale(replicas),
        "pods": pods(min(replicas, 200)),
    }
    return msgspec.structs.replace(seen, **(kept | changes)), NOW + timedelta(seconds=seconds)


def condition(decision, kind):
    return decision.status.condition(kind)


def told(decision):
    return [event.reason for event in decision.events]


def why_unusable(reading):
    """Return the text of a failed reading."""
    assert isinstance(reading, FetchFailure)
    return reading.message
