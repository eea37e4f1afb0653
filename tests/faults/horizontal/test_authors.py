"""Records and log lines of changes name the replica that wrote, its Lease and the version it had read."""

import asyncio
import logging

from tests.faults.horizontal.scene import becomes, held, load, working
from tests.support.clock import in_virtual_time
from trimtab.cluster.client import Client
from trimtab.cluster.leases.family import Family
from trimtab.cluster.resource import DEPLOYMENTS
from trimtab.decide.horizontal.explain import explain
from trimtab.decide.horizontal.records.record import Record, dumps, loads, replay


def scales(caplog) -> list[dict[str, object]]:
    return [line.facts for line in caplog.records if line.getMessage() == "scaled"]


@in_virtual_time
async def test_a_scale_names_the_replica_the_lease_and_the_version(stage, caplog):
    await held(stage)
    caplog.set_level(logging.INFO)
    records: list[Record] = []
    for number, name in enumerate(("first", "second")):
        elector = Family(Client(stage.clock, stage.transport, seed=3), "default", "trimtab", name)
        leading = asyncio.ensure_future(elector.run())
        async with working(stage, fence=elector) as actor:
            actor.runtime.instance = name
            await stage.pass_time(30)
            target = await stage.client.get(DEPLOYMENTS, "web", stage.namespace)
            load(stage, 600 + 100 * number)
            await becomes(stage, 6 + number)
            await stage.pass_time(1)
            facts = scales(caplog)[-1]
            assert (facts["by"], facts["leaseTransitions"]) == (name, elector[0].lock.transitions)
            assert facts["baseVersion"] == target.metadata.resource_version
            hpa_state = actor.operator.hpas.named(stage.namespace, "web")
            assert hpa_state is not None
            await stage.pass_time(40)
            records += [record for record in hpa_state.records if record.decision.action != "none"]
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
    authors = [record.author for record in records if record.author is not None]
    assert [author.replica for author in authors] == ["first", "second"]
    assert [author.lease_transitions for author in authors] == [0, 1]
    for record in records:
        assert f"written by: {record.author}" in str(explain(record))
        assert dumps(replay(loads(dumps(record)))) == dumps(record)


@in_virtual_time
async def test_a_record_from_before_authors_replays_to_the_same_bytes(stage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(30)
        load(stage, 600)
        await becomes(stage, 6)
        await stage.pass_time(1)
        hpa_state = actor.operator.hpas.named(stage.namespace, "web")
        assert hpa_state is not None
        record = loads(dumps(hpa_state.records[-1]))
        old = Record(observation=record.observation, decision=record.decision)
        assert b"author" not in dumps(old)
        assert dumps(replay(loads(dumps(old)))) == dumps(old)
        assert "written by" not in str(explain(old))
