"""Several copies share the HPAs out: each is decided by one copy at any time, and none is left alone for long."""

import json
from collections.abc import Awaitable, Callable

import pytest

from tests.faults.horizontal.scene import load
from tests.scenarios.copies import owners_in_turn
from tests.scenarios.horizontal.conftest import play_on_lab
from tests.scenarios.horizontal.sharing import LEASE, LOOK, NAMES, PERIOD, SHARDS, Troupe, with_troupe
from trimtab.cluster.resource import LEASES
from trimtab.cluster.transport import Request, Response
from trimtab.operator.health import HeldByAnotherReplica
from trimtab.operator.horizontal.records import record_pages


def test_three_copies_share_evenly_and_one_killed_in_mid_cycle_is_replaced(play_lab):
    async def act(troupe: Troupe) -> None:
        copies = [troupe.add(name) for name in ("one", "two", "three")]
        await troupe.pass_time(40)
        assert [len(copy.shards.held()) for copy in copies] == [2, 2, 2]
        settled = troupe.stage.clock.monotonic()
        await troupe.pass_time(45)
        assert set(troupe.decided(settled)) == set(NAMES)
        assert all(len(owners_in_turn(writes)) == 1 for writes in troupe.decided(settled).values())

        victim = max(copies, key=lambda copy: len({name for _, name in copy.writes if _ >= settled}))
        victim.crash_at = (
            victim.actor.line._number
        )  # its very next write: some of its HPAs are decided, some not
        await troupe.pass_time(PERIOD + 1)
        assert victim.actor.line.crashed.is_set()
        killed = victim.writes[-1][0]
        await troupe.pass_time(60)

        for name, writes in troupe.decided(settled).items():
            turns = owners_in_turn(writes)
            assert len(turns) <= 2, (name, writes)
            if victim.name in turns:
                assert turns[0] == victim.name
                first = next(when for when, copy in writes if copy != victim.name)
                assert killed < first <= killed + LEASE + PERIOD
        # One look may pass before the last renewal is seen, another before it is seen to have run out.
        assert troupe.longest_gap(settled) <= PERIOD + LEASE + 2 * LOOK
        assert sum(len(copy.shards.held()) for copy in copies if copy is not victim) == SHARDS
        assert troupe.most_owners == 1

    with_troupe(play_lab, act)


def test_a_copy_that_joins_and_one_that_leaves_in_order_cost_no_period():
    async def act(troupe: Troupe) -> None:
        one = troupe.add("one")
        await troupe.pass_time(40)
        assert len(one.shards.held()) == SHARDS
        settled = troupe.stage.clock.monotonic()
        two = troupe.add("two")
        await troupe.pass_time(49)  # the one that stays has just gone its round when the other leaves
        assert sorted(one.shards.held() + two.shards.held()) == list(range(SHARDS))
        assert len(two.shards.held()) == SHARDS // 2
        await one.stop()
        await troupe.pass_time(40)
        assert len(two.shards.held()) == SHARDS
        assert all(
            owners_in_turn(writes) in (["one", "two"], ["two"]) for writes in troupe.decided(settled).values()
        )
        assert troupe.longest_gap(settled) <= PERIOD + 2 * LOOK
        assert troupe.most_owners == 1

    with_troupe(play_on_lab, act)


def test_more_copies_than_shards_stand_by_and_take_over():
    async def act(troupe: Troupe) -> None:
        copies = [troupe.add(f"copy-{number}") for number in range(SHARDS + 2)]
        await troupe.pass_time(60)
        assert sorted(len(copy.shards.held()) for copy in copies) == [0, 0, *[1] * SHARDS]
        for copy in [copy for copy in copies if copy.shards.held()][:2]:
            await copy.stop()
        await troupe.pass_time(30)
        assert sorted(len(copy.shards.held()) for copy in copies) == [0, 0, *[1] * SHARDS]
        assert troupe.most_owners == 1

    with_troupe(play_on_lab, act)


@pytest.mark.parametrize("new", [4, 9])
def test_copies_with_another_number_of_shards_wait_until_the_old_ones_are_gone(new):
    """Otherwise one HPA would be in a shard of each kind, with an owner each, while a rollout changes the flag."""

    async def act(troupe: Troupe) -> None:
        old = [troupe.add("old-1"), troupe.add("old-2")]
        await troupe.pass_time(40)
        settled = troupe.stage.clock.monotonic()
        fresh = [troupe.add("new-1", new), troupe.add("new-2", new)]
        await troupe.pass_time(30)
        assert not any(copy.shards.held() for copy in fresh)
        for copy in old:
            await copy.stop()
            await troupe.pass_time(20)
        assert sorted(fresh[0].shards.held() + fresh[1].shards.held()) == list(range(new))
        for writes in troupe.decided(settled).values():
            kinds = [copy.split("-")[0] for copy in owners_in_turn(writes)]
            assert sorted(kinds, reverse=True) == kinds
        assert troupe.most_owners == 1
        assert set(troupe.decided(troupe.stage.clock.monotonic() - PERIOD - 1)) == set(NAMES)

    with_troupe(play_on_lab, act)


