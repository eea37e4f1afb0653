"""History at start: VPAs wait for it, nobody waits for others, and without Prometheus there are checkpoints."""

import asyncio
import json
from urllib.parse import parse_qs

from tests.scenarios.vertical.stage import FOLLOWER, FOLLOWER_TARGET, LEADER, LEADER_TARGET, Stage
from tests.support.clock import in_virtual_time
from trimtab.cluster.errors import TransportError
from trimtab.cluster.transport import Request, Response
from trimtab.metrics.prometheus import PrometheusClient
from trimtab.metrics.usage_history import SeriesNames, Span, UsageHistoryReader
from trimtab.operator.vertical.recommender.history_loader import HistoryLoader

HOUR = 3600.0
BYTES = {LEADER: 8e9, FOLLOWER: 1e9}


class Prometheus:
    """As much of one as is asked: it kept the usage and labels of pods, hour by hour, from the beginning."""

    def __init__(self, memory: dict[str, float], roles: dict[str, str]) -> None:
        self.memory, self.roles = memory, roles
        self.asked = 0
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.is_dead = False

    async def request(self, request: Request) -> Response:
        self.asked += 1
        if self.is_dead:
            raise TransportError("connection refused")
        await self.is_open.wait()
        form = {key: values[0] for key, values in parse_qs((request.body or b"").decode()).items()}
        data = {"resultType": "matrix", "result": list(self._series(form))}
        return Response(200, {}, json.dumps({"status": "success", "data": data}).encode())

    def _series(self, form):
        start, end, step = (float(form[name]) for name in ("start", "end", "step"))
        moments = [start + place * step for place in range(int((end - start) / step) + 1)]
        for pod, amount in self.memory.items():
            value = "0.1" if "cpu" in form["query"] else str(amount)
            labels = {"pod_name": pod, "name": "app"}
            if "(up{" in form["query"]:
                labels = {"kubernetes_pod_name": pod, "pod_label_app": "db"}
                if role := self.roles.get(pod):
                    labels["pod_label_role"] = role
            yield {"metric": labels, "values": [[at, value] for at in moments]}

    def stream(self, request: Request):
        raise NotImplementedError

    async def close(self) -> None:
        pass


def loader(stage: Stage, prometheus: Prometheus) -> HistoryLoader:
    client = PrometheusClient(stage.clock, prometheus, deadline=300)
    return HistoryLoader(stage.clock, UsageHistoryReader(client, SeriesNames(), Span()))


async def database(stage: Stage) -> Prometheus:
    await stage.statefulset("db", 3)
    await stage.scope("leader", pods={"role": "leader"})
    await stage.vpa("base", "db")
    await stage.vpa("lead", "db", scope="leader")
    memory = {"db-0": BYTES[FOLLOWER], "db-1": BYTES[FOLLOWER], "db-2": BYTES[LEADER]}
    return Prometheus(memory, {"db-2": "leader"})


@in_virtual_time
async def test_a_role_knows_its_past_from_the_first_loop_though_nobody_plays_it_now(stage):
    prometheus = await database(stage)
    async with stage.running(history=loader(stage, prometheus)) as actor:
        await actor.recommender.step()
        await stage.clock.sleep(1)
        await actor.recommender.step()
        assert (await stage.target("lead"), await stage.target("base")) == (
            LEADER_TARGET,
            FOLLOWER_TARGET,
        )
        assert "FetchingHistory" not in await stage.conditions("lead")
        assert actor.count("trimtab_recommender_history_samples_total") == 2 * 3 * 192
        assert actor.count("trimtab_recommender_history_namespaces", state="read") == 1
        assert prometheus.asked == 3
        await stage.recommend(actor, 2)
        assert prometheus.asked == 3


@in_virtual_time
async def test_while_history_is_read_its_vpas_say_so_and_keep_what_they_had(stage):
    prometheus = await database(stage)
    prometheus.is_open.clear()
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=FOLLOWER)
    async with stage.running(history=loader(stage, prometheus)) as actor:
        await stage.recommend(actor)
        assert (await stage.conditions("lead")) == {"FetchingHistory": "True"}
        assert await stage.target("lead") is None
        assert await stage.checkpoints() == {}
        prometheus.is_open.set()
        await stage.recommend(actor)
        assert await stage.target("lead") == LEADER_TARGET
        assert "FetchingHistory" not in await stage.conditions("lead")


@in_virtual_time
async def test_a_loop_is_not_waited_for_once_history_is_there(stage: Stage):
    prometheus = await database(stage)
    async with stage.running(history=loader(stage, prometheus)) as actor:
        began = stage.clock.monotonic()
        running = asyncio.ensure_future(actor.recommender.run())

        async def is_there() -> bool:
            return await stage.target("lead") == LEADER_TARGET

        await stage.wait_for(is_there)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert stage.clock.monotonic() - began < 10


async def _with_checkpoints(stage: Stage) -> Prometheus:
    """A database that an earlier process has watched and saved, without any Prometheus."""
    prometheus = await database(stage)
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=LEADER)
    await stage.label("db-2", role="leader")
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        # The day's memory peak is saved once the day is over.
        await stage.recommend(actor, after=25 * HOUR)
    assert await stage.target("lead") == LEADER_TARGET
    return prometheus


@in_virtual_time
async def test_an_unreachable_prometheus_is_told_and_checkpoints_do(stage):
    prometheus = await _with_checkpoints(stage)
    prometheus.is_dead = True
    stage.use(db_2=FOLLOWER)
    async with stage.running(history=loader(stage, prometheus)) as actor:
        await stage.recommend(actor)
        await stage.clock.sleep(60)
        await stage.recommend(actor)
        assert await stage.target("lead") == LEADER_TARGET
        told = [event for event in await stage.events(actor) if event[0] == "HistoryUnavailable"]
        assert {event[1] for event in told} == {"base", "lead"}
        assert "connection refused" in told[0][2]
        assert actor.count("trimtab_recommender_history_namespaces", state="failed") == 1
        assert not any("history" in problem for problem in actor.recommender.health())


@in_virtual_time
async def test_a_prometheus_that_hangs_is_left_after_its_time_and_what_it_told_is_not_counted_twice(stage):
    prometheus = await _with_checkpoints(stage)
    prometheus.is_open.clear()
    async with stage.running(history=loader(stage, prometheus)) as actor:
        await stage.recommend(actor)
        assert (await stage.conditions("lead"))["FetchingHistory"] == "True"
        assert await stage.target("lead") == LEADER_TARGET
        await stage.clock.sleep(301)
        await stage.recommend(actor)
        assert "FetchingHistory" not in await stage.conditions("lead")
    prometheus.is_open.set()
    async with stage.running(history=loader(stage, prometheus)) as actor:
        await actor.recommender.step()
        await stage.clock.sleep(1)
        await actor.recommender.step()
        lead = f"{stage.namespace}/lead"
        model = actor.recommender.model_of(lead)
        assert model is not None
        assert not model.vpas[lead].initial
