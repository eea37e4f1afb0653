"""Which changes of pods and VPAs start an update loop before its interval ends."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.unit.decide.vertical.policy_builders import (
    LEADER,
    NOW,
    pod,
    recommended,
    resize_condition,
    scope,
    vpa,
    with_computed_for,
)
from trimtab.clock import VirtualClock
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.decide.vertical.control.controllers import ControllerKey
from trimtab.decide.vertical.update.disruption_ledger import Disruption, DisruptionKind
from trimtab.operator.control_loop import ControlLoopMetrics
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.updater.controller import Updater, UpdaterDeps

DB = ControllerKey("shop", "StatefulSet", "db")
WEB = ControllerKey("shop", "StatefulSet", "web")
UNREADY = ({"type": "Ready", "status": "False"},)
FAILED = (resize_condition("PodResizeInProgress", "Error"),)


class World:
    """An updater whose caches say what a test says."""

    def __init__(self, *short_of_budget: ControllerKey, scopes: Any = ()) -> None:
        view: Any = SimpleNamespace(pods=self, vpas=self, scopes=lambda: scopes)
        unused: Any = None
        deps = UpdaterDeps(
            VirtualClock(NOW),
            *(unused, unused, view, unused, unused, unused),
            ControlLoopMetrics(CollectorRegistry()),
        )
        self.heard: list[Any] = []
        settings = Settings()
        self.updater = Updater(deps, settings.updater, settings.namespace_rules)
        self.updater._short_of_budget = frozenset(short_of_budget)
        self.on_pod, self.on_vpa = self.heard

    def subscribe(self, subscriber: Any) -> None:
        self.heard.append(subscriber)

    @property
    def is_woken(self) -> bool:
        return self.updater._woken.is_set()


def wakes_on_pod(world: World, old: Any, new: Any, change: CacheEvent = CacheEvent.UPDATED) -> bool:
    world.on_pod(Delta(change, old, new))
    return world.is_woken


@pytest.mark.parametrize(
    ("short", "old", "new", "wakes"),
    [
        pytest.param((DB,), pod(conditions=UNREADY), pod(), True, id="others wait for it"),
        pytest.param((WEB, DB), pod(conditions=UNREADY), pod(), True, id="others of two wait for it"),
        pytest.param((WEB,), pod(conditions=UNREADY), pod(), False, id="others of another workload wait"),
        pytest.param((), pod(conditions=UNREADY), pod(), False, id="nobody waits"),
        pytest.param((DB,), pod(), pod(), False, id="available before"),
        pytest.param((DB,), pod(), pod(conditions=UNREADY), False, id="not available any more"),
        pytest.param((), pod(), pod(conditions=FAILED), True, id="its resize failed"),
        pytest.param((), pod(conditions=FAILED), pod(conditions=FAILED), False, id="it failed before"),
        pytest.param((), pod(conditions=FAILED), pod(), False, id="it is over"),
    ],
)
def test_an_update_follows_at_once_when_a_pod_frees_budget(short, old, new, wakes):
    assert wakes_on_pod(World(*short), old, new) is wakes


@pytest.mark.parametrize("change", [CacheEvent.ADDED, CacheEvent.DELETED])
def test_new_and_deleted_pods_wait_for_the_interval(change):
    assert not wakes_on_pod(World(DB), pod(conditions=UNREADY), pod(), change)


@pytest.mark.parametrize(
    ("before", "after", "wakes"),
    [
        pytest.param({}, LEADER, True, id="enters"),
        pytest.param(LEADER, {}, True, id="leaves"),
        pytest.param(LEADER, {**LEADER, "more": "1"}, False, id="stays in"),
        pytest.param({}, {"more": "1"}, False, id="stays out"),
        pytest.param({}, {}, False, id="same labels"),
    ],
)
def test_an_update_follows_at_once_when_a_pod_changes_its_scope(before, after, wakes):
    scopes = [scope("nodes", nodes={"disk": "fast"}), scope("leader", pods=LEADER)]
    assert wakes_on_pod(World(scopes=scopes), pod(labels=before), pod(labels=after)) is wakes
    other = pod(labels=before, namespace="other"), pod(labels=after, namespace="other")
    assert not wakes_on_pod(World(scopes=scopes), *other)


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param({}, {"recommendation": recommended("2Gi")}, True, id="the first"),
        pytest.param({}, {}, False, id="none"),
        pytest.param(
            {"recommendation": recommended("1Gi")},
            {"recommendation": recommended("2Gi")},
            False,
            id="a later",
        ),
    ],
)
def test_an_update_follows_at_once_on_the_first_recommendation_of_a_role(old, new, wakes):
    for role, is_awaited in (("leader", wakes), (None, False)):
        world = World()
        world.on_vpa(Delta(CacheEvent.UPDATED, vpa(scope=role, **old), vpa(scope=role, **new)))
        assert world.is_woken is is_awaited
    world = World()
    world.on_vpa(Delta(CacheEvent.ADDED, None, vpa(scope="leader", **new)))
    assert not world.is_woken


@pytest.mark.parametrize(("before", "after", "wakes"), [("a", "b", True), ("a", "a", False)])
def test_an_update_follows_at_once_on_the_first_recommendation_after_an_edit_of_the_scope(
    before, after, wakes
):
    def hashed(value: str) -> Any:
        return with_computed_for(vpa(scope="leader", recommendation=recommended("1Gi")), value)

    world = World()
    world.on_vpa(Delta(CacheEvent.UPDATED, hashed(before), hashed(after)))
    assert world.is_woken is wakes


@pytest.mark.parametrize(
    ("again", "lost", "want"),
    [
        pytest.param(None, False, 55.0, id="nothing is due"),
        pytest.param(20.0, False, 20.0, id="a retry is due earlier"),
        pytest.param(600.0, False, 55.0, id="a retry is due later"),
        pytest.param(None, True, 5.0, id="a pod whose write got no answer is read early"),
        pytest.param(600.0, True, 5.0, id="before a retry"),
        pytest.param(1.0, True, 1.0, id="after a retry"),
    ],
)
def test_the_next_step_follows_what_is_due_first(again, lost, want):
    updater = World().updater
    updater._again_at = None if again is None else NOW + timedelta(seconds=again)
    if lost:
        evicted = Disruption(kind=DisruptionKind.EVICTION, requested_at=NOW, response_lost_at=NOW)
        updater._state = msgspec.structs.replace(updater._state, disruptions={"u1": evicted})
    assert updater.seconds_to_next(0.0) == want
    updater.lease_acquired()
    updater._again_at = None
    assert updater.seconds_to_next(0.0) == 55.0, "a new leader knows nothing of it"
