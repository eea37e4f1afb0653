"""kube-controller-manager's HPA controller and ours write the same status, of the version that the server has.

The peer goes first and is stopped. Then ours, with the `--compat` of that version, treats identical objects.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.real.side_by_side.metrics_server import Course, TraceServer
from tests.real.side_by_side.test_side_by_side import rules_of
from tests.scenarios.horizontal.stage import Stage
from tests.support.objects import external_metric
from tools.peers.cluster import HPA_CONTROLLER, RealCluster
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.resource import Json
from trimtab.cluster.transport import Transport
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.runtime import Runtime

pytestmark = pytest.mark.real

STEADY: Json = {"metrics": [external_metric("steady", average="100")]}
OBJECT: Json = {
    "type": "Object",
    "object": {
        "metric": {"name": "rps"},
        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"},
        "target": {"type": "Value", "value": "10"},
    },
}
SETTLED_SECONDS = 60
NUMBERS = ("observedGeneration", "currentReplicas", "desiredReplicas")


@dataclass(frozen=True)
class Case:
    """HPAs in one namespace, by name, and the reason that shows that they were treated."""

    name: str
    hpas: dict[str, Json]
    reason: str
    change: Json | None = None
    leftovers: tuple[str, ...] = ()
    """What a sync before the HPAs were all registered may have left."""


LEFT = ("ScalingLimited", "desiredReplicas")
CASES = (
    Case("steady", {"web": STEADY}, "ValidMetricFound"),
    Case("changed", {"web": STEADY}, "ValidMetricFound", {"maxReplicas": 7}),
    Case(
        "ambiguous",
        {"web": STEADY, "web-2": {**STEADY, "target": "web"}},
        "AmbiguousSelector",
        leftovers=LEFT,
    ),
    Case("object", {"web": {"metrics": [OBJECT]}}, "FailedGetObjectMetric"),
    Case("gone", {"web": {**STEADY, "target": "gone"}}, "FailedGetScale"),
    Case("above", {"web": {**STEADY, "maxReplicas": 2}}, "TooManyReplicas"),
)


class Scene:
    """The objects of one case, for one of the two controllers."""

    def __init__(self, case: Case, transport: Transport) -> None:
        self.case = case
        self.stage = Stage(SystemClock(), transport, native=True, prunes=True)

    async def set_up(self, server: TraceServer) -> None:
        await self.stage.open()
        server.courses[self.stage.namespace] = Course([], _no_replicas)
        await self.stage.deployment("web", 3)
        for name, fields in self.case.hpas.items():
            await self.stage.hpa(name, **fields)

    async def is_treated(self) -> bool:
        """Return whether every HPA has the case's reason for the spec that it has now."""
        return all([_is_described(await self.stage.read_hpa(name), self.case) for name in self.case.hpas])

    async def edit(self) -> None:
        if self.case.change is not None:
            await self.stage.edit_hpa("web", **self.case.change)

    async def statuses(self) -> dict[str, Any]:
        return {
            name: _comparable(await self.stage.read_hpa(name), self.stage.namespace, self.case.leftovers)
            for name in self.case.hpas
        }


async def _no_replicas() -> tuple[int, int]:
    return 0, 0


def _is_described(hpa: Json, case: Case) -> bool:
    status, generation = hpa.get("status", {}), hpa["metadata"].get("generation")
    reasons = {condition["reason"] for condition in status.get("conditions") or ()}
    # A target that cannot be read leaves observedGeneration as it is.
    return case.reason in reasons and (
        case.reason == "FailedGetScale" or status.get("observedGeneration") == generation
    )


def _comparable(hpa: Json, namespace: str, leftovers: tuple[str, ...]) -> Any:
    """Return what both must have written: everything but times, in words that do not depend on the namespace."""
    status = hpa["status"]
    conditions = {
        condition["type"]: (condition["status"], condition["reason"], _plain(condition["message"], namespace))
        for condition in status["conditions"]
        if condition["type"] not in leftovers
    }
    generations = [condition.get("observedGeneration") for condition in status["conditions"]]
    return {
        "conditions": conditions,
        "generations of conditions": [generation for generation in generations if generation is not None],
        "generation": hpa["metadata"].get("generation"),
        **{name: status.get(name) for name in NUMBERS if name not in leftovers},
    }


def _plain(message: str, namespace: str) -> str:
    message = message.replace(namespace, "NAMESPACE")
    # Each client has its own words for an API that is not served.
    message = re.sub(r"(metrics from custom metrics API): .*", r"\1: CAUSE", message)
    # Upstream lists HPAs in any order.
    return re.sub(r"\[(\S+) (\S+)\]", lambda found: str(sorted(found.groups())), message)


async def wait_for(scenes: list[Scene], what: Callable[[Scene], Awaitable[bool]]) -> None:
    for scene in scenes:
        await scene.stage.wait_for(lambda scene=scene: what(scene), SETTLED_SECONDS)


async def treat_with_ours(scene: Scene, transport: Transport, compat: str) -> None:
    settings = scene.stage.settings(feature_gates="HPAScaleToZero=true", compat=compat)
    client = Client(SystemClock(), transport)
    operator = HpaController(Runtime(SystemClock(), client, settings), config=decision_config(settings))
    await operator.start()
    try:
        for change in (None, scene.edit, None):
            if change is not None:
                await change()
            await scene.stage.caught_up(operator)
            await operator.step()
    finally:
        await operator.close()
        await operator.runtime.close()


async def side_by_side(cluster: RealCluster) -> list[tuple[Scene, Any, Any]]:
    clock = SystemClock()
    transport = HttpTransport(clock, load_kubeconfig(clock, str(cluster.kubeconfig), environ={}))
    client = Client(clock, transport)
    theirs, ours = ([Scene(case, transport) for case in CASES] for _ in range(2))
    try:
        async with TraceServer(client, cluster.directory) as server:
            await theirs[0].stage.wait_for(server.is_available, 60)
            for scene in theirs:
                await scene.set_up(server)
            await asyncio.to_thread(
                cluster.start_controllers, HPA_CONTROLLER, "--horizontal-pod-autoscaler-sync-period=500ms"
            )
            await wait_for(theirs, Scene.is_treated)
            for scene in theirs:
                await scene.edit()
            await wait_for(theirs, Scene.is_treated)
            await asyncio.to_thread(cluster.stop, "kube-controller-manager")
            for scene in ours:
                await scene.set_up(server)
                await treat_with_ours(scene, transport, await rules_of(client))
            return [
                (peer, await peer.statuses(), await own.statuses())
                for peer, own in zip(theirs, ours, strict=True)
            ]
    finally:
        await asyncio.to_thread(cluster.stop, "kube-controller-manager")
        await client.close()


def test_both_write_the_same_conditions_and_generations(real_cluster: RealCluster):
    real_cluster.stop("kube-controller-manager")
    for scene, theirs, ours in asyncio.run(side_by_side(real_cluster)):
        assert ours == theirs, scene.case.name
