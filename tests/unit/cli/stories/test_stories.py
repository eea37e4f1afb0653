"""The five stories of `trimtab up` come out as they are told, in virtual time."""

from contextlib import AsyncExitStack

import pytest

from trimtab.cli.stories import STORIES, chosen
from trimtab.cli.stories.stage import Stage
from trimtab.clock import VirtualClock
from trimtab.cluster.resource import PODS
from trimtab.decide.horizontal import explain
from trimtab.operator.horizontal.kinds import OWN_HPAS
from trimtab_lab.embedded import EmbeddedCluster


def play(name, minutes, look):
    """Show one story for some minutes, and look at it every 15 seconds."""
    clock = VirtualClock()

    async def main():
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(EmbeddedCluster(clock, seed=1))
            programs = await Stage(clock, cluster).open(chosen((name,)), stack)
            seen = []
            for _ in range(minutes * 4):
                await clock.sleep(15)
                seen.append(await look(cluster, programs.horizontal))
            return seen

    return clock.run(main())


def test_only_the_workload_that_counts_by_label_scales_for_the_job():
    async def look(cluster, horizontal):
        sizes = [await cluster.replicas(f"shop-by-{how}", "same-labels") for how in ("owner", "label")]
        last = horizontal.hpas.named("same-labels", "shop-by-owner").records[-1]
        return sizes, explain(last).pods_left_out

    sizes, left_out = play("same-labels", 6, look)[-1]
    assert sizes == [2, 8]
    assert list(left_out.values()) == ["it belongs to Job/report-by-owner"]


def test_the_exercise_of_the_first_story_shrinks_within_a_minute():
    """A newcomer who counts by owner instead waited for the default window of five minutes."""
    sizes: list[int] = []

    async def look(cluster, _horizontal):
        size = await cluster.replicas("shop-by-label", "same-labels")
        if size == 8 and not sizes:
            change = {"spec": {"selectionStrategy": "OwnerReference"}}
            await cluster.client.patch(OWN_HPAS.untyped(), "shop-by-label", "same-labels", change)
        if size == 8 or sizes:
            sizes.append(size)

    play("same-labels", 4, look)
    assert sizes[:2] == [8, 8]
    assert sizes[4] == 2


def test_the_tight_tolerance_acts_where_the_default_does_not():
    async def look(cluster, _horizontal):
        return [await cluster.replicas(name, "tolerance") for name in ("api-5-percent", "api-default")]

    assert play("tolerance", 4, look)[-1] == [11, 10]


def test_the_mailer_goes_to_zero_and_comes_back():
    async def look(cluster, _horizontal):
        return await cluster.replicas("mailer", "to-zero")

    sizes = play("to-zero", 9, look)
    assert 0 in sizes
    woken = sizes[sizes.index(0) :]
    assert max(woken) > 0


def test_only_the_worker_of_the_growing_queue_scales():
    async def look(cluster, _horizontal):
        return [await cluster.replicas(name, "one-series") for name in ("images", "videos")]

    assert play("one-series", 4, look)[-1] == [6, 1]


def test_the_leader_gets_the_leaders_size_in_place():
    async def look(cluster, _horizontal):
        pods = (await cluster.client.list(PODS)).items
        leaders = [pod for pod in pods if pod.metadata.labels.get("role") == "leader"]
        return [
            (
                str(pod.spec.containers[0].resources.requests["cpu"]),
                pod.status.container_statuses[0].restart_count,
            )
            for pod in leaders
        ]

    assert play("roles", 9, look)[-1] == [("920m", 0)]


def test_every_story_has_a_file_and_a_namespace_of_its_own():
    for story in STORIES:
        namespaces = {one["metadata"]["namespace"] for one in story.objects()}
        assert namespaces == {story.name}


def test_an_unknown_story_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="no story 'nope'; there are: same-labels, tolerance"):
        chosen(("nope",))
