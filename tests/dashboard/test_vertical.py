"""The page of a VPA, from a recommender and an updater that really ran."""

import asyncio

from tests.dashboard.asking import EVERYTHING
from tests.dashboard.roles import play
from tests.scenarios.vertical.stage import LEADER_TARGET
from trimtab.clock import VirtualClock
from trimtab.cluster.resource import CORE_EVENTS
from trimtab.dashboard import OperatorVertical, RemoteState
from trimtab.dashboard.sources import remote, vertical
from trimtab.dashboard.sources.remote import PREVIEW_SECONDS
from trimtab.dashboard.web.http import encode_json
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.settings.published import FoundSettings
from trimtab.operator.settings.settings import Settings


def test_the_role_its_histogram_and_its_numbers_are_shown():
    async def look(stage, source):
        page = await source.page(f"vpa/{stage.namespace}/lead", EVERYTHING)
        assert page.row.scope == "pods with role=leader"
        assert (page.row.state, page.level) == ("steady", 1)
        memory = next(one for one in page.amounts if one.resource == "memory")
        assert (memory.target, memory.unit, memory.samples > 0) == (LEADER_TARGET, "bytes", True)
        assert abs(sum(bar.weight for bar in memory.histogram) - 1) < 1e-9
        heaviest = max(memory.histogram, key=lambda bar: bar.weight)
        assert heaviest.start <= 8e9 <= heaviest.end
        assert any(text.startswith("target: ") for text in memory.reasons)
        assert (memory.upper, memory.upper_text) == (None, f"no bound yet: {memory.samples} samples")
        assert memory.requests[0][0] == "db-0"
        assert encode_json(page)

    play(look)


def test_who_controls_which_pod_and_what_comes_next_is_told():
    async def look(stage, source):
        lead = await source.page(f"vpa/{stage.namespace}/lead", EVERYTHING)
        base = await source.page(f"vpa/{stage.namespace}/base", EVERYTHING)
        pods = {pod.name: pod for pod in base.pods}
        assert (pods["db-1"].is_ours, pods["db-0"].is_ours) == (True, False)
        assert "speaks for a part of the workload" in pods["db-0"].reason
        assert pods["db-0"].controlled_by == f"{stage.namespace}/lead"
        mine = {pod.name: pod for pod in lead.pods}["db-0"]
        assert mine.is_ours
        assert mine.update
        assert "memory" in mine.sizes[0]

    play(look)


def test_the_overview_lists_vpas_and_an_unknown_one_has_no_page():
    async def look(stage, source):
        assert [row.name for row in source.rows()] == ["base", "lead"]
        assert "memory 8.96 GiB" in source.rows()[1].amounts
        assert await source.page(f"vpa/{stage.namespace}/none", EVERYTHING) is None
        without = OperatorVertical(source.view)
        page = await without.page(f"vpa/{stage.namespace}/lead", EVERYTHING)
        assert page is not None
        assert [one.resource for one in page.amounts] == ["cpu", "memory"]
        assert page.amounts[0].histogram == ()

    play(look)


def test_looking_leaves_the_model_bit_for_bit_as_it_is():
    async def look(stage, source):
        table = source.recommender.model_of(f"{stage.namespace}/base").table
        rows = table.count.nonzero()[0]
        before = (
            table.cpu.gather(rows).tobytes(),
            table.memory.gather(rows).tobytes(),
            table.cpu.reference.tobytes(),
        )
        await source.page(f"vpa/{stage.namespace}/base", EVERYTHING)
        after = (
            table.cpu.gather(rows).tobytes(),
            table.memory.gather(rows).tobytes(),
            table.cpu.reference.tobytes(),
        )
        assert before == after

    play(look)


def test_the_loop_runs_while_the_pods_of_a_big_namespace_are_explained(monkeypatch):
    """Thousands of pods were explained in one go: 5,000 took 160 ms, in which nothing else ran."""
    monkeypatch.setattr(vertical, "PODS_PER_TURN", 1)

    async def look(stage, source):
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        await source.page(f"vpa/{stage.namespace}/base", EVERYTHING)  # fills caches
        counting = asyncio.ensure_future(count())
        page = await source.page(f"vpa/{stage.namespace}/base", EVERYTHING)
        counting.cancel()
        assert turns >= page.pods_total == 3

    play(look)


def test_pages_share_one_preview_of_updates_for_some_seconds(monkeypatch):
    """It covers the whole cluster, and each load of each page made it again."""
    clock = VirtualClock()
    made = []

    async def preview(*_, **__):
        made.append(clock.monotonic())
        await clock.sleep(1)
        return {}

    monkeypatch.setattr(remote, "preview_updates", preview)
    state = RemoteState(clock, None, None, lambda: FoundSettings(Settings(), "assumed"))  # type: ignore[arg-type]  # not asked

    async def main():
        await asyncio.gather(*(state.preview() for _ in range(5)))
        await clock.sleep(PREVIEW_SECONDS)
        await state.preview()

    clock.run(main())
    assert made == [0.0, 1.0 + PREVIEW_SECONDS]


def test_the_page_of_a_vpa_has_the_events_of_its_pods():
    """It had the events of the VPA alone, which are few: resizes are events of pods."""

    async def look(stage, source):
        for pod, reason in (("db-0", "InPlaceResizedByVPA"), ("db-0", "Scheduled"), ("db-1", "EvictedByVPA")):
            about = {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": stage.namespace}
            body = {
                "metadata": {"name": f"{pod}.{reason.lower()}", "namespace": stage.namespace},
                "involvedObject": about,
                "type": "Normal",
                "reason": reason,
                "message": "words",
            }
            await stage.client.create(CORE_EVENTS.untyped(), body, stage.namespace)
        settings = FoundSettings(Settings(), "assumed")
        state = RemoteState(stage.clock, stage.client, source.view, lambda: settings)
        page = await OperatorVertical(source.view, remote=state).page(
            f"vpa/{stage.namespace}/lead", EVERYTHING
        )
        assert page is not None
        seen = {(event.pod, event.reason) for event in page.events if event.message == "words"}
        assert seen == {("db-0", "InPlaceResizedByVPA")}, "db-1 belongs to another VPA"

    play(look)


def test_a_problem_is_shown_also_after_a_condition_that_does_not_hold():
    conditions = [
        {"type": "ConfigUnsupported", "status": "False"},
        {"type": "EstimatorFailed", "status": "True", "message": "it raised KeyError"},
        {"type": "RecommendationProvided", "status": "True"},
    ]
    vpa = wire.convert({"status": {"conditions": conditions}}, VerticalPodAutoscaler)
    assert vertical._state(vpa) == ("problem", "it raised KeyError")
