"""Decisions about sizes: recommendations, updates of running pods, admissions."""

from typing import Any

from tests.goldens.decision import Decision, Group, namespace_of
from tests.support import objects
from tests.support.objects import scope, target_of
from trimtab.cluster.resource import Json
from trimtab.plugins import Amounts, DeclinedError, Estimate, EstimatorInput
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.registry import Plugin

GATES = "VPASelectorRefinement=true,InPlace=true,CPUStartupBoost=true,PerVPAConfig=true"
FREE: Json = {
    "feature_gates": GATES,
    "max_evictions_per_minute": 0,
    "max_evicted_share_per_minute": 0.0,
    "min_replicas": 1,
    "admission_check": "none",
    "replacement_check": "none",
    "node_fit": "none",
}
"""The limits of the whole cluster and the checks before evictions are off, so that decisions do not meet."""
LONG_AGO = "2025-06-01T00:00:00Z"
READY = {"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}
ROOMY = {"cpu": "64", "memory": "256Gi", "pods": "500"}


def node(name: str = "n1", **amounts: str) -> Json:
    """Return a node that has room, or these amounts."""
    has = {**ROOMY, **amounts}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": has, "allocatable": has}}


WATCHING = Group("recommender", {"feature_gates": GATES}, ("recommender",), (node(),))
UPDATING = Group("updater", FREE, ("updater",), (node(),))
ADMITTING = Group("admission", {"feature_gates": GATES}, ("admission",), (node(),))


def pod_spec(
    cpu: str = "100m", memory: str = "100Mi", container: str = "app", limits: Json | None = None
) -> Json:
    """Return the spec of a pod with one container, on the node."""
    spec = objects.pod_spec({"cpu": cpu, "memory": memory}, limits)
    return {**spec, "nodeName": "n1", "containers": [{**spec["containers"][0], "name": container}]}


def member(index: int, spec: Json, name: str = "db", role: str = "", **status: Any) -> Json:
    """Return a pod of a StatefulSet that has been Ready for long."""
    labels = {"app": name, **({"role": role} if role else {})}
    owners = [target_of("StatefulSet", name)]
    running = {"image": "x", "imageID": "x", "ready": True, "restartCount": 0}
    statuses = [{**running, **{key: spec["containers"][0][key] for key in ("name", "resources")}}]
    usual = {"phase": "Running", "startTime": LONG_AGO, "conditions": [READY], "containerStatuses": statuses}
    made = objects.pod(f"{name}-{index}", spec=spec, owners=owners, labels=labels)
    return {**made, "status": {**usual, **status}}


def db(
    replicas: int = 2,
    *,
    name: str = "db",
    roles: tuple[str, ...] = (),
    odd: dict[int, Json] | None = None,
    present: int | None = None,
    **spec: Any,
) -> list[Json]:
    """Return a StatefulSet with its pods; some have a role, the status of some is odd, and some may be absent."""
    made, odd = pod_spec(**spec), odd or {}
    named = dict(enumerate(roles))
    pods = [
        member(index, made, name, named.get(index, ""), **odd.get(index, {}))
        for index in range(replicas if present is None else present)
    ]
    return [objects.statefulset(name, replicas, spec=made), *pods]


def noted(objects: list[Json], annotations: Json) -> list[Json]:
    """Return objects with annotations on the pods."""
    return [
        {**body, "metadata": {**body["metadata"], "annotations": annotations}}
        if body["kind"] == "Pod"
        else body
        for body in objects
    ]


def with_spec(objects: list[Json], **spec: Any) -> list[Json]:
    """Return objects with something else in the spec of the pods."""
    return [{**body, "spec": {**body["spec"], **spec}} if body["kind"] == "Pod" else body for body in objects]


def recommended(cpu: str = "500m", memory: str = "500Mi", low: float = 0.9, high: float = 1.5) -> Json:
    """Return the status of a VPA with a recommendation."""
    amounts = {"cpu": cpu, "memory": memory}
    bounds = {
        name: {"cpu": f"{float(cpu[:-1]) * share:.0f}m", "memory": f"{float(memory[:-2]) * share:.0f}Mi"}
        for name, share in (("lowerBound", low), ("upperBound", high))
    }
    container = {"containerName": "app", "target": amounts, "uncappedTarget": amounts, **bounds}
    provided = {"type": "RecommendationProvided", "status": "True", "lastTransitionTime": LONG_AGO}
    return {"recommendation": {"containerRecommendations": [container]}, "conditions": [provided]}


def vpa(
    mode: str = "InPlaceOrRecreate",
    *,
    name: str = "db",
    scope: str = "",
    target: Json | None = None,
    status: Json | None = None,
    policy: Json | None = None,
    containers: Json | None = None,
    **spec: Any,
) -> Json:
    """Return a VPA of the StatefulSet, or of another workload."""
    if containers:
        spec["resourcePolicy"] = {"containerPolicies": [{"containerName": "*", **containers}]}
    if scope:
        spec["vpaScope"] = {"name": scope}
    on = target or target_of("StatefulSet", "db")
    made = objects.vpa(name, on=on, mode=mode, policy={"minReplicas": 1, **(policy or {})}, **spec)
    return {**made, **({"status": status} if status else {})}


def use(cpu: str = "50m", memory: str = "200Mi", **others: Any) -> Json:
    """Return a step in which all pods use amounts, and perhaps more happens."""
    return {"usage": {"db": {"cpu": cpu, "memory": memory}}, **others}


TABLE: list[Decision] = []


def row(sentence: str, group: Group, objects: list[Json], about: Json, *steps: Json) -> None:
    """Add a decision to the table."""
    TABLE.append(Decision(sentence, group, (*objects, about), steps or ({},)))


# fmt: off
# One decision is one line.

# Recommendations.
ROLES = [scope("leader", pods={"role": "leader"}), scope("follower", pods={"role": "follower"})]
row("A first sample gives a recommendation", WATCHING, db(), vpa(), use())
row("Usage that rises is followed", WATCHING, db(), vpa(), use(), use("800m", "2Gi", wait=3))
row("A recommendation stays inside the policy of its container", WATCHING, db(), vpa(containers={"minAllowed": {"cpu": "200m"}, "maxAllowed": {"memory": "150Mi"}}), use(wait=2))
row("Only the controlled resource is recommended", WATCHING, db(), vpa(containers={"controlledResources": ["cpu"]}), use(wait=2))
row("A container whose mode is Off has no recommendation", WATCHING, db(), vpa(containers={"mode": "Off"}), use(wait=2))
row("A VPA without pods says so", WATCHING, db(0), vpa())
row("A VPA without samples waits", WATCHING, db(), vpa())
row("A VPA whose target is missing says so", WATCHING, [], vpa())
row("A VPA whose target is controlled by another says so", WATCHING, [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "db"}, "spec": {"selector": {"matchLabels": {"app": "db"}}, "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod_spec()}}}, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "db", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "db"}]}, "spec": {"selector": {"matchLabels": {"app": "db"}}, "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod_spec()}}}], vpa(target=target_of("ReplicaSet", "db")))
row("A scope that is missing is named", WATCHING, db(), vpa(scope="leader"), use())
row("A scope that cannot be used is named", WATCHING, [*db(), ROLES[0]], vpa(scope="leader"), use(spoil={"VPAScope/leader": {"podSelector": {"matchExpressions": [{"key": "role", "operator": "Like"}]}}}))
row("Two recommenders are one too many", WATCHING, db(), vpa(), use(spoil={"VerticalPodAutoscaler/db": {"recommenders": [{"name": "default"}, {"name": "other"}]}}))
row("A VPA of another recommender is left alone", WATCHING, db(), vpa(recommenders=[{"name": "other"}]), use())
row("A pod on a node without the label belongs to no scope of nodes", WATCHING, [*db(), scope("fast", nodes={"disk": "fast"})], vpa(scope="fast"), use(wait=2))
row("A pod without a node belongs to no scope of nodes yet", WATCHING, [*with_spec(db(), nodeName=None), scope("fast", nodes={"disk": "fast"})], vpa(scope="fast"), use(wait=2))
row("A scope of nodes selects the pods on them", Group("two nodes", {"feature_gates": GATES}, ("recommender",), ({**node(), "metadata": {"name": "n1", "labels": {"disk": "fast"}}},)), [*db(), scope("fast", nodes={"disk": "fast"})], vpa(scope="fast"), use(wait=2))
row("Usage above the capacity of the node is refused", WATCHING, db(), vpa(), use("500", wait=2))
row("A role learns from its own pods", WATCHING, [*db(roles=("leader", "follower")), *ROLES, vpa(scope="follower", name="follower")], vpa(scope="leader"), {"usage": {"db-0": {"cpu": "1", "memory": "4Gi"}, "db-1": {"cpu": "50m", "memory": "200Mi"}}, "wait": 2})
row("Two scopes that select one pod are a conflict", WATCHING, [*db(roles=("leader",)), ROLES[0], scope("twin", pods={"app": "db"}), vpa(scope="twin", name="twin")], vpa(scope="leader"), use(wait=2))
row("Of two VPAs of one age on a workload the first by name controls the pods", WATCHING, [*db(), vpa(name="other")], vpa(), use(wait=2))
KILLED = {"containerStatuses": [{"name": "app", "image": "x", "imageID": "x", "ready": True, "restartCount": 1, "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": "2026-01-01T00:59:00Z", "finishedAt": "2026-01-01T01:01:30Z"}}}]}
row("An OOM kill raises the recommendation of memory", WATCHING, db(), vpa(), use(memory="100Mi", wait=2), {"set": {"Pod/db-0": {"status": KILLED}}, "wait": 2})
row("A VPA that only shows recommends all the same", WATCHING, db(), vpa("Off"), use(wait=2))

