"""A lab with one process of each program, on which the decisions of a group are played side by side."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from tests.dashboard.asking import entered
from tests.goldens.decision import Decision, Group
from tests.goldens.metrics import Metrics, failure
from tests.scenarios.vertical.webhooks import backend
from tests.support.transport import Line
from trimtab.clock import VirtualClock
from trimtab.cluster import errors, resource
from trimtab.cluster.client import Client, DeleteOptions, ListOptions
from trimtab.cluster.leases.shards import Shards
from trimtab.cluster.resource import PODS, Json, Resource
from trimtab.cluster.transport.in_process import InProcessTransport
from trimtab.cluster.transport.transport import Request, Response
from trimtab.dashboard.dashboard import Dashboard
from trimtab.lab.apiserver.server import Server
from trimtab.model.crds import all_crds
from trimtab.model.times import format_time
from trimtab.operator.health import HealthApp
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.inputs.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.horizontal.records import record_pages
from trimtab.operator.log_format import TextFormatter
from trimtab.operator.operator import Parts
from trimtab.operator.process import make_shards
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.publisher import SettingsPublisher
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.kinds import SCOPES, VPAS
from trimtab.operator.vertical.wiring import LOOPS, VerticalRuntime
from trimtab.plugins.registry import Plugins

HOME = "trimtab"
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
        Resource("", "v1", "resourcequotas", "ResourceQuota", Json),
        Resource("example.com", "v1", "databases", "Database", Json),
        Resource("example.com", "v1", "queues", "Queue", Json),
    )
}
HPAS = {found.api_version: found.untyped() for found in (OWN_HPAS, NATIVE_HPAS)}


def resource_of(body: Json) -> Resource[Any]:
    """Return the resource of an object."""
    return HPAS[body["apiVersion"]] if body["kind"].startswith("Horizontal") else KINDS[body["kind"]]


def _answer_to(
    request: Request, namespace: str, refused: Mapping[str, tuple[int, str] | None]
) -> Response | None:
    """Return the answer to a request that is refused, by `METHOD part-of-path`."""
    for what, answer in refused.items():
        method, _, part = what.partition(" ")
        if answer and method == request.method and part in request.path and namespace in request.path:
            return failure(*answer)
    return None


class Log(logging.Handler):
    """The log lines of the programs, without their times, which are the machine's."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []
        self._format = TextFormatter()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line as `trimtab run` prints it."""
        self.lines.append(self._format.format(record).partition(" ")[2])


class Stage:
    """A lab, its user, and the programs."""

    def __init__(self, clock: VirtualClock, server: Server, group: Group) -> None:
        transport = InProcessTransport(server, headers={"authorization": f"Bearer {server.tokens.admin}"})
        self.clock, self.group, self.log, self._server = clock, group, Log(), server
        self.user = Client(clock, transport, seed=1)
        self.metrics = Metrics(clock, transport, group.ahead)
        self.line = Line(self.metrics)
        self.line.answer = self._refusal
        self._viewers = Line(self.metrics)
        self._viewers.answer = lambda request: _answer_to(request, "", dict(group.refused_to_viewers))
        self.viewer = Client(clock, self._viewers, seed=3)
        self.refused: dict[str, dict[str, tuple[int, str] | None]] = {"": dict(group.refused)}
        """Refused requests, by namespace; none stands for all requests."""
        self.client = Client(clock, self.line, seed=2)
        usual = {"namespace": HOME, "leader_elect": False, "dashboard_login": "token"}
        self.settings = Settings.of(components=group.components, **{**usual, **group.settings})
        self._leases: list[asyncio.Task[None]] = []
        self.stuck: dict[str, tuple[str, ...]] = {}
        """Pods whose kubelets do nothing, and that do not come back."""
        self._like: dict[str, Json] = {}
        """The first pod of each Deployment, which new ones are like."""

    async def open(self, decisions: Iterable[Decision]) -> None:
        """Make all objects, then start the programs."""
        for crd in all_crds():
            await self.user.create(CRDS, crd)
        for name in (HOME, *(decision.namespace for decision in decisions)):
            await self.user.create(NAMESPACES, {"metadata": {"name": name}})
        for body in self.group.objects:
            await self.create(body, "")
        for decision in decisions:
            try:
                for body in decision.objects:
                    await self.create(body, decision.namespace)
            except errors.ClusterError as error:
                raise ValueError(f"{decision.sentence}: {error}") from error

    async def start(self) -> None:
        """Start the programs as `trimtab run` does, except that their loops are stepped."""
        shards = (
            make_shards(self.client, self.settings, "operator-0") if self.settings.leases.shards > 1 else None
        )
        self.runtime = Runtime(
            self.clock,
            self.client,
            self.settings,
            fence=shards,
            instance="operator-0",
            plugins=Plugins(self.group.plugins),
        )
        vertical = [name for name in self.group.components if name != "horizontal"]
        # A recommender with these settings may run in another process.
        components = dict.fromkeys(
            ("recommender", *self.group.components) if vertical else self.group.components
        )
        published = self.settings.replace(components=tuple(components))
        self._publisher = SettingsPublisher(self.client, published, "operator-0")
        await self._publisher.step()
        self.horizontal = HpaController(self.runtime, config=decision_config(self.settings))
        self.site = VerticalRuntime(self.runtime) if vertical else None
        self.loops: Mapping[str, Any] = {name: LOOPS[name](self.site) for name in vertical if self.site}
        if self.site is not None:
            await self.site.view.wait_synced()
        else:
            self.runtime.start()
            await self.horizontal.start()
        if shards is not None:
            await self._share_with_another(shards)
        if "admission" in self.loops:
            self._server.outbound.register(HOME, "trimtab-webhook", backend(self.loops["admission"].app))
            await self.loops["admission"].refresh()
        pages = record_pages(self.horizontal.hpas, self.horizontal.ownership)
        self.port = HealthApp([self.horizontal], self.runtime.registry, pages=pages)
        self.dashboard = Dashboard(Parts(self.runtime, self.horizontal, self.site, self.loops))._build_app()
        self.browser = await entered(self.dashboard)

    async def _share_with_another(self, shards: Shards) -> None:
        """Share the namespaces out with another replica, which decides nothing here."""
        other = make_shards(self.client, self.settings, "operator-1")
        self._leases = [asyncio.ensure_future(replica.run()) for replica in (shards, other)]
        while len(shards.held()) != 1 or len(other.held()) != 1:
            await self.clock.sleep(1)

    async def close(self) -> None:
        """End the programs."""
        for lease in self._leases:
            lease.cancel()
        await asyncio.gather(*self._leases, return_exceptions=True)
        await self.horizontal.close()
        await self.runtime.close()

    async def create(self, body: Json, namespace: str) -> None:
        """Create an object with its status. Owners are given by kind and name, and looked up."""
        kind, meta = resource_of(body), body["metadata"]
        owners = [await self._owner(owner, namespace) for owner in meta.get("ownerReferences", ())]
        made = {**body, "metadata": {**meta, "ownerReferences": owners}}
        place = namespace if kind.namespaced else None
        await self.user.create(kind, made, place)
        if "status" in body:
            patch = {"status": body["status"]}
            await self.user.patch(kind, meta["name"], place, patch, subresource="status")

    async def _owner(self, owner: Json, namespace: str) -> Json:
        uid = "00000000-0000-0000-0000-000000000000"
        with suppress(errors.NotFound):
            uid = (await self.user.get(resource_of(owner), owner["name"], namespace))["metadata"]["uid"]
        return {**owner, "uid": uid, "controller": True}

    async def happen(self, step: Json, decision: Decision) -> None:
        """Let one step of a decision happen."""
        place = decision.namespace
        for named in step.get("delete", ()):
            kind, _, name = named.partition("/")
            await self.user.delete(KINDS[kind], name, place, options=AT_ONCE)
        for body in step.get("create", ()):
            await self.create(body, place)
        for named, parts in step.get("set", {}).items():
            kind, _, name = named.partition("/")
            target = self._resource(kind, decision)
            for part, value in parts.items():
                within = part if part in ("status", "scale", "resize") else ""
                body = {"spec" if within in ("scale", "resize") else part: value}
                await self.user.patch(
                    target, name, place if target.namespaced else None, body, subresource=within
                )
        for pod in (await self.user.list(PODS, ListOptions(place))).items if "usage" in step else ():
            self._use(step["usage"], place, pod.name)
        self.stuck[place] = step.get("stuck", self.stuck.get(place, ()))
        self.metrics.values |= {(place, name): value for name, value in step.get("metrics", {}).items()}
        self.metrics.ages |= {place: step["age"]} if "age" in step else {}
        for named, spec in step.get("spoil", {}).items():
            kind, _, name = named.partition("/")
            self._spoil(self._resource(kind, decision), f"{place}/{name}", spec)
        self.refused.setdefault(place, {}).update(step.get("refuse", {}))
        if outage := step.get("outage"):
            self.refused[""].update(outage)
            self.line.drop_all()

    def _resource(self, kind: str, decision: Decision) -> Resource[Any]:
        return KINDS.get(kind) or resource_of(decision.objects[-1])

    def _spoil(self, kind: Resource[Json], name: str, spec: Json) -> None:
        """Change a spec in the lab's store, past every check, as an older server may have left it."""
        shelf = f"{kind.plural}.{kind.group}"
        entry = self._server.store.get(shelf, name)
        assert entry is not None
        body = entry.decoded()
        body["spec"] |= spec
        body["metadata"]["generation"] = body["metadata"].get("generation", 1) + 1
        self._server.store.commit(shelf, body, entry.fields)

    def _refusal(self, request: Request) -> Response | None:
        return next(filter(None, (_answer_to(request, *item) for item in self.refused.items())), None)

    def _use(self, usage: Json, namespace: str, pod: str) -> None:
        """Set what a pod uses: of one container, or by container; None stands for no sample."""
        names = [name for name in usage if f"{pod}-".startswith(f"{name}-")]
        if not names:
            return
        used = usage[max(names, key=len)]
        self.metrics.usage.pop((namespace, pod), None)
        if used is not None:
            by_container = used if isinstance(next(iter(used.values())), dict) else {"app": used}
            self.metrics.usage[namespace, pod] = by_container

    async def loop(self) -> None:
        """Let every program do its work once."""
        await self._publisher.step()
        for name in ("recommender", "updater", "roles"):
            if name in self.loops:
                await self.loops[name].step()
        if not self.loops:
            await self.horizontal.step()
            await self.horizontal._before_waiting()  # reports HPAs that cannot be read
        await self.runtime.events.flush()
        self.dashboard.refresh()

    async def follow(self, namespace: str) -> None:
        """Let the pods of each Deployment follow its scale, as controllers and kubelets do."""
        for body in (await self.user.list(KINDS["Deployment"], ListOptions(namespace))).items:
            name, wanted = body["metadata"]["name"], body["spec"]["replicas"]
            if wanted == body.get("status", {}).get("replicas", 0):
                continue
            listed = (await self.user.list(PODS.untyped(), ListOptions(namespace))).items
            pods = [pod for pod in listed if pod["metadata"]["name"].startswith(f"{name}-rs-")]
            first = self._like.setdefault(f"{namespace}/{name}", pods[0] if pods else {})
            for pod in pods[wanted:]:
                await self.user.delete(PODS, pod["metadata"]["name"], namespace, options=AT_ONCE)
            for index in range(len(pods), wanted if first else 0):
                await self._add_pod(first, f"{name}-rs-{index}", namespace)
            status = {"status": {"replicas": wanted}}
            await self.user.patch(KINDS["Deployment"], name, namespace, status, subresource="status")

    async def settle(self, namespace: str) -> None:
        """Let kubelets carry out resizes, unless their pod is stuck, and let evicted members come back."""
        pods = {pod["metadata"]["name"]: pod for pod in await self._all(PODS.untyped(), namespace)}
        for owner in await self._all(KINDS["StatefulSet"], namespace):
            name, template = owner["metadata"]["name"], owner["spec"]["template"]
            for member in (f"{name}-{index}" for index in range(owner["spec"]["replicas"])):
                if member not in pods and member not in self.stuck.get(namespace, ()):
                    meta = {
                        **template["metadata"],
                        "name": member,
                        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name}],
                    }
                    await self.create({"kind": "Pod", "metadata": meta, "spec": template["spec"]}, namespace)
                    pods[member] = await self.user.get(PODS.untyped(), member, namespace)
        for name, pod in pods.items():
            if name not in self.stuck.get(namespace, ()):
                await self._run(name, pod, namespace)

    async def _run(self, name: str, pod: Json, namespace: str) -> None:
        status = pod.get("status", {})
        first = {"image": "x", "imageID": "x", "ready": True, "restartCount": 0}
        known = {found["name"]: found for found in status.get("containerStatuses", ())}
        containers = [
            {
                **known.get(spec["name"], {**first, "name": spec["name"]}),
                "resources": spec.get("resources", {}),
            }
            for spec in pod["spec"]["containers"]
        ]
        if containers != status.get("containerStatuses"):
            now = format_time(self.clock.now().replace(microsecond=0))
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
            running = {"phase": "Running", "startTime": now, "conditions": [ready]} if not known else {}
            body = {"status": {**running, "containerStatuses": containers}}
            await self.user.patch(PODS.untyped(), name, namespace, body, subresource="status")

    async def _all(self, kind: Resource[Json], namespace: str) -> tuple[Json, ...]:
        return (await self.user.list(kind, ListOptions(namespace))).items

    async def _add_pod(self, like: Json, name: str, namespace: str) -> None:
        meta = {key: like["metadata"][key] for key in ("labels", "ownerReferences")}
        body = {
            "kind": "Pod",
            "metadata": {**meta, "name": name},
            "spec": like["spec"],
            "status": like["status"],
        }
        await self.create(body, namespace)
        used = self.metrics.usage.get((namespace, like["metadata"]["name"]))
        if used is not None:
            self.metrics.usage[namespace, name] = used
