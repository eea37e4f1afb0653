"""A simulation recommends what the recommender on the lab recommends for the same samples."""

from tests.scenarios.vertical.conftest import play_on_lab
from tests.scenarios.vertical.stage import MINUTE, Actor, Stage
from tests.support.objects import scope, target_of, vpa
from trimtab.library.simulator.life import Life, settings_of
from trimtab.library.simulator.load import LoadByFunction
from trimtab.library.simulator.workload import SimulatedPod, Used, Workload
from trimtab.library.trace import RELATIVE_START
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope

LOOPS, MOVE_AT = 40, 20
DELAY = 1.0
"""Seconds by which samples are older than their loop. On the lab their time is cut to whole seconds."""
PODS, VPAS = ("db-0", "db-1", "db-2"), ("base", "lead")
Targets = list[dict[str, tuple[str, str] | None]]
"""Of each loop the targets of each VPA: CPU and memory."""


def leader_at(loop: int) -> str:
    return PODS[0] if loop < MOVE_AT else PODS[1]


def used_at(loop: int, pod: str) -> tuple[int, int]:
    """Return millicores and bytes, which differ by pod, role and time."""
    lift = 1 + 0.02 * loop + 0.1 * PODS.index(pod)
    cpu, memory = (1500, 7.5e9) if pod == leader_at(loop) else (200, 0.8e9)
    return round(cpu * lift), round(memory * lift)


def on_the_lab() -> Targets:
    found: Targets = []

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", len(PODS))
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("base", "db", mode="Off")
        await stage.vpa("lead", "db", scope="leader", mode="Off")
        await stage.label(PODS[0], role="leader")
        async with stage.running() as actor:
            for loop in range(LOOPS):
                await loop_on_the_lab(stage, actor, loop)
                found.append({name: await targets_of(stage, name) for name in VPAS})

    play_on_lab(scenario)
    return found


async def loop_on_the_lab(stage: Stage, actor: Actor, loop: int) -> None:
    if loop == MOVE_AT:
        await stage.label(PODS[0], role=None)
        await stage.label(PODS[1], role="leader")
    await stage.pass_time(MINUTE)
    await stage.caught_up(actor)
    for pod in PODS:
        cpu, memory = used_at(loop, pod)
        stage.metrics.use(stage.namespace, pod, cpu=f"{cpu}m", memory=str(memory))
    await actor.recommender.step()


async def targets_of(stage: Stage, name: str) -> tuple[str, str] | None:
    status = (await stage.read_vpa(name)).get("status", {})
    entries = (status.get("recommendation") or {}).get("containerRecommendations") or []
    return (entries[0]["target"]["cpu"], entries[0]["target"]["memory"]) if entries else None


def in_the_simulation() -> Targets:
    def used(pod: SimulatedPod, now: float) -> Used:
        return {"app": used_at(int((now - RELATIVE_START + DELAY) // MINUTE), pod.name)}

    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "app"}]}}
    workload = Workload("db", template, kind="StatefulSet", replicas=len(PODS), now=RELATIVE_START)
    workload.label(workload.pods[0], {"role": "leader"}, RELATIVE_START)
    bodies = [vpa("base", on=target_of("StatefulSet", "db"))]
    bodies.append(vpa("lead", on=target_of("StatefulSet", "db"), vpaScope={"name": "leader"}))
    life = Life(
        workload,
        LoadByFunction(used),
        settings_of(),
        vpas=[read(body, VerticalPodAutoscaler) for body in bodies],
        scopes=[read(scope("leader", pods={"role": "leader"}), VPAScope)],
        metrics_delay=DELAY,
    )
    life.at(MOVE_AT * MINUTE, lambda life: life.move_role(PODS[1]))
    found: Targets = []
    life.on_recommend = lambda _written: found.append({name: simulated(life, name) for name in VPAS})
    life.run((LOOPS - 1) * MINUTE)
    return found


def read(body, kind):
    metadata = {"namespace": "default", **body["metadata"]}
    return wire.convert(body | {"metadata": metadata}, kind)


def simulated(life: Life, name: str) -> tuple[str, str] | None:
    recommendation = life.vpas[f"default/{name}"].status.recommendation
    entries = recommendation.container_recommendations if recommendation is not None else ()
    return (str(entries[0].target["cpu"]), str(entries[0].target["memory"])) if entries else None


def test_simulated_targets_are_those_of_the_recommender_on_the_lab():
    lab, simulation = on_the_lab(), in_the_simulation()
    assert len(simulation) == LOOPS
    assert simulation == lab
    assert len({str(targets) for targets in lab}) > 10, "the targets move"
    assert lab[-1]["lead"] != lab[-1]["base"]
