"""Plays a world of HPAs: whole programs with their Leases on the lab in virtual time, and all that befalls them.

It looks at the programs from outside only: what they ask for, what they write, and when.
"""

import asyncio
import gc
import json
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

from tests.scenarios.horizontal.stage import Stage
from tests.support.transport import Break, Line, status
from tests.worlds.hpas_workload import Sample, Workload, install_queues, load_at
from tests.worlds.world import Happening, Rules, World
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.errors import TransportError
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.resource import Json
from trimtab.cluster.transport import Request, Response, ResponseStream
from trimtab.model.hpa.replica_policies import ANNOTATION, FIELD
from trimtab.operator.operator import Operator
from trimtab.plugins import ReplicaPolicyInput, ReplicaProposal
from trimtab.plugins.kinds import PluginKind
from trimtab_lab.apiserver.server import Server

STEP = 2.0
"""Seconds between two looks of the kubelets; a Deployment whose scale is written acts at once."""
COUNT = 5.0
"""Seconds between two counts of the pods that are missing or spare."""


@dataclass(frozen=True)
class Size:
    """A change of a workload's replicas."""

    at: float
    old: int
    new: int
    by: str
    """The program that wrote it; empty where it was a user."""


@dataclass(frozen=True)
class Call:
    """A call of the replica policy of an HPA."""

    hpa: str
    at: float
    seen: float
    """What it remembered."""
    kept: float
    """What it remembers from then on; never less."""


POLICY = "worlds.test/Remembers"
TICK = 120.0
"""Seconds for which the policy remembers one moment."""
CALLS: list[Call] = []
"""Calls of the policy in the life that is played: a plug-in is a function of a module."""


def remember(seen: ReplicaPolicyInput) -> ReplicaProposal:
    """Ask for nothing, and remember when two minutes have passed since the last time."""
    before = (seen.memory or {"at": 0.0})["at"]
    kept = seen.now if seen.now - before >= TICK else before
    CALLS.append(Call(seen.name, seen.now, before, kept))
    return ReplicaProposal(replicas=None, reason="it only remembers", memory={"at": kept})


@dataclass
class Record:
    """What was seen of one HPA and its target: all that the oracle reads."""

    specs: list[tuple[float, Json]] = field(default_factory=list)
    """The specs in force, each from when on; an empty one where the HPA is deleted."""
    resets: list[float] = field(default_factory=list)
    """When the HPA or its target was made or exchanged: what was before does not count."""
    sizes: list[Size] = field(default_factory=list)
    samples: list[tuple[float, tuple[Sample, ...]]] = field(default_factory=list)
    """Samples of each metric, each from when on they are served; none where they are lost."""
    asked: list[float] = field(default_factory=list)
    """When a program asked for its metrics."""
    deciders: list[tuple[float, str]] = field(default_factory=list)
    """Who wrote the scale or the status, and when."""
    remembered: list[Call] = field(default_factory=list)
    """The calls of its replica policy."""
    counts: list[tuple[float, float, int, int, Json]] = field(default_factory=list)
    """Every five seconds: the load in pods of the first target, the ready pods, the size asked for, and the spec."""


