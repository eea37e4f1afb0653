"""The cluster of a group: its objects, what happens to them, and what the programs are answered."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from tests.goldens.decision import Answer, Decision, Group
from tests.goldens.metrics import Metrics, failure
from tests.support.cluster import as_admin
from tests.support.transport import Line
from trimtab.clock import VirtualClock
from trimtab.cluster import errors, resource
from trimtab.cluster.client import Client, DeleteOptions, ListOptions
from trimtab.cluster.resource import PODS, Json, Resource
from trimtab.cluster.transport import Request, Response
from trimtab.model.crds import all_crds
from trimtab.model.times import format_time
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.vertical.kinds import SCOPES, VPAS
from trimtab_lab.apiserver.server import Server

HOME = "trimtab"
"""The namespace of the installation."""
AT_ONCE = DeleteOptions(grace_seconds=0)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", Json, namespaced=False)
CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", Json, False
)
KINDS: dict[str, Resource[Any]] = {
    found.kind: found.untyped()
    for found in (
        *(value for value in vars(resource).values() if isinstance(value, Resource)),
        CRDS,
        VPAS,
        SCOPES,
        Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Json),
        Resource("example.com", "v1", "databases", "Database", Json),
        Resource("example.com", "v1", "queues", "Queue", Json),
    )
}
HPAS = {found.api_version: found.untyped() for found in (OWN_HPAS, NATIVE_HPAS)}


def resource_of(body: Json) -> Resource[Any]:
    """Return the resource of an object."""
    return HPAS[body["apiVersion"]] if body["kind"].startswith("Horizontal") else KINDS[body["kind"]]


class Cluster:
    """A lab and its user, who also plays controllers and kubelets."""

    def __init__(self, clock: VirtualClock, server: Server, group: Group) -> None:
        self._clock, self._server, self._group = clock, server, group
        self.user = Client(clock, as_admin(server), seed=1)
        self._metrics = Metrics(clock, as_admin(server), group.ahead)
        self._refused: dict[str, dict[str, Answer | None]] = {"": dict(group.refused)}
        """Refused requests, by namespace; none stands for all requests."""
        self._stuck: dict[str, tuple[str, ...]] = {}
        self._like: dict[str, Json] = {}
        """The first pod of each Deployment, which new ones are like."""
        self.line = Line(self._metrics)
        """The way of the programs to the API server."""
        self.line.answer = lambda request: _refusal(request, self._refused)
        self.viewers = Line(self._metrics)
        """The way of a user of `trimtab explain`."""
        self.viewers.answer = lambda request: _refusal(request, {"": dict(group.refused_to_viewers)})

    async def open(self, decisions: Iterable[Decision]) -> None:
        """Make all objects."""
        for crd in all_crds():
            await self.user.create(CRDS, crd)
        for name in (HOME, *(decision.namespace for decision in decisions)):
            await self.user.create(NAMESPACES, {"metadata": {"name": name}})
        for body in self._group.objects:
            await self._create(body, "")
        for decision in decisions:
            for body in decision.objects:
                await self._create(body, decision.namespace)

    async def _create(self, body: Json, namespace: str) -> None:
        """Create an object with its status. Owners are given by kind and name, and looked up."""
        kind, meta = resource_of(body), body["metadata"]
        owners = [
            owner if "uid" in owner else await self._owner(owner, namespace)
            for owner in meta.get("ownerReferences", ())
        ]
        place = namespace if kind.namespaced else None
        await self.user.create(kind, {**body, "metadata": {**meta, "ownerReferences": owners}}, place)
        if "status" in body:
            await self._set_status(kind, meta["name"], place, body["status"])

    async def _owner(self, owner: Json, namespace: str) -> Json:
        uid = "00000000-0000-0000-0000-000000000000"
        with suppress(errors.NotFound):
            uid = (await self.user.get(resource_of(owner), owner["name"], namespace))["metadata"]["uid"]
        return {**owner, "uid": uid, "controller": True}

    async def _set_status(self, kind: Resource[Any], name: str, namespace: str | None, status: Json) -> None:
        await self.user.patch(kind, name, namespace, {"status": status}, subresource="status")

    async def happen(self, step: Json, decision: Decision) -> None:
        """Let one step of a decision happen."""
        place = decision.namespace
        for body in step.get("create", ()):
            await self._create(body, place)
        for named, parts in step.get("set", {}).items():
            kind, name = _resource(named, decision)
            for part, value in parts.items():
                subresource = part if part in ("status", "scale") else ""
                body = {"spec" if subresource == "scale" else part: value}
                await self.user.patch(kind, name, place, body, subresource=subresource)
        for named, spec in step.get("spoil", {}).items():
            self._spoil(*_resource(named, decision), place, spec)
        for pod in (await self.user.list(PODS, ListOptions(place))).items if "usage" in step else ():
            self._use(step["usage"], place, pod.name)
        self._stuck[place] = step.get("stuck", self._stuck.get(place, ()))
        self._metrics.values |= {(place, name): value for name, value in step.get("metrics", {}).items()}
        self._metrics.ages |= {place: step["age"]} if "age" in step else {}
        self._refused.setdefault(place, {}).update(step.get("refuse", {}))
        if outage := step.get("outage"):
            self._refused[""].update(outage)
            self.line.drop_all()

    def _spoil(self, kind: Resource[Any], name: str, namespace: str, spec: Json) -> None:
        shelf = f"{kind.plural}.{kind.group}"
        entry = self._server.store.get(shelf, f"{namespace}/{name}")
        assert entry is not None
        body = entry.decoded()
        body["spec"] |= spec
        body["metadata"]["generation"] = body["metadata"].get("generation", 1) + 1
        self._server.store.commit(shelf, body, entry.fields)

    def _use(self, usage: Json, namespace: str, pod: str) -> None:
        """Set what a pod uses: of one container, or by container; None stands for no sample."""
        names = [name for name in usage if f"{pod}-".startswith(f"{name}-")]
        if not names:
            return
        used = usage[max(names, key=len)]
        self._metrics.usage.pop((namespace, pod), None)
        if used is not None:
            is_by_container = isinstance(next(iter(used.values())), dict)
            self._metrics.usage[namespace, pod] = used if is_by_container else {"app": used}

    async def settle(self, namespace: str) -> None:
        """Let controllers and kubelets do their part, except for pods that are stuck."""
        for body in await self._all("Deployment", namespace):
            await self._follow(body, namespace)
        for body in await self._all("StatefulSet", namespace):
            await self._heal(body, namespace)

    async def _all(self, kind: str, namespace: str) -> tuple[Json, ...]:
        return (await self.user.list(KINDS[kind], ListOptions(namespace))).items

    async def _follow(self, deployment: Json, namespace: str) -> None:
        """Let the pods of a Deployment follow its scale."""
        name, wanted = deployment["metadata"]["name"], deployment["spec"]["replicas"]
        if wanted == deployment.get("status", {}).get("replicas", 0):
            return
        found = await self._all("Pod", namespace)
        pods = [pod for pod in found if pod["metadata"]["name"].startswith(f"{name}-rs-")]
        like = self._like.setdefault(f"{namespace}/{name}", pods[0] if pods else {})
        for pod in pods[wanted:]:
            await self.user.delete(PODS, pod["metadata"]["name"], namespace, options=AT_ONCE)
        for index in range(len(pods), wanted if like else 0):
            meta = {key: like["metadata"][key] for key in ("labels", "ownerReferences")}
            meta["name"] = f"{name}-rs-{index}"
            new = {"kind": "Pod", "metadata": meta, "spec": like["spec"], "status": like["status"]}
            await self._create(new, namespace)
            if used := self._metrics.usage.get((namespace, like["metadata"]["name"])):
                self._metrics.usage[namespace, meta["name"]] = used
        await self._set_status(KINDS["Deployment"], name, namespace, {"replicas": wanted})

    async def _heal(self, owner: Json, namespace: str) -> None:
        """Let evicted members of a StatefulSet come back, and let kubelets run and resize all."""
        name, template = owner["metadata"]["name"], owner["spec"]["template"]
        pods = {pod["metadata"]["name"]: pod for pod in await self._all("Pod", namespace)}
        members = {f"{name}-{index}" for index in range(owner["spec"]["replicas"])}
        for member in sorted(members - set(self._stuck[namespace])):
            if member not in pods:
                by = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name}
                meta = {**template["metadata"], "name": member, "ownerReferences": [by]}
                await self._create({"kind": "Pod", "metadata": meta, "spec": template["spec"]}, namespace)
            await self._run(await self.user.get(KINDS["Pod"], member, namespace), namespace)

    async def _run(self, pod: Json, namespace: str) -> None:
        status, (spec,) = pod.get("status", {}), pod["spec"]["containers"]
        now = format_time(self._clock.now().replace(microsecond=0))
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
        started = {"phase": "Running", "startTime": now, "conditions": [ready]}
        new = {"name": spec["name"], "image": "x", "imageID": "x", "ready": True, "restartCount": 0}
        known = status.get("containerStatuses")
        resized = {**(known[0] if known else new), "resources": spec.get("resources", {})}
        if known != [resized]:
            changed = {**({} if known else started), "containerStatuses": [resized]}
            await self._set_status(KINDS["Pod"], pod["metadata"]["name"], namespace, changed)


def _resource(named: str, decision: Decision) -> tuple[Resource[Any], str]:
    """Return the resource and the name of `Kind/name`."""
    kind, _, name = named.partition("/")
    return KINDS.get(kind) or resource_of(decision.objects[-1]), name


def _refusal(request: Request, refused: Mapping[str, Mapping[str, Answer | None]]) -> Response | None:
    for namespace, answers in refused.items():
        for what, answer in answers.items():
            method, _, part = what.partition(" ")
            if answer and method == request.method and part in request.path and namespace in request.path:
                return failure(*answer)
    return None
