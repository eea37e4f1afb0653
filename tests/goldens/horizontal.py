"""Decisions about replicas: each exit, each type of metric, each hold, each reason."""

import json
from datetime import timedelta
from typing import Any

from tests.goldens.decision import Decision, Group
from tests.support import objects
from trimtab.cluster.resource import Json
from trimtab.plugins import DeclinedError, ReplicaProposal
from trimtab.plugins.kinds import Declaration, PluginKind
from trimtab.plugins.registry import Plugin

ON = "HPASelectionStrategy=true,HPAScaleToZero=true"
OWN, NATIVE = "autoscaling.trimtab.dev/v2", "autoscaling/v2"
LONG_AGO = "2025-01-01T00:00:00Z"
DATABASE = "example.com/v1", "Database"
QUEUE = "example.com/v1", "Queue"


def definition(kind: str, **paths: str) -> Json:
    """Return the definition of a kind of workloads."""
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", **paths}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": schema,
        "subresources": {"scale": scale, "status": {}},
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


CUSTOM = (definition("Database", labelSelectorPath=".status.selector"), definition("Queue"))
USUAL = Group("usual", {"native_hpas": True, "feature_gates": ON}, objects=CUSTOM)


def ready(status: str = "True", since: str = LONG_AGO) -> list[Json]:
    """Return the conditions of a pod that is Ready, or not."""
    return [{"type": "Ready", "status": status, "lastTransitionTime": since}]


def pod(name: str, *owners: Json, cpu: str | None = "100m", **status: Any) -> Json:
    """Return a pod of the app that has been Ready for long, unless its status is another."""
    made = objects.pod(name, spec=pod_spec(cpu), owners=[*owners], labels={"app": "web"})
    return {**made, "status": {"phase": "Running", "startTime": LONG_AGO, "conditions": ready(), **status}}


def pod_spec(cpu: str | None) -> Json:
    """Return the spec of a pod, which requests nothing without CPU."""
    return objects.pod_spec({"cpu": cpu, "memory": "100Mi"} if cpu else {})


def unready(since: str = "2026-01-01T00:59:50Z", started: str = "2026-01-01T00:59:50Z") -> Json:
    """Return the status of a pod that is not Ready."""
    return {"startTime": started, "conditions": ready("False", since)}


def web(replicas: int = 4, *, odd: dict[int, Json] | None = None, cpu: str | None = "100m") -> list[Json]:
    """Return a Deployment with its pods; the status of some is odd."""
    deployment = objects.deployment("web", replicas, spec=pod_spec(cpu))
    owners = [objects.target_of("Deployment", "web")]
    replica_set = objects.workload(
        "ReplicaSet", "web-rs", replicas, selector={"app": "web"}, spec=pod_spec(cpu), owners=owners
    )
    owner, odd = objects.target_of("ReplicaSet", "web-rs"), odd or {}
    pods = [pod(f"web-rs-{index}", owner, cpu=cpu, **odd.get(index, {})) for index in range(replicas)]
    return [{**deployment, "status": {"replicas": replicas}}, replica_set, *pods]


def custom(kind: str, **status: Any) -> Json:
    """Return a workload of a kind of its own."""
    body = {
        "apiVersion": "example.com/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"replicas": 4},
    }
    return {**body, "status": {"replicas": 4, "selector": "app=web", **status}}


def hpa(
    *metrics: Json,
    target: tuple[str, str] | None = None,
    native: bool = False,
    name: str = "web",
    **spec: Any,
) -> Json:
    """Return an HPA of the Deployment, or of another kind."""
    on = dict(zip(("apiVersion", "kind"), target or ("apps/v1", "Deployment"), strict=True)) | {"name": "web"}
    return objects.hpa(name, on=on, api_version=NATIVE if native else OWN, metrics=list(metrics), **spec)


def use(cpu: str, **others: Any) -> Json:
    """Return a step in which all pods use an amount of CPU, or some pods another, and perhaps more happens."""
    odd = {
        f"web-rs-{name[1:]}": amount and {"cpu": amount} for name, amount in others.items() if name[0] == "_"
    }
    rest = {name: value for name, value in others.items() if name[0] != "_"}
    return {"usage": {"web": {"cpu": cpu}, **odd}, **rest}


def give(**metrics: Any) -> Json:
    """Return a step in which metrics have values."""
    return {"metrics": metrics}


def edit(**spec: Any) -> Json:
    """Return a step in which the spec of the HPA is edited."""
    return {"set": {"HorizontalPodAutoscaler/web": {"spec": spec}}}


def scaled(replicas: int) -> Json:
    """Return a step in which somebody scales the Deployment."""
    return {"set": {"Deployment/web": {"scale": {"replicas": replicas}}}}


def down(window: int = 0, **rules: Any) -> Json:
    """Return a behavior for scaling down."""
    return {"scaleDown": {"stabilizationWindowSeconds": window, **rules}}


def up(window: int = 0, **rules: Any) -> Json:
    """Return a behavior for scaling up."""
    return {"scaleUp": {"stabilizationWindowSeconds": window, **rules}}


def policy(kind: str, value: int, period: int = 60) -> Json:
    """Return a rule with one policy."""
    return {"policies": [{"type": kind, "value": value, "periodSeconds": period}]}


