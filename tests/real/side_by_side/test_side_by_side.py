"""kube-controller-manager's HPA controller and ours, on one real API server, from one trace: the same replicas.

The peer goes first, at its own pace. Then it is stopped, because two controllers on one object fight, and ours drives
an identical set of workloads with the peer's syncs as its clock: the moments at which the peer decided, from its log.
"""

import asyncio
import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.real.side_by_side.lanes import LANES, Lane
from tests.real.side_by_side.metrics_server import Course, TraceServer
from tests.real.side_by_side.peer_log import decided_at
from tests.scenarios.horizontal.stage import Stage
from tools.peers.cluster import HPA_CONTROLLER, RealCluster
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.resource import DEPLOYMENTS
from trimtab.cluster.transport import Request, Transport
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.runtime import Runtime

pytestmark = pytest.mark.real

TRACE = json.loads(Path(__file__).with_name("trace.json").read_text())["points"]
PERIOD, WINDOW = "250ms", 10
GATES = "HPAScaleToZero=true,HPAConfigurableTolerance=true"
PATIENCE_SECONDS = 200
"""The machine may be busy, and the peer is paused."""
PAUSE_SECONDS = 0.6
"""More than two syncs."""
MOST_APART = 3
"""Of 120 syncs of a lane, how many may fall on the other side of the end of a period."""


class PeersClock(SystemClock):
    """The moments at which the peer synced; sleeping is real."""

    def __init__(self, start: float) -> None:
        self.moment = start

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.moment, UTC)

    def monotonic(self) -> float:
        return self.moment


async def rules_of(client: Client) -> str:
    """Return the `--compat` that names the server's version, which is the peer's."""
    answer = await client.sender.send_once("reading the version", Request("GET", "/version"))
    version = json.loads(answer.body)
    return f"kubernetes-{version['major']}.{version['minor']}"


class Track:
    """One lane under one autoscaler."""

    def __init__(self, lane: Lane, transport: Transport, *, is_peers: bool) -> None:
        self.lane = lane
        self.stage = Stage(SystemClock(), transport, native=True, prunes=True)
        self._transport = transport
        self.course = Course(TRACE, self.replicas, lane.fails, lane.pods, self.follow if is_peers else None)

    async def replicas(self) -> tuple[int, int]:
        found = await self.stage.client.get(DEPLOYMENTS.untyped(), "web", self.stage.namespace)
        return found["spec"]["replicas"], found.get("status", {}).get("replicas", 0)

    async def set_up(self, server: TraceServer) -> None:
        await self.stage.open()
        server.courses[self.stage.namespace] = self.course
        if self.lane.pods:
            await self.stage.deployment("web", self.lane.pods)
            await self.stage.scale("web", self.lane.replicas)
            await self.stage.set_status("web", self.lane.replicas)
        else:
            await self.stage.bare_deployment("web", self.lane.replicas)
        await self.stage.hpa("web", **self.lane.spec)

    async def follow(self) -> None:
        """Let the status follow the scale."""
        replicas, running = await self.replicas()
        if replicas != running:
            await self.stage.set_status("web", replicas)

    async def replay(self, peer: Course, moments: list[float], compat: str) -> None:
        """Drive the workload with ours, one round per sync of the peer, with as many replicas running as it saw."""
        clock = PeersClock(moments[0])
        settings = self.stage.settings(
            feature_gates=GATES, compat=compat, downscale_stabilization=timedelta(seconds=WINDOW)
        )
        # Not the stage's client, which answers metrics itself: ours asks the aggregator, as the peer does.
        client = Client(SystemClock(), self._transport)
        operator = HpaController(Runtime(clock, client, settings), config=decision_config(settings))
        await operator.start()
        try:
            known = (-1, -1)
            for moment, running in zip(moments, peer.running, strict=True):
                clock.moment = moment
                asked_for = await self.stage.replicas("web")
                if known != (asked_for, running):
                    known = (asked_for, running)
                    await self.stage.set_status("web", running)
                    await self.stage.caught_up(operator)
                await operator.step()
        finally:
            await operator.close()
            await operator.runtime.close()


