"""A lab with one process of each program, on which the decisions of a group are played side by side."""

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
from trimtab.cluster.resource import PODS, Json, Resource
from trimtab.cluster.transport.in_process import InProcessTransport
from trimtab.cluster.transport.transport import Request, Response
from trimtab.dashboard.dashboard import Dashboard
from trimtab.lab.apiserver.server import Server
from trimtab.model.crds import all_crds
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.inputs.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.log_format import TextFormatter
from trimtab.operator.operator import Parts
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
        self.settings = Settings.of(
            leader_elect=False,
            namespace=HOME,
            components=group.components,
            dashboard_login="token",
            **group.settings,
        )
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
        self.runtime = Runtime(
            self.clock, self.client, self.settings, instance="operator-0", plugins=Plugins(self.group.plugins)
        )
        self._publisher = SettingsPublisher(self.client, self.settings, "operator-0")
        await self._publisher.step()
        self.horizontal = HpaController(self.runtime, config=decision_config(self.settings))
        vertical = [name for name in self.group.components if name != "horizontal"]
        self.site = VerticalRuntime(self.runtime) if vertical else None
        self.loops: Mapping[str, Any] = {name: LOOPS[name](self.site) for name in vertical if self.site}
        if self.site is not None:
            await self.site.view.wait_synced()
        else:
            self.runtime.start()
            await self.horizontal.start()
        if "admission" in self.loops:
            self._server.outbound.register(HOME, "trimtab-webhook", backend(self.loops["admission"].app))
            await self.loops["admission"].refresh()
        self.dashboard = Dashboard(Parts(self.runtime, self.horizontal, self.site, self.loops))._build_app()
        self.browser = await entered(self.dashboard)

    async def close(self) -> None:
        """End the programs."""
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
            target = resource_of(decision.objects[-1]) if kind == "HorizontalPodAutoscaler" else KINDS[kind]
            for part, value in parts.items():
                within = part if part in ("status", "scale", "resize") else ""
                body = {"spec" if within in ("scale", "resize") else part: value}
                await self.user.patch(
                    target, name, place if target.namespaced else None, body, subresource=within
                )
        for pod in (await self.user.list(PODS, ListOptions(place))).items if "usage" in step else ():
            self._use(step["usage"], place, pod.name)
        self.metrics.values |= {(place, name): value for name, value in step.get("metrics", {}).items()}
        self.metrics.ages |= {place: step["age"]} if "age" in step else {}
        if "spoil" in step:
            self._spoil(decision.objects[-1], place, step["spoil"])
        self.refused.setdefault(place, {}).update(step.get("refuse", {}))
        if outage := step.get("outage"):
            self.refused[""].update(outage)
            self.line.drop_all()

    def _spoil(self, about: Json, namespace: str, spec: Json) -> None:
        """Change a spec in the lab's store, past every check, as an older server may have left it."""
        kind = resource_of(about)
        shelf = f"{kind.plural}.{kind.group}"
        entry = self._server.store.get(shelf, f"{namespace}/{about['metadata']['name']}")
        assert entry is not None
        body = entry.decoded()
        body["spec"] |= spec
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
