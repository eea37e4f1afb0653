"""Out-of-memory kills: which are counted, which wait for the next step, and which the last leader counted."""

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.usage_builders import Recommender, member
from trimtab.decide.vertical.cluster_state.cluster import PodId
from trimtab.decide.vertical.input.oom import OOM
from trimtab.model import times
from trimtab.model.json import wire
from trimtab.model.metrics_api import PodMetricsList
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.oom_watcher import Kill
from trimtab.operator.vertical.recommender.samples import SampleFeeder
from trimtab.operator.vertical.recommender.usage import PodCapacities

PERIOD_NS = 60 * times.SECOND_NS
HAND_OVER_NS = 120 * times.SECOND_NS


class World:
    """Two pods of one VPA, and kills that a test adds."""

    def __init__(self, *, is_whole: bool = True) -> None:
        self.recommender = Recommender([vpa("base"), vpa("new")])
        self.recommender.observe([member("db-0"), member("db-1")])
        self.now_ns = self.recommender.now_ns
        self.receivers: dict[str, tuple[str, ...]] = {}
        self.saved: dict[str, int] = {}
        self.waiting: tuple[Kill, ...] = ()
        self.judged: list[int] = []
        self.is_whole = is_whole
        itself: Any = self
        metrics: Any = SimpleNamespace(quality=self, refused=RecommenderMetrics(CollectorRegistry()).refused)
        self.feeder = SampleFeeder(itself, itself, itself, itself, itself, metrics)

    def kill(
        self, pod: str = "db-0", ago: int = 0, namespace: str = "shop", *, is_missed: bool = False
    ) -> Kill:
        oom = OOM(namespace, pod, "app", self.now_ns - ago, 2**30)
        return Kill(oom, needs_checkpoint=is_missed and ago >= HAND_OVER_NS)

    def take(self) -> tuple[Kill, ...]:
        taken, self.waiting = self.waiting, ()
        return taken

    def put_back(self, kills: tuple[Kill, ...]) -> None:
        self.waiting = kills

    def states_of(self, pod: PodId) -> tuple[Any, ...]:
        return (self.recommender.state,) if pod in self.recommender.state.pods else ()

    def receivers_of(self, pod: PodId) -> tuple[str, ...]:
        return self.receivers.get(pod.name, ())

    def saved_until(self, name: Any) -> int:
        return self.saved[str(name)]

    def judge(self, _state: Any, _expected: Any, _resource: str, needed: Any, *, is_oom: bool) -> None:
        assert is_oom
        self.judged += np.asarray(needed.containers).tolist()

    def add(self, *kills: Kill, waiting: frozenset[str] = frozenset()) -> list[str]:
        """Return the pods whose kills were counted."""
        self.waiting, self.judged = kills, []
        expected: Any = {self.recommender.state: None}
        self.feeder.add_ooms(waiting, expected, PodCapacities({}, lambda _pod: ""), self.now_ns, PERIOD_NS)
        rows = {
            tracked.history.row: pod.name
            for pod, known in self.recommender.state.pods.items()
            for tracked in known.containers.values()
        }
        return [rows[row] for row in self.judged]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_kill_that_waits_hides_none_after_it(is_first):
    world = World()
    held, counted = world.kill(namespace="mail"), world.kill("db-1")
    kills = (held, counted) if is_first else (counted, held)
    assert world.add(*kills, waiting=frozenset({"mail"})) == ["db-1"]
    assert world.waiting == (held,)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_kill_that_the_last_leader_counted_hides_none_after_it(is_first):
    world = World()
    world.receivers = {"db-0": ("shop/base",)}
    world.saved = {"shop/base": world.now_ns}
    old, counted = world.kill(ago=PERIOD_NS + 1), world.kill("db-1")
    assert world.add(*((old, counted) if is_first else (counted, old))) == ["db-1"]
    assert world.waiting == ()


@pytest.mark.parametrize(
    ("saved", "ago", "is_counted"),
    [
        pytest.param({"shop/base": 0}, PERIOD_NS + 1, False, id="saved after it"),
        pytest.param({"shop/base": 0}, PERIOD_NS, True, id="in the last step before the checkpoint"),
        pytest.param({"shop/base": -PERIOD_NS}, PERIOD_NS + 1, True, id="saved before it"),
        pytest.param(
            {"shop/base": 0, "shop/new": -10 * PERIOD_NS},
            PERIOD_NS + 1,
            True,
            id="one of two saved before it",
        ),
        pytest.param({}, 5 * PERIOD_NS, True, id="a pod that feeds no VPA"),
        pytest.param(
            {"shop/base": 0, "shop/elsewhere": -10 * PERIOD_NS},
            PERIOD_NS + 1,
            False,
            id="a VPA of another shard, whose checkpoints are not loaded here, does not matter",
        ),
    ],
)
def test_a_kill_counts_unless_every_vpa_of_the_pod_has_it(saved, ago, is_counted):
    world = World()
    world.receivers = {"db-0": tuple(saved)}
    world.saved = {name: world.now_ns + since for name, since in saved.items()}
    assert world.add(world.kill(ago=ago)) == (["db-0"] if is_counted else [])


