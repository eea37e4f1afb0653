"""Roles keep their own history: F5, SCP-E2, SCP-N1, SCP-R1, SCP-S1 and a day of rotating leaders."""

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import pod, scope, vpa
from tests.unit.decide.vertical.usage_builders import MINUTE_NS, Load, Recommender, member
from trimtab.decide.vertical.cluster_state.cluster import PodId
from trimtab.decide.vertical.input.checkpoints import load_checkpoint, save_checkpoints
from trimtab.decide.vertical.rules import Rules
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.times import SECOND_NS
from trimtab.model.vpa.types import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint

BUSY = Load(4000, 8 * 10**9)
IDLE = Load(300, 10**9)
LEADER_TARGET = 9616998332
FOLLOWER_TARGET = 1168723596
DEMOTED = PodId("shop", "db-0")
SCOPES = (scope("leader", pods={"role": "leader"}), scope("follower", pods={"role": "follower"}))


def leader_and_base() -> list[VerticalPodAutoscaler]:
    return [vpa("base"), vpa("leader", scope="leader")]


def roles(leader: str, names=("db-0", "db-1", "db-2")):
    pods = [member(name, "leader" if name == leader else "follower") for name in names]
    loads = {name: BUSY if name == leader else IDLE for name in names}
    return pods, loads


@pytest.mark.parametrize(
    ("vpas", "followers", "want"),
    [
        pytest.param(
            [vpa("leader", scope="leader"), vpa("follower", scope="follower")],
            2,
            {"leader": LEADER_TARGET, "follower": FOLLOWER_TARGET},
            id="a scope per role gives each role its own size",
        ),
        pytest.param(
            leader_and_base(),
            2,
            {"base": FOLLOWER_TARGET, "leader": LEADER_TARGET},
            id="the base VPA does not learn from the leader, which another VPA controls",
        ),
        pytest.param(
            [vpa("base")], 2, {"base": LEADER_TARGET}, id="unscoped, one leader of three sizes everyone"
        ),
        pytest.param(
            [vpa("base")], 19, {"base": FOLLOWER_TARGET}, id="unscoped, one leader of twenty is starved"
        ),
    ],
)
def test_f5_exact_memory_targets(vpas, followers, want):
    names = [f"db-{number}" for number in range(followers + 1)]
    pods, loads = roles("db-0", names)
    recommender = Recommender(vpas, SCOPES)
    recommender.observe(pods)
    recommender.scrape(loads)
    assert recommender.targets() == want


def test_scp_e2_a_new_leader_inherits_the_roles_history_at_once():
    recommender = Recommender(leader_and_base(), SCOPES)
    pods, loads = roles("db-0")
    recommender.observe(pods)
    for _ in range(30):
        recommender.scrape(loads)
    before = recommender.targets()
    recommender.observe(roles("db-1")[0])
    assert recommender.targets() == before == {"base": FOLLOWER_TARGET, "leader": LEADER_TARGET}


def test_leadership_that_rotates_every_ten_minutes_for_a_day_leaves_the_leader_profile_as_it_was():
    scoped, plain = Recommender(leader_and_base(), SCOPES), Recommender([vpa("plain")])
    first_term: list[int] = []
    for turn in range(24 * 6):
        pods, loads = roles(f"db-{turn % 3}")
        for recommender in (scoped, plain):
            recommender.observe(pods)
            for _ in range(5):
                recommender.scrape(loads, minutes=2)
        now = scoped.buckets("leader")
        first_term = first_term or now
        assert all(abs(bucket - then) <= 1 for bucket, then in zip(now, first_term, strict=True)), turn
    assert -1 not in first_term
    assert scoped.targets() == {"base": FOLLOWER_TARGET, "leader": LEADER_TARGET}
    # The plain VPA sees three pods that are each a leader sometimes: everyone is sized as the leader.
    assert plain.targets() == {"plain": LEADER_TARGET}


