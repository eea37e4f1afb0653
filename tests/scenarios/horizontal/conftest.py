"""Each scenario runs on the lab in virtual time, and on the real kube-apiserver with `-m real`.

On either it is played with our own HPAs and with native ones, which carry their memory in an annotation.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from tests import reasons
from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.horizontal.stage import Stage
from tests.scenarios.horizontal.workloads import Controllers
from tests.support.cluster import as_admin, opened
from tools.peers.cluster import WORKLOAD_CONTROLLERS, RealCluster
from trimtab.clock import VirtualClock
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.model.core.server_rules import KUBERNETES_1_37, ServerRules
from trimtab.model.feature_gates import FeatureGates
from trimtab.operator.horizontal import reconciler, viewer
from trimtab_lab.apiserver.server import LAB_GATES, Server

Scenario = Callable[[Stage], Awaitable[None]]
Play = Callable[[Scenario], None]

PLACES = [
    "lab",
    "lab native",
    pytest.param("real", marks=pytest.mark.real),
    pytest.param("real native", marks=pytest.mark.real),
]


@pytest.fixture(autouse=True)
def right_reasons(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check the reason and the advice of every decision that a scenario makes."""
    ledger = reasons.Ledger()
    for module in (viewer, reconciler):
        monkeypatch.setattr(module, "decide", ledger.decide)
    yield
    assert not ledger.wrong, ledger.wrong[0]


@pytest.fixture(params=PLACES)
def play(request: pytest.FixtureRequest) -> Play:
    """Play a scenario on the server and with the kind of HPA that this run is about, with real controllers.

    On the lab these are the lab's, in virtual time; on the real server kube-controller-manager's. On either our node
    agent runs the pods.
    """
    return _player(request, is_played=False)


@pytest.fixture(params=["lab", pytest.param("real", marks=pytest.mark.real)])
def play_own(request: pytest.FixtureRequest) -> Play:
    """Play a scenario as `play` does, with our own HPAs only: it is about a field that native ones have not."""
    return _player(request, is_played=False)


@pytest.fixture(params=PLACES)
def play_by_hand(request: pytest.FixtureRequest) -> Play:
    """Play a scenario whose state controllers would not leave alone: the stage makes the pods. Each user says why."""
    return _player(request, is_played=True)


def _player(request: pytest.FixtureRequest, *, is_played: bool) -> Play:
    native = request.param.endswith("native")
    if request.param.startswith("lab"):
        by = Controllers.PLAYED if is_played else Controllers.LAB
        return lambda scenario: play_on_lab(scenario, native=native, by=by)
    cluster = request.getfixturevalue("real_cluster")
    by = Controllers.PLAYED if is_played or not cluster.has_controllers else Controllers.REAL
    return lambda scenario: play_on_real(cluster, scenario, native=native, by=by)


@pytest.fixture(params=["own", "native"])
def play_lab(request: pytest.FixtureRequest) -> Play:
    """Play a scenario on the lab only: faults and plans that a real server would take too long for."""
    return lambda scenario: play_on_lab(scenario, native=request.param == "native")


@pytest.fixture(params=["own", "native"])
def stage(request: pytest.FixtureRequest, clock: VirtualClock) -> AbstractAsyncContextManager[Stage]:
    """Return a stage on the lab, for tests in virtual time that a real server would take too long for."""
    return stage_on_lab(clock, native=request.param == "native")


@asynccontextmanager
async def stage_on_lab(
    clock: VirtualClock,
    *,
    native: bool = False,
    gates: FeatureGates = LAB_GATES,
    rules: ServerRules = KUBERNETES_1_37,
    by: Controllers = Controllers.PLAYED,
) -> AsyncIterator[Stage]:
    has_controllers = by is Controllers.LAB
    async with Server(clock, seed=1, gates=gates, rules=rules, has_controllers=has_controllers) as server:
        stage = Stage(clock, as_admin(server), native=native, controlled=by)
        stage.server = server
        async with opened(stage):
            yield stage


def play_on_lab(scenario: Scenario, **options: Any) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with stage_on_lab(clock, **options) as stage:
            await scenario(stage)

    clock.run(main())


def play_on_real(
    cluster: RealCluster, scenario: Scenario, *, native: bool = False, by: Controllers = Controllers.PLAYED
) -> None:
    if by is Controllers.REAL:
        cluster.need_controllers(WORKLOAD_CONTROLLERS)
    else:
        cluster.stop("kube-controller-manager")

    async def main() -> None:
        clock = ShiftedClock()
        connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
        transport = HttpTransport(clock, connection)
        async with opened(Stage(clock, transport, native=native, prunes=True, controlled=by)) as stage:
            await scenario(stage)

    asyncio.run(main())
