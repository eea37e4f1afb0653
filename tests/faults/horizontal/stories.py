"""What happens to workloads: each story is played without a fault and once per fault."""

from typing import Any

from tests.faults.horizontal.plans import Act, Story
from tests.scenarios.horizontal.stage import Stage
from tests.support.objects import NO_WINDOW, cpu_metric, external_metric

QUEUE = external_metric("queue", average="100")


def load(amount: int) -> Act:
    async def act(stage: Stage) -> None:
        stage.metrics.set_external(stage.namespace, "queue", str(amount))

    return act


def spec(**changes: Any) -> Act:
    async def act(stage: Stage) -> None:
        await stage.edit_hpa("web", **changes)

    return act


def by_hand(replicas: int) -> Act:
    async def act(stage: Stage) -> None:
        await stage.scale("web", replicas)

    return act


def metrics_down(code: int | None) -> Act:
    async def act(stage: Stage) -> None:
        stage.metrics.fail = {"external.metrics.k8s.io": code} if code else {}

    return act


def begin(replicas: int, first: int, **hpa: Any) -> Act:
    async def act(stage: Stage) -> None:
        await stage.deployment("web", replicas)
        await load(first)(stage)
        await stage.hpa("web", **{"metrics": [QUEUE]} | hpa)

    return act


def policy(kind: str, value: int, seconds: int) -> dict[str, Any]:
    return {"policies": [{"type": kind, "value": value, "periodSeconds": seconds}]}


async def two_hpas(stage: Stage) -> None:
    await begin(2, 400, behavior=NO_WINDOW)(stage)
    await stage.hpa("other", target="web", metrics=[QUEUE])


async def without_the_other(stage: Stage) -> None:
    await stage.client.delete(stage.resource, "other", stage.namespace)


async def by_owner(stage: Stage) -> None:
    await stage.deployment("web", 2)
    await stage.pod("foreign", {"app": "web"})
    stage.use_cpu(web="50m", foreign="1")
    await stage.hpa("web", metrics=[cpu_metric(50)], behavior=NO_WINDOW, selectionStrategy="OwnerReference")


def cpu(amount: str) -> Act:
    async def act(stage: Stage) -> None:
        stage.use_cpu(web=amount)

    return act


STORIES = (
    Story("up in two steps", begin(1, 100), (load(700),)),
    Story(
        "down after a window",
        begin(7, 700, behavior={"scaleDown": {"stabilizationWindowSeconds": 60}}),
        (load(300),),
    ),
    Story(
        "to zero and back",
        begin(2, 200, minReplicas=0, behavior=NO_WINDOW),
        (load(0), load(300), load(0)),
    ),
    Story(
        "from zero because the minimum was raised",
        begin(1, 0, minReplicas=0, behavior=NO_WINDOW),
        (load(0), spec(minReplicas=2)),
    ),
    Story(
        "up by two pods per minute",
        begin(1, 100, behavior=NO_WINDOW | {"scaleUp": policy("Pods", 2, 60)}),
        (load(700),),
    ),
    Story(
        "down by half per minute",
        begin(8, 800, behavior={"scaleDown": policy("Percent", 50, 60) | {"stabilizationWindowSeconds": 0}}),
        (load(100),),
    ),
    Story("a lowered maximum", begin(8, 800), (spec(maxReplicas=5), spec(maxReplicas=10))),
    Story(
        "metrics that fail and come back", begin(2, 200), (metrics_down(503), load(500), metrics_down(None))
    ),
    Story(
        "a user who pauses it",
        begin(2, 200, minReplicas=0, behavior=NO_WINDOW),
        (by_hand(0), load(500), by_hand(1)),
        may_take_smaller_steps=True,
    ),
    Story("two on one workload", two_hpas, (load(400), without_the_other), hpas=("web",)),
    Story("counted by owner", by_owner, (cpu("90m"), cpu("20m"))),
)
