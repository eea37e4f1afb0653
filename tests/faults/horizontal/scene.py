"""What most faults need: a workload that holds its load, an operator that runs by itself, and what was seen of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from tests.scenarios.horizontal.stage import Actor, Stage
from tests.support.objects import NO_WINDOW, external_metric
from trimtab.cluster.leases.fence import Fence
from trimtab.cluster.transport import Request

EXTERNAL = "external.metrics.k8s.io"
HOLD = "False"


async def held(stage: Stage, name: str = "web", replicas: int = 5, **spec: Any) -> None:
    """A workload at its target: `replicas` pods, 100 of load each, no window to wait for."""
    await stage.bare_deployment(name, replicas)
    load(stage, replicas * 100, name)
    usual: dict[str, Any] = {"maxReplicas": 50, "metrics": [queue(name)], "behavior": NO_WINDOW}
    await stage.hpa(name, **usual | spec)


def queue(name: str = "web") -> dict[str, Any]:
    return external_metric(f"queue-{name}", average="100")


def load(stage: Stage, amount: int | str, name: str = "web") -> None:
    stage.metrics.set_external(stage.namespace, f"queue-{name}", str(amount))


@asynccontextmanager
async def working(
    stage: Stage,
    fence: Fence | None = None,
    period: float = 15,
    before: Callable[[Actor], None] = lambda _: None,
    **settings: Any,
) -> AsyncIterator[Actor]:
    """An operator that goes its rounds by itself, from after `before` on."""
    chosen = stage.settings(sync_period=timedelta(seconds=period), **settings)
    actor = Actor(stage, chosen, fence)
    before(actor)
    task = asyncio.ensure_future(actor.run())
    try:
        await stage.wait_for(lambda: _is_started(actor, task))
        yield actor
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _is_started(actor: Actor, task: asyncio.Task[None]) -> bool:
    if task.done():
        task.result()
    return actor.operator._is_started


async def becomes(stage: Stage, replicas: int, name: str = "web", within: float = 20) -> float:
    """Wait until the workload has these replicas, and return how long that took."""
    started = stage.clock.monotonic()

    async def reached() -> bool:
        return await stage.replicas(name) == replicas

    await stage.wait_for(reached, within)
    return stage.clock.monotonic() - started


def lists(actor: Actor, plural: str) -> int:
    """Return how many lists of a kind were asked for, without those of native HPAs on the same target."""
    return sum(
        one.method == "GET"
        and one.path.endswith(f"/{plural}")
        and ("watch", "true") not in one.query
        and not one.path.startswith("/apis/autoscaling/v2/")
        for one in actor.line.sent
    )


def is_watch(request: Request, plural: str = "") -> bool:
    return ("watch", "true") in request.query and request.path.endswith(plural)


def first(times: int, choose: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Return what `choose` does, for as many requests as told."""
    left = [times]

    def answer(request: Request) -> Any:
        said = choose(request) if left[0] > 0 else None
        left[0] -= said is not None
        return said

    return answer
