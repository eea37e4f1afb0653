"""Worlds of sizes: the same for the same seed, playable by who plays them, and judged by what was needed and promised."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.worlds import sizes_programs, sizes_simulation
from tests.worlds.sizes import FAMILY
from tests.worlds.sizes_demand import Demand
from tests.worlds.sizes_happenings import TABLE
from tests.worlds.sizes_judge import Bounds, Judge, Meant, Seen
from tests.worlds.world import Happening, Life, Rules, World, as_data, from_data

GB = 1e9
PLAIN = {
    "cpu": 0.1,
    "memory": GB,
    "shape": "steady",
    "peak": 4.0,
    "hour": 9,
    "growth": 0.1,
    "noise": 0.0,
    "warm": 600.0,
}
LEADER = {**PLAIN, "memory": 8 * GB}
START = {
    "pods": 1,
    "day": 86400.0,
    "active": False,
    "range": {},
    "nodes": {"cpu": 64.0, "memory": 256 * GB},
    "usage": {"": PLAIN, "leader": LEADER},
    "vpas": [
        {"name": "base", "scope": {}, "mode": "InPlace"},
        {"name": "lead", "scope": {"role": "leader"}, "mode": "InPlace"},
    ],
}


ALONE = {"": PLAIN}
PLAIN_START = {
    **START,
    "usage": ALONE,
    "vpas": [{"name": "base", "scope": {}, "mode": "InPlaceOrRecreate"}],
}


@pytest.mark.parametrize("is_short", [True, False])
def test_a_seed_gives_the_same_world_which_a_file_can_hold(is_short):
    for seed in range(40):
        world = FAMILY.make(seed, is_short=is_short)
        assert world == FAMILY.make(seed, is_short=is_short)
        assert replace(from_data(as_data(world)), is_short=is_short) == world


def test_whoever_plays_a_world_knows_what_happens_in_it():
    knows = {"simulation": sizes_simulation.HAPPENS, "programs": sizes_programs.HAPPENS}
    assert set(TABLE) == {what for known in knows.values() for what in known}
    for seed in range(400):
        world = FAMILY.make(seed)
        assert world.kinds <= set(knows[world.start["player"]]), world.name


def test_simpler_worlds_are_simpler():
    world = FAMILY.make(3)
    for simpler in FAMILY.simpler(world):
        assert simpler != world
        assert simpler.seconds <= world.seconds
        assert simpler.start["pods"] <= world.start["pods"]


def test_memory_follows_a_role_within_its_time():
    demand = Demand({"": PLAIN, "leader": LEADER}, seed=1)
    assert demand.used("db-0", "", 0.0, 100.0) == (0.1, GB)
    held = [demand.used("db-0", "leader", 0.0, at)[1] / GB for at in (200.0, 500.0, 800.0, 5000.0)]
    assert held == pytest.approx([1, 4.5, 8, 8])


def test_a_day_has_one_busy_hour():
    demand = Demand({"": {**PLAIN, "shape": "peak"}}, seed=1)
    hours = [demand.used("db-0", "", 0.0, hour * 3600.0)[1] / GB for hour in range(24)]
    assert hours == [4 if hour == 9 else 1 for hour in range(24)]


def pod(role: str = "leader", *, asks: float = 9.6, needs: float = 8.0, uid: str = "1") -> Seen:
    vpa = "lead" if role else "base"
    amounts = {"memory": asks * GB}
    needed = {"memory": needs * GB}
    return Seen("db-0", uid, role, vpa, amounts, {}, needed, True, (vpa,), True, frozenset({"memory"}))


def advises(lead: float = 9.6, lower: float = 9.0, base: float = 1.2) -> dict[str, dict[str, Bounds]]:
    return {
        name: {"memory": Bounds(low * GB, target * GB, 20 * GB)}
        for name, low, target in (("lead", lower, lead), ("base", base, base))
    }


HOURS = [(3600.0 * hour, pod(), advises()) for hour in range(1, 4)]
LATER = 4 * 3600.0
PROMISES = {
    "profile": "a role's profile outlives its holders",
    "learns": "a role does not learn what another role needs",
    "size": "a pod has the size of its role within minutes",
    "nothing": "no size from nothing",
    "shrinks": "nothing shrinks below what it uses while what it needs is known",
}


@pytest.mark.parametrize(
    ("looks", "broken"),
    [
        pytest.param(HOURS, "", id="a leader that has its size breaks nothing"),
        pytest.param([*HOURS, (LATER, pod(), advises(lead=7.9))], "", id="a bucket less is no loss"),
        pytest.param([*HOURS, (LATER, pod(), advises(lead=1.2))], "profile", id="a profile is lost"),
        pytest.param([*HOURS, (LATER, pod(), {"lead": {}, "base": {}})], "profile", id="no amount is left"),
        pytest.param([*HOURS, (LATER, pod(), advises(lead=13.6))], "learns", id="a leader learns too much"),
        pytest.param(
            [(60.0, replace(pod(), served=frozenset()), {"lead": advises()["lead"]})],
            "nothing",
            id="it was never measured",
        ),
        pytest.param([*HOURS, (LATER, pod(asks=1.2), advises())], "shrinks", id="a leader is made small"),
        pytest.param([*HOURS, (LATER, pod(asks=1.2, uid="2"), advises())], "", id="a new pod may be small"),
    ],
)
def test_a_promise_is_broken_by_what_happened_to_pods(looks: Sequence[tuple[float, Seen, Any]], broken):
    life = Life()
    judge = Judge(life, Meant(START))
    for at, seen, advice in looks:
        judge.look(at, [seen], advice)
    assert [line.partition(": ")[0] for line in life.broken] == ([PROMISES[broken]] if broken else [])


@pytest.mark.parametrize(("minutes", "broken"), [(4, []), (7, [PROMISES["size"]])])
def test_a_new_leader_waits_for_its_size_for_some_minutes_only(minutes, broken):
    life = Life()
    judge = Judge(life, Meant(START))
    judge.look(3600.0, [pod()], advises())
    judge.moved(3600.0, "db-0")
    for minute in range(minutes + 1):
        judge.look(3600.0 + 60 * minute, [pod(asks=1.2, uid="2")], advises())
    assert [line.partition(": ")[0] for line in life.broken] == broken
    assert life.outcomes["minutes from a role's move to its size"] == minutes


@pytest.mark.parametrize(
    ("after", "now", "broken"),
    [
        pytest.param(600.0, pod(asks=11.6, uid="2"), [], id="its next pod asks for more"),
        pytest.param(600.0, pod(uid="2"), ["a container killed for memory asks for more"], id="it does not"),
        pytest.param(600.0, pod(), [], id="it was neither started nor resized"),
        pytest.param(60.0, pod(uid="2"), [], id="a kill is learnt in some minutes"),
        pytest.param(600.0, replace(pod(uid="2"), is_promised=False), [], id="something is in the way"),
    ],
)
def test_a_killed_container_asks_for_more_from_its_next_start_on(after, now, broken):
    life = Life()
    judge = Judge(life, Meant(START))
    judge.look(3600.0, [pod()], {})
    judge.killed(3600.0, pod(), 9.6 * GB)
    judge.look(3600.0 + after, [now], {})
    assert [line.partition(": ")[0] for line in life.broken] == broken


@pytest.mark.parametrize(
    ("ready", "is_ready", "broken"),
    [
        pytest.param("312", True, [], id="the first is back"),
        pytest.param(
            "12", True, ["no more pods are down by the updater than the budget allows"], id="two are down"
        ),
        pytest.param("12", False, [], id="the second was down by itself"),
    ],
)
def test_one_pod_is_down_by_an_eviction_at_a_time(ready, is_ready, broken):
    life = Life()
    judge = Judge(life, Meant({**PLAIN_START, "pods": 3}))
    pods = [replace(pod(""), name=f"db-{number}", uid=str(number)) for number in range(3)]
    judge.look(60.0, [*pods[:2], replace(pods[2], is_ready=is_ready)], {})
    judge.evicted(60.0, "db-0")
    judge.see_ready(ready)
    judge.evicted(120.0, "db-2")
    assert [line.partition(": ")[0] for line in life.broken] == broken


def test_the_same_world_gives_the_same_life():
    world = FAMILY.make(4, is_short=True)
    first, second = (sizes_simulation.play(world, Rules.OURS) for _ in range(2))
    assert (first.outcomes, first.broken, first.log) == (second.outcomes, second.broken, second.log)
    assert first.outcomes["pod-hours"] > 0


@pytest.mark.parametrize("rules", Rules)
def test_whole_programs_size_a_new_leader(rules):
    """The lab's nodes run the pods. Two copies share a Lease, and the one that leads dies."""
    moves = Happening(240.0, "the role moves", {"gap": 0.0})
    dies = Happening(360.0, "the updater restarts", {"away": 60.0})
    start = {
        **FAMILY.make(4, is_short=True).start,
        **START,
        "player": "programs",
        "pods": 2,
        "kind": "StatefulSet",
        "requests": {"cpu": 0.1, "memory": GB},
        "limit": 0.0,
        "starts": 5.0,
        "roles": {"leader": 1},
        "budget": 0,
        "nodes": {"count": 1, "cpu": 64.0, "memory": 256 * GB},
    }
    life = sizes_programs.play(World("sizes", 1, 900.0, start, (moves, dies)), rules)
    assert any("resized: db-1 (leader)" in text for _, text in life.log), life.log
    assert 0.4 < life.outcomes["pod-hours"] < 0.5


