"""The past taken in at once equals the past lived through, role by role; where nobody can tell, nobody learns."""

import pytest

from tests.unit.decide.vertical.policy_builders import index, scope, vpa, world
from tests.unit.decide.vertical.usage_builders import HOUR_NS, START_NS, Load, Recommender, member
from trimtab.decide.vertical.input.history import HistoryContext, add_history, covers
from trimtab.decide.vertical.input.history_pods import HistoricalPods
from trimtab.decide.vertical.input.usage import Capacity
from trimtab.model.usage_history import ContainerName, Labelled, UsageHistory

BUSY, IDLE = Load(4000, 8 * 10**9), Load(300, 10**9)
HOURS = 48
NODE = Capacity(64_000, 256 * 10**9)
SCOPES = (scope("leader", pods={"role": "leader"}),)
NAMES = ("db-0", "db-1", "db-2")


def leader_at(hour: int) -> str:
    return NAMES[hour // 10 % 3]


def pods_at(hour: int):
    return [member(name, "leader" if name == leader_at(hour) else "follower") for name in NAMES]


def loads_at(hour: int) -> dict[str, Load]:
    # Loads that differ from hour to hour, so that a lost or doubled sample shows.
    return {
        name: Load(base.millicores + 7 * hour, base.memory + 10**6 * hour)
        for name in NAMES
        for base in [BUSY if name == leader_at(hour) else IDLE]
    }


def recommender(*more, scopes=SCOPES) -> Recommender:
    return Recommender([vpa("base"), vpa("leader", scope="leader"), *more], scopes)


def lived() -> Recommender:
    model = recommender()
    model.now_ns = START_NS - HOUR_NS
    for hour in range(HOURS):
        model.observe(pods_at(hour))
        model.scrape(loads_at(hour), minutes=60)
    return model


def history(labels=None, hours=HOURS) -> UsageHistory:
    def series(pick):
        return {
            ContainerName(name, "app"): tuple(pick(loads_at(hour)[name]) for hour in range(hours))
            for name in NAMES
        }

    told = {
        name: tuple(
            Labelled(hour, pod.metadata.labels)
            for hour in range(hours)
            if hour % 10 == 0
            for pod in pods_at(hour)
            if pod.name == name
        )
        for name in NAMES
    }
    return UsageHistory(
        "shop",
        tuple(START_NS + hour * HOUR_NS for hour in range(hours)),
        cpu=series(lambda load: load.millicores / 1000),
        memory=series(lambda load: float(load.memory)),
        labels=told if labels is None else labels,
    )


def take(model: Recommender, past: UsageHistory, present):
    model.now_ns = past.times_ns[-1]
    model.observe(present)
    seen = world(model.vpas, present, model.scopes, nodes=model.nodes)
    pods = HistoricalPods(
        "shop",
        index(seen, model.gates, model.rules),
        seen.owners(),
        seen.nodes,
        live={pod.name: pod for pod in present},
        recorded_labels=past.label_keys,
    )
    return add_history(model.state, past, HistoryContext(pods.attribute, lambda _: NODE), model.now_ns)


def target(model: Recommender, name: str) -> int:
    return model.targets()[name] or 0


def test_history_taken_in_at_once_equals_history_lived_through():
    model, other = recommender(), lived()
    done = take(model, history(), pods_at(HOURS - 1))
    assert (done.samples, done.skipped_pods) == (2 * 3 * HOURS, [])
    for name in ("base", "leader"):
        assert model.buckets(name) == other.buckets(name)
    assert model.targets() == other.targets()
    assert model.targets("cpu") == other.targets("cpu")


def test_what_a_pod_did_as_leader_does_not_follow_it_into_its_present_role():
    """Keyed by last labels, as upstream has it, the base VPA would inherit the leader's eight gigabytes."""
    model = recommender()
    take(model, history(), [member(name, "follower") for name in NAMES])
    assert target(model, "base") < 2 * 10**9 < 8 * 10**9 < target(model, "leader")


def test_a_pod_that_is_gone_taught_the_target_whose_selector_its_labels_match():
    model = recommender()
    done = take(model, history(), [member("db-9", "follower")])
    assert done.skipped_pods == []
    assert target(model, "leader") > 8 * 10**9
    assert [str(pod) for pod in model.state.pods] == ["{shop db-9}"]


def test_without_labels_of_the_time_nobody_learns_where_roles_depend_on_them():
    model = recommender()
    done = take(model, history(labels={}), pods_at(HOURS - 1))
    assert done.skipped_pods == list(NAMES)
    assert model.targets() == {"base": None, "leader": None}


def test_without_labels_of_the_time_the_present_ones_do_where_no_role_depends_on_them():
    model = Recommender([vpa("base")])
    done = take(model, history(labels={}), [member(name) for name in NAMES])
    assert done.skipped_pods == []
    assert target(model, "base") > 8 * 10**9


def test_labels_that_prometheus_does_not_keep_are_those_of_the_living_pod():
    """kube_pod_labels has only the labels that somebody allowed."""
    bare = {
        name: tuple(Labelled(turn.since, {"role": (turn.labels or {})["role"]}) for turn in turns)
        for name, turns in history().labels.items()
    }
    model, other = recommender(), recommender()
    take(model, history(labels=bare), pods_at(HOURS - 1))
    take(other, history(), pods_at(HOURS - 1))
    assert model.targets() == other.targets()


@pytest.mark.parametrize("amount", [float("nan"), 1e12])
def test_what_no_node_could_hold_and_what_was_not_measured_is_left_out(amount):
    past = history(hours=3)
    spoilt = {name: (values[0], amount, values[2]) for name, values in past.memory.items()}
    model = recommender()
    done = take(model, UsageHistory("shop", past.times_ns, past.cpu, spoilt, past.labels), pods_at(2))
    assert done.samples == 9 + 6
    assert 8 * 10**9 < target(model, "leader") < 10**10


def test_a_step_in_which_the_role_changed_teaches_nobody():
    past = history(hours=3)
    leader, follower = ({"app": "db", "role": role} for role in ("leader", "follower"))
    turns = (Labelled(0, leader), Labelled(1, None), Labelled(2, follower))
    model = recommender()
    done = take(
        model,
        UsageHistory("shop", past.times_ns, past.cpu, past.memory, {**past.labels, "db-0": turns}),
        pods_at(2),
    )
    assert (done.samples, done.skipped_pods) == (2 * 3 * 3 - 2, [])


MINUTE = 60 * 10**9


@pytest.mark.parametrize(
    ("first", "saved", "want"),
    [
        pytest.param(0, 0, True, id="it begins where the checkpoint does"),
        pytest.param(7 * MINUTE, 5 * MINUTE, True, id="two steps later"),
        pytest.param(7 * MINUTE + 1, 5 * MINUTE, False, id="more than two steps later"),
        pytest.param(12 * MINUTE, 0, True, id="two steps after its own first moment"),
        pytest.param(12 * MINUTE + 1, 0, False, id="later than its own first moment, too"),
    ],
)
def test_a_history_covers_a_checkpoint_up_to_two_steps(first, saved, want):
    begins = 10 * MINUTE if saved == 0 and first else 0
    past = UsageHistory(namespace="shop", times_ns=(begins, begins + MINUTE))
    assert covers(past, first, saved) is want


def test_a_history_without_a_step_tolerates_nothing():
    empty = UsageHistory(namespace="shop")
    assert covers(empty, 5, 4)
    single = UsageHistory(namespace="shop", times_ns=(3,))
    assert covers(single, 4, 4)
    assert not covers(single, 5, 4)