def metric(kind: str, name: str, *, percent: int = 0, value: str = "", average: str = "", **of: str) -> Json:
    """Return a metric of a type with its target; `of` names the container, or the labels that select series."""
    target: Json = {"type": "AverageValue", "averageValue": average}
    if percent or value:
        target = (
            {"type": "Utilization", "averageUtilization": percent}
            if percent
            else {"type": "Value", "value": value}
        )
    source: Json = {"name": name, **of}
    if not kind.endswith("Resource"):
        source = {"metric": {"name": name, **({"selector": {"matchLabels": of}} if of else {})}}
    if kind == "Object":
        source["describedObject"] = {"apiVersion": "v1", "kind": "Service", "name": "front"}
    return {"type": kind, f"{kind[0].lower()}{kind[1:]}": {**source, "target": target}}


def by_pod(*values: str) -> list[tuple[Json, str]]:
    """Return the values of a Pods metric."""
    return [({"pod": f"web-rs-{index}"}, value) for index, value in enumerate(values)]


TABLE: list[Decision] = []


def row(sentence: str, objects: list[Json], about: Json, *steps: Json, group: Group = USUAL) -> None:
    """Add a decision to the table."""
    TABLE.append(Decision(sentence, group, (*objects, about), steps or ({},)))


NO_SCALE = {f"{method} /deployments/web/scale": (403, "no right to scale") for method in ("PATCH", "PUT")}
CPU, QUEUE_10 = metric("Resource", "cpu", percent=50), metric("External", "queue", average="10")
NOW: Json = {"behavior": down()}
IDLE = use("50m")

# fmt: off
# One decision is one line.

# Metric types: each asks for more, for fewer, and for neither.
row("CPU over its target in percent scales up", web(), hpa(CPU), use("90m"))
row("CPU under its target in percent scales down", web(), hpa(CPU, **NOW), use("20m"))
row("CPU near its target changes nothing", web(), hpa(CPU), use("52m"))
row("CPU over its target as an amount scales up", web(), hpa(metric("Resource", "cpu", average="50m")), use("90m"))
row("CPU under its target as an amount scales down", web(), hpa(metric("Resource", "cpu", average="50m"), **NOW), use("20m"))
row("Memory over its target in percent scales up", web(), hpa(metric("Resource", "memory", percent=50)), {"usage": {"web": {"memory": "80Mi"}}})
row("Memory over its target as an amount scales up", web(), hpa(metric("Resource", "memory", average="50Mi")), {"usage": {"web": {"memory": "80Mi"}}})
row("The CPU of one container over its target in percent scales up", web(), hpa(metric("ContainerResource", "cpu", percent=50, container="app")), {"usage": {"web": {"app": {"cpu": "90m"}, "proxy": {"cpu": "1m"}}}})
row("The CPU of one container under its target as an amount scales down", web(), hpa(metric("ContainerResource", "cpu", average="50m", container="app"), **NOW), {"usage": {"web": {"app": {"cpu": "20m"}, "proxy": {"cpu": "1"}}}})
row("A container that no pod has cannot be measured", web(), hpa(metric("ContainerResource", "cpu", percent=50, container="proxy")), use("90m"))
row("A metric of the pods over its target scales up", web(2), hpa(metric("Pods", "hits", average="10")), give(hits=by_pod("15", "17")))
row("A metric of the pods under its target scales down", web(2), hpa(metric("Pods", "hits", average="10"), **NOW), give(hits=by_pod("4", "3")))
row("A metric of the pods is selected by labels", web(2), hpa(metric("Pods", "hits", average="10", verb="GET")), give(hits=[({"pod": "web-rs-0", "verb": "GET"}, "18"), ({"pod": "web-rs-1", "verb": "GET"}, "18")]))
row("A metric of an object over its value scales up", web(), hpa(metric("Object", "hits", value="100")), give(hits="180"))
row("A metric of an object under its value scales down", web(), hpa(metric("Object", "hits", value="100"), **NOW), give(hits="40"))
row("A metric of an object over its value per pod scales up", web(), hpa(metric("Object", "hits", average="10")), give(hits="70"))
row("A metric of an object under its value per pod scales down", web(), hpa(metric("Object", "hits", average="10"), **NOW), give(hits="15"))
row("A metric of an object is selected by labels", web(), hpa(metric("Object", "hits", value="100", verb="GET")), give(hits=[({"verb": "GET"}, "180")]))
row("An external metric over its value scales up", web(), hpa(metric("External", "queue", value="100")), give(queue="180"))
row("An external metric under its value scales down", web(), hpa(metric("External", "queue", value="100"), **NOW), give(queue="40"))
row("An external metric over its value per pod scales up", web(), hpa(QUEUE_10), give(queue="70"))
row("An external metric under its value per pod scales down", web(), hpa(QUEUE_10, **NOW), give(queue="15"))
row("An external metric near its value per pod changes nothing", web(), hpa(QUEUE_10), give(queue="41"))
row("An external metric near its value per pod keeps the pods of the status", web(), hpa(QUEUE_10), give(queue="60") | {"set": {"Deployment/web": {"status": {"replicas": 6}}}})
row("The series of an external metric that labels select are added", web(), hpa(metric("External", "queue", average="10", zone="a")), give(queue=[({"zone": "a", "shard": "1"}, "40"), ({"zone": "a", "shard": "2"}, "25"), ({"zone": "b"}, "900")]))
row("Of two metrics the larger number of replicas counts", web(), hpa(CPU, QUEUE_10), use("60m") | give(queue="80"))
row("Of two metrics the one that asks for more holds the other", web(), hpa(CPU, QUEUE_10, **NOW), use("20m") | give(queue="40"))
row("Without metrics CPU counts with a target of 80 percent", web(), {**hpa(), "spec": {k: v for k, v in hpa()["spec"].items() if k != "metrics"}}, use("90m"))
row("A size is rounded up and stays", web(), hpa(CPU), use("44m"))

