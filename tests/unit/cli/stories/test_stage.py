"""What a newcomer finds when `trimtab up` says that it is up, in virtual time."""

from contextlib import AsyncExitStack

from trimtab.cli.stories import STORIES
from trimtab.cli.stories.stage import PAST_SECONDS, Stage
from trimtab.clock import VirtualClock
from trimtab.cluster.resource import CORE_EVENTS
from trimtab.lab.embedded import EmbeddedCluster
from trimtab.model.hpa.types import ConditionType
from trimtab.operator.horizontal.inputs.kinds import OWN_HPAS


def watch(seconds, look, period=1.0):
    """Open all stories, and return what `look` sees every second from then on."""
    clock = VirtualClock()

    async def main():
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(EmbeddedCluster(clock, seed=1))
            began = clock.monotonic()
            stage = Stage(clock, cluster)
            await stage.open(STORIES, stack)
            opened = clock.monotonic() - began
            seen = [await look(stage, cluster)]
            for _ in range(int(seconds / period)):
                await clock.sleep(period)
                seen.append(await look(stage, cluster))
            return opened, seen

    return clock.run(main())


def test_every_autoscaler_has_decided_when_it_is_up_and_never_fails_to():
    """The first screen said `no metric can be read`, and both VPAs had no pods for a minute."""

    async def look(stage, _cluster):
        return {
            (row["namespace"], row["name"]): (row.get("active"), row["reason"]) for row in await stage.rows()
        }

    _, seen = watch(120, look)
    assert len(seen[0]) == 9
    for states in seen:
        assert {active for active, _ in states.values()} == {"True", None}
        assert {reason for active, reason in states.values() if active is None} == {"RecommendationProvided"}


def test_the_start_leaves_no_warning_behind():
    async def look(_stage, cluster):
        events = (await cluster.client.list(CORE_EVENTS)).items
        assert events
        return [(event["reason"], event["message"]) for event in events if event["type"] == "Warning"]

    assert watch(300, look, period=60)[1] == [[]] * 6


def test_the_past_of_the_clock_is_long_enough_for_the_start():
    """What does not fit into the past of the clock is waited for in real time."""

    async def look(_stage, cluster):
        hpas = (await cluster.client.list(OWN_HPAS)).items
        return [hpa.status.condition(ConditionType.SCALING_ACTIVE).status for hpa in hpas]

    opened, (statuses,) = watch(0, look)
    assert set(statuses) == {"True"}
    assert opened <= PAST_SECONDS
