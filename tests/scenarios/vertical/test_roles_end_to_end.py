"""SCP-E*, SCP-N*, SCP-G1, SCP-R1: a workload whose pods play roles, each sized for its own."""

import pytest

from tests.scenarios.vertical.stage import (
    FOLLOWER,
    FOLLOWER_TARGET,
    LEADER,
    LEADER_TARGET,
    Actor,
    Stage,
)
from tests.support.clock import in_virtual_time
from trimtab.decide.vertical.control.control import control_of

pytestmark = pytest.mark.versions


async def a_leader_and_two_followers(stage: Stage, *, mode: str = "InPlaceOrRecreate") -> None:
    """StatefulSet of three, base VPA and leader VPA, pod 0 leads (fixture F5)."""
    await stage.statefulset("db", 3)
    await stage.scope("leader", pods={"role": "leader"})
    await stage.vpa("base", "db", mode=mode)
    await stage.vpa("lead", "db", scope="leader", mode=mode)
    await stage.label("db-0", role="leader")
    stage.use(db_0=LEADER, db_1=FOLLOWER, db_2=FOLLOWER)


async def requests_of(stage: Stage, name: str, count: int) -> list[object]:
    return [await stage.memory(f"{name}-{index}") for index in range(count)]


async def controllers_of_pods(actor: Actor) -> dict[str, str | None]:
    """Return who controls each pod."""
    snapshot = await actor.site.view.control_snapshot()
    return {
        pod.name: control_of(pod, snapshot.index, snapshot.owners, snapshot.nodes).key
        for pod in actor.site.view.pods
    }