row("A container that is too large for every node says so", Group("small nodes", {"feature_gates": GATES}, ("recommender",), (node(cpu="1"),)), db(), vpa(), use("950m", wait=2))
row("Two VPAs whose checkpoints have one name say so", WATCHING, [*db(container="x-app"), *db(name="web"), vpa(name="db-x", target=target_of("StatefulSet", "web"))], vpa(), {"usage": {"db": {"x-app": {"cpu": "50m", "memory": "200Mi"}}, "web": {"cpu": "50m", "memory": "200Mi"}}, "wait": 6})
row("A scope has no effect while its gate is off", Group("no scopes", {}, ("recommender",), (node(),)), [*db(roles=("leader",)), *ROLES], vpa(scope="leader"), use())
EXCLUDED = "In the namespace of the installation a VPA recommends only, but explain announces a resize of its pod"
row(EXCLUDED, Group("own namespace", {"feature_gates": GATES, "namespace": namespace_of(EXCLUDED)}, ("recommender",), (node(),)), db(), vpa(), use())
OLD_RULES = Group("vpa 1.8", {**FREE, "compat": "vpa-1.8"}, ("updater",), (node(),))
row("By the rules of VPA 1.8 a recommendation is learnt", Group("vpa 1.8 recommender", {**FREE, "compat": "vpa-1.8"}, ("recommender",), (node(),)), db(), vpa("Off"), use(wait=3))
row("By the rules of VPA 1.8 a pod is resized in place", OLD_RULES, db(), vpa(status=recommended()), {}, {})
row("By the rules of VPA 1.8 a pod is evicted", OLD_RULES, db(), vpa("Recreate", status=recommended()), {})