def pause(cluster: RealCluster) -> None:
    """Stop the peer for some syncs, as a busy machine does, between an answer and the decision on it."""
    pid = cluster.pid_of("kube-controller-manager")
    os.kill(pid, signal.SIGSTOP)
    asyncio.get_running_loop().call_later(PAUSE_SECONDS, os.kill, pid, signal.SIGCONT)


async def side_by_side(cluster: RealCluster) -> tuple[list[Track], list[Track]]:
    clock = SystemClock()
    transport = HttpTransport(clock, load_kubeconfig(clock, str(cluster.kubeconfig), environ={}))
    client = Client(clock, transport)
    theirs = [Track(lane, transport, is_peers=True) for lane in LANES]
    ours = [Track(lane, transport, is_peers=False) for lane in LANES]
    compat = await rules_of(client)
    try:
        async with TraceServer(client, cluster.directory) as server:
            await theirs[0].stage.wait_for(server.is_available, 60)
            for track in theirs:
                await track.set_up(server)
            await asyncio.to_thread(
                cluster.start_controllers,
                HPA_CONTROLLER,
                f"--horizontal-pod-autoscaler-sync-period={PERIOD}",
                f"--horizontal-pod-autoscaler-downscale-stabilization={WINDOW}s",
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
                "--v=4",
                "--logging-format=json",
            )
            for track in theirs:
                track.course.hold_up = lambda: pause(cluster)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await asyncio.gather(*(track.course.done.wait() for track in theirs))
            await asyncio.to_thread(cluster.stop, "kube-controller-manager")
            log = (cluster.directory / "kube-controller-manager.log").read_text()
            for track in ours:
                await track.set_up(server)
            await asyncio.gather(
                *(
                    track.replay(
                        peer.course, decided_at(log, peer.stage.namespace, peer.course.asked_at), compat
                    )
                    for track, peer in zip(ours, theirs, strict=True)
                )
            )
    finally:
        await asyncio.to_thread(cluster.stop, "kube-controller-manager")
        await client.close()
    return theirs, ours


def unexplained(theirs: list[int], ours: list[int]) -> list[str]:
    """Return where the two differ by more than the moment at which a window or a period ends.

    Both remember moments, not syncs. The peer dates a scale after it was written and ours when it was decided, so what
    leaves a period between two syncs may do so one sync earlier or later. Ours then equals the peer's neighbouring sync,
    give or take the one replica by which the load changed in between.
    """

    def is_near(number: int) -> bool:
        around = theirs[max(number - 1, 0) : number + 2]
        return min(around) - 1 <= ours[number] <= max(around) + 1

    return [
        f"sync {number} (load {TRACE[number]['load']}): theirs {one}, ours {other}"
        for number, (one, other) in enumerate(zip(theirs, ours, strict=True))
        if one != other and not is_near(number)
    ]


@pytest.mark.xfail(
    reason="issue 37: ours holds a size longer since memories have times of their own", strict=False
)
def test_both_set_the_same_replicas_at_every_sync(real_cluster: RealCluster, record_property):
    real_cluster.stop("kube-controller-manager")
    theirs, ours = asyncio.run(side_by_side(real_cluster))
    for peer, own in zip(theirs, ours, strict=True):
        wanted, got = peer.course.series[: len(TRACE)], own.course.series[: len(TRACE)]
        record_property(peer.lane.name, f"{wanted}; ours {got}")
        assert not unexplained(wanted, got), peer.lane.name
        different = sum(one != other for one, other in zip(wanted, got, strict=True))
        record_property(f"{peer.lane.name}: syncs apart", different)
        assert different <= MOST_APART, peer.lane.name
        assert len(set(wanted)) > 3, f"{peer.lane.name}: the trace moved nothing"
