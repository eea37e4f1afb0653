"""What `trimtab up` says about each story happens, at both ends of a change of leaders."""

import re

import pytest

from tests.firstrun.test_stories_are_true import stories
from trimtab.cli.stories import STORIES
from trimtab.clock import VirtualClock
from trimtab.cluster.resource import PODS
from trimtab_lab.controllers.kinds import DEPLOYMENTS

SIZES = {
    "shop-by-label": 8,
    "shop-by-owner": 2,
    "api-5-percent": 11,
    "api-default": 10,
    "images": 6,
    "videos": 1,
}


async def replicas(cluster):
    found = (await cluster.client.list(DEPLOYMENTS)).items
    return {one.metadata.name: one.spec.replicas for one in found}


async def sizes_by_role(cluster):
    """Return the requested CPU of each role, as often as pods have it."""
    found = [pod for pod in (await cluster.client.list(PODS)).items if pod.metadata.namespace == "roles"]
    return sorted(
        (pod.metadata.labels["role"], str(pod.spec.containers[0].resources.requests["cpu"])) for pod in found
    )


def test_each_story_happens():
    """All pods that had led kept the leader's size, so that after half an hour every pod of db had it."""
    clock = VirtualClock()

    async def main():
        async with stories(clock, 0.005) as (cluster, _horizontal):
            await clock.sleep(240)
            early, asleep = await replicas(cluster), False
            for _ in range(30):
                await clock.sleep(10)
                asleep = asleep or (await replicas(cluster))["mailer"] == 0
            found = []
            for _ in range(3):
                await clock.sleep(600)
                found.append(await sizes_by_role(cluster))
            return early, asleep, await replicas(cluster), found

    early, asleep, late, found = clock.run(main())
    assert SIZES.items() <= early.items()
    assert SIZES.items() <= late.items()
    assert asleep
    for roles in found:
        assert [role for role, _cpu in roles] == ["follower", "follower", "leader"]
        follower, other, leader = (int(cpu.removesuffix("m")) for _role, cpu in roles)
        assert follower == other < 200
        assert leader > 800


@pytest.mark.parametrize(("speed", "spans"), [(1, "1 min of every 5 min"), (60, "1 s of every 5 s")])
def test_spans_are_those_of_the_user(speed, spans):
    """At 60x a story promised a burst every five minutes, and there was one every five seconds."""
    (story,) = (story for story in STORIES if story.name == "to-zero")
    assert spans in story.see(speed)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_every_span_of_a_story_is_translated(story):
    assert not re.search(r"[{}]|[0-9]+ (s|min|seconds|minutes)\b", re.sub(r"\{[0-9]+ s\}", "", story.look))