# Exits before and without metrics.
row("A target that is missing is named", [], hpa(CPU))
row("A target of a kind that nobody serves is named", [], hpa(CPU, target=("example.com/v1", "Unicorn")))
row("A target of a kind without replicas is named", [], hpa(CPU, target=("batch/v1", "Job")))
row("A target whose scale may not be read is named with the missing right", [custom("Database")], hpa(CPU, target=DATABASE), {"refuse": {"GET /databases": (403, 'databases.example.com "web" is forbidden')}})
row("A target whose server is down is asked again", [custom("Database")], hpa(CPU, target=DATABASE), {"refuse": {"GET /databases": (503, "the server is down")}}, group=Group("server of a kind down", objects=CUSTOM))
row("A target at zero by another hand is paused", web(0), hpa(CPU))
row("More replicas than the maximum are lowered at once", web(6), hpa(CPU, maxReplicas=5), use("90m"))
row("Fewer replicas than the minimum are raised at once", web(1), hpa(CPU, minReplicas=3), use("20m"))
row("A scale without a selector is named", [custom("Queue")], hpa(CPU, target=QUEUE))
row("A selector that cannot be read is named", [custom("Database", selector="app in web")], hpa(CPU, target=DATABASE))
row("Two HPAs on the same pods both hold", [*web(), hpa(CPU, name="other")], hpa(CPU), use("90m"))
row("Two HPAs of both kinds on one target both hold", [*web(), hpa(CPU, name="other", native=True)], hpa(CPU), use("90m"))
row("An object without metrics that can be read says why", web(), hpa(CPU), {})
row("Pods without a request cannot be compared with a share", web(cpu=None), hpa(CPU), use("90m"))
row("A workload without pods cannot be measured", web(2)[:2], hpa(CPU))
row("The annotation DryRun shows and does not write", web(), hpa(CPU, annotations={"autoscaling.trimtab.dev/mode": "DryRun"}), use("90m"))
row("The annotation DryRun at the right size shows nothing to do", web(), hpa(CPU, annotations={"autoscaling.trimtab.dev/mode": "DryRun"}), IDLE)
row("A value of the annotation mode that is not known is named where nothing would be scaled", web(), hpa(CPU, annotations={"autoscaling.trimtab.dev/mode": "Dry"}), IDLE)
row("A value of the annotation mode that is not known stops scaling", web(), hpa(CPU, annotations={"autoscaling.trimtab.dev/mode": "Dry"}), use("90m"))
row("An annotation that is misspelt is named", web(), hpa(CPU, annotations={"autoscaling.trimtab.dev/on-los": "{}"}), use("90m"))
row("An annotation for native HPAs on an own HPA is named", web(), hpa(CPU, annotations={"autoscaling.trimtab.dev/on-loss": '{"cpu": {"policy": "Ignore"}}'}), use("50m", wait=2))
row("A replica count set by another hand is the start of the next decision", web(), hpa(CPU), IDLE, scaled(6) | use("50m"), {})
OWN_ONLY = Group("own kind only", {"feature_gates": ON})
NO_LIST = Group("native HPAs unseen", {"feature_gates": ON}, refused=(("GET /apis/autoscaling/v2/namespaces", (403, 'horizontalpodautoscalers.autoscaling is forbidden')),))
KEDAS = hpa(CPU, name="keda-hpa-web", native=True)
KEDAS["metadata"]["ownerReferences"] = [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web", "uid": "u"}]
row("An HPA beside a native one that others serve does not act", [*web(), hpa(CPU, name="other", native=True)], hpa(CPU), use("90m"), group=OWN_ONLY)
row("An HPA beside one that KEDA made does not act", [*web(), KEDAS], hpa(CPU), use("90m"), group=OWN_ONLY)
row("An HPA beside a native one in a dry run shows what it would do", [*web(), hpa(CPU, name="other", native=True)], hpa(CPU, annotations={"autoscaling.trimtab.dev/mode": "DryRun"}), use("90m"), group=OWN_ONLY)
row("Native HPAs that may not be listed are told", web(), hpa(CPU), use("90m"), group=NO_LIST)

# Tolerance.
row("8 percent over the target are within the default tolerance", web(), hpa(CPU), use("54m"))
row("8 percent over the target are too much for a tolerance of 5 percent", web(), hpa(CPU, behavior=up(tolerance="0.05")), use("54m"))
row("30 percent under the target are within a tolerance of 40 percent", web(), hpa(CPU, behavior=down(tolerance="0.4")), use("35m"))

# Windows.
row("A scale down waits for the default window", web(), hpa(CPU), IDLE, use("20m"))
row("A scale down follows when its window has passed", web(), hpa(CPU, behavior=down(30)), IDLE, use("20m", wait=2))
row("A scale down takes the highest recommendation of its window", web(8), hpa(CPU, behavior=down(30)), IDLE, use("40m"), use("20m", wait=2))
row("A scale up waits for its window", web(), hpa(CPU, behavior=up(60)), IDLE, use("90m"))
row("A scale up follows when its window has passed", web(), hpa(CPU, behavior=up(30)), IDLE, use("90m", wait=2))
row("A scale up follows an earlier recommendation inside the window", web(), hpa(CPU), use("90m", refuse=NO_SCALE), use("50m", refuse=dict.fromkeys(NO_SCALE)))

# Bounds and rates.
row("The maximum limits a scale up", web(), hpa(CPU, maxReplicas=6), use("90m"))
row("The maximum holds", web(), hpa(CPU, maxReplicas=4), use("90m"))
row("The minimum limits a scale down", web(), hpa(CPU, minReplicas=3, **NOW), use("10m"))
row("The minimum holds", web(), hpa(CPU, minReplicas=4, **NOW), use("10m"))
row("The default rate limits a scale up to twice the size", web(4), hpa(CPU, maxReplicas=50), use("200m"))
row("A policy of pods limits a scale up", web(), hpa(CPU, behavior=up(**policy("Pods", 1))), use("90m"))
row("A policy of pods holds a scale up after a step", web(), hpa(CPU, behavior=up(**policy("Pods", 1))), use("90m", wait=2))
row("A policy of percent limits a scale up", web(), hpa(CPU, behavior=up(**policy("Percent", 25))), use("90m"))
row("A policy of pods limits a scale down", web(), hpa(CPU, behavior=down(**policy("Pods", 1))), use("10m"))
row("A policy of pods holds a scale down after a step", web(), hpa(CPU, behavior=down(**policy("Pods", 1))), use("10m", wait=2))
row("A policy of percent limits a scale down", web(8), hpa(CPU, behavior=down(**policy("Percent", 25))), use("10m"))
row("The smaller of two policies counts with Min", web(8), hpa(CPU, maxReplicas=50, behavior=up(selectPolicy="Min", policies=[{"type": "Pods", "value": 2, "periodSeconds": 60}, {"type": "Percent", "value": 100, "periodSeconds": 60}])), use("90m"))
row("A scale up that is disabled holds", web(), hpa(CPU, behavior=up(selectPolicy="Disabled")), use("90m"))
row("A scale down that is disabled holds", web(), hpa(CPU, behavior=down(selectPolicy="Disabled")), use("10m"))

# Pods that are not Ready, not measured, or gone.
row("A pod without a sample counts as idle when the others ask for more", web(), hpa(CPU), use("90m", _3=None))
row("A pod without a sample counts at its target when the others ask for less", web(), hpa(CPU, **NOW), use("20m", _3=None))
row("Gaps bring the usage back into the tolerance", web(), hpa(CPU), use("70m", _3=None))
row("Gaps that could turn the direction around hold", web(), hpa(CPU), use("62m", _3=None, _2=None))
row("A young pod that is not Ready is not multiplied", web(odd={3: unready()}), hpa(CPU), use("90m"))
row("A metric of the pods counts pods that are not Ready", web(2, odd={0: unready(LONG_AGO, LONG_AGO), 1: unready(LONG_AGO, LONG_AGO)}), hpa(metric("Pods", "hits", average="10")), give(hits=by_pod("15", "17")))
row("Object metrics with a value and no Ready pod hold", web(2, odd={0: unready(), 1: unready()}), hpa(metric("Object", "hits", value="10")), give(hits="30"))
row("All pods are young and have no sample yet", web(2, odd={0: unready(), 1: unready()}), hpa(CPU))
SURGE = [pod(f"web-rs-{index}", objects.target_of("ReplicaSet", "web-rs")) for index in (4, 5)]
row("A rollout with more pods than replicas asks for more than the maximum", [*web(), *SURGE], hpa(CPU, maxReplicas=4), use("36m") | {"set": {"Deployment/web": {"status": {"replicas": 6}}}})
row("A pod that failed is left out", web(odd={3: {"phase": "Failed"}}), hpa(CPU), use("90m"))
row("A sample that is too old is refused", web(), hpa(QUEUE_10), give(queue="70") | {"age": 200})
row("Usage that is too old is refused", web(), hpa(CPU), use("90m", age=200))
row("A sample from the future counts", web(), hpa(QUEUE_10), give(queue="70") | {"age": -90})
row("A metric may allow older samples", web(), hpa({**QUEUE_10, "maxAgeSeconds": 600}), give(queue="70") | {"age": 200})
row("Samples from before a scale down keep the pods that carried the load", web(8), hpa(CPU, **NOW), use("20m"), use("20m"))
row("Samples from after a scale down lower once more", web(8), hpa(CPU, **NOW), use("20m"), use("20m", wait=4))

# Whose pods count.
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "scrape"},
    "spec": {"template": {"spec": {**pod_spec("100m"), "restartPolicy": "Never"}}},
}
STRANGER = (JOB, pod("scrape", {"apiVersion": "batch/v1", "kind": "Job", "name": "scrape"}))
row("A pod that only shares the labels counts and is advised against", [*web(1), *STRANGER], hpa(CPU, maxReplicas=2), {"usage": {"web": {"cpu": "50m"}, "scrape": {"cpu": "1"}}})
row("A pod that only shares the labels does not count by owner", [*web(1), *STRANGER], hpa(CPU, selectionStrategy="OwnerReference"), {"usage": {"web": {"cpu": "50m"}, "scrape": {"cpu": "1"}}})
row("All pods left out by owner cannot be measured", [*web(1)[:2], *STRANGER], hpa(CPU, selectionStrategy="OwnerReference"), {"usage": {"scrape": {"cpu": "1"}}})
row("A pod without an owner does not count by owner", [*web(1), pod("bare")], hpa(CPU, selectionStrategy="OwnerReference"), {"usage": {"web": {"cpu": "50m"}, "bare": {"cpu": "1"}}})
FOREIGN = pod("import", {"apiVersion": "example.com/v1", "kind": "Database", "name": "web"})
UNREAD = {"refuse": {"GET /databases": (403, 'databases.example.com "web" is forbidden')}}
ABOVE = [{"apiVersion": "example.com/v1", "kind": "Database", "name": f"d{level}"} for level in range(12)]
CHAIN = [{**custom("Database"), "metadata": {"name": f"d{level}", "ownerReferences": ABOVE[level + 1:level + 2]}} for level in reversed(range(12))]
row("Owners that go too many levels up are named", [*web(), *CHAIN, pod("import", ABOVE[0])], hpa(CPU, selectionStrategy="OwnerReference", **NOW), {"usage": {"web": {"cpu": "10m"}, "import": {"cpu": "10m"}}})
row("An owner that cannot be read holds a scale down", [*web(), custom("Database"), FOREIGN], hpa(CPU, selectionStrategy="OwnerReference", **NOW), {"usage": {"web": {"cpu": "10m"}, "import": {"cpu": "10m"}}} | UNREAD)
row("An owner that cannot be read does not hold a scale up", [*web(), custom("Database"), FOREIGN], hpa(CPU, selectionStrategy="OwnerReference"), {"usage": {"web": {"cpu": "90m"}, "import": {"cpu": "90m"}}} | UNREAD)
row("A strategy that changes has an event", web(), hpa(CPU), IDLE, edit(selectionStrategy="OwnerReference"))
row("A native HPA names its strategy in an annotation", [*web(1), *STRANGER], hpa(CPU, native=True, annotations={"autoscaling.trimtab.dev/selection-strategy": "OwnerReference"}), {"usage": {"web": {"cpu": "50m"}, "scrape": {"cpu": "1"}}})