def test_scp_u1_the_scoped_vpa_controls_the_leader_and_nobody_else(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.pod("foreign", {"app": "db", "role": "leader"})
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("lead", "db", scope="leader")
        await stage.label("db-0", role="leader")
        async with stage.running() as actor:
            await stage.caught_up(actor)
            control = await controllers_of_pods(actor)
        assert control == {"db-0": f"{stage.namespace}/lead", "db-1": None, "foreign": None}

    play(scenario)


@pytest.mark.parametrize("first", ["base", "lead"])
def test_scp_u2_the_scoped_vpa_controls_the_leader_whichever_was_made_first(play, first):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.scope("leader", pods={"role": "leader"})
        for name in ("base", "lead") if first == "base" else ("lead", "base"):
            await stage.vpa(name, "db", scope="leader" if name == "lead" else None)
        await stage.label("db-0", role="leader")
        async with stage.running() as actor:
            await stage.caught_up(actor)
            assert await controllers_of_pods(actor) == {
                "db-0": f"{stage.namespace}/lead",
                "db-1": f"{stage.namespace}/base",
            }

    play(scenario)


def test_cross_4_at_zero_a_vpa_keeps_what_it_learned_and_touches_nothing(play_by_hand):
    """What an HPA that scales to zero leaves: a workload without pods, and one pod that goes late.

    By hand, because controllers let no pod outlive its scale.
    """

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.vpa("base", "db")
        stage.use(db_0=FOLLOWER, db_1=FOLLOWER)
        async with stage.running() as actor:
            await stage.recommend(actor, 3)
            assert await stage.target("base") == FOLLOWER_TARGET
            await stage.scale("db", 0)
            await stage.delete_pod("db-1")
            await stage.update(actor, 2)
            assert await stage.memory("db-0") == "50Mi"
            await stage.delete_pod("db-0")
            await stage.recommend(actor, 3)
            assert (await stage.conditions("base"))["NoPodsMatched"] == "True"
            assert await stage.target("base") == FOLLOWER_TARGET
            await stage.scale("db", 2)
            await stage.heal("db")
            await stage.recommend(actor)
            assert "NoPodsMatched" not in await stage.conditions("base")
            assert await stage.target("base") == FOLLOWER_TARGET

    play_by_hand(scenario)


def test_scp_e1_the_leader_gets_the_leaders_target_and_the_others_the_base(play):
    async def scenario(stage: Stage) -> None:
        await a_leader_and_two_followers(stage)
        async with stage.running() as actor:
            await stage.recommend(actor, 3)
            assert await stage.target("lead") == LEADER_TARGET
            assert await stage.target("base") == FOLLOWER_TARGET
            await stage.update(actor, 4)
        assert await requests_of(stage, "db", 3) == [LEADER_TARGET, FOLLOWER_TARGET, FOLLOWER_TARGET]
        vpa = await stage.read_vpa("lead")
        assert vpa["status"]["observedGeneration"] == vpa["metadata"]["generation"]
        assert await stage.conditions("lead") == {"ComputedFor": "True", "RecommendationProvided": "True"}

    play(scenario)


def test_scp_e2_the_role_moves_and_its_profile_stays(play):
    async def scenario(stage: Stage) -> None:
        await a_leader_and_two_followers(stage)
        async with stage.running() as actor:
            await stage.recommend(actor, 3)
            await stage.update(actor, 4)
            await stage.label("db-0", role=None)
            await stage.label("db-1", role="leader")
            stage.use(db_0=FOLLOWER, db_1=LEADER, db_2=FOLLOWER)
            await stage.update(actor)
            assert await stage.memory("db-1") == LEADER_TARGET, "resized before any new sample"
            await stage.recommend(actor)
            assert await stage.target("lead") == LEADER_TARGET
            assert await stage.target("base") == FOLLOWER_TARGET
            uids = [(await stage.read_pod(f"db-{index}"))["metadata"]["uid"] for index in range(3)]
            # The old leader keeps its size until the base VPA's bounds, wide while it is young, exclude it.
            await stage.recommend(actor, 80, after=600)
            await stage.update(actor, 3)
            assert await requests_of(stage, "db", 3) == [FOLLOWER_TARGET, LEADER_TARGET, FOLLOWER_TARGET]
            after = [(await stage.read_pod(f"db-{index}"))["metadata"]["uid"] for index in range(3)]
            assert after == uids, "nothing was evicted"

    play(scenario)


def test_scp_e3_a_pod_that_matches_no_scope_is_left_alone_if_there_is_no_base_vpa(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("lead", "db", scope="leader")
        await stage.label("db-0", role="leader")
        stage.use(db_0=LEADER, db_1=FOLLOWER)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            await stage.update(actor, 2)
            assert await requests_of(stage, "db", 2) == [LEADER_TARGET, "50Mi"]
            assert not [one for one in await stage.events(actor) if one[1] == "db-1"]

    play(scenario)


def test_scp_e4_of_two_scopes_that_match_a_pod_the_older_wins_everywhere_and_both_are_warned_once(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.scope("gold", pods={"tier": "gold"})
        await stage.vpa("older", "db", scope="gold")
        await stage.pass_time(2)
        await stage.vpa("newer", "db", scope="leader")
        await stage.label("db-0", role="leader", tier="gold")
        stage.use(db_0=LEADER, db_1=FOLLOWER)
        async with stage.running() as actor:
            await stage.recommend(actor, 3)
            await stage.update(actor, 2)
            snapshot = await actor.site.view.control_snapshot()
            pod = actor.site.view.pods.get("db-0", stage.namespace)
            assert pod is not None
            claim = control_of(pod, snapshot.index, snapshot.owners, snapshot.nodes).claim
            assert claim is not None
            winner = claim.vpa.metadata.name
            loser = "newer" if winner == "older" else "older"
            if stage.outbound is not None:
                assert winner == "older"  # on the real server both were created within one second: by name
            assert await stage.target(winner) == LEADER_TARGET
            assert await stage.target(loser) is None
            assert await stage.memory("db-0") == LEADER_TARGET
            told = [(one[0], one[1]) for one in await stage.events(actor) if one[0] == "VPAScopeConflict"]
            assert told == [("VPAScopeConflict", "newer"), ("VPAScopeConflict", "older")]

    play(scenario)


def test_scp_e5_a_single_leader_is_resized_in_place_and_not_restarted(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 1)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("lead", "db", scope="leader", mode="InPlaceOrRecreate")
        await stage.label("db-0", role="leader")
        before = await stage.read_pod("db-0")
        stage.use(db_0=LEADER)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            await stage.update(actor)
            assert actor.wrote("/resize")
            assert not actor.wrote("/eviction")
            told = [one[0] for one in await stage.events(actor) if one[1] == "db-0"]
            assert told == ["InPlaceResizeRequested"]
            await stage.update(actor)
            told = [one[0] for one in await stage.events(actor) if one[1] == "db-0"]
            assert told == ["InPlaceResizeRequested", "InPlaceResizedByVPA"], "done, and told as done"
            assert len(actor.wrote("/resize")) == 1
        after = await stage.read_pod("db-0")
        assert await stage.memory("db-0") == LEADER_TARGET
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["containerStatuses"][0]["restartCount"] == 0
        assert after["metadata"]["annotations"]["vpaInPlaceUpdated"] == "true"

    play(scenario)


def test_scp_e6_a_lone_leader_whose_resize_is_infeasible_is_never_evicted(play_by_hand):
    """By hand, because our nodes have room for it."""

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 1)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("lead", "db", scope="leader", min_replicas=2)
        await stage.label("db-0", role="leader")
        stage.use(db_0=LEADER)
        async with stage.running(in_place_skip_disruption_budget=True) as actor:
            await stage.recommend(actor, 2)
            await stage.update(actor)
            assert await stage.memory("db-0") == LEADER_TARGET, "in place it may be changed"
            condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
            pod = await stage.read_pod("db-0")
            conditions = [*pod["status"]["conditions"], condition]
            await stage.set_status("db-0", conditions=conditions)
            stage.use(db_0="20e9")
            await stage.recommend(actor, 2)
            await stage.update(actor, 5)
            assert not actor.wrote("/eviction")

    play_by_hand(scenario)


@pytest.mark.parametrize(
    ("replicas", "selector"),
    [
        pytest.param(2, {"role": "active"}, id="SCP-E7 active and standby are sized independently"),
        pytest.param(5, {"load": "high"}, id="SCP-E8 only the hot shard of five grows"),
    ],
)
def test_one_pod_differs(play, replicas, selector):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", replicas)
        await stage.scope("special", pods=selector)
        await stage.vpa("base", "db")
        await stage.vpa("special", "db", scope="special")
        await stage.label("db-1", **selector)
        stage.use(**{f"db_{index}": LEADER if index == 1 else FOLLOWER for index in range(replicas)})
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            await stage.update(actor, replicas + 1)
        wanted = [LEADER_TARGET if index == 1 else FOLLOWER_TARGET for index in range(replicas)]
        assert await requests_of(stage, "db", replicas) == wanted

    play(scenario)


@pytest.mark.parametrize(
    ("followers", "target"),
    [
        pytest.param(2, LEADER_TARGET, id="one leader in three: everybody gets the leader's size"),
        pytest.param(19, FOLLOWER_TARGET, id="one leader in twenty: the leader starves"),
    ],
)
@in_virtual_time
async def test_without_scopes_one_vpa_sizes_all_alike(stage, followers, target):
    await stage.statefulset("db", followers + 1)
    await stage.vpa("plain", "db")
    stage.use(**{f"db_{index}": FOLLOWER for index in range(followers + 1)})
    stage.use(db_0=LEADER)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
    assert await stage.target("plain") == target


def test_scp_g1_with_the_gate_off_a_scoped_vpa_is_inert_and_never_speaks_for_the_whole_target(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("lead", "db", scope="leader")
        await stage.label("db-0", role="leader")
        stage.use(db_0=LEADER, db_1=FOLLOWER)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
        assert await stage.target("lead") == LEADER_TARGET
        async with stage.running(feature_gates="VPASelectorRefinement=false") as actor:
            await stage.recommend(actor, 2)
            await stage.update(actor, 3)
            assert not actor.wrote("/pods/")
        assert (await stage.conditions("lead"))["ConfigUnsupported"] == "True"
        assert await stage.target("lead") == LEADER_TARGET, "the last recommendation stays"
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            await stage.update(actor, 2)
        assert "ConfigUnsupported" not in await stage.conditions("lead")
        assert await requests_of(stage, "db", 2) == [LEADER_TARGET, "50Mi"]

    play(scenario)


def test_scp_n1_a_pod_that_takes_up_a_role_teaches_it_at_once_and_spoils_nothing(play):
    async def scenario(stage: Stage) -> None:
        await a_leader_and_two_followers(stage)
        async with stage.running() as actor:
            await stage.recommend(actor, 3)
            before = await stage.checkpoints()
            await stage.label("db-0", role=None)
            await stage.label("db-1", role="leader")
            stage.use(db_0="5e8", db_1="7e9")  # lower than what both used in their old roles
            await stage.recommend(actor, 2)
            await stage.pass_time(25 * 3600)  # the running memory windows close and are saved
            await stage.recommend(actor, 2)
            assert await stage.target("lead") == LEADER_TARGET
            after = await stage.checkpoints()
        assert (
            after["lead-app"]["status"]["totalSamplesCount"]
            > before["lead-app"]["status"]["totalSamplesCount"]
        )
        weights = after["lead-app"]["status"]["memoryHistogram"]["bucketWeights"]
        assert len(weights) >= 2, "the new leader's 7e9 stands beside the old one's 8e9"

    play(scenario)


def test_scp_n2_what_an_initial_vpa_controls_the_base_vpa_does_not_touch(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 3)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("base", "db", mode="Recreate")
        await stage.vpa("lead", "db", scope="leader", mode="Initial")
        await stage.label("db-0", role="leader")
        uid = (await stage.read_pod("db-0"))["metadata"]["uid"]
        stage.use(db_0=LEADER, db_1=FOLLOWER, db_2=FOLLOWER)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            for _ in range(4):
                await stage.update(actor)
                await stage.heal("db")
            assert actor.wrote("/eviction"), "the base VPA evicts its own"
        assert (await stage.read_pod("db-0"))["metadata"]["uid"] == uid

    play(scenario)


def test_scp_n3_without_its_scope_a_vpa_fails_closed_and_resumes_when_it_is_back(play):
    async def scenario(stage: Stage) -> None:
        await a_leader_and_two_followers(stage)
        async with stage.running() as actor:
            await stage.recommend(actor, 3)
            await stage.update(actor)
            saved = (await stage.checkpoints())["lead-app"]["status"]["firstSampleStart"]
            await stage.delete_scope("leader")
            await stage.recommend(actor, 2)
            assert (await stage.conditions("lead"))["ConfigUnsupported"] == "True"
            assert await stage.target("lead") == LEADER_TARGET
            pod = actor.site.view.pods.get("db-0", stage.namespace)
            snapshot = await actor.site.view.control_snapshot()
            assert pod is not None
            control = control_of(pod, snapshot.index, snapshot.owners, snapshot.nodes)
            assert control.key is None, "NV-3: without its scope it is not known whose pod it is"
            sizes = await requests_of(stage, "db", 3)
            for _ in range(3):
                await stage.update(actor)
                await stage.recommend(actor, 1)
            assert await requests_of(stage, "db", 3) == sizes
            assert not actor.wrote("/eviction")
            assert await stage.target("base") == FOLLOWER_TARGET, "nobody learns from the leader"
            await stage.scope("leader", pods={"role": "leader"})
            await stage.recommend(actor, 2)
            assert "ConfigUnsupported" not in await stage.conditions("lead")
            assert await stage.target("lead") == LEADER_TARGET
            assert (await stage.checkpoints())["lead-app"]["status"]["firstSampleStart"] == saved

    play(scenario)


def test_scp_n4_two_vpas_of_one_workload_share_one_budget(play):
    async def scenario(stage: Stage) -> None:
        await a_leader_and_two_followers(stage, mode="Recreate")
        async with stage.running(max_evictions_per_minute=0) as actor:
            await stage.recommend(actor, 2)
            evicted: list[str] = []
            for _ in range(3):
                before = len(actor.wrote("/eviction"))
                await stage.update(actor)
                now = actor.wrote("/eviction")[before:]
                assert len(now) <= 1, "one pod of three at a time, whichever VPA asks"
                evicted += [one["metadata"]["name"] for one in now]
                for pod in await stage.heal("db"):
                    if pod == "db-0":
                        await stage.label("db-0", role="leader")
            assert set(evicted) >= {"db-0"}, "the leader's VPA can act"
            assert len(evicted) == 3, "and so can the base VPA"

    play(scenario)


def test_scp_r1_after_a_restart_a_role_has_its_profile_from_its_checkpoint(play):
    async def scenario(stage: Stage) -> None:
        await a_leader_and_two_followers(stage)
        async with stage.running() as actor:
            await stage.recommend(actor, 3)
            await stage.pass_time(25 * 3600)
            await stage.recommend(actor, 2)
        saved = (await stage.checkpoints())["lead-app"]
        assert saved["spec"] == {"vpaObjectName": "lead", "containerName": "app"}
        assert saved["status"]["version"] == "v3"
        stage.metrics.usage.clear()  # nothing is measured any more
        async with stage.running() as actor:
            await stage.recommend(actor)
            assert await stage.target("lead") == LEADER_TARGET
            assert await stage.target("base") == FOLLOWER_TARGET
        again = (await stage.checkpoints())["lead-app"]["status"]
        assert again["firstSampleStart"] == saved["status"]["firstSampleStart"]
        assert again["totalSamplesCount"] == saved["status"]["totalSamplesCount"]

    play(scenario)


@pytest.mark.controllers
def test_scp_s1_each_class_of_nodes_has_its_own_target(play):
    async def scenario(stage: Stage) -> None:
        nodes = [await stage.node("fast", size="large"), await stage.node("slow", size="small")]
        await stage.daemonset("agent", "size")
        pods = await stage.pods_on(nodes)
        await stage.scope("large", nodes={"size": "large"})
        await stage.vpa("base", "agent", kind="DaemonSet")
        await stage.vpa("large", "agent", kind="DaemonSet", scope="large")
        stage.use(**dict(zip(pods, (LEADER, FOLLOWER), strict=True)))
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            assert await stage.target("large") == LEADER_TARGET
            assert await stage.target("base") == FOLLOWER_TARGET
            await stage.update(actor, 3)
        assert [await stage.memory(pod) for pod in pods] == [LEADER_TARGET, FOLLOWER_TARGET]

    play(scenario)