def test_scp_n1_a_relabelled_pod_gives_its_new_role_a_sample_at_once_and_leaves_the_old_role_intact():
    recommender = Recommender(leader_and_base(), SCOPES)
    pods, loads = roles("db-0")
    recommender.observe(pods)
    recommender.scrape(loads)
    leader = recommender.buckets("leader")
    pods, loads = roles("db-1")
    recommender.observe(pods)
    recommender.scrape(loads)
    demoted = recommender.state.pods[DEMOTED].containers["app"]
    aggregate = recommender.state.aggregates[demoted.key]
    assert aggregate.memory.percentile_bucket(0.9) == 36
    assert recommender.buckets("leader") == leader


@pytest.mark.parametrize("seconds", [1, 14, 59])
def test_a_sample_from_before_the_role_change_goes_to_neither_role(seconds):
    """The loop sees the new labels at once, and the usage of the old role until the pod is measured again.

    A leader's sample made its follower as big as the leader, for as long as the histogram remembers.
    """
    recommender = Recommender(leader_and_base(), SCOPES)
    pods, loads = roles("db-0")
    recommender.observe(pods)
    recommender.scrape(loads)
    before = recommender.targets()
    recommender.now_ns += seconds * SECOND_NS
    recommender.observe(roles("db-1")[0])
    recommender.now_ns -= MINUTE_NS + SECOND_NS  # the sample was taken a second before the change
    recommender.scrape(loads)
    recommender.now_ns += SECOND_NS
    assert recommender.targets() == before == {"base": FOLLOWER_TARGET, "leader": LEADER_TARGET}
    for _ in range(30):
        recommender.scrape(roles("db-1")[1])
    assert recommender.targets() == before


def test_a_metrics_clock_that_is_late_stops_no_samples_after_a_role_change():
    """Samples are compared with the samples before, so that a wrong clock costs two minutes at most."""
    recommender = Recommender(leader_and_base(), SCOPES)
    recommender.observe(roles("db-0")[0])
    for _ in range(5):
        recommender.scrape(roles("db-0")[1])
    late = recommender.now_ns
    recommender.now_ns += 3600 * SECOND_NS
    recommender.observe(roles("db-1")[0])
    recommender.now_ns = late
    cpu = [recommender.scrape(roles("db-1")[1])[0].accepted for _ in range(4)]
    assert cpu == [1, 1, 3, 3]  # db-2 stays a follower; the other two are left out for two minutes


def test_upstream_keeps_the_memory_window_over_a_role_change_and_the_new_role_learns_nothing():
    recommender = Recommender([vpa("plain")], rules=Rules.VPA_1_8)
    recommender.observe([member("db-0", "leader")])
    recommender.scrape({"db-0": BUSY})
    recommender.observe([member("db-0", "follower")])
    recommender.scrape({"db-0": IDLE})
    demoted = recommender.state.pods[DEMOTED].containers["app"]
    assert recommender.state.aggregates[demoted.key].memory.is_empty


def test_scp_r1_a_restart_restores_the_roles_profile_from_its_checkpoints():
    recommender = Recommender(leader_and_base(), SCOPES)
    pods, loads = roles("db-0")
    recommender.observe(pods)
    for _ in range(26 * 4):
        recommender.scrape(loads, minutes=15)
    before = recommender.targets()
    saved = [
        wire.decode(wire.encode(checkpoint), VerticalPodAutoscalerCheckpoint)
        for checkpoint in save_checkpoints(
            recommender.state, list(recommender.state.vpas.values()), recommender.now_ns
        )
    ]
    restarted = Recommender(leader_and_base(), SCOPES)
    assert [load_checkpoint(restarted.state, checkpoint, recommender.now_ns) for checkpoint in saved] == [
        None,
        None,
    ]
    assert restarted.targets() == before