# To zero and from zero.
ZERO: Json = {"minReplicas": 0, **NOW}
row("An empty queue scales to zero", web(2), hpa(QUEUE_10, **ZERO), give(queue="0"))
row("At zero an empty queue asks for nothing", web(2), hpa(QUEUE_10, **ZERO), give(queue="0"), {}, {})
row("At zero a queue that fills wakes the workload", web(2), hpa(QUEUE_10, **ZERO), give(queue="0"), {}, give(queue="35"))
row("At zero a workload stays while its queue cannot be read", web(2), hpa(QUEUE_10, **ZERO), give(queue="0"), {}, give(queue=503))
row("A zero by another hand is left alone with a minimum of zero", web(0), hpa(QUEUE_10, **ZERO), give(queue="35"))
row("A minimum that is raised wakes a workload that was scaled to zero", web(2), hpa(QUEUE_10, **ZERO), give(queue="0"), {}, edit(minReplicas=2))
row("At zero nothing wakes a workload whose metrics need pods", web(2), hpa(QUEUE_10, **ZERO), give(queue="0"), {}, {"spoil": {"HorizontalPodAutoscaler/web": {"metrics": [CPU]}}})
row("A scale to zero waits for its window", web(2), hpa(QUEUE_10, minReplicas=0), give(queue="20"), give(queue="0"))
row("A native HPA scales to zero and wakes", web(2), hpa(QUEUE_10, native=True, **ZERO), give(queue="0"), {}, give(queue="35"))
AWAKE: Json = {**QUEUE_10, "external": {**QUEUE_10["external"], "activation": "5"}}
row("A queue at its activation scales to zero", web(2), hpa(AWAKE, **ZERO), give(queue="5"))
row("At zero a queue at its activation does not wake the workload", web(2), hpa(AWAKE, **ZERO), give(queue="0"), {}, give(queue="5"))
row("At zero a queue above its activation wakes the workload", web(2), hpa(AWAKE, **ZERO), give(queue="0"), {}, give(queue="6"))
row("An activation has no effect with a minimum of one", web(2), hpa(AWAKE, minReplicas=1, **NOW), give(queue="5"))
row("A native HPA names an activation in an annotation", web(2), hpa(QUEUE_10, native=True, annotations={"autoscaling.trimtab.dev/activation": '{"queue": "5"}'}, **ZERO), give(queue="5"))