class Program:
    """One `trimtab run`, with a line to the server that may break."""

    def __init__(self, life: "HpaLife", name: str, shards: int) -> None:
        self.name, self._life = name, life
        self.line = Line(self)
        random = Random(f"{life.world.seed} {life.world.phase} {name}")
        self.line.answers_after = lambda _: random.uniform(0.001, 0.02)
        settings: dict[str, Any] = {"shards": shards} if shards > 1 else {}
        if life.rules is Rules.UPSTREAM:
            settings["compat"] = "kubernetes-1.37"
        elif any(hpa.get("policy") for hpa in life.world.start["hpas"]):
            settings["plugins"] = (POLICY,)
        chosen = life.stage.settings(leader_elect_resource_namespace=life.stage.namespace, port=0, **settings)
        client = Client(life.stage.clock, self.line, seed=random.randrange(2**32))
        self._operator = Operator(life.stage.clock, client, chosen.replace(leader_elect=True))
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._operator.run())

    async def stop(self) -> None:
        """End in order."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def kill(self) -> None:
        """End at once: nothing that is still sent arrives."""
        self.line.crashed.set()
        await self.stop()

    # The far end of the line

    async def request(self, request: Request) -> Response:
        return await self._life.serve(self.name, request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[ResponseStream]:
        return self._life.stage.transport.stream(request)

    async def close(self) -> None:
        """Do nothing: the connections belong to the stage."""


class HpaLife:
    """One life under some rules."""

    def __init__(self, world: World, rules: Rules, stage: Stage) -> None:
        self.world, self.rules, self.stage = world, rules, stage
        self.records = {hpa["name"]: Record() for hpa in world.start["hpas"]}
        self.workloads: dict[str, Workload] = {}
        self.targets = {hpa["name"]: hpa.get("target", hpa["name"]) for hpa in world.start["hpas"]}
        """The workload that each HPA points to."""
        self.has_rivals = len(set(self.targets.values())) < len(self.targets)
        """Whether shards divide the namespace, because two HPAs have one target."""
        self.log: list[tuple[float, str]] = []
        self.writes = 0
        self.random = Random(f"{world.seed} {world.name}")
        self._programs: list[Program] = []
        self._shards: int = world.start["shards"]
        self._lost: dict[str, str] = {}
        """How the metrics of an HPA are lost."""
        self._begun = 0.0
        self._date = ""
        """Of the newest samples."""
        self._is_frozen = False
        self._asker: Program | None = None
        self._number = 0
        self._wake = asyncio.Event()
        self._running: list[asyncio.Future[None]] = []

    def now(self) -> float:
        """Return the seconds since the start."""
        return self.stage.clock.monotonic() - self._begun

    def note(self, text: str) -> None:
        self.log.append((self.now(), text))

    async def play(self) -> None:
        stage, start = self.stage, self.world.start
        self._begun = stage.clock.monotonic()
        stage.metrics.now = lambda: self._date
        if any("kind" in hpa for hpa in start["hpas"]):
            await install_queues(stage.client)
        for hpa in start["hpas"]:
            if "target" in hpa:
                await self._create_hpa(hpa["name"], hpa["spec"])
                continue
            random = Random(f"{self.world.seed} {hpa['name']}")
            workload = Workload(stage.client, stage.namespace, self.now, hpa, random)
            self.workloads[hpa["name"]] = workload
            await workload.create(hpa["replicas"], is_old=True)
            await self._create_hpa(hpa["name"], hpa["spec"])
        self._measure()
        await stage.clock.sleep(Random(f"{self.world.seed} {self.world.phase}").uniform(0, 15))
        self._begun = stage.clock.monotonic()
        for _ in range(start["copies"]):
            self._start_program()
        self._running = [
            asyncio.ensure_future(work)
            for work in (
                self._kubelets(),
                self._metrics(),
                self._count(),
                *map(self._befall, self.world.happenings),
            )
        ]
        try:
            await stage.clock.sleep(self.world.seconds)
            for future in self._running:
                if future.done():
                    future.result()
        finally:
            for future in self._running:
                future.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            for program in self._programs:
                await program.kill()
        begun = stage.clock.now().timestamp() - self.now()
        for call in CALLS:
            moments = call.at - begun, call.seen - begun, call.kept - begun
            self.records[call.hpa].remembered.append(Call(call.hpa, *moments))

    # What the programs ask for and write

    async def serve(self, name: str, request: Request) -> Response:
        """Answer a program, and remember what it asked for or wrote."""
        parts = request.path.split("/")
        if "metrics.k8s.io" in request.path and len(parts) > 4:
            return await self._serve_metrics(name, request)
        if request.method == "GET" or "/leases" in request.path:
            return await self.stage.transport.request(request)
        old = self.workloads[parts[-2]].wanted if parts[-1] == "scale" else 0
        answer = await self.stage.transport.request(request)
        if "/events" in request.path or parts[-1] in ("scale", "status"):
            self.writes += 1
        if answer.status == 200 and parts[-1] == "scale":
            self._scaled(name, parts[-2], old, json.loads(answer.body)["spec"].get("replicas", 0))
        if answer.status == 200 and parts[-1] == "status" and "horizontalpodautoscalers" in parts:
            self.records[parts[-2]].deciders.append((self.now(), name))
        return answer

    def _scaled(self, by: str, workload: str, old: int, new: int) -> None:
        self.workloads[workload].wanted = new
        self._wake.set()
        for hpa, target in self.targets.items():
            if target == workload:
                self.records[hpa].sizes.append(Size(self.now(), old, new, by))
                if by and not self.has_rivals:
                    self.records[hpa].deciders.append((self.now(), by))
        self.note(f"{workload} {old} -> {new}{f' by {by}' if by else ''}")

    async def _serve_metrics(self, name: str, request: Request) -> Response:
        self._asker = next(program for program in self._programs if program.name == name)
        is_usage = request.path.startswith("/apis/metrics.k8s.io")
        for hpa, record in self.records.items():
            workload = self.workloads[self.targets[hpa]]
            if is_usage or any(
                metric_name(hpa, number) in request.path for number in range(len(workload.metrics))
            ):
                record.asked.append(self.now())
                if self._lost.get(hpa) == "error":
                    return status(503, "metrics are down")
        return await self.stage.transport.request(request)

    # What the cluster does

    async def _kubelets(self) -> None:
        while True:
            for workload in self.workloads.values():
                await workload.step()
            self._wake.clear()
            try:
                async with asyncio.timeout(STEP):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _metrics(self) -> None:
        """Measure again and again, as metrics-server and an adapter do."""
        while True:
            await asyncio.sleep(self.world.start["resolution"])
            if not self._is_frozen:
                self._measure()

    def _measure(self) -> None:
        stub, now, namespace = self.stage.metrics, self.now(), self.stage.namespace
        self._date = self.stage.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        stub.usage.clear()
        stub.objects.clear()
        stub.external.clear()
        for name, record in self.records.items():
            workload = self.workloads[self.targets[name]]
            if name in self._lost:
                continue
            load = load_at(self.world.happenings, workload.name, workload.start["load"], now)
            load *= 1 + workload.start["noise"] * Random(f"{self.world.seed} {name} {now:.0f}").uniform(-1, 1)
            samples = []
            for number, metric in enumerate(workload.metrics):
                sample, usage = workload.measure(number, load)
                samples.append(sample)
                called = metric_name(name, number)
                if metric["type"] == "External":
                    stub.set_external(namespace, called, f"{sample.total:.0f}m")
                elif metric["type"] == "Object":
                    stub.set_object(namespace, "services", "front", called, f"{sample.total:.0f}m")
                for pod, amount in usage.items():
                    if metric["type"] == "Pods":
                        stub.set_object(namespace, "pods", pod, called, f"{amount:.0f}m")
                    elif workload.uses_cpu(number):
                        stub.use(namespace, pod, cpu=f"{amount:.0f}m")
                    else:
                        stub.use(namespace, pod, memory=f"{amount:.0f}")
            record.samples.append((now, tuple(samples)))

    async def _count(self) -> None:
        while True:
            for name, record in self.records.items():
                workload = self.workloads[self.targets[name]]
                load = load_at(self.world.happenings, workload.name, workload.start["load"], self.now())
                record.counts.append(
                    (self.now(), load, len(workload.ready()), workload.wanted, record.specs[-1][1])
                )
            await asyncio.sleep(COUNT)

    # What happens

    async def _befall(self, happening: Happening) -> None:
        await asyncio.sleep(happening.at)
        befall = getattr(self, f"on_{happening.what.replace(' ', '_')}", None)
        if befall is not None:
            await befall(happening.facts)

    async def _for(self, facts: Mapping[str, Any]) -> None:
        await asyncio.sleep(facts["lasts"])

    def _start_program(self) -> None:
        self._number += 1
        program = Program(self, f"copy{self._number}", self._shards)
        self._programs.append(program)
        program.start()

    def _chosen(self, facts: Mapping[str, Any]) -> list[Program]:
        """Return all programs, or the one that works, which asked for metrics last."""
        if facts["which"] == "all" or self._asker is None:
            return list(self._programs)
        return [program for program in self._programs if program is self._asker] or self._programs[:1]

    async def _away(
        self, facts: Mapping[str, Any], end: Callable[[Program], Coroutine[Any, Any, None]]
    ) -> None:
        gone = self._chosen(facts)
        self._programs = [program for program in self._programs if program not in gone]
        for program in gone:
            await end(program)
        await self._for(facts)
        for _ in gone:
            self._start_program()

    async def on_kill(self, facts: Mapping[str, Any]) -> None:
        await self._away(facts, Program.kill)

    async def on_stop(self, facts: Mapping[str, Any]) -> None:
        await self._away(facts, Program.stop)

    async def on_upgrade(self, facts: Mapping[str, Any]) -> None:
        """Start programs with other flags, and stop the old ones when the new ones have run for a while."""
        old = list(self._programs)
        self._shards = facts["shards"]
        for _ in range(self.world.start["copies"]):
            self._start_program()
        await self._for(facts)
        for program in old:
            if program in self._programs:
                self._programs.remove(program)
                await program.stop()

    async def on_cut(self, facts: Mapping[str, Any]) -> None:
        cut = self._chosen(facts)
        only = "/leases" if facts["from"] == "leases" else ""
        for program in cut:
            program.line.answer = lambda request: (
                TransportError("no route to host") if only in request.path else None
            )
            if not only:
                program.line.drop_all()
        await self._for(facts)
        for program in cut:
            program.line.answer = lambda _: None

    async def on_too_many_requests(self, facts: Mapping[str, Any]) -> None:
        refused = status(429, "TooManyRequests", **{"retry-after": "1"})
        busy = list(self._programs)
        for program in busy:
            program.line.answer = lambda request: (
                None
                if "/leases" in request.path or (facts["only writes"] and request.method == "GET")
                else refused
            )
        await self._for(facts)
        for program in busy:
            program.line.answer = lambda _: None

    async def on_lost_answers(self, facts: Mapping[str, Any]) -> None:
        hit = list(self._programs)
        for program in hit:
            program.line.break_write = lambda _number, _request: (
                Break.LOSE_ANSWER if self.random.random() < 0.5 else None
            )
        await self._for(facts)
        for program in hit:
            program.line.break_write = lambda _number, _request: None

    async def on_metrics_lost(self, facts: Mapping[str, Any]) -> None:
        hit = list(self.records) if facts["hpa"] == "all" else [facts["hpa"]]
        if facts["how"] == "frozen":
            self._is_frozen = True
        else:
            for name in hit:
                self._lost[name] = facts["how"]
                self.records[name].samples.append((self.now(), ()))
        await self._for(facts)
        self._is_frozen = False
        for name in hit:
            self._lost.pop(name, None)
        self._measure()

    async def on_edit(self, facts: Mapping[str, Any]) -> None:
        record = self.records[facts["hpa"]]
        if not record.specs[-1][1]:
            return
        spec = {**record.specs[-1][1], **facts["spec"]}
        spec["maxReplicas"] = max(spec["maxReplicas"], spec["minReplicas"])
        if "behavior" in facts["spec"]:
            await self._patch_hpa(facts["hpa"], {"spec": {"behavior": None}})
        await self._patch_hpa(facts["hpa"], {"spec": spec})
        record.specs.append((self.now(), spec))

    async def on_recreate_hpa(self, facts: Mapping[str, Any]) -> None:
        name = facts["hpa"]
        spec = self.records[name].specs[-1][1]
        if not spec:
            return
        self.records[name].specs.append((self.now(), {}))
        await self.stage.client.delete(self.stage.resource.untyped(), name, self.stage.namespace)
        await self._for(facts)
        await self._create_hpa(name, spec)

    async def on_retarget(self, facts: Mapping[str, Any]) -> None:
        name = facts["hpa"]
        record = self.records[name]
        if not record.specs[-1][1] or self.targets[name] != name:
            return
        other = f"{name}-green"
        start = {**self.workloads[name].start, "name": other, "load": facts["load"]}
        workload = Workload(self.stage.client, self.stage.namespace, self.now, start, self.random)
        self.workloads[other] = workload
        await workload.create(facts["replicas"], is_old=True)
        await self._patch_hpa(name, {"spec": {"scaleTargetRef": workload.reference}})
        self.targets[name] = other
        record.resets.append(self.now())
        record.sizes.append(Size(self.now(), 0, facts["replicas"], ""))
        self._measure()

    async def on_hand(self, facts: Mapping[str, Any]) -> None:
        workload = self.workloads[self.targets[facts["hpa"]]]
        if workload.is_there and workload.wanted != facts["to"]:
            body = {"spec": {"replicas": facts["to"]}}
            await self.stage.client.patch(
                workload.resource, workload.name, self.stage.namespace, body, subresource="scale"
            )
            self._scaled("", workload.name, workload.wanted, facts["to"])

    async def on_recreate_target(self, facts: Mapping[str, Any]) -> None:
        workload = self.workloads[facts["hpa"]]
        if not workload.is_there:
            return
        await workload.delete()
        await self._for(facts)
        await workload.create(facts["replicas"], is_old=False)
        self.records[facts["hpa"]].resets.append(self.now())
        self._scaled("", workload.name, workload.wanted, facts["replicas"])

    async def on_rollout(self, facts: Mapping[str, Any]) -> None:
        self.workloads[facts["hpa"]].roll_out(facts["surge"])

    async def on_not_ready(self, facts: Mapping[str, Any]) -> None:
        await self.workloads[facts["hpa"]].make_unready(facts["share"], self.now() + facts["lasts"])

    async def on_canary(self, facts: Mapping[str, Any]) -> None:
        workload = self.workloads[facts["hpa"]]
        pods = await workload.add_foreign(facts["pods"])
        await self._for(facts)
        await workload.remove(pods)

    async def on_slow_start(self, facts: Mapping[str, Any]) -> None:
        workload = self.workloads[facts["hpa"]]
        workload.start_seconds *= facts["times"]
        await self._for(facts)
        workload.start_seconds /= facts["times"]

    async def _create_hpa(self, name: str, spec: Json) -> None:
        target = self.workloads[self.targets[name]].reference
        (hpa,) = (hpa for hpa in self.world.start["hpas"] if hpa["name"] == name)
        policies: Json = {}
        if hpa.get("policy") and self.rules is Rules.OURS:
            named = [{"name": POLICY}]
            policies = (
                {"annotations": {ANNOTATION: json.dumps(named)}} if self.stage.native else {FIELD: named}
            )
        await self.stage.hpa(name, scaleTargetRef=target, **policies, **spec)
        self.records[name].specs.append((self.now(), spec))
        self.records[name].resets.append(self.now())

    async def _patch_hpa(self, name: str, body: Json) -> None:
        await self.stage.client.patch(self.stage.resource.untyped(), name, self.stage.namespace, body)


def metric_name(hpa: str, number: int) -> str:
    """Return the name of a metric that is neither CPU nor memory."""
    return f"load-{number}-of-{hpa}"


def _entry_points(group: str) -> list[EntryPoint]:
    """Return the plug-ins of a kind that are installed in a world."""
    found = EntryPoint(POLICY, f"{__name__}:remember", group)
    return [found] if group == PluginKind.REPLICA_POLICY else []


def live(world: World, rules: Rules) -> HpaLife:
    """Play a world to its end."""
    clock = VirtualClock()
    ids = Random(world.seed)

    async def main() -> HpaLife:
        async with Server(clock, seed=1, tracks_fields=False) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            stage = Stage(clock, InProcessTransport(server, headers=headers), native=world.start["native"])
            stage.namespace = "shop"
            await stage.open()
            life = HpaLife(world, rules, stage)
            await life.play()
            await stage.close()
            return life

    CALLS.clear()
    # Names of processes are random, and shards are given by name.
    with (
        patch("trimtab.plugins.registry.entry_points", _entry_points),
        patch("uuid.uuid4", lambda: UUID(int=ids.getrandbits(128))),
        patch("socket.gethostname", lambda: "node"),
    ):
        life = clock.run(main())
    # Each program told the collector to spare what was there: the world that is gone is not to be spared.
    gc.unfreeze()
    gc.collect()
    return life
