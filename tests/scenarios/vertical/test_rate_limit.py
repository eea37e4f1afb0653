"""Resizes in place keep to a rate, as evictions do, and counters begin at zero (RV-L13)."""

import logging

import pytest

from tests.scenarios.vertical.stage import LEADER
from tests.support.clock import in_virtual_time
from trimtab.decide.vertical.records import read_update, replay_update, to_json
from trimtab.model.author import Author


@pytest.mark.parametrize(
    ("per_second", "burst", "sent"),
    [
        pytest.param(-1.0, 1, 6, id="no limit by default"),
        pytest.param(1.0, 1, 6, id="one per second: six fit into a loop"),
        pytest.param(0.04, 1, 3, id="one in 25 seconds: three fit, none is evicted instead"),
        pytest.param(0.001, 4, 4, id="a burst of four"),
    ],
)
@in_virtual_time
async def test_resizes_keep_to_the_rate(stage, per_second, burst, sent):
    await stage.statefulset("db", 6)
    await stage.vpa("base", "db", mode="InPlaceOrRecreate")
    stage.use(**{f"db_{index}": LEADER for index in range(6)})
    rate = {"eviction_rate_limit": per_second, "eviction_rate_burst": burst}
    async with stage.running(in_place_skip_disruption_budget=True, **rate) as actor:
        await stage.recommend(actor, 2)
        await stage.update(actor)
        assert len(actor.wrote("/resize")) == sent
        assert not actor.wrote("/eviction")


@in_virtual_time
async def test_counters_of_a_vpa_begin_at_zero(stage):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db", mode="InPlaceOrRecreate")
    async with stage.running() as actor:
        await stage.update(actor)
        where = {"vpa_size_log2": "1", "vpa_name": "base", "vpa_namespace": stage.namespace}
        mode = {"update_mode": "InPlaceOrRecreate"}
        # Upstream tells the mode of evictions only.
        for name, labels in (("evicted", where | mode), ("in_place_updated", where)):
            assert actor.registry.get_sample_value(f"vpa_updater_{name}_pods_total", labels) == 0.0


@in_virtual_time
async def test_a_resize_names_the_replica_and_the_version(stage, caplog):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db", mode="InPlaceOrRecreate")
    stage.use(db_0=LEADER, db_1=LEADER)
    caplog.set_level(logging.INFO)
    async with stage.running(in_place_skip_disruption_budget=True) as actor:
        await stage.recommend(actor, 2)
        seen = {pod.metadata.key: pod.metadata.resource_version for pod in actor.site.view.pods}
        record = await actor.updater.step()
        facts = [
            line.facts for line in caplog.records if line.getMessage() == "resize" and "by" in line.facts
        ]
        assert [(line["by"], line["baseVersion"]) for line in facts] == [
            ("trimtab", seen[line["pod"]]) for line in facts
        ]
        assert facts
        assert record is not None
        assert record.author == Author(replica="trimtab")
        data = to_json(record)
        assert to_json(replay_update(read_update(data))) == data
        idle = await actor.updater.step()
        assert idle is not None
        assert idle.author is None, "nothing was changed"