# Metrics that are lost.
OTHER = metric("External", "other", average="10")


def losing(sentence: str, on_loss: Json | None, *steps: Json, replicas: int = 5, **more: Any) -> None:
    """Add a decision about a metric that asks for five replicas and is lost beside one that asks for two."""
    metric = {**QUEUE_10, **({"onLoss": on_loss} if on_loss else {})}
    row(sentence, web(replicas), hpa(metric, OTHER, **NOW, **more), give(queue="50", other="20"), *steps)


LOST = give(queue=503)
losing("A lost metric without a policy holds what the others would lower", None, LOST)
losing("A lost metric without a policy does not hold what the others raise", None, LOST | give(queue=503, other="90"))
losing("A lost metric with Ignore leaves the decision to the others", {"policy": "Ignore"}, LOST)
losing("A lost metric with LastGood counts as it last did", {"policy": "LastGood", "maxAgeSeconds": 60}, LOST)
losing("A lost metric with LastGood holds when that is too old", {"policy": "LastGood", "maxAgeSeconds": 30}, LOST | {"wait": 4})
row("A metric with LastGood that was never read holds", web(5), hpa({**QUEUE_10, "onLoss": {"policy": "LastGood", "maxAgeSeconds": 60}}, OTHER, **NOW), give(queue=503, other="20"))
losing("A lost metric with Replicas asks for a fixed size", {"policy": "Replicas", "replicas": 4}, LOST)
losing("A lost metric with Replicas holds at its size", {"policy": "Replicas", "replicas": 5}, LOST)
losing("A metric that is read again ends its policy", {"policy": "Ignore"}, LOST, give(queue="50"))
losing("Metrics that are all lost and ignored hold", {"policy": "Ignore"}, give(queue=503, other=503))
row("An external metric without any series cannot be read", web(), hpa(QUEUE_10), {})
row("A value that is no number cannot be used", web(), hpa(QUEUE_10), give(queue="many"))
row("A value below zero is refused", web(), hpa(QUEUE_10), give(queue="-5"))
row("A metric of an object with two series cannot be used", web(), hpa(metric("Object", "hits", value="100")), give(hits=[({"a": "1"}, "180"), ({"a": "2"}, "10")]))
row("A metric of the pods without any sample cannot be read", web(2), hpa(metric("Pods", "hits", average="10")))
row("Samples of other pods do not count", web(2), hpa(metric("Pods", "hits", average="10")), give(hits=[({"pod": "other"}, "5")]))
row("A metric without a target cannot be compared", web(), hpa(QUEUE_10, native=True), {"spoil": {"HorizontalPodAutoscaler/web": {"metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value"}}}]}}} | give(queue="50"))
row("A container that is measured and that no pod has is named", web(), hpa(metric("ContainerResource", "cpu", percent=50, container="proxy")), {"usage": {"web": {"app": {"cpu": "90m"}, "proxy": {"cpu": "1m"}}}})
row("Usage that is no amount cannot be used", web(), hpa(CPU), use("many"))
row("An answer without a list of values cannot be used", web(), hpa(QUEUE_10), give(queue={"items": 5}))
row("An answer about another metric cannot be used", web(), hpa(QUEUE_10), give(queue={"items": [{"metricName": "stack", "metricLabels": {}, "timestamp": "2026-01-01T01:00:10Z", "value": "70"}]}))
row("An answer about another object cannot be used", web(), hpa(metric("Object", "hits", value="100")), give(hits=[({"pod": "back"}, "180")]))
row("An external metric that may not be read is named", web(), hpa(QUEUE_10), give(queue=403))
row("A metric of an object that cannot be read is named", web(), hpa(metric("Object", "hits", value="100")), give(hits=503))
row("A metric of the pods that cannot be read is named", web(2), hpa(metric("Pods", "hits", average="10")), give(hits=503))
row("Two metrics that cannot be read are both named", web(), hpa(QUEUE_10, OTHER), give(queue=503, other=404))
NAMED = {"queue": {"policy": "Replicas", "replicas": 4}}
row("A native HPA names loss policies in an annotation", web(5), hpa(QUEUE_10, OTHER, native=True, annotations={"autoscaling.trimtab.dev/on-loss": json.dumps(NAMED)}, **NOW), give(queue="50", other="20"), LOST)
row("A loss policy in an annotation that cannot be used is named", web(5), hpa(QUEUE_10, native=True, annotations={"autoscaling.trimtab.dev/on-loss": "{queue}"}), LOST)
row("A maximum age in an annotation that cannot be used is named", web(5), hpa(QUEUE_10, native=True, annotations={"autoscaling.trimtab.dev/max-age-seconds": '{"queue": -1}'}), give(queue="50"))