def test_scp_n3_a_missing_scope_leaves_the_last_recommendation_and_the_role_resumes_with_its_history():
    vpas = leader_and_base()
    recommender = Recommender(vpas, SCOPES)
    pods, loads = roles("db-0")
    recommender.observe(pods)
    recommender.scrape(loads)
    before = recommender.recommend()["leader"].status
    recommender.scopes = ()
    recommender.observe(pods)
    written = msgspec.structs.replace(vpas[1], status=before)
    recommender.state.add_or_update_vpa(written, Selector.parse("app=db"), "VPAScope 'leader' does not exist")
    gone = recommender.recommend()
    assert gone["leader"].status.recommendation == before.recommendation
    assert ("ConfigUnsupported", "True") in [
        (condition.type, condition.status) for condition in gone["leader"].status.conditions
    ]
    for _ in range(5):
        recommender.scrape({name: Load(4000, 64 * 2**30) for name in loads})
    assert recommender.targets()["base"] == FOLLOWER_TARGET, (
        "NV-3: nobody learns from pods of an unknown role"
    )
    recommender.scopes = SCOPES
    recommender.observe(pods)
    recommender.state.add_or_update_vpa(written, Selector.parse("app=db"))
    assert recommender.targets() == {"base": FOLLOWER_TARGET, "leader": LEADER_TARGET}
    assert recommender.recommend()["leader"].status == before


def test_scp_s1_pods_of_one_daemonset_learn_per_class_of_node():
    scopes = (scope("big", nodes={"size": "big"}), scope("small", nodes={"size": "small"}))
    vpas = [vpa("big", scope="big"), vpa("small", scope="small")]
    recommender = Recommender(
        vpas, scopes, nodes={"n1": {"size": "big"}, "n2": {"size": "small"}, "n3": {"size": "small"}}
    )
    recommender.observe([pod(f"db-{number}", node=f"n{number}") for number in (1, 2, 3)])
    recommender.scrape({"db-1": BUSY, "db-2": IDLE, "db-3": IDLE})
    assert recommender.targets() == {"big": LEADER_TARGET, "small": FOLLOWER_TARGET}


def test_a_pod_outside_the_scope_or_the_workload_never_changes_a_roles_profile():
    recommender = Recommender(leader_and_base(), SCOPES)
    pods, loads = roles("db-0")
    recommender.observe(pods)
    recommender.scrape(loads)
    before = recommender.targets()
    stranger = member("stray", "leader", owner=None)
    recommender.observe([*pods, stranger])
    recommender.scrape({"stray": Load(64_000, 10**11)})
    assert recommender.targets() == before


def test_a_vpa_in_mode_off_learns_from_the_pods_it_matches_as_a_dry_run():
    recommender = Recommender([vpa("base"), vpa("leader", scope="leader", mode="Off")], SCOPES)
    pods, loads = roles("db-0")
    recommender.observe(pods)
    recommender.scrape(loads)
    # The base VPA still controls the leader, so it learns from it too.
    assert recommender.targets() == {"base": LEADER_TARGET, "leader": LEADER_TARGET}


def test_d4_with_all_vpas_in_mode_off_each_shows_what_it_recommends_once_active():
    """The base VPA learnt from the leader as well while both were Off: 2.4 cores instead of 0.13."""
    found = {}
    for mode in ("Off", "Recreate"):
        recommender = Recommender([vpa("base", mode=mode), vpa("leader", scope="leader", mode=mode)], SCOPES)
        pods, loads = roles("db-0")
        recommender.observe(pods)
        recommender.scrape(loads)
        found[mode] = recommender.targets()
    assert found["Off"] == found["Recreate"] == {"base": FOLLOWER_TARGET, "leader": LEADER_TARGET}


def test_promotion_moves_the_pod_between_the_pod_counts_only_where_matching_changes():
    recommender = Recommender(leader_and_base(), SCOPES)
    recommender.observe([member("db-0", "follower"), member("db-1", "follower")])
    assert {name: one.pod_count for name, one in recommender.state.vpas.items()} == {
        "shop/base": 2,
        "shop/leader": 0,
    }
    recommender.observe([member("db-0", "leader")])
    assert recommender.state.vpas["shop/leader"].pod_count == 1
    assert recommender.state.vpas["shop/base"].pod_count == 2