@pytest.mark.parametrize(
    ("is_placed", "trouble", "minutes", "broken"),
    [
        (False, "", 9, []),
        (False, "", 12, ["a pod that fits nowhere gets its recommended size"]),
        (False, "evictions are refused", 12, []),
        (True, "resizes are not taken up", 60, []),
        (True, "resizes are not taken up", 95, ["a resize that no kubelet takes up becomes an eviction"]),
    ],
)
def test_a_pod_that_only_an_eviction_can_help_is_evicted_in_time(is_placed, trouble, minutes, broken):
    life = Life()
    meant = Meant(PLAIN_START)
    if trouble:
        meant.begin(trouble)
    judge = Judge(life, meant)
    seen = replace(pod("", asks=90.0 if not is_placed else 0.3), is_placed=is_placed, needs={})
    for minute in range(minutes + 1):
        judge.look(60.0 * minute, [seen], {"base": advises()["base"]})
    assert [line.partition(": ")[0] for line in life.broken] == broken


def test_a_recommendation_that_is_stored_outlives_a_start_without_history():
    life = Life()
    judge = Judge(life, Meant(START))
    for at, seen, advice in HOURS:
        judge.look(at, [seen], advice)
    judge.forget(quiet=60.0)
    judge.look(LATER, [replace(pod(), served=frozenset())], {"lead": {}, "base": {}})
    assert [line.partition(": ")[0] for line in life.broken] == [PROMISES["profile"]]