# What cannot be written.
row("A scale that the server refuses is named", web(), hpa(CPU), use("90m", refuse=NO_SCALE))
row("A scale that a webhook refuses is named", web(), hpa(CPU), use("90m", refuse={"PATCH /deployments/web/scale": (422, "too many"), "PUT /deployments/web/scale": (422, "too many")}))
row("A status that the server refuses has an event", web(), hpa(CPU), use("90m", refuse={"PATCH /horizontalpodautoscalers/web": (403, "no right to the status"), "PUT /horizontalpodautoscalers/web": (403, "no right to the status")}))

# Native HPAs.
row("A native HPA scales up", web(), hpa(CPU, native=True), use("90m"))
row("A native HPA scales down", web(), hpa(CPU, native=True, **NOW), use("20m"))
row("A native HPA is held by its window", web(), hpa(CPU, native=True), IDLE, use("20m"))
row("A native HPA at its target changes nothing", web(), hpa(CPU, native=True), IDLE)
row("A native HPA at its maximum holds", web(), hpa(CPU, native=True, maxReplicas=4), use("90m"))
row("A native HPA whose metric is lost says why", web(), hpa(QUEUE_10, native=True), LOST)
row("A native HPA in a dry run shows and does not write", web(), hpa(CPU, native=True, annotations={"autoscaling.trimtab.dev/mode": "DryRun"}), use("90m"))
row("A native HPA without a target says so", [], hpa(CPU, native=True))
row("A native HPA whose target is paused says so", web(0), hpa(CPU, native=True))
row("A metric of a type that is not known is named", web(), hpa(CPU, native=True), {"spoil": {"HorizontalPodAutoscaler/web": {"metrics": [{"type": "Weather"}]}}})
row("A spec that cannot be read says so", web(), hpa(QUEUE_10), {"spoil": {"HorizontalPodAutoscaler/web": {"metrics": [metric("External", "queue", average="1" + "0" * 5000)]}}})

# Gates that are off.
OFF = Group(
    "gates off",
    {"feature_gates": "HPASelectionStrategy=false,HPAScaleToZero=false,HPAConfigurableTolerance=false"},
)
row("A minimum of zero has no effect while its gate is off", web(2), hpa(QUEUE_10, **ZERO), give(queue="0"), group=OFF)
row("A selection strategy has no effect while its gate is off", web(), hpa(CPU, selectionStrategy="OwnerReference"), use("90m"), group=OFF)
row("A tolerance has no effect while its gate is off", web(), hpa(CPU, behavior=up(tolerance="0.5")), use("60m"), group=OFF)
MARK = {"type": "ScaledToZero", "status": "True", "reason": "ScaledToZero", "message": "the HPA controller scaled the workload to zero", "lastTransitionTime": LONG_AGO}
row("A workload at zero sleeps while the gate is off", web(0), {**hpa(QUEUE_10, **ZERO), "status": {"currentReplicas": 0, "desiredReplicas": 0, "conditions": [MARK]}}, give(queue="35"), group=OFF)

