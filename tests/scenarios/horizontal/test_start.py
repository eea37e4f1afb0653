"""How a process starts: few requests, no waiting for a period, and the first decisions at once."""

import asyncio

from tests.scenarios.horizontal.bodies import cpu_metric
from tests.scenarios.horizontal.stage import Actor, Stage

WORKLOADS = 6
MOST_REQUESTS = 10
"""Two of discovery; lists and watches of pods, HPAs and Deployments; the versions of metrics.k8s.io and one list."""


async def made(stage: Stage) -> None:
    for number in range(WORKLOADS):
        await stage.deployment(f"web-{number}", 2)
        await stage.hpa(f"web-{number}", metrics=[cpu_metric(50)], minReplicas=1, maxReplicas=9)
    stage.use_cpu(**{f"web_{number}": "90m" for number in range(WORKLOADS)})


def test_the_first_decisions_come_at_once_after_few_requests(play_lab):
    async def scenario(stage: Stage) -> None:
        await made(stage)
        actor = Actor(stage, stage.settings())
        began = stage.clock.monotonic()
        running = asyncio.ensure_future(actor.run())
        try:
            while len(actor.line.writes) < WORKLOADS:
                await stage.clock.sleep(0.01)
        finally:
            running.cancel()
            await asyncio.wait([running])
        assert stage.clock.monotonic() - began < 1.0
        first = next(place for place, one in enumerate(actor.line.sent) if one.method != "GET")
        most = MOST_REQUESTS + stage.native  # who else writes to native HPAs is asked once
        assert first <= most, [str(one) for one in actor.line.sent[:first]]

    play_lab(scenario)


def test_each_kind_is_listed_once(play_lab):
    """Native HPAs are listed twice: who wrote to them is asked once, and not kept in the cache."""

    async def scenario(stage: Stage) -> None:
        await made(stage)
        async with stage.running() as actor:
            await stage.step(actor, after=0)
            for plural in ("/pods", "/deployments", "/horizontalpodautoscalers"):
                lists = [
                    one
                    for one in actor.line.sent
                    if one.path.endswith(plural)
                    and "metrics.k8s.io" not in one.path
                    and ("watch", "true") not in one.query
                ]
                times = 2 if stage.native and plural == "/horizontalpodautoscalers" else 1
                assert len(lists) == times, [str(one) for one in lists]

    play_lab(scenario)
