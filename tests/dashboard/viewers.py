"""One of each kind that the dashboard shows, viewers with rights of their own, and what reaches each of them.

It needs an API server with RBAC and nothing else, so it is the same on the lab and on the real one.
"""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import aiohttp

from trimtab.cluster import errors
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.cluster.transport import Deadlines, Request
from trimtab.dashboard.dashboard import Dashboard
from trimtab.model.crds import all_crds
from trimtab.operator.operator import Parts
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings

SETTINGS = Settings.of(
    components=("dashboard",),
    dashboard_port=0,
    dashboard_login="cluster",
    port=0,
    native_hpas=True,
    feature_gates="VPASelectorRefinement=true",
)
RULES = {
    "hpas": ("autoscaling.trimtab.dev", "horizontalpodautoscalers"),
    "native": ("autoscaling", "horizontalpodautoscalers"),
    "vpas": ("autoscaling.trimtab.dev", "verticalpodautoscalers"),
    "pods": ("", "pods"),
    "events": ("", "events"),
    "checkpoints": ("autoscaling.trimtab.dev", "verticalpodautoscalercheckpoints"),
    "scopes": ("autoscaling.trimtab.dev", "vpascopes"),
}
"""The kinds that a viewer may be granted, by a short name."""
MARKS = {
    "the-own-hpa": {"hpas"},
    "pod-of-own": {"hpas", "pods"},
    "event-of-own": {"hpas", "events"},
    "the-native-hpa": {"native"},
    "pod-of-native": {"native", "pods"},
    "event-of-native": {"native", "events"},
    "the-vpa": {"vpas"},
    "pod-of-vpa": {"vpas", "pods"},
    "event-of-vpa": {"vpas", "events"},
    "4242": {"vpas", "checkpoints"},
    "selector-of-scope": {"vpas", "scopes"},
}
"""A text that only one object contains, and the kinds that a viewer must be allowed to list to see it."""
NAMED = {"hpas", "native", "vpas"}
"""The kinds of autoscalers, which the overview names."""
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OWN, NATIVE, VPA = (
    "/apis/autoscaling.trimtab.dev/v2",
    "/apis/autoscaling/v2",
    "/apis/autoscaling.trimtab.dev/v1",
)
RBAC, STATEFUL_SETS = "/apis/rbac.authorization.k8s.io/v1", "/apis/apps/v1"


def marks_for(rights):
    """Return the texts that somebody with these rights sees."""
    return {mark for mark, needed in MARKS.items() if needed <= set(rights)}


async def send(client, method, path, body):
    """Send one request as administrator; return the object."""
    how = "application/merge-patch+json" if method == "PATCH" else "application/json"
    request = Request(
        method, path, (), {"Content-Type": how}, json.dumps(body).encode(), Deadlines().within(20)
    )
    return json.loads((await client.sender.send_once(f"{method} {path}", request)).body)


async def install(client):
    """Install the definitions, and wait until they are served."""
    for crd in all_crds():
        with suppress(errors.AlreadyExists):
            await send(client, "POST", CRDS, crd)
    for path in (f"{OWN}/horizontalpodautoscalers", f"{VPA}/vpascopes"):
        await eventually(lambda path=path: send(client, "GET", path, {}))


async def eventually(ask):
    async with asyncio.timeout(60):
        while True:
            try:
                return await ask()
            except errors.ClusterError:
                await asyncio.sleep(0.1)


