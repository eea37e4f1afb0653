"""A dashboard beside a real operator's HPAs on the lab: live records, and the reader that never writes."""

from tests.dashboard.asking import app_of, entered
from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.stage import Stage
from tests.support.objects import external_metric
from trimtab.cluster.errors import Unreachable
from trimtab.cluster.leases.fence import ClosedFence
from trimtab.dashboard import dashboard_for
from trimtab.dashboard.read_only import ReadOnlyDecider
from trimtab.dashboard.sources.cluster_health import ClusterConnection


async def busy(stage: Stage) -> None:
    await stage.bare_deployment("web", 3)
    stage.metrics.set_external(stage.namespace, "load", "600")
    await stage.hpa("web", maxReplicas=20, metrics=[external_metric("load", average="100")])


async def row_of(app):
    browser = await entered(app)
    app.refresh()
    return (await browser.get("/api/overview")).json()["horizontal"][0]


def test_the_running_operators_decisions_are_shown():
    async def scenario(stage: Stage) -> None:
        await busy(stage)
        async with stage.running() as actor:
            app = dashboard_for(stage.clock, actor.operator.hpas)
            assert (await row_of(app))["state"] == "waiting"
            await stage.step(actor)
            row = await row_of(app)
            assert (row["current"], row["desired"], row["state"]) == (3, 6, "scaling")

    play_on_lab(scenario)


def test_a_read_only_decider_decides_alike_and_writes_nothing():
    async def scenario(stage: Stage) -> None:
        await busy(stage)
        async with stage.running(fence=ClosedFence()) as actor:
            decider = ReadOnlyDecider(stage.clock, actor.operator, ClosedFence(), 15.0)
            app = dashboard_for(stage.clock, actor.operator.hpas)
            await decider.step()
            row = await row_of(app)
            assert (row["current"], row["desired"], row["isDryRun"]) == (3, 6, False)
            assert [one.method for one in actor.line.sent if one.method != "GET"] == []
            assert await stage.replicas("web") == 3

    play_on_lab(scenario)


def test_a_read_only_decider_goes_by_what_the_operator_remembers():
    async def scenario(stage: Stage) -> None:
        await busy(stage)
        async with stage.running() as acting, stage.running(fence=ClosedFence()) as looking:
            await stage.step(acting)
            await stage.follow("web")
            stage.metrics.set_external(stage.namespace, "load", "100")
            await stage.step(acting, after=15)
            await stage.clock.sleep(1)  # virtual: until the watches have told
            await ReadOnlyDecider(stage.clock, looking.operator, ClosedFence(), 15.0).step()
            mine, theirs = (one.operator.hpas.named(stage.namespace, "web") for one in (looking, acting))
            assert mine is not None
            assert theirs is not None
            assert mine.records[-1].decision.desired == theirs.records[-1].decision.desired == 6

    play_on_lab(scenario)


def test_a_cluster_that_is_lost_during_a_decision_leaves_the_last_decision():
    """The cluster answered the probe, and was gone when the metrics were fetched: "no metric can be read" was shown."""

    async def scenario(stage: Stage) -> None:
        await busy(stage)
        async with stage.running(fence=ClosedFence()) as actor:
            connection = ClusterConnection(stage.clock, actor.client)
            decider = ReadOnlyDecider(
                stage.clock, actor.operator, ClosedFence(), 15.0, connection.is_answering
            )
            await decider.step()
            actor.line.answer = lambda request: Unreachable(f"{request}: cannot connect")
            await decider.step()
            hpa_state = actor.operator.hpas.named(stage.namespace, "web")
            assert hpa_state is not None
            assert [record.decision.desired for record in hpa_state.records] == [6]
            assert connection.problem

    play_on_lab(scenario)


async def test_a_dashboard_without_anything_to_show_says_so():
    browser = await entered(app_of())
    assert (await browser.get("/api/overview")).json()["horizontal"] == []
