"""Which fence a process writes behind."""

from typing import Any

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.leases.family import Family
from trimtab.cluster.leases.fence import ClosedFence, Fence, NoFence
from trimtab.operator.operator import Operator
from trimtab.operator.settings.settings import Settings
from trimtab_lab.apiserver.server import Server


def fenced(components: tuple[str, ...], settings: dict[str, Any]) -> tuple[Operator, Fence]:
    """Return an operator with its fence."""
    clock = VirtualClock()
    unused: Any = None

    async def main() -> tuple[Operator, Fence]:
        async with Server(clock, seed=1) as server:
            client = Client(clock, InProcessTransport(server), seed=1)
            made = Operator(
                clock,
                client,
                Settings.of(components=components, **settings),
                beside={"dashboard": unused, "other": unused},
            )
            return made, await made._fence()

    return clock.run(main())


@pytest.mark.parametrize(
    ("components", "settings", "fence"),
    [
        pytest.param(("dashboard",), {}, ClosedFence, id="only readers"),
        pytest.param(("dashboard", "other"), {}, ClosedFence, id="two readers"),
        pytest.param(("horizontal", "dashboard"), {}, Family, id="a writer and a reader"),
        pytest.param(("updater",), {}, Family, id="a writer"),
        pytest.param(("horizontal", "dashboard"), {"leader_elect": False}, NoFence, id="one replica"),
        pytest.param(("recommender", "dashboard"), {"shards": 3}, Family, id="shards"),
    ],
)
def test_only_a_process_without_writers_is_fenced_for_good(components, settings, fence):
    """A writer beside the dashboard must be able to lead."""
    assert type(fenced(components, settings)[1]) is fence


@pytest.mark.parametrize(
    ("components", "settings", "is_published"),
    [
        pytest.param(("horizontal",), {"leader_elect": False}, True, id="one replica"),
        pytest.param(("horizontal", "dashboard"), {"leader_elect": False}, True, id="with a reader"),
        pytest.param(
            ("admission", "updater"), {"leader_elect": False}, True, id="beside an unexplained loop"
        ),
        pytest.param(("admission",), {"leader_elect": False}, False, id="nothing to explain"),
        pytest.param(("dashboard",), {"leader_elect": False}, False, id="only readers"),
        pytest.param(("horizontal",), {}, False, id="the elected leader's Lease has them"),
    ],
)
def test_settings_are_published_by_a_lease_of_their_own_without_an_election(
    components, settings, is_published
):
    made, _ = fenced(components, settings)
    assert (made._publisher is not None) is is_published


@pytest.mark.parametrize(
    ("components", "is_shared"),
    [(("horizontal", "updater"), True), (("updater", "roles"), True), (("updater", "dashboard"), False)],
)
def test_shards_need_one_loop_that_can_be_shared(components, is_shared):
    if is_shared:
        assert isinstance(fenced(components, {"shards": 2})[1], Family)
    else:
        with pytest.raises(ValueError, match="--shards: nothing of updater, dashboard is shared out"):
            fenced(components, {"shards": 2})


@pytest.mark.parametrize(
    ("components", "named"),
    [(("horizontal", "vertical"), "'vertical'"), ((), "an empty list"), (("moon", "updater"), "'moon'")],
)
def test_a_component_that_is_not_known_is_refused_with_those_that_are(components, named):
    with pytest.raises(
        ValueError, match=f"--components: {named} is not known; known are horizontal, .*, other"
    ):
        fenced(components, {})
