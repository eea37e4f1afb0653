"""Copies with shards and teams: a namespace each, with a Deployment, its pods and an HPA, all of the same name."""

from collections.abc import Awaitable, Callable

from tests.scenarios.copies import TeamCopies
from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.sharing import Copy
from tests.scenarios.horizontal.stage import Stage
from tests.support.objects import NAMESPACES, NO_WINDOW, deployment, external_metric, hpa, pod
from trimtab.cluster.leases.family import Family
from trimtab.cluster.resource import DEPLOYMENTS, PODS

SHARDS = 4
PLACES = [f"team-{number}" for number in range(12)]
PODS_EACH = 3


async def team(stage: Stage, place: str, pods: int = PODS_EACH) -> None:
    """A namespace with a Deployment, its pods, and an HPA of the same name as the namespace."""
    await stage.client.create(NAMESPACES, {"metadata": {"name": place}})
    await stage.client.create(DEPLOYMENTS.untyped(), deployment(place, pods), place)
    for number in range(pods):
        await stage.client.create(PODS.untyped(), pod(f"{place}-{number}", labels={"app": place}), place)
    queue = external_metric("queue", average="100")
    version = stage.resource.api_version
    body = hpa(place, api_version=version, maxReplicas=50, metrics=[queue], behavior=NO_WINDOW)
    await stage.client.create(stage.resource.untyped(), body, place)


class Teams(TeamCopies[Copy]):
    """The copies, and the load of all teams."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(PLACES, SHARDS)
        self.stage = stage

    def add(self, name: str) -> Copy:
        return self.begin(Copy(self.stage, name, SHARDS, Family, watch_namespaces=()))

    async def pass_time(self, seconds: float) -> None:
        """Let time pass and the load move, and count at each moment how many may write for an HPA."""
        for _ in range(int(seconds * 2)):
            await self.stage.clock.sleep(0.5)
            amount = 100 * PODS_EACH + int(self.stage.clock.monotonic()) % 20
            for place in self.places:
                self.stage.metrics.set_external(place, "queue", str(amount))
            self.count_owners_of_teams()

    def decided(self, copy: Copy, since: float) -> set[str]:
        return {name for when, name in copy.writes if when >= since and name in self.places}


def selectors(copy: Copy, plural: str) -> list[str]:
    """Return the field selectors of the lists and watches of a kind, in order."""
    asked = [one for one in copy.actor.line.sent if one.method == "GET" and one.path.endswith(f"/{plural}")]
    return [dict(one.query).get("fieldSelector", "") for one in asked]


def with_teams(act: Callable[[Teams], Awaitable[None]]) -> None:
    async def scenario(stage: Stage) -> None:
        for place in PLACES:
            await team(stage, place)
        async with Teams(stage) as teams:
            await act(teams)

    play_on_lab(scenario)