# An operator that only shows.
DRY = Group("dry run", {"dry_run": True, "native_hpas": True})
row("An operator in a dry run shows a scale up and does not write", web(), hpa(CPU), use("90m"), group=DRY)
row("An operator in a dry run shows that nothing is to be done", web(), hpa(CPU), IDLE, group=DRY)
row("An operator in a dry run shows a hold", web(), hpa(CPU, maxReplicas=4), use("90m"), group=DRY)
row("An operator in a dry run names a target that is missing", [], hpa(CPU), group=DRY)
row("An operator in a dry run shows a metric that is lost", web(), hpa(QUEUE_10), LOST, group=DRY)
row("An operator in a dry run shows a native HPA", web(), hpa(CPU, native=True), use("90m"), group=DRY)

# Upstream's rules.
for version in ("1.36", "1.37"):
    THEN = Group(
        f"kubernetes {version}", {"compat": f"kubernetes-{version}", "native_hpas": True, "own_hpas": True}
    )
    row(
        f"By the rules of {version} CPU over its target scales up",
        web(),
        hpa(CPU, native=True),
        use("90m"),
        group=THEN,
    )
    row(
        f"By the rules of {version} a scale down waits for its window",
        web(),
        hpa(CPU, native=True),
        IDLE,
        use("20m"),
        group=THEN,
    )
    row(
        f"By the rules of {version} the maximum holds",
        web(),
        hpa(CPU, native=True, maxReplicas=4),
        use("90m"),
        group=THEN,
    )
    row(f"By the rules of {version} a lost metric holds", web(), hpa(QUEUE_10, native=True), LOST, group=THEN)
    row(f"By the rules of {version} a target that is missing is named", [], hpa(CPU, native=True), group=THEN)
    row(f"By the rules of {version} two HPAs on the same pods both hold", [*web(), hpa(CPU, name="other", native=True)], hpa(CPU, native=True), use("90m"), group=THEN)
    row(f"By the rules of {version} a scale that the server refuses is named", web(), hpa(CPU, native=True), use("90m", refuse=NO_SCALE), group=THEN)
    row(
        f"By the rules of {version} a pod that only shares the labels counts",
        [*web(1), *STRANGER],
        hpa(CPU, native=True),
        {"usage": {"web": {"cpu": "50m"}, "scrape": {"cpu": "1"}}},
        group=THEN,
    )

# Outages.
DOWN = Group("metrics down", refused=(("GET /apis/metrics.k8s.io", (503, "the server is down")),))
row("A metrics API that is down holds", web(), hpa(CPU), use("90m"), group=DOWN)
row("A metrics API that is down does not hold what an external metric raises", web(), hpa(CPU, QUEUE_10), use("90m") | give(queue="80"), group=DOWN)
FORBIDDEN = Group(
    "metrics forbidden", refused=(("GET /apis/metrics.k8s.io", (403, "pods.metrics.k8s.io is forbidden")),)
)
row("A metrics API that may not be read is named with the missing right", web(), hpa(CPU), use("90m"), group=FORBIDDEN)
STALE = Group("stale caches", {"status_max_age": timedelta(0)})
BLIND = {"outage": {"GET /api/v1/pods": (403, "pods is forbidden")}, "wait": 6}
row("A cache of pods that is stale holds a scale down", web(), hpa(CPU, **NOW), IDLE, use("50m") | BLIND, use("10m"), group=STALE)
row("A cache of pods that is stale does not hold a scale up", web(), hpa(CPU), IDLE, use("50m") | BLIND, use("90m"), group=STALE)
row("A clock of the operator that is wrong changes nothing", web(), hpa(CPU), IDLE, {}, use("90m"), group=Group("wrong clock", ahead=150.0))
row("A clock of the operator that is wrong does not refuse samples", web(), hpa(QUEUE_10), give(queue="40"), {}, give(queue="70"), group=Group("wrong clock for a queue", ahead=150.0))
VIEWER = Group(
    "viewers without metrics",
    refused_to_viewers=(("GET /apis/metrics.k8s.io", (403, "pods.metrics.k8s.io is forbidden")),),
)
row("Who may not read metrics is shown what the operator decided", web(), hpa(CPU), use("90m"), group=VIEWER)
row("Who may not read metrics is shown what holds the operator", web(), hpa(CPU, maxReplicas=4), use("90m"), group=VIEWER)

# HPAs of kube-controller-manager.
ALONE = Group("own HPAs only")


def stored(
    sentence: str, *conditions: tuple[str, str, str, str], desired: int = 4, metrics: Any = None, **spec: Any
) -> None:
    """Add an HPA whose status kube-controller-manager wrote."""
    listed = [
        {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": LONG_AGO}
        for kind, status, reason, message in conditions
    ]
    cpu = {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 90, "averageValue": "90m"}},
    }
    status = {
        "currentReplicas": 4,
        "desiredReplicas": desired,
        "currentMetrics": [cpu] if metrics is None else metrics,
    }
    about = hpa(CPU, native=True, **spec)
    row(sentence, web(), {**about, "status": {**status, "conditions": listed}}, use("90m"), group=ALONE)


