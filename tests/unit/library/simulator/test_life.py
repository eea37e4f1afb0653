"""Production code decides about the pods of a life, and what came of it adds up."""

from datetime import timedelta

import pytest

from tests.support.objects import scope, target_of, vpa
from trimtab.library.simulator.life import UPSTREAM_RULES, Life, settings_of
from trimtab.library.simulator.load import LoadByFunction
from trimtab.library.simulator.vpa_runs import Refusal, Updater
from trimtab.library.simulator.workload import Workload
from trimtab.library.trace import RELATIVE_START
from trimtab.model.json import wire
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAScope

HOUR = 3600.0
LEADER, FOLLOWER = (2000, 8_000_000_000), (300, 1_000_000_000)


def read(body, kind):
    return wire.convert(body | {"metadata": {"namespace": "default", **body["metadata"]}}, kind)


def used(pod, now):
    return {"app": LEADER if pod.labels.get("role") == "leader" else FOLLOWER}


def leadership(compat="", *, mode="InPlaceOrRecreate", limits=None, **settings):
    """Make a database of three pods with a leader, and a VPA for each role."""
    resources = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": limits or {}}
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "app", "resources": resources}]},
    }
    workload = Workload("db", template, kind="StatefulSet", replicas=3, now=RELATIVE_START)
    workload.label(workload.pods[0], {"role": "leader"}, RELATIVE_START)
    on, policy = target_of("StatefulSet", "db"), {"minReplicas": 1}
    bodies = [
        vpa("base", on=on, mode=mode, policy=policy),
        vpa("lead", on=on, mode=mode, policy=policy, vpaScope={"name": "leader"}),
    ]
    return Life(
        workload,
        LoadByFunction(used),
        settings_of(compat, **settings),
        vpas=[read(body, VerticalPodAutoscaler) for body in bodies],
        scopes=[read(scope("leader", pods={"role": "leader"}), VPAScope)],
    )


def memory_of(life, name):
    entries = life.vpas[f"default/{name}"].status.recommendation.container_recommendations
    return entries[0].target["memory"].value()


def test_a_new_leader_has_its_size_a_second_after_the_move():
    life = leadership()
    life.at(1.5 * HOUR, lambda life: life.move_role("db-1"))
    life.run(2 * HOUR)
    resized = {at - life.start: size for at, (size,) in life.sizes["db-1"]}
    first = min(at for at in resized if at >= 1.5 * HOUR)
    assert first - 1.5 * HOUR <= 5 + 1 + 2, "the pauses of the updater, and the kubelet's"
    assert resized[first].memory == memory_of(life, "lead")


def test_the_same_life_leaves_the_same_log():
    first, second = (leadership() for _ in range(2))
    for life in (first, second):
        life.at(0.5 * HOUR, lambda life: life.kill("db-0", "OOMKilled"))
        life.run(HOUR)
    assert first.log == second.log
    assert (first.outcomes, first.sizes) == (second.outcomes, second.sizes)


@pytest.mark.parametrize("compat", ["", UPSTREAM_RULES])
def test_updates_that_are_left_out_would_have_done_nothing(compat, monkeypatch):
    def lived():
        life = leadership(compat, in_bounds_lifetime=timedelta(hours=1))
        life.at(0.7 * HOUR, lambda life: life.move_role("db-1"))
        life.at(1.2 * HOUR, lambda life: life.kill("db-2", "OOMKilled"))
        life.run(2.5 * HOUR)
        return life.log, life.sizes, life.outcomes

    found = lived()
    monkeypatch.setattr(Updater, "quiet_until", lambda self: self._view_api.now)
    assert lived() == found


@pytest.mark.parametrize(
    ("refusal", "evictions"),
    [
        pytest.param(Refusal(500, "the webhook is away"), 0, id="after an error nothing is evicted"),
        pytest.param(Refusal(403, "exceeded quota"), 0, id="a quota would refuse the replacement too"),
    ],
)
def test_a_resize_that_the_server_refuses(refusal, evictions):
    life = leadership()
    life.refusals["resize"] = refusal
    life.run(HOUR)
    assert (life.outcomes.resizes, life.outcomes.evictions) == (0, evictions)
    assert life.outcomes.refused > 10


def test_a_budget_refuses_evictions():
    kept, free = leadership(mode="Recreate"), leadership(mode="Recreate")
    kept.min_available = 3
    for life in (kept, free):
        life.run(HOUR)
    assert kept.outcomes.evictions == 0 < free.outcomes.evictions
    assert kept.outcomes.refused > 0


def test_limits_throttle_and_kill():
    life = leadership(limits={"cpu": "1", "memory": "6Gi"}, mode="Off").run(600)
    assert life.outcomes.throttled_minutes > 0
    assert life.outcomes.oom_kills > 2
    assert life.outcomes.used["cpu"] < 10 / 60 * (1 + 0.3 + 0.3), "usage is cut at the limit"


def test_a_recommender_that_restarts_goes_on_from_its_checkpoints():
    fresh, without = leadership(mode="Off"), leadership(mode="Off")
    for life, checkpoints in ((fresh, "fresh"), (without, "none")):
        life.at(3 * HOUR, lambda life: life.stop("recommender"))
        life.at(3 * HOUR, lambda life: setattr(life.load, "used", lambda pod, now: {"app": FOLLOWER}))
        life.at(3.2 * HOUR, lambda life, found=checkpoints: life.begin("recommender", checkpoints=found))
        life.run(4 * HOUR)
    assert memory_of(fresh, "lead") > 8e9 > memory_of(without, "lead")


def test_metrics_that_are_missing_reach_nobody():
    silent = leadership(mode="Off")
    silent.missing = {"usage"}
    silent.run(HOUR)
    assert silent.vpas["default/base"].status.recommendation.container_recommendations == ()
    assert silent.outcomes.used["cpu"] > 0
