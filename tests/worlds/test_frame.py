"""Judging, shrinking and keeping worlds, with a family whose lives are sums."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.worlds import known
from tests.worlds.known import Failure, Failures
from tests.worlds.shrink import play, shrink
from tests.worlds.stories import clock, tell
from tests.worlds.verdicts import judge
from tests.worlds.world import Happening, Life, Rules, World


class Sums:
    """Each happening costs what its facts say; together, the worst two break a promise."""

    name = "sums"

    def make(self, seed: int, *, is_short: bool = False) -> World:
        happenings = tuple(Happening(float(at), f"kind{at % 4}", {"cost": at}) for at in range(16))
        return World("sums", seed, 16.0, {"spare": 5}, happenings, is_short)

    def play(self, world: World, rules: Rules) -> Life:
        costs = {happening.what: happening.facts["cost"] for happening in world.happenings}
        life = Life({"evictions": float(sum(costs.values())) if rules is Rules.OURS else world.phase * 40.0})
        if costs.get("kind1") and costs.get("kind2"):
            life.broken.append("peace: kinds 1 and 2 met")
        life.note(2, "counted")
        return life

    def simpler(self, world: World) -> Iterable[World]:
        if world.start["spare"]:
            yield replace(world, start={"spare": 0})

    def tell(self, world: World) -> list[str]:
        return [f"{world.start['spare']} to spare"]

    def tell_happening(self, happening: Happening) -> str:
        return f"{happening.what} costs {happening.facts['cost']}"


@pytest.mark.parametrize(
    ("ours", "upstream", "want"),
    [
        pytest.param(1.0, 0.0, [], id="what the allowance covers is as good"),
        pytest.param(2.0, 0.0, ["evictions"], id="more than the allowance is worse"),
        pytest.param(10.0, 40.0, [], id="less is better"),
    ],
)
def test_an_outcome_is_compared_with_upstreams(ours, upstream, want):
    verdicts = judge(Life({"evictions": ours}), Life({"evictions": upstream}))
    assert [verdict.name for verdict in verdicts] == want


def test_a_ruling_may_cost_something_where_it_buys_what_it_is_for():
    below, changes = "pod-minutes below the needed replicas", "replica changes"
    ours, upstream = Life({below: 1.0, changes: 30.0}), Life({below: 50.0, changes: 2.0})
    assert judge(ours, upstream) == []
    upstream.outcomes[below] = 1.0
    assert [verdict.name for verdict in judge(ours, upstream)] == [changes]


def test_a_promise_weighs_more_than_any_outcome():
    ours = Life({"evictions": 100.0}, ["peace: broken", "peace: broken again"])
    assert [verdict.name for verdict in judge(ours, Life())] == ["peace", "evictions"]


def test_what_is_worse_in_one_phase_only_is_luck():
    world = Sums().make(1)
    happenings = [happening for happening in world.happenings if happening.facts["cost"] < 12]
    assert play(Sums(), world.with_only(happenings)).verdicts[-1].name == "peace"


def test_a_failing_world_is_shrunk_to_what_it_needs():
    family = Sums()
    small = shrink(family, play(family, family.make(1)), "peace")
    assert sorted(small.world.kinds) == ["kind1", "kind2"]
    assert len(small.world.happenings) == 2
    assert small.world.start == {"spare": 0}
    assert small.has("peace")


def test_a_story_tells_both_lives_on_one_time_line():
    family = Sums()
    world = family.make(7).with_only([Happening(1.0, "kind1", {"cost": 5})])
    assert tell(family, play(family, world)).splitlines()[1:] == [
        "  5 to spare",
        f"  {'':11} {'ours':58} upstream",
        "     00:00:01 ** kind1 costs 5",
        f"     00:00:02 {'counted':58} counted",
        "  evictions: 5.0 ours, 0.0 upstream",
    ]


@pytest.mark.parametrize(
    ("seconds", "want"), [(59.6, "00:01:00"), (3600.0, "01:00:00"), (90000.0, "1d 01:00:00")]
)
def test_moments_are_short(seconds, want):
    assert clock(seconds) == want


def test_a_failure_is_kept_as_the_same_world(tmp_path, monkeypatch):
    path = tmp_path / "known.yaml"
    monkeypatch.setitem(known.HEADS, path, "# a head\n")
    failure = Failure("R4-3", "peace", "what happened\nand what came of it", Sums().make(4))
    known.save(path, Failures([failure], {"sums-short-1": ["peace"]}))
    loaded = known.load(path)
    assert loaded.short == {"sums-short-1": ["peace"]}
    assert loaded.stories == [failure]


@pytest.mark.parametrize(
    ("kinds", "verdict", "want"),
    [
        ({"kind1", "kind2"}, "peace", True),
        ({"kind1"}, "peace", True),
        ({"kind1", "kind2", "kind3"}, "peace", True),
        ({"kind1", "kind3"}, "peace", False),
        (set(), "peace", False),
        ({"kind1", "kind2"}, "evictions", False),
    ],
)
def test_a_find_is_known_if_it_needs_no_other_kinds_of_happenings(kinds, verdict, want):
    known_kinds = [Happening(1.0, "kind1", {"cost": 5}), Happening(2.0, "kind2", {"cost": 6})]
    world = Sums().make(4)
    failure = Failure("R4-3", "peace", "", world.with_only(known_kinds))
    found = world.with_only(Happening(1.0, kind, {"cost": 5}) for kind in sorted(kinds))
    assert failure.is_as(play(Sums(), found), verdict) is want


def test_the_difference_of_two_lists_names_each_verdict():
    before, after = {"a": ["x", "y"]}, {"a": ["y"], "b": ["z"]}
    assert list(known.difference(before, after)) == ["a: no longer x", "b: z"]