ACTIVE = (
    "ScalingActive",
    "True",
    "ValidMetricFound",
    "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)",
)
WITHIN = ("ScalingLimited", "False", "DesiredWithinRange", "the desired count is within the acceptable range")
stored("An HPA of kube-controller-manager that scales up is shown by its status", ("AbleToScale", "True", "SucceededRescale", "the HPA controller was able to update the target scale to 8"), ACTIVE, WITHIN, desired=8)
stored("An HPA of kube-controller-manager at its maximum is shown by its status", ("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size"), ACTIVE, ("ScalingLimited", "True", "TooManyReplicas", "the desired replica count is more than the maximum replica count"), maxReplicas=4)
stored("An HPA of kube-controller-manager that waits for its window is shown by its status", ("AbleToScale", "True", "ScaleDownStabilized", "recent recommendations were higher than current one, applying the highest recent recommendation"), ACTIVE, WITHIN)
stored("An HPA of kube-controller-manager without metrics is shown by its status", ("AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale"), ("ScalingActive", "False", "FailedGetResourceMetric", "the HPA was unable to compute the replica count: failed to get cpu utilization"), metrics=[])
stored("An HPA of kube-controller-manager that was never decided is shown by its status", metrics=[])


# Plug-ins.
def _fails(_seen: Any) -> Any:
    raise KeyError("zone")


def _declines(_seen: Any) -> Any:
    raise DeclinedError("the calendar is empty")


def _asks(replicas: int) -> Any:
    return lambda _seen: ReplicaProposal(replicas=replicas, reason=f"never fewer than {replicas}")


def _plugin(name: str, call: Any, kind: PluginKind = PluginKind.REPLICA_POLICY, **declared: Any) -> Plugin:
    return Plugin(f"example.com/{name}", kind, call, version="1.0.0", declaration=Declaration(**declared))


def _never_ends(_seen: Any) -> Any:
    while True:
        pass


PLUGINS = Group(
    "plug-ins",
    {"native_hpas": True, "feature_gates": ON},
    plugins=(
        _plugin("AtLeastSix", _asks(6)),
        _plugin("AtLeastFour", _asks(4)),
        _plugin("Silent", lambda _seen: ReplicaProposal(replicas=None, reason="it is night")),
        _plugin("Fails", _fails),
        _plugin("Declines", _declines),
        _plugin("Wrong", lambda _seen: "six"),
        _plugin("Slow", _never_ends, budget=0.01),
        _plugin("NotTheFirst", lambda seen: {seen.pods[0].name: "it warms up"}, PluginKind.POD_FILTER),
        _plugin("FilterFails", _fails, PluginKind.POD_FILTER),
        _plugin("OnNodes", lambda _seen: {}, PluginKind.POD_FILTER, needs_nodes=True),
        _plugin("Peak", lambda _seen: None, PluginKind.ESTIMATOR),
    ),
    refused=(("GET /nodes", (403, "nodes is forbidden")),),
)


def plugged(sentence: str, name: str, *steps: Json, field: str = "replicaPolicies", **more: Any) -> None:
    """Add a decision with a plug-in."""
    named: Any = f"example.com/{name}" if field == "selectionStrategy" else [{"name": f"example.com/{name}"}]
    row(sentence, web(), hpa(CPU, **{field: named}, **more), *(steps or [use("50m")]), group=PLUGINS)


plugged("A replica policy that asks for more counts", "AtLeastSix")
plugged("A replica policy that asks for the present size holds", "AtLeastFour", use("10m"), **NOW)
plugged("A replica policy that asks for nothing leaves the decision to the metrics", "Silent", use("90m"))
plugged("A replica policy that raises an exception holds a scale down", "Fails", use("10m"), **NOW)
plugged("A replica policy that raises an exception does not hold a scale up", "Fails", use("90m"))
plugged("A replica policy that fails three times pauses", "Fails", use("10m", wait=4), **NOW)
plugged("A replica policy that declines holds a scale down", "Declines", use("10m"), **NOW)
plugged("A replica policy with a wrong answer holds a scale down", "Wrong", use("10m"), **NOW)
plugged("A replica policy that takes too long holds a scale down", "Slow", use("10m"), **NOW)
plugged("A replica policy that is not loaded holds a scale down", "Unknown", use("10m"), **NOW)
plugged("An estimator is no replica policy", "Peak", use("10m"), **NOW)
plugged("A pod filter leaves a pod out", "NotTheFirst", use("50m", _0="500m"), field="selectionStrategy")
plugged("A pod filter that raises an exception counts all pods and holds a scale down", "FilterFails", use("10m"), field="selectionStrategy", **NOW)
plugged("A pod filter that needs nodes says that they cannot be listed", "OnNodes", use("10m"), field="selectionStrategy", **NOW)
plugged("A pod filter that is not loaded counts all pods", "Unknown", use("10m"), field="selectionStrategy", **NOW)
row("A native HPA names replica policies in an annotation", web(), hpa(CPU, native=True, annotations={"autoscaling.trimtab.dev/replica-policies": '[{"name": "example.com/AtLeastSix"}]'}), IDLE, group=PLUGINS)
row("Replica policies in an annotation that cannot be read hold a scale down", web(), hpa(CPU, native=True, annotations={"autoscaling.trimtab.dev/replica-policies": "[six]"}, **NOW), use("10m"), group=PLUGINS)

# Two replicas that share out the namespaces.
SHARED = Group("shards", {"leader_elect": True, "shards": 2})
row("An HPA in a shard of this replica is decided", web(), hpa(CPU), use("90m"), group=SHARED)
row("An HPA in the shard of another replica is left to it", web(), hpa(CPU), use("90m"), group=SHARED)
