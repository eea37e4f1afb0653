"""A day of role moves, slow starts, deferrals, refusals, lost answers and crashes: enough pods are Ready at any moment."""

from collections import Counter
from datetime import timedelta

import pytest

from tests.unit.decide.vertical.kubelets import SIZES, TICK, Cluster, Updater, Workload
from trimtab.decide.vertical.update.lost_responses import LAST_CHECK

SEEDS = 40
HOURS = 6
SETTLING_HOURS = 8
LOOP = timedelta(minutes=1)
LONGEST_LOSS = LAST_CHECK + LOOP + 2 * TICK


def play(seed: int) -> Cluster:
    """Play some hours; after each tick enough pods must be Ready."""
    work = Workload.of(seed)
    cluster, dice = Cluster(work), work.dice
    updater = Updater(cluster)
    for tick in range(int(timedelta(hours=HOURS) / TICK)):
        cluster.tick()
        if dice.random() < 0.01:
            cluster.move_role(dice.randrange(work.replicas))
        if dice.random() < 0.003:
            cluster.targets[dice.choice(["base", "leader"])] = dice.choice(SIZES)
        if dice.random() < 0.005:
            updater.crash()
        if tick % int(LOOP / TICK) == 0 or dice.random() < 0.05:
            crash_after = dice.randint(1, 2) if dice.random() < 0.05 else None
            updater.loop(crash_after=crash_after, is_late=dice.random() < 0.2)
            assert updater.longest_loss() <= LONGEST_LOSS, "a lost answer holds its place for good"
        assert cluster.ready() >= work.floor, f"{cluster.ready()} of {work.replicas} Ready at {cluster.now}"
    return cluster


@pytest.mark.parametrize("seed", range(SEEDS))
def test_at_no_moment_are_fewer_pods_ready_than_the_budget_allows(seed):
    cluster = play(seed)
    assert set(cluster.log) & {"resize", "evict"}, "something was done at all"


def test_what_is_played_holds_all_that_should_be_played():
    log: Counter[str] = Counter()
    for seed in range(12):
        log.update(play(seed).log)
    assert log["resize"] > 100
    assert log["evict"] > 50
    assert log["crash"] > 50
    assert log["lost answer"] > 25
    assert log["carried out late"] > 5


@pytest.mark.parametrize("seed", range(0, SEEDS, 3))
def test_once_roles_rest_and_nodes_have_room_every_pod_gets_its_size(seed):
    """What waits, was refused or was interrupted holds nothing up for good."""
    cluster = play(seed)
    cluster.is_generous = True
    # A size that a node could not hold is asked for again only when something is lower.
    cluster.targets = {"base": "512Mi", "leader": "768Mi"}
    updater = Updater(cluster)
    for tick in range(int(timedelta(hours=SETTLING_HOURS) / TICK)):
        cluster.tick()
        if tick % int(LOOP / TICK) == 0:
            updater.loop()
    for name, pod in cluster.pods.items():
        given = pod["status"]["containerStatuses"][0]["resources"]
        wanted = cluster.targets["leader" if name == f"db-{cluster.leader}" else "base"]
        assert given["requests"]["memory"] == wanted, name
        if cluster.work.has_limits:
            assert given["limits"]["memory"] == wanted, "in the ratio that the template has"