async def fill(client, namespace):
    """Create one object of each kind in a new namespace, each with a text of its own."""
    await send(client, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    targets = {name: await workload(client, namespace, name) for name in ("own", "native", "vpa")}
    scaling = {
        "minReplicas": 1,
        "maxReplicas": 5,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
    }
    for base, name, target in ((OWN, "the-own-hpa", "own"), (NATIVE, "the-native-hpa", "native")):
        path = f"{base}/namespaces/{namespace}/horizontalpodautoscalers"
        spec = {**scaling, "scaleTargetRef": targets[target]}
        meta = {"name": name, "namespace": namespace}
        body = {"kind": "HorizontalPodAutoscaler", "apiVersion": base.removeprefix("/apis/")}
        await send(client, "POST", path, {**body, "metadata": meta, "spec": spec})
        await event(client, namespace, f"event-of-{target}", {**body, **meta})
    await vertical(client, namespace, targets["vpa"])


async def workload(client, namespace, name):
    """Create a workload with one ready pod; return the reference to it."""
    labels = {"app": name, "role": "leader"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    body = {
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }
    made = await send(client, "POST", f"{STATEFUL_SETS}/namespaces/{namespace}/statefulsets", body)
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name}
    owner = {**reference, "uid": made["metadata"]["uid"], "controller": True}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    meta = {"name": f"pod-of-{name}", "labels": labels, "ownerReferences": [owner]}
    await send(client, "POST", pods, {"metadata": meta, "spec": template["spec"]})
    ready = {"type": "Ready", "status": "True"}
    await send(
        client,
        "PATCH",
        f"{pods}/pod-of-{name}/status",
        {"status": {"phase": "Running", "conditions": [ready]}},
    )
    return reference


def container():
    return {"name": "app", "image": "none", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}


async def event(client, namespace, message, involved):
    reference = {**involved, "namespace": namespace}
    body = {
        "metadata": {"name": message},
        "involvedObject": reference,
        "message": message,
        "reason": "Told",
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    await send(client, "POST", f"/api/v1/namespaces/{namespace}/events", body)


async def vertical(client, namespace, target):
    base = f"{VPA}/namespaces/{namespace}"
    meta = {"name": "the-vpa", "namespace": namespace}
    kind = {"apiVersion": "autoscaling.trimtab.dev/v1", "kind": "VerticalPodAutoscaler"}
    selector = {
        "matchExpressions": [{"key": "role", "operator": "In", "values": ["leader", "selector-of-scope"]}]
    }
    scope = {"apiVersion": kind["apiVersion"], "kind": "VPAScope", "metadata": {"name": "lead"}}
    await send(client, "POST", f"{base}/vpascopes", {**scope, "spec": {"podSelector": selector}})
    spec = {"targetRef": target, "vpaScope": {"name": "lead"}}
    path = f"{base}/verticalpodautoscalers"
    await send(client, "POST", path, {**kind, "metadata": meta, "spec": spec})
    amounts = {"cpu": "200m", "memory": "128Mi"}
    sizes = {"containerName": "app", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    status = {"status": {"recommendation": {"containerRecommendations": [sizes]}}}
    await send(client, "PATCH", f"{path}/the-vpa/status", status)
    await event(client, namespace, "event-of-vpa", {**kind, **meta})
    histogram = {
        "referenceTimestamp": "2026-01-01T00:00:00Z",
        "bucketWeights": {"3": 10000},
        "totalWeight": 10.0,
    }
    saved = {
        "version": "v3",
        "cpuHistogram": histogram,
        "memoryHistogram": histogram,
        "firstSampleStart": "2026-01-01T00:00:00Z",
        "lastSampleStart": "2026-01-02T00:00:00Z",
        "lastUpdateTime": "2026-01-02T00:00:00Z",
        "totalSamplesCount": 4242,
    }
    checkpoint = {
        "apiVersion": kind["apiVersion"],
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": "the-vpa-app"},
        "spec": {"vpaObjectName": "the-vpa", "containerName": "app"},
    }
    checkpoints = f"{base}/verticalpodautoscalercheckpoints"
    await send(client, "POST", checkpoints, {**checkpoint, "status": saved})


async def account(client, name, grants):
    """Create an account with rights by namespace ("" is all of them); return its token."""
    home = "/api/v1/namespaces/default/serviceaccounts"
    await send(client, "POST", home, {"metadata": {"name": name}})
    for namespace, rights in grants.items():
        await grant(client, name, rights, namespace)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return (await send(client, "POST", f"{home}/{name}/token", body))["status"]["token"]


async def grant(client, name, rights, namespace):
    """Let an account list some kinds in a namespace, or in all of them."""
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": ["list"]}
        for group, resource in (RULES[right] for right in rights)
    ]
    where, kind = (f"{RBAC}/namespaces/{namespace}/", "Role") if namespace else (f"{RBAC}/", "ClusterRole")
    prefix = "" if namespace else "cluster"
    await send(client, "POST", f"{where}{prefix}roles", {"metadata": {"name": name}, "rules": rules})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    await send(client, "POST", f"{where}{prefix}rolebindings", binding)
    for rule in rules:
        await until_granted(client, name, rule, namespace)


async def until_granted(client, name, rule, namespace):
    """Wait until the server's own cache of roles has a right: a real one is a moment behind."""
    asked = {
        "namespace": namespace,
        "verb": "list",
        "group": rule["apiGroups"][0],
        "resource": rule["resources"][0],
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": f"system:serviceaccount:default:{name}", "resourceAttributes": asked},
    }
    async with asyncio.timeout(60):
        while True:
            answer = await send(client, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
            if answer["status"]["allowed"]:
                return
            await client.clock.sleep(0.05)


@asynccontextmanager
async def dashboard(clock, client, settings=SETTINGS):
    """Run the dashboard as the chart does, with the administrator's rights; yield its address."""
    addresses: asyncio.Queue[str] = asyncio.Queue()
    runtime = Runtime(clock, client, settings, fence=ClosedFence())
    page = asyncio.ensure_future(Dashboard(Parts(runtime, None, None, {}), addresses.put_nowait).run())
    try:
        yield await addresses.get()
    finally:
        page.cancel()
        await asyncio.gather(page, return_exceptions=True)
        await runtime.close()


@asynccontextmanager
async def asking(address, token):
    """Open a client of the dashboard that sends a token with each request."""
    async with aiohttp.ClientSession(address, headers={"authorization": f"Bearer {token}"}) as session:
        yield session


async def until_decided(address, token, number):
    """Wait until the dashboard shows so many autoscalers, with a decision about each HPA."""
    async with asking(address, token) as session, asyncio.timeout(60):
        while True:
            async with session.get("/api/overview") as answer:
                found = await answer.json()
            rows = found["horizontal"]
            if len(rows) + len(found["vertical"]) == number and all(row["at"] for row in rows):
                return
            await asyncio.sleep(0.1)


async def everything_served(address, token, namespace):
    """Ask for all that the dashboard serves about a namespace; return the whole text and the status of each request."""
    ids = [f"hpa/{namespace}/the-own-hpa", f"native/{namespace}/the-native-hpa", f"vpa/{namespace}/the-vpa"]
    # A page asked for under the id of another kind must not open it.
    crossed = [
        f"{kind}/{namespace}/{name}"
        for kind in ("hpa", "native", "vpa")
        for name in ("the-own-hpa", "the-native-hpa", "the-vpa")
    ]
    texts, statuses = [], {}
    async with asking(address, token) as session:

        async def keep(key, request):
            async with request as answer:
                statuses[key] = answer.status
                # A refusal repeats the id that was asked for.
                texts.append(await answer.text() if answer.status == 200 else "")

        await keep("overview", session.get("/api/overview"))
        for path in ("/api/hpa", "/api/vpa"):
            for identity in crossed:
                await keep(f"{path} {identity}", session.get(path, params={"id": identity}))
        for identity in ids:
            await keep(f"what-if {identity}", session.post("/api/whatif", json={"id": identity}))
    return "".join(texts), statuses