def test_what_the_last_owner_remembered_is_taken_up_by_the_next():
    """A scale-down window goes on over a hand-over: it is neither cut short nor begun again."""

    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        one = troupe.add("one")
        await stage.edit_hpa("web-0", behavior={"scaleDown": {"stabilizationWindowSeconds": 90}})
        await troupe.pass_time(30)
        fell = stage.clock.monotonic()
        troupe.fixed["web-0"] = 100
        await troupe.pass_time(30)
        await one.stop()
        troupe.add("two")
        while await stage.replicas("web-0") == 5:
            await troupe.pass_time(1)
            assert stage.clock.monotonic() - fell < 200
        assert 90 - PERIOD <= stage.clock.monotonic() - fell <= 90 + 2 * PERIOD + 2 * LOOK

    with_troupe(play_on_lab, act)


def test_two_hpas_of_one_workload_are_noticed_although_two_copies_decide_them():
    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        await stage.deployment("shop", 2)
        stage.use_cpu(shop="50m")
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
        }
        troupe.add("one")
        troupe.add("two")
        await troupe.pass_time(40)
        first, other = (
            next(f"twin-{n}" for n in range(99) if copy.shards.of(f"{stage.namespace}/twin-{n}").may_write())
            for copy in troupe.copies
        )
        # Made when all is shared out, so that neither copy ever decided about the other's.
        await stage.hpa(first, target="shop", metrics=[metric])
        await stage.hpa(other, target="shop", metrics=[metric])
        await troupe.pass_time(40)
        for name in (first, other):
            assert (await stage.conditions(name))["ScalingActive"] == ("False", "AmbiguousSelector")

    with_troupe(play_on_lab, act)


def test_the_wrong_copy_says_which_one_to_ask():
    async def act(troupe: Troupe) -> None:
        copies = [troupe.add("one"), troupe.add("two")]
        await troupe.pass_time(40)
        key = f"{troupe.stage.namespace}/web-3"
        right, wrong = sorted(copies, key=lambda copy: not copy.shards.of(key).may_write())
        pages = {
            copy.name: record_pages(copy.actor.operator.hpas, copy.actor.operator.ownership)
            for copy in copies
        }
        told = pages[right.name]["/explain"](key)
        assert told is not None
        assert json.loads(told)["about"] == key
        words = rf"{key} is in shard \d of 6, held by {right.name}/{right.shards.count}: ask that replica"
        with pytest.raises(HeldByAnotherReplica, match=words):
            pages[wrong.name]["/explain"](key)
        lines = json.loads(pages[wrong.name]["/autoscalers"]("") or b"")["autoscalers"]
        assert len(lines) == len(NAMES)
        there = next(line for line in lines if line["name"] == "web-3")
        assert there["elsewhere"].endswith("ask that replica")
        assert wrong.actor.count("trimtab_shards_held") == SHARDS // 2
        assert copies[0].actor.operator.health() == {}

    with_troupe(play_on_lab, act)


def test_a_shard_that_is_lost_stops_its_own_writes_and_no_others():
    """Decided before the loss, on its way to the writers after it: the fence is asked last."""

    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        one = troupe.add("one")
        await troupe.pass_time(40)
        lost = one.shards.of(f"{stage.namespace}/web-0")
        hers = [name for name in NAMES if one.shards.of(f"{stage.namespace}/{name}") is lost]
        operator = one.actor.operator

        async def ask_while_it_is_lost(
            request: Request, send: Callable[[Request], Awaitable[Response]]
        ) -> Response:
            answer = await send(request)
            if "external.metrics" in request.path:
                lost.is_closing = True
            return answer

        stage.transport.around = ask_while_it_is_lost
        for name in NAMES:
            load(stage, 900, name)
        before = len(one.writes)
        await operator.step()
        written = {name for _, name in one.writes[before:]}
        assert not written & set(hers)
        assert {name for name in NAMES if await stage.replicas(name) == 5} == set(hers)
        assert not any(autoscaler.is_busy for autoscaler in operator.hpas)

    with_troupe(play_on_lab, act)


def test_meddling_with_a_lease_never_gives_a_shard_two_owners():
    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        copies = [troupe.add("one"), troupe.add("two")]
        await troupe.pass_time(40)
        settled = stage.clock.monotonic()
        for number in range(SHARDS):
            name = f"trimtab-{number}"
            if number % 2:
                await stage.client.delete(LEASES, name, stage.namespace)
            else:
                body = {"spec": {"holderIdentity": "somebody"}}
                await stage.client.patch(LEASES.untyped(), name, stage.namespace, body)
            await troupe.pass_time(5)
        await troupe.pass_time(40)
        assert sorted(copies[0].shards.held() + copies[1].shards.held()) == list(range(SHARDS))
        assert troupe.most_owners == 1
        assert troupe.longest_gap(settled) <= LEASE + PERIOD + 2 * LOOK

    with_troupe(play_on_lab, act)