UNSAVED = None


@pytest.mark.parametrize(
    ("saved", "ago", "is_counted"),
    [
        pytest.param({"shop/base": -10 * PERIOD_NS}, 5 * PERIOD_NS, True, id="after the last checkpoint"),
        pytest.param({"shop/base": -10 * PERIOD_NS}, 12 * PERIOD_NS, False, id="before it"),
        pytest.param({"shop/base": UNSAVED}, HAND_OVER_NS - 1, True, id="a VPA without one, just now"),
        pytest.param({"shop/base": UNSAVED}, HAND_OVER_NS, False, id="perhaps from before the VPA"),
        pytest.param(
            {"shop/base": -10 * PERIOD_NS, "shop/new": UNSAVED},
            5 * PERIOD_NS,
            True,
            id="one of two VPAs lacks it",
        ),
        pytest.param({}, HAND_OVER_NS, False, id="an old kill of a pod that feeds no VPA"),
    ],
)
def test_a_kill_that_a_gained_pod_shows_counts_if_a_checkpoint_lacks_it(saved, ago, is_counted):
    world = World(is_whole=False)
    world.receivers = {"db-0": tuple(saved)}
    world.saved = {name: 0 if since is UNSAVED else world.now_ns + since for name, since in saved.items()}
    assert world.add(world.kill(ago=ago, is_missed=True)) == (["db-0"] if is_counted else [])


@pytest.mark.parametrize(
    ("is_whole", "pod", "ago", "is_kept"),
    [
        pytest.param(False, "db-9", 0, True, id="a pod of another replica"),
        pytest.param(False, "db-9", HAND_OVER_NS - 1, True, id="for the time of a hand-over"),
        pytest.param(False, "db-9", HAND_OVER_NS, False, id="and no longer"),
        pytest.param(True, "db-9", 0, False, id="without shards there is no other replica"),
        pytest.param(False, "db-0", 0, False, id="our own pod"),
    ],
)
def test_kills_of_other_replicas_are_kept_for_a_hand_over(is_whole, pod, ago, is_kept):
    world = World(is_whole=is_whole)
    kill = world.kill(pod, ago=ago)
    counted = world.add(kill)
    assert world.waiting == ((kill,) if is_kept else ())
    assert counted == (["db-0"] if pod == "db-0" else [])


def test_usage_that_cannot_be_read_is_logged_once_until_it_can_be(caplog):
    world = World()
    for unreadable in (["a", "b"], ["a"], [], ["c"]):
        world.feeder._report_unreadable(unreadable)
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 2
    assert logged[0].startswith("usage cannot be read, 2 in all")
    assert logged[1].endswith("c")


def test_usage_that_cannot_be_read_is_counted_and_hides_no_other(caplog):
    world = World()
    counted: list[int] = []

    def judge(_state: Any, _expected: Any, _resource: str, usage: Any) -> None:
        counted.extend(usage.containers.tolist())

    quality: Any = SimpleNamespace(judge=judge)
    registry = CollectorRegistry()
    metrics: Any = SimpleNamespace(quality=quality, refused=RecommenderMetrics(registry).refused)
    state = world.recommender.state
    usage = [{"name": "app", "usage": {"cpu": "100m", "memory": "1Gi"}}]
    now = times.from_ns(world.now_ns)
    items = [
        {"metadata": {"name": name, "namespace": "shop"}, "timestamp": date, "containers": usage}
        for name, date in (("db-0", "no date"), ("db-1", now.isoformat()))
    ]

    class Usage:
        async def read(self, namespaces: frozenset[str]) -> list[PodMetricsList]:
            assert namespaces == {"shop"}
            return [wire.convert({"items": items}, PodMetricsList)]

    states: Any = [state]
    feed, itself = Usage(), world
    parts: Any = (states, itself, itself, feed, itself, metrics)
    feeder = SampleFeeder(*parts)
    expected: Any = {state: None}
    waiting = frozenset({"mail"})
    capacities = PodCapacities({}, lambda _pod: "")
    asyncio.run(feeder.add_usage(frozenset({"shop", "mail"}), waiting, expected, capacities, now))
    name = "trimtab_recommender_refused_samples_total"
    assert registry.get_sample_value(name, {"resource": "any", "rule": "unreadable"}) == 1.0
    assert "usage cannot be read, 1 in all" in caplog.text
    assert len(counted) == 2, "CPU and memory of the other pod"
