"""A day of 100 role moves on the lab: limits keep the ratio that the user wrote, nothing restarts, nothing is evicted."""

from fractions import Fraction

from tests.scenarios.horizontal.workloads import Controllers
from tests.scenarios.vertical.conftest import play_on_lab
from tests.scenarios.vertical.stage import FOLLOWER, FOLLOWER_TARGET, LEADER, LEADER_TARGET, Actor, Stage
from trimtab.cluster.resource import PODS, Json
from trimtab.model.quantity import Quantity

MOVES = 100
PAGE_CACHE = "lab.trimtab.dev/page-cache"
TEMPLATE = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "250m", "memory": "96Mi"}}
RATIOS = {"cpu": Fraction(5, 2), "memory": Fraction(3, 2)}
UNIT = {"cpu": Fraction(1, 1000), "memory": Fraction(1)}
BOUNDED = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"memory": "1200Mi", "cpu": "500m"}}]}
"""On the base VPA, so that a former leader is too large at once, as on the real node."""


async def open_day(stage: Stage) -> None:
    await stage.statefulset("db", 3, **TEMPLATE)
    await stage.scope("leader", pods={"role": "leader"})
    await stage.vpa("base", "db", resourcePolicy=BOUNDED)
    await stage.vpa("lead", "db", scope="leader")
    await move(stage, None, 0)


async def move(stage: Stage, old: int | None, new: int) -> None:
    if old is not None:
        await stage.label(f"db-{old}", role=None)
    await stage.label(f"db-{new}", role="leader")
    for index in range(3):
        amounts = {"cpu": "2", "memory": LEADER} if index == new else {"cpu": "100m", "memory": FOLLOWER}
        stage.metrics.use(stage.namespace, f"db-{index}", **amounts)


async def resources_of(stage: Stage, index: int) -> Json:
    pod = await stage.read_pod(f"db-{index}")
    found: Json = pod["spec"]["containers"][0]["resources"]
    assert pod["status"]["containerStatuses"][0]["resources"] == found, "the node carried it out"
    return found


def has_the_users_ratio(resources: Json, resource: str) -> bool:
    """Return whether the limit is the request times the template's ratio, rounded up to what can be given."""
    request, limit = (
        Fraction(Quantity.parse(resources[kind][resource]).nanos, 10**9) for kind in ("requests", "limits")
    )
    return 0 <= limit - request * RATIOS[resource] < UNIT[resource]


async def identity_of(stage: Stage) -> list[tuple[str, int]]:
    pods = [await stage.read_pod(f"db-{index}") for index in range(3)]
    return [(pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"]) for pod in pods]


def test_a_hundred_role_moves_keep_ratios_and_restart_and_evict_nothing():
    async def scenario(stage: Stage) -> None:
        await open_day(stage)
        before = await identity_of(stage)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            await stage.update(actor, 4)
            for number in range(1, MOVES + 1):
                leader = number % 3
                await move(stage, (number - 1) % 3, leader)
                await stage.update(actor, after=5)
                await stage.update(actor, 2, after=30)
                for index in range(3):
                    found = await resources_of(stage, index)
                    target = LEADER_TARGET if index == leader else FOLLOWER_TARGET
                    assert Quantity.parse(found["requests"]["memory"]).value() == target, (
                        f"db-{index}, move {number}"
                    )
                    assert all(has_the_users_ratio(found, resource) for resource in RATIOS), found
                if number % 10 == 0:
                    await stage.recommend(actor)
            assert not actor.wrote("/eviction")
        assert await identity_of(stage) == before

    play_on_lab(scenario, by=Controllers.LAB)


async def set_page_cache(stage: Stage, index: int, amount: str | None) -> None:
    note = {"metadata": {"annotations": {PAGE_CACHE: amount}}}
    await stage.client.patch(PODS, f"db-{index}", stage.namespace, note)


async def look(stage: Stage, actor: Actor, seconds: float) -> None:
    """Let time pass and the updater look, whether resizes are carried out or wait."""
    await stage.pass_time(seconds)
    await stage.clock.sleep(3)
    await stage.caught_up(actor)
    await actor.updater.step()
    await stage.clock.sleep(3)


def test_a_former_leader_with_page_cache_shrinks_as_far_as_it_can_and_is_not_evicted():
    """F1: on the real node the move of a role ended in an eviction, two loops later."""

    async def scenario(stage: Stage) -> None:
        await open_day(stage)
        before = await identity_of(stage)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            await stage.update(actor, 4)
            for index in range(3):
                await set_page_cache(stage, index, "4Gi")
            for number in range(1, 13):
                await move(stage, (number - 1) % 3, number % 3)
                for _ in range(5):
                    await look(stage, actor, 30)
                former = await resources_of(stage, (number - 1) % 3)
                assert Quantity.parse(former["requests"]["memory"]).value() == FOLLOWER_TARGET, (
                    "requests first"
                )
                assert has_the_users_ratio(former, "cpu"), "what is not memory does not wait"
                assert not has_the_users_ratio(former, "memory"), "the limit is in use"
            told = {reason: message for reason, _, message in await stage.events(actor)}
            assert "below current usage" in told["InPlaceResizeRefused"]
            for index in range(3):
                await set_page_cache(stage, index, None)
            for _ in range(75):
                await look(stage, actor, 60)
            for index in range(3):
                assert has_the_users_ratio(await resources_of(stage, index), "memory"), (
                    "tried again, and done"
                )
            assert not actor.wrote("/eviction")
        assert await identity_of(stage) == before

    play_on_lab(scenario, by=Controllers.LAB)