def _estimates(amount: int) -> Any:
    def plugin(seen: EstimatorInput) -> Estimate:
        if seen.sample_count > amount:
            raise KeyError("zone")
        return Estimate(amounts={"cpu": Amounts(lower=2, target=2, upper=3)}, reason="two cores by the calendar")

    return plugin


def _declines(_seen: EstimatorInput) -> Estimate:
    raise DeclinedError("the calendar is empty")


ESTIMATORS = {"Calendar": _estimates(1000), "Breaks": _estimates(2), "Declines": _declines}
PLUGINS = tuple(Plugin(f"example.com/{name}", PluginKind.ESTIMATOR, call, "1.0.0") for name, call in ESTIMATORS.items())
ESTIMATING = Group("estimators", {"feature_gates": GATES, "plugins": tuple(plugin.name for plugin in PLUGINS)}, ("recommender",), (node(),), plugins=PLUGINS)
row("An estimator recommends in place of the histograms", ESTIMATING, db(), vpa(recommenders=[{"name": "example.com/Calendar"}]), use(wait=2))
row("An estimator that fails leaves the last recommendation", ESTIMATING, db(), vpa(recommenders=[{"name": "example.com/Breaks"}]), use(wait=3))
row("An estimator that declines gives no recommendation", ESTIMATING, db(), vpa(recommenders=[{"name": "example.com/Declines"}]), use(wait=2))
row("An estimator that is not loaded gives no recommendation", ESTIMATING, db(), vpa(recommenders=[{"name": "example.com/Unknown"}]), use(wait=2))

