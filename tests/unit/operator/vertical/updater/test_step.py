"""One step of the updater: what it waits for, does, measures and reports."""

from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.unit.decide.vertical.policy_builders import ALL_GATES, NOW, pod, recommended, vpa, world
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.observation import UpdateObservation
from trimtab.model.author import Author
from trimtab.operator.control_loop import NOT_STARTED, ControlLoopMetrics
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.metrics import UpdaterMetrics
from trimtab.operator.vertical.updater.controller import Updater, UpdaterDeps

REPLICA = Author(replica="replica-a")


class World:
    """An updater of one VPA with three pods. Each request to the cluster takes some seconds."""

    def __init__(
        self, *, is_dry_run: bool = False, refusal: Exception | None = None, **settings: Any
    ) -> None:
        self.clock = VirtualClock(NOW)
        self.is_dry_run = is_dry_run
        self.refusal = refusal
        self.rules = Rules.TRIMTAB
        self.stale: dict[str, str] = {}
        self.has_synced = True
        self.webhook_problem: str | None = None
        self.without: list[set[str]] = []
        self.evicted: list[str] = []
        self.read: list[str] = []
        self.is_down = False
        self.events: list[tuple[str, str, str]] = []
        self.vpas = [vpa("base", recommended("4Gi"), mode="Recreate")]
        self.pods = [pod(f"db-{number}") for number in range(3)]
        self.registry = CollectorRegistry()
        itself: Any = self
        found = Settings.of(max_missing_pods=0, max_evictions_per_minute=0, **settings)
        deps = UpdaterDeps(
            self.clock,
            *(itself, itself, self.view(), self.check, itself, UpdaterMetrics(self.registry)),
            ControlLoopMetrics(self.registry),
            author=lambda: REPLICA,
        )
        self.updater = Updater(deps, found.updater, found.namespace_rules)

    def view(self) -> Any:
        async def serves_resize() -> bool:
            self.clock.advance(3)
            return False

        async def observation(*, serves_resize: bool, without: Any) -> UpdateObservation:
            assert not serves_resize
            self.without.append(set(without))
            self.clock.advance(5)
            return world(self.vpas, self.pods)

        found = {"db-0": self.pods[0], "db-1": self.pods[1], "db-2": self.pods[2]}
        return SimpleNamespace(
            pods=Cache(found),
            vpas=Cache({"base": self.vpas[0]}),
            scopes=tuple,
            problems=lambda: {"nodes": "403"},
            warnings=lambda: {"pods of mail": "403"},
            stale_namespaces=lambda: self.stale,
            has_synced=self.has_synced,
            serves_resize=serves_resize,
            observation=observation,
            gates=ALL_GATES,
            rules=self.rules,
        )

    async def check(self) -> str | None:
        self.clock.advance(7)
        return self.webhook_problem

    async def evict(self, found: Any, *_options: Any, **_more: Any) -> None:
        self.clock.advance(11)
        if self.refusal is not None:
            raise self.refusal
        self.evicted.append(str(found))

    async def get(self, _resource: Any, name: str, *_more: Any) -> Any:
        self.read.append(name)
        if self.is_down:
            raise errors.TransportError("lost")
        return next(found for found in self.pods if found.name == name)

    async def patch(self, *_names: Any, **_options: Any) -> None:
        self.clock.advance(13)

    def event(self, about: Any, kind: str, reason: str, _message: str) -> None:
        self.events.append((about.name, kind, reason))

    def step(self) -> Any:
        return self.clock.run(self.updater.step())

    def seconds(self) -> dict[str, float]:
        name = "vpa_updater_execution_latency_seconds_sum"
        return {
            sample.labels["step"]: sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == name
        }

    def count(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


class Cache(dict[str, Any]):
    """A cache that tells nobody of changes."""

    def subscribe(self, _subscriber: Any) -> None:
        """Tell nobody."""

    def get(self, name: str, _namespace: str) -> Any:  # type: ignore[override]
        return super().get(name)

    def __iter__(self) -> Any:
        return iter(self.values())


def test_each_step_is_measured_with_what_it_took():
    test = World()
    assert test.step() is test.updater.record is not None
    assert len(test.evicted) == 1
    assert test.seconds() == {
        "ListVPAs": 3.0,
        "ListPods": 5.0,
        "FilterPods": 0.0,
        "AdmissionInit": 0.0,
        "EvictPods": 18.0,
        "total": 26.0,
    }


def test_steps_without_an_action_are_measured_too():
    test = World()
    test.vpas.clear()
    test.step()
    assert test.evicted == []
    assert test.seconds() == {
        "ListVPAs": 3.0,
        "ListPods": 5.0,
        "FilterPods": 0.0,
        "AdmissionInit": 0.0,
        "EvictPods": 0.0,
        "total": 8.0,
    }


def test_an_updater_is_unready_until_its_first_step_and_reports_its_caches():
    test = World()
    assert test.updater.health() == {"nodes": "403", "updater": NOT_STARTED}
    assert test.updater.warnings() == {"pods of mail": "403"}
    test.step()
    assert test.updater.health() == {"nodes": "403"}


def test_nothing_is_done_while_all_caches_are_stale():
    test = World()
    test.stale = {"": "pods: silent", "mail": "pods: silent"}
    assert test.step() is None
    assert test.updater.health()["updater"] == "waiting for the caches (pods: silent)"
    assert (test.without, test.evicted, test.seconds()) == ([], [], {})
    test.stale = {"mail": "pods: silent"}
    assert test.step() is not None
    assert test.without == [{"mail"}], "the others go on"


def test_nothing_is_done_before_the_first_lists():
    test = World()
    test.updater._view.has_synced = False  # type: ignore[misc]  # a view of this test
    assert test.step() is None
    assert test.updater.health()["updater"] == "waiting for the caches"
    assert test.evicted == []


def test_without_a_webhook_nothing_is_evicted_and_the_reason_is_counted():
    test = World(admission_check="lease")
    test.webhook_problem = "the webhook does not answer"
    test.step()
    assert test.evicted == []
    assert test.updater.health()["admission"] == "the webhook does not answer"
    name = "vpa_updater_admission_controller_status_invalid_total"
    assert test.count(name, reason="lease") == 1.0
    test.webhook_problem = None
    test.updater.lease_acquired()
    test.clock.advance(600)
    test.step()
    assert "admission" not in test.updater.health()
    assert test.count(name, reason="lease") == 1.0


def test_an_eviction_is_recorded_with_its_author_remembered_and_announced():
    test = World()
    record = test.step()
    assert record.author == REPLICA
    assert test.evicted == ["db-0"]
    assert test.events == [("db-0", "Normal", "EvictedByVPA"), ("base", "Normal", "EvictedPod")]
    actions = {name: verdict.action for name, verdict in test.updater._verdicts.items()}
    assert actions == {"shop/db-0": "evicted", "shop/db-1": "none", "shop/db-2": "none"}
    assert test.updater.verdict("shop/db-0") is not None
    assert test.updater.verdict("shop/none") is None
    assert set(test.updater._state.disruptions) == {"uid-db-0"}
    labels = {"update_mode": "Recreate", "vpa_name": "base", "vpa_namespace": "shop", "vpa_size_log2": "1"}
    assert test.count("vpa_updater_evicted_pods_total", **labels) == 1.0
    assert test.count("vpa_updater_controlled_pods_total", update_mode="Recreate", vpa_size_log2="1") == 3.0
    test.updater.lease_acquired()
    assert test.updater._state.disruptions == {}


@pytest.mark.parametrize(
    ("rate", "evicted"),
    [
        pytest.param(-1.0, 3, id="no limit"),
        pytest.param(0.1, 3, id="one in 10 s: all of them within the interval"),
        pytest.param(0.01, 1, id="one in 100 s: the others in the next step"),
    ],
)
def test_evictions_wait_for_their_rate_until_the_interval_ends(rate, evicted):
    test = World(eviction_rate_limit=rate, eviction_tolerance=1.0, max_evicted_share_per_minute=0.0)
    test.step()
    assert len(test.evicted) == evicted


def test_a_dry_run_remembers_nothing_and_names_no_author():
    test = World(is_dry_run=True)
    record = test.step()
    assert record.author is None
    assert (test.evicted, test.updater._state.disruptions) == ([], {})


def test_a_step_without_actions_has_no_author():
    test = World()
    test.vpas.clear()
    assert test.step().author is None


def test_a_pod_whose_eviction_got_no_answer_is_read_before_the_next_step():
    test = World(refusal=errors.TransportError("lost"))
    test.step()
    assert test.updater._state.disruptions["uid-db-0"].response_lost_at is not None
    assert test.updater.seconds_to_next(0.0) == 5.0
    test.refusal = None
    test.step()
    assert test.read == [], "not before these seconds"
    test.clock.advance(5)
    test.is_down = True
    test.step()
    assert test.read == ["db-0"]
    test.is_down = False
    test.step()
    assert test.read == ["db-0", "db-0"], "it could not be read"
    test.step()
    assert test.read == ["db-0", "db-0"]
