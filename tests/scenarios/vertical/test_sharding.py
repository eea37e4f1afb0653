"""Several copies share the VPAs out: each has one recommender at any time, and no history is lost on the way."""

from datetime import timedelta

from tests.scenarios.copies import owners_in_turn
from tests.scenarios.vertical.sharing import SHARDS, Copy, Troupe, with_troupe
from tests.scenarios.vertical.stage import FOLLOWER, FOLLOWER_TARGET, LEADER, LEADER_TARGET, Stage
from tests.scenarios.vertical.test_history import database, loader
from tests.scenarios.vertical.test_roles_from_leases import hold, roles
from trimtab.cluster.leases.family import rank
from trimtab.decide.vertical.control.role_labels import LEASE_ANNOTATION
from trimtab.model.times import format_time
from trimtab.operator.vertical.wiring import UPDATING_SHARD, make_roles

CPU, MEMORY = 1, 2
"""Places in what a troupe was told."""
LOOP, LEASE, LOOK = 12.0, 15.0, 2.5
NAMES = [f"db-{number}" for number in range(8)]
BUSY, IDLE = ("800m", "4e9"), ("100m", "500e6")
"""CPU and memory of a pod."""


async def workloads(stage: Stage, names: list[str] = NAMES) -> None:
    for name in names:
        await stage.statefulset(name, 1)
        await stage.vpa(name, name, mode="Off")
    use(stage, BUSY, names)


def use(stage: Stage, load: tuple[str, str], names: list[str] = NAMES) -> None:
    cpu, memory = load
    stage.use(cpu, **{f"{name}-0": memory for name in names})


def number(amount: object) -> float:
    text = str(amount)
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def assert_no_jump(troupe: Troupe, since: float) -> None:
    """From a moment on every VPA has a target of CPU and memory, and it never leaves where it was by a tenth."""
    for name, told in troupe.told.items():
        for place in (CPU, MEMORY):
            seen = [one[place] for one in told if one[0] >= since]
            assert None not in seen, f"{name} was without a recommendation"
            amounts = [number(one) for one in seen]
            assert max(amounts) <= 1.1 * min(amounts), (name, amounts)


def test_three_copies_share_the_vpas_and_one_killed_is_replaced_without_a_jump(play_lab):
    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        await workloads(stage)
        copies = [
            troupe.add(name, recommender_interval=timedelta(seconds=LOOP)) for name in ("one", "two", "three")
        ]
        await troupe.pass_time(30, NAMES)
        assert [len(copy.shards.held()) for copy in copies] == [2, 2, 2]
        await troupe.pass_time(20 * LOOP, NAMES)
        settled = stage.clock.monotonic()
        assert set(troupe.written(settled - LOOP - 1)) == set(NAMES)

        # What was used until now is known only from history: whoever lost it would recommend far less.
        use(stage, IDLE)
        await troupe.pass_time(2 * LOOP, NAMES)
        victim = max(copies, key=lambda copy: sum(copy.owns(name) for name in NAMES))
        orphaned = {name for name in NAMES if victim.owns(name)}
        victim.crash()
        assert orphaned
        # One look may pass before the last renewal is seen, another before it is seen to have run out.
        await troupe.pass_time(LEASE + 3 * LOOK, NAMES, step=2.5)
        assert all(any(copy.recommends(name) for copy in troupe.living) for name in orphaned)
        await troupe.pass_time(6 * LOOP, NAMES)

        for name, writes in troupe.written(settled).items():
            assert len(owners_in_turn(writes)) == (2 if name in orphaned else 1), (name, writes)
        assert sum(len(copy.shards.held()) for copy in troupe.living) == SHARDS
        assert troupe.most_owners == 1
        assert_no_jump(troupe, settled)

    with_troupe(play_lab, act)


def test_a_copy_that_joins_and_one_that_leaves_hand_over_every_sample(play_lab):
    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        await workloads(stage)
        # Far longer than the play: nothing is saved because it is due.
        one = troupe.add(
            "one", checkpoints_interval=timedelta(hours=5), recommender_interval=timedelta(seconds=LOOP)
        )
        await troupe.pass_time(10 * LOOP, NAMES)
        settled = stage.clock.monotonic()
        assert len(one.shards.held()) == SHARDS
        use(stage, IDLE)
        two = troupe.add(
            "two", checkpoints_interval=timedelta(hours=5), recommender_interval=timedelta(seconds=LOOP)
        )
        await troupe.pass_time(4 * LOOP, NAMES)
        assert len(two.shards.held()) == SHARDS // 2
        moved = {name for name in NAMES if two.owns(name)}
        assert moved
        saved = await stage.checkpoints()
        for name in NAMES:
            # One sample per loop since the start; those that stayed were saved once, when they were new.
            samples = saved[f"{name}-app"]["status"]["totalSamplesCount"]
            assert samples >= 10 if name in moved else samples == 1
        await one.stop()
        await troupe.pass_time(3 * LOOP, NAMES)
        assert len(two.shards.held()) == SHARDS
        saved = await stage.checkpoints()
        assert all(saved[f"{name}-app"]["status"]["totalSamplesCount"] >= 10 for name in NAMES)
        for writes in troupe.written(settled).values():
            assert owners_in_turn(writes) in (["one", "two"], ["two"])
        assert troupe.most_owners == 1
        assert_no_jump(troupe, settled)

    with_troupe(play_lab, act)