# Updates of running pods.
row("A pod outside its range is resized in place", UPDATING, db(), vpa(status=recommended()))
row("A pod that was resized is done when the kubelet says so", UPDATING, db(), vpa(status=recommended()), {}, {})
row("A pod that asks for too much is resized down in place", UPDATING, db(cpu="2", memory="4Gi"), vpa(status=recommended()))
row("Limits follow the requests of a resize", UPDATING, db(limits={"cpu": "200m", "memory": "200Mi"}), vpa(status=recommended()))
row("Limits stay when only requests are controlled", UPDATING, db(limits={"cpu": "2", "memory": "2Gi"}), vpa(status=recommended(), containers={"controlledValues": "RequestsOnly"}))
row("A mode that changes no running pod says so", UPDATING, db(), vpa("Initial", status=recommended()))
row("A VPA that is off changes nothing", UPDATING, db(), vpa("Off", status=recommended()))
row("A VPA without a recommendation changes nothing", UPDATING, db(), vpa())
row("A pod inside its range that differs by little stays", UPDATING, db(cpu="480m", memory="500Mi"), vpa(status=recommended()))
row("A pod inside its range that is young stays", UPDATING, db(cpu="700m", memory="500Mi", odd={0: {"startTime": "2026-01-01T00:30:00Z"}, 1: {"startTime": "2026-01-01T00:30:00Z"}}), vpa(status=recommended()))
row("A pod inside its range that is old and far off changes", UPDATING, db(cpu="700m", memory="500Mi"), vpa(status=recommended()))
row("A pod at its size stays", UPDATING, db(cpu="500m", memory="500Mi"), vpa(status=recommended()))


