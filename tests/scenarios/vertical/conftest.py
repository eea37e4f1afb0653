"""Each scenario runs on the lab in virtual time, and on the real kube-apiserver with `-m real`.

The pods are made by the lab's controllers and by kube-controller-manager's; on either our node agent runs them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.horizontal.workloads import Controllers
from tests.scenarios.vertical.stage import Stage
from tests.support.cluster import as_admin, opened
from tools.peers.cluster import WORKLOAD_CONTROLLERS, RealCluster
from trimtab.clock import VirtualClock
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.model.core.server_rules import KUBERNETES_1_37, ServerRules
from trimtab_lab.apiserver.server import Server

Scenario = Callable[[Stage], Awaitable[None]]
Play = Callable[[Scenario], None]


PLACES = ["lab", pytest.param("real", marks=pytest.mark.real)]


@pytest.fixture(params=PLACES)
def play(request: pytest.FixtureRequest) -> Play:
    """Play a scenario to its end on the server that this run is about, with real controllers."""
    return _player(request, is_played=False)


@pytest.fixture(params=PLACES)
def play_by_hand(request: pytest.FixtureRequest) -> Play:
    """Play a scenario whose state controllers would not leave alone: the stage makes the pods. Each user says why."""
    return _player(request, is_played=True)


def _player(request: pytest.FixtureRequest, *, is_played: bool) -> Play:
    if request.param == "lab":
        on_lab = Controllers.PLAYED if is_played else Controllers.LAB
        return lambda scenario: play_on_lab(scenario, by=on_lab)
    cluster = request.getfixturevalue("real_cluster")
    on_real = Controllers.PLAYED if is_played or not cluster.has_controllers else Controllers.REAL
    return lambda scenario: play_on_real(cluster, scenario, by=on_real)


@pytest.fixture(params=["lab", pytest.param("real", marks=pytest.mark.real)])
def play_on_sockets(request: pytest.FixtureRequest) -> Play:
    """Play a scenario in which the server calls the webhook over TLS, as a lab under the virtual clock does not."""
    if request.param == "lab":
        return _play_on_lab_in_real_time
    cluster = request.getfixturevalue("real_cluster")
    return lambda scenario: play_on_real(cluster, scenario)


@pytest.fixture
def play_lab() -> Play:
    """Play a scenario on the lab only and by hand: faults and spans of time that a real server would take too long for."""
    return play_on_lab


@pytest.fixture
def stage(clock: VirtualClock) -> AbstractAsyncContextManager[Stage]:
    """Return a stage on the lab, by hand, for tests in virtual time that a real server would take too long for."""
    return stage_on_lab(clock)


@asynccontextmanager
async def stage_on_lab(
    clock: VirtualClock, *, by: Controllers = Controllers.PLAYED, rules: ServerRules = KUBERNETES_1_37
) -> AsyncIterator[Stage]:
    async with (
        Server(clock, seed=1, rules=rules, has_controllers=by is Controllers.LAB) as server,
        opened(Stage(clock, as_admin(server), server.outbound, controlled=by)) as stage,
    ):
        yield stage


def play_on_lab(scenario: Scenario, **options: Any) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with stage_on_lab(clock, **options) as stage:
            await scenario(stage)

    clock.run(main())


def _play_on_lab_in_real_time(scenario: Scenario) -> None:
    async def main() -> None:
        clock = ShiftedClock()
        async with Server(clock, seed=1) as server, opened(Stage(clock, as_admin(server))) as stage:
            await scenario(stage)

    asyncio.run(main())


def play_on_real(cluster: RealCluster, scenario: Scenario, *, by: Controllers = Controllers.PLAYED) -> None:
    if by is Controllers.REAL:
        cluster.need_controllers(WORKLOAD_CONTROLLERS)
    else:
        cluster.stop("kube-controller-manager")

    async def main() -> None:
        clock = ShiftedClock()
        connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
        async with opened(Stage(clock, HttpTransport(clock, connection), controlled=by)) as stage:
            await scenario(stage)

    asyncio.run(main())