def shard_apart(stage: Stage, first: str) -> str:
    """Return a name whose VPA is in another shard than `first`."""

    def shard(name: str) -> int:
        return max(range(SHARDS), key=lambda number: rank(f"{stage.namespace}/{name}", number))

    return next(name for number in range(99) if shard(name := f"lead-{number}") != shard(first))


def test_the_roles_of_one_workload_keep_their_sizes_though_two_copies_recommend_them(play_lab):
    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        lead = shard_apart(stage, "base")
        await stage.statefulset("db", 3)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("base", "db")
        await stage.vpa(lead, "db", scope="leader")
        await stage.label("db-2", role="leader")
        stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=LEADER)
        every = timedelta(seconds=LOOP)
        # As many as shards: whatever the hash says, the two VPAs have different owners.
        copies = [troupe.add(f"copy-{number}", recommender_interval=every) for number in range(SHARDS)]
        await troupe.pass_time(8 * LOOP, ["base", lead])
        settled = stage.clock.monotonic()
        assert (await stage.target("base"), await stage.target(lead)) == (FOLLOWER_TARGET, LEADER_TARGET)
        for name in ("base", lead):
            next(copy for copy in copies if copy.owns(name)).crash()
        # Nobody is left whose model knows either role.
        await troupe.pass_time(6 * LOOP, ["base", lead])
        assert (await stage.target("base"), await stage.target(lead)) == (FOLLOWER_TARGET, LEADER_TARGET)
        assert_no_jump(troupe, settled)
        assert troupe.most_owners == 1

    with_troupe(play_lab, act)


def test_history_in_prometheus_is_read_once_for_all_shares_that_come_together(play_lab):
    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        prometheus = await database(stage)
        troupe.add("one", loader(stage, prometheus), recommender_interval=timedelta(seconds=LOOP))
        await troupe.pass_time(2 * LOOP, ["base", "lead"])
        assert (await stage.target("base"), await stage.target("lead")) == (FOLLOWER_TARGET, LEADER_TARGET)
        # One namespace: CPU, memory and labels, and once more for a share that came a moment later.
        assert prometheus.asked in {3, 6}

    with_troupe(play_lab, act)


def test_one_copy_updates_at_a_time_and_the_next_one_when_it_is_gone(play_lab):
    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        await stage.statefulset("db", 3)
        await stage.vpa("base", "db", mode="InPlaceOrRecreate")
        stage.use(**{f"db_{number}": LEADER for number in range(3)})
        every = timedelta(seconds=LOOP)
        for name in ("one", "two", "three"):
            copy = Copy(stage, name, recommender_interval=every, updater_interval=every)
            troupe.copies.append(copy)
            copy.start(copy.actor.recommender.run, copy.actor.updater.run)
        await troupe.pass_time(12 * LOOP, ["base"])
        (first,) = resizers(troupe)
        assert UPDATING_SHARD in first.shards.held()
        first.crash()
        await stage.scale("db", 4)
        await stage.heal("db")
        stage.use(db_3=LEADER)
        await troupe.pass_time(12 * LOOP, ["base"])
        (second,) = set(resizers(troupe)) - {first}
        assert UPDATING_SHARD in second.shards.held()

    with_troupe(play_lab, act)


def resizers(troupe: Troupe) -> list[Copy]:
    """Return the copies that changed pods."""
    return [copy for copy in troupe.copies if any(kind == "pods" for _, kind, _ in copy.writes)]


def test_a_role_is_kept_by_one_copy_and_moves_on_when_that_one_is_gone(play_lab):
    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
        await stage.vpa("base", "db")
        for name in ("one", "two"):
            copy = Copy(stage, name)
            troupe.copies.append(copy)
            copy.start(make_roles(copy.actor.site).run)
        await troupe.pass_time(20, ["base"])
        for leader in ("db-1", "db-2"):
            for _ in range(6):
                await hold(stage, leader)
                await troupe.pass_time(5, ["base"])
            assert await roles(stage) == [
                "leader" if f"db-{number}" == leader else None for number in range(3)
            ]
            keeper = next(
                copy for copy in troupe.living if copy.shards.of(f"{stage.namespace}/db").may_write()
            )
            assert [copy for copy in resizers(troupe) if not copy.is_dead] == [keeper]
            keeper.crash()
            for _ in range(5):
                await hold(stage, leader)
                await troupe.pass_time(5, ["base"])

    with_troupe(play_lab, act)


def test_a_kill_for_memory_while_nobody_recommends_is_not_lost(play_lab):
    async def act(troupe: Troupe) -> None:
        stage = troupe.stage
        await workloads(stage, ["db-0"])
        copies = [troupe.add(name, recommender_interval=timedelta(seconds=LOOP)) for name in ("one", "two")]
        await troupe.pass_time(6 * LOOP, ["db-0"])
        before = number(await stage.target("db-0"))
        next(copy for copy in copies if copy.owns("db-0")).crash()
        # Its loops go on, and see the kill, before the share is theirs.
        await stage.run_pod("db-0-0", restarts=1, oom_at=format_time(stage.clock.now()))
        await troupe.pass_time(LEASE + 3 * LOOK + LOOP, ["db-0"], step=2.5)
        assert number(await stage.target("db-0")) >= 1.1 * before

    with_troupe(play_lab, act)