def pending(reason: str, message: str, kind: str = "PodResizePending") -> Json:
    """Return a step in which the kubelet answers a resize."""
    condition = {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T01:01:05Z"}
    return {"set": {"Pod/db-0": {"status": {"conditions": [READY, condition]}}}}


STUCK = {"stuck": ("db-0",)}
FULL = pending("Deferred", "Node didn't have enough resource: cpu, requested: 500, used: 63900, capacity: 64000")
TOO_BIG = pending("Infeasible", "Node didn't have enough capacity: cpu, requested: 500, capacity: 100")
FAILED = pending("Error", "memory limit 100Mi is below the usage", "PodResizeInProgress")
row("A resize that the kubelet defers is waited for", UPDATING, db(1), vpa(status=recommended()), STUCK, FULL)
row("A resize that waited too long becomes an eviction", UPDATING, db(1), vpa(status=recommended()), STUCK, FULL | {"wait": 7})
row("A resize that waits in mode InPlace is never an eviction", UPDATING, db(1), vpa("InPlace", status=recommended()), STUCK, FULL | {"wait": 7})
row("A resize that is infeasible becomes an eviction", UPDATING, db(1), vpa(status=recommended()), STUCK, TOO_BIG)
row("A resize that is infeasible in mode InPlace is given up", UPDATING, db(1), vpa("InPlace", status=recommended()), STUCK, TOO_BIG | {"wait": 2})
row("A resize that the kubelet fails becomes an eviction", UPDATING, db(1), vpa(status=recommended()), STUCK, FAILED)
row("A memory limit in use is kept when the kubelet refuses to lower it", UPDATING, db(1, cpu="500m", memory="4Gi", limits={"memory": "4Gi"}), vpa(status=recommended()), STUCK, FAILED | {"wait": 2})
row("A resize that is not wanted any more is taken back", UPDATING, db(1), vpa(status=recommended()), STUCK, FULL, {"set": {"VerticalPodAutoscaler/db": {"status": recommended("100m", "100Mi")}}})
row("A resize that the server refuses as invalid is followed by an eviction", UPDATING, db(1), vpa(status=recommended()), {"refuse": {"PATCH /pods/db-0/resize": (422, "the resize is not allowed")}})
row("A resize that is not answered counts as done until the pod shows otherwise", UPDATING, db(1), vpa(status=recommended()), {"refuse": {"PATCH /pods/db-0/resize": (503, "the server is down")}})
row("A pod that cannot be resized in place stays in mode InPlace", UPDATING, with_spec(db(1), containers=[{"name": "app", "image": "none"}]), vpa("InPlace", status=recommended()))
row("A resize that the server forbids is tried again", UPDATING, db(1), vpa(status=recommended()), {"refuse": {"PATCH /pods/db-0/resize": (403, "exceeded quota: small")}})
row("A Guaranteed pod is not raised above its limits", UPDATING, db(limits={"cpu": "100m", "memory": "100Mi"}), vpa("InPlace", status=recommended(), containers={"controlledValues": "RequestsOnly"}))
row("A Pending pod is not resized", UPDATING, db(odd={0: {"phase": "Pending"}, 1: {"phase": "Pending"}}), vpa(status=recommended()))
row("A pod that asks for too much is not evicted only to shrink", UPDATING, db(1, cpu="2", memory="4Gi"), vpa(status=recommended()), STUCK, TOO_BIG)
BOOST = {"vpaCpuStartupBoost/app": '{"requests":{"cpu":"500m","memory":"100Mi"},"limits":{}}'}
row("A pod that no VPA boosts any more loses its boost", UPDATING, noted(db(1, cpu="1500m"), BOOST), vpa(status=recommended(memory="100Mi")), {})
row("A pod whose VPA is of another workload loses its boost", UPDATING, noted(db(1, cpu="1500m"), BOOST), vpa(target=target_of("StatefulSet", "other")))
row("A resize whose VPA is gone is taken back", UPDATING, db(1), vpa(status=recommended()), STUCK, FULL, {"set": {"VerticalPodAutoscaler/db": {"spec": {"updatePolicy": {"updateMode": "Off"}}}}})
row("A mode that needs a gate says so", Group("no gates", {**FREE, "feature_gates": ""}, ("updater",), (node(),)), db(), vpa("InPlace", status=recommended()))
row("A container whose limit would have to change its class is resized within it", UPDATING, db(limits={"cpu": "100m", "memory": "100Mi"}), vpa(status=recommended()))

# Evictions.
row("A pod outside its range is evicted", UPDATING, db(), vpa("Recreate", status=recommended()))
row("A pod that shrinks is evicted in mode Recreate", UPDATING, db(cpu="2", memory="4Gi"), vpa("Recreate", status=recommended()))
RESIZING = {"conditions": [READY, {"type": "PodResizeInProgress", "status": "True", "lastTransitionTime": "2026-01-01T01:00:30Z"}]}
row("A pod that another program resizes is not evicted meanwhile", UPDATING, db(1, odd={0: RESIZING}), vpa("Recreate", status=recommended()))
row("A pod inside its range without a start time stays", UPDATING, db(cpu="700m", memory="500Mi", odd={index: {"startTime": None} for index in range(2)}), vpa("Recreate", status=recommended()))
QUICK = {"containerStatuses": [{"name": "app", "image": "x", "imageID": "x", "ready": True, "restartCount": 1, "resources": {"requests": {"cpu": "700m", "memory": "480Mi"}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": "2026-01-01T00:58:00Z", "finishedAt": "2026-01-01T00:59:30Z"}}}]}
BUDGET = {"kind": "PodDisruptionBudget", "metadata": {"name": "db"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "db"}}}}
row("A pod whose eviction was refused is left alone for a while", UPDATING, [*db(), BUDGET], vpa("Recreate", status=recommended()), {}, {}, {})
row("A pod that is starting is not evicted", UPDATING, db(odd={index: {"conditions": [{**READY, "status": "False", "lastTransitionTime": "2026-01-01T00:59:00Z"}]} for index in range(2)}), vpa("Recreate", status=recommended()))
row("A pod that was just killed and is right stays", UPDATING, db(cpu="500m", memory="500Mi", odd={0: {"containerStatuses": [{**QUICK["containerStatuses"][0], "resources": {"requests": {"cpu": "500m", "memory": "500Mi"}}}]}}), vpa("Recreate", status=recommended()))
row("Too few replicas are never evicted", UPDATING, db(1), vpa("Recreate", status=recommended(), policy={"minReplicas": 2}))
row("A group that lacks a pod loses no other", UPDATING, db(3, present=2), vpa("Recreate", status=recommended()), {"stuck": ("db-2",)})
row("A pod that is not Ready uses up the budget", UPDATING, db(odd={1: {"conditions": [{**READY, "status": "False"}]}}), vpa("Recreate", status=recommended()))
row("Requirements of evictions that are not met hold", UPDATING, db(cpu="2", memory="4Gi"), vpa("Recreate", status=recommended(), policy={"evictionRequirements": [{"resources": ["cpu"], "changeRequirement": "TargetHigherThanRequests"}]}))
row("Pods that come back unchanged pause evictions", UPDATING, db(), vpa("Recreate", status=recommended()), {"wait": 8})
row("An eviction that is not answered counts as done until the pod shows otherwise", UPDATING, db(1), vpa("Recreate", status=recommended()), STUCK | {"refuse": {"POST /eviction": (503, "the server is down")}})
row("An eviction that the server forbids fails", UPDATING, db(), vpa("Recreate", status=recommended()), {"refuse": {"POST /eviction": (403, "pods/eviction is forbidden")}})
row("A pod that was just killed for memory changes at once", UPDATING, db(cpu="700m", memory="480Mi", odd={0: QUICK}), vpa("Recreate", status=recommended()))
row("A pod of a role waits until its recommendation is of its role", UPDATING, [*db(roles=("leader", "follower")), *ROLES], vpa(scope="leader", status=recommended()))

# Checks before an eviction.
CHECKING = Group("replacements", {**FREE, "replacement_check": "dry-run", "node_fit": "free"}, ("updater",), (node(),))
LARGEST = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", "max": {"memory": "200Mi"}}]}}
row("A replacement of the same size is not made", CHECKING, db(), vpa("Recreate", status=recommended()))
row("A replacement that the server refuses is not made", CHECKING, db(), vpa("Recreate", status=recommended()), {"refuse": {"POST /pods": (403, "pods \"db-0\" is forbidden: no more pods")}})
row("A replacement that no node has room for is not made", Group("a small node", {**FREE, "node_fit": "free"}, ("updater",), (node(cpu="1"),)), db(), vpa("Recreate", status=recommended("2000m")))
row("A replacement that a node has room for is made", Group("a node with room", {**FREE, "node_fit": "free"}, ("updater",), (node(cpu="1"),)), db(), vpa("Recreate", status=recommended("300m")))
NARROW = "Free room that is not known holds an eviction that grows"
row(NARROW, Group("one namespace", {**FREE, "node_fit": "free", "watch_namespaces": (namespace_of(NARROW),)}, ("updater",), (node(),)), db(), vpa("Recreate", status=recommended()))
ADMITTED = Group("updater with webhook", {**FREE, "replacement_check": "dry-run", "admission_check": "probe"}, ("updater", "admission"), (node(),))
row("A replacement is sized by the webhook", ADMITTED, db(), vpa("Recreate", status=recommended()), {}, {})
row("A replacement beyond a LimitRange is cut to it", ADMITTED, [LARGEST, *db()], vpa("Recreate", status=recommended()), {}, {})
row("Without an answer of the webhook nothing is evicted", Group("no webhook", {**FREE, "admission_check": "probe"}, ("updater",), (node(),)), db(), vpa("Recreate", status=recommended()))
LIMITED = Group("limits", {"feature_gates": GATES, "admission_check": "none", "replacement_check": "none", "node_fit": "none", "max_evictions_per_minute": 1}, ("updater",), (node(),))
row("No more pods are evicted in a minute than allowed", LIMITED, [*db(), *db(name="web"), vpa("Recreate", status=recommended())], vpa("Recreate", name="web", target=target_of("StatefulSet", "web"), status=recommended()))
SLOW = Group("slow", {**FREE, "eviction_rate_limit": 0.001}, ("updater",), (node(),))
row("A rate of evictions that is used up holds", SLOW, [*db(), *db(name="web"), vpa("Recreate", status=recommended())], vpa("Recreate", name="web", target=target_of("StatefulSet", "web"), status=recommended()))
SHOWING = Group("updater in a dry run", {**FREE, "dry_run": True}, ("recommender", "updater"), (node(),))
row("A dry run shows a resize", SHOWING, db(), vpa(status=recommended()))
row("A dry run shows an eviction", SHOWING, db(), vpa("Recreate", status=recommended()))
row("A dry run shows a recommendation", SHOWING, db(), vpa("Off"), use(wait=2))

# Admissions.
def created(sentence: str, about: Json, *objects: Json, group: Group = ADMITTING, then: Json | None = None, role: str = "", **spec: Any) -> None:
    """Add a decision about a new pod."""
    new = member(0, pod_spec(**spec), role=role)
    row(sentence, group, [*objects, *db(1, present=0, **spec)], about, {"create": [{key: new[key] for key in ("kind", "metadata", "spec")}], **(then or {})})


created("A new pod gets what is recommended", vpa(status=recommended()))
created("A new pod is left alone without a recommendation", vpa())
created("A new pod is left alone by a VPA that is off", vpa("Off", status=recommended()))
created("A new pod is sized in mode Initial", vpa("Initial", status=recommended()))
created("The limits of a new pod follow its requests", vpa(status=recommended()), limits={"cpu": "200m", "memory": "200Mi"})
created("A new pod stays inside the policy", vpa(status=recommended(), containers={"maxAllowed": {"cpu": "200m"}}))
created("A new pod stays inside a LimitRange", vpa(status=recommended()), LARGEST)
created("A new pod stays inside a LimitRange with its limits", vpa(status=recommended()), LARGEST, limits={"cpu": "200m", "memory": "200Mi"})
SMALLEST = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "large"}, "spec": {"limits": [{"type": "Container", "min": {"memory": "1Gi"}}]}}
WHOLE = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "pods"}, "spec": {"limits": [{"type": "Pod", "max": {"memory": "300Mi"}}]}}
RATIO = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "ratio"}, "spec": {"limits": [{"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}]}}
created("A new pod is raised to the minimum of a LimitRange", vpa(status=recommended()), SMALLEST, memory="1Gi")
created("A new pod stays inside the LimitRange of pods", vpa(status=recommended()), WHOLE, limits={"memory": "200Mi"})
created("A new pod keeps the ratio of a LimitRange", vpa(status=recommended(), containers={"controlledValues": "RequestsOnly"}), RATIO, limits={"cpu": "200m"})
created("A Guaranteed new pod stays Guaranteed", vpa(status=recommended()), limits={"cpu": "100m", "memory": "100Mi"})
created("A new pod is not raised above its limit", vpa(status=recommended(), containers={"controlledValues": "RequestsOnly"}), limits={"cpu": "200m", "memory": "200Mi"})
created("A new pod that has the recommended size is left alone", vpa(status=recommended()), cpu="500m", memory="500Mi")
created("A container whose mode is Off keeps its size", vpa(status=recommended(), containers={"mode": "Off"}))
created("Only the controlled resource of a new pod is sized", vpa(status=recommended(), containers={"controlledResources": ["cpu"]}))
created("A new pod starts with more CPU", vpa(status=recommended(), startupBoost={"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 60}}))
created("A new pod starts with an amount of CPU more", vpa(status=recommended(), startupBoost={"cpu": {"type": "Quantity", "quantity": "2", "durationSeconds": 60}}))
created("A new pod without a recommendation starts with more CPU", vpa(startupBoost={"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 60}}))
created("A new pod of a scope waits for its own recommendation", vpa(scope="leader", status=recommended()), *ROLES, role="leader")
ASKS = {"spoil": {"VerticalPodAutoscaler/db": {"startupBoost": {"cpu": {"type": "Factor"}}}}}
NEW = member(0, pod_spec())
NEWLY = {"create": [{key: NEW[key] for key in ("kind", "metadata", "spec")}]}
row("A startup boost without a factor is named", ADMITTING, db(1, present=0), vpa(status=recommended(), startupBoost={"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 60}}), {**ASKS, "stuck": ("db-0",)}, NEWLY)
SMALLER = member(0, {**pod_spec(), "resources": {"limits": {"cpu": "300m", "memory": "300Mi"}}})
row("A new pod stays inside its pod-level resources", ADMITTING, db(1, present=0), vpa(status=recommended()), {"create": [{key: SMALLER[key] for key in ("kind", "metadata", "spec")}]})
BOOSTED = Group("boosts", {**FREE}, ("updater", "admission"), (node(),))
created("A boost that is not over keeps its pod", vpa(status=recommended(), startupBoost={"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 600}}), group=BOOSTED, then={"wait": 2})
created("A boost that is over is taken back", vpa(status=recommended(), startupBoost={"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 60}}), group=BOOSTED, then={"wait": 4})

# Roles from Leases.
LEASED = {"roles.trimtab.dev/lease": "leader", "roles.trimtab.dev/label": "role"}


def leased(sentence: str, annotations: Json, holder: str = "db-0") -> None:
    """Add a decision about a pod whose role follows a Lease."""
    held = {"holderIdentity": holder, "leaseDurationSeconds": 90, "renewTime": "2026-01-01T01:00:00.000000Z"}
    renewed = [{"set": {"Lease/leader": {"spec": {"renewTime": f"2026-01-01T01:0{minute}:30.000000Z"}}}} for minute in range(4)]
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}, "spec": held}
    row(sentence, Group("roles", FREE, ("updater", "roles"), (node(),)), [lease, *noted(db(), annotations)], vpa("Off"), *renewed)


leased("The holder of a Lease has the role", {**LEASED, "roles.trimtab.dev/label": "role=leader"})
leased("A role whose label cannot be read is named", LEASED)
leased("A role whose label owns the pods is named", {**LEASED, "roles.trimtab.dev/label": "app=leader"})
leased("A holder that is no pod is named", {**LEASED, "roles.trimtab.dev/label": "role=leader"}, holder="elsewhere")
