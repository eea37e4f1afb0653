"""Out-of-memory kills wait until a step takes them, whether pods or events report them."""

from typing import Any

import pytest

from tests.unit.decide.vertical.policy_builders import pod
from trimtab.clock import VirtualClock
from trimtab.cluster.cache.parts import Share
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.client import Client
from trimtab.decide.vertical.input.oom import OOM
from trimtab.decide.vertical.rules import Rules
from trimtab.model import times
from trimtab.model.core.objects import Event
from trimtab.model.json import wire
from trimtab.operator.vertical.recommender.oom_watcher import MAX_WAITING, Kill, OomObserver

KILLED = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-01-01T00:00:00Z"}}
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


class Pods:
    """A cache of pods, whose changes a test makes up."""

    def subscribe(self, subscriber: Any) -> None:
        self.change: Any = subscriber


class World:
    """An observer of kills."""

    def __init__(self, *namespaces: str, rules: Rules = Rules.TRIMTAB) -> None:
        self.pods = Pods()
        unused: Any = None
        cache: Any = self.pods
        client = Client(VirtualClock(), unused, seed=1)
        self.ooms = OomObserver(client, cache, Share(namespaces), rules)

    def kill(self, name: str = "db-0", *, old: Any = None, change: CacheEvent = CacheEvent.UPDATED) -> None:
        before = pod(name, statuses=[{"name": "app", "state": RUNNING}]) if old is None else old
        self.pods.change(Delta(change, before, pod(name, statuses=[{"name": "app", "state": KILLED}])))

    def evict(self, name: str = "db-0", resource: str = "memory") -> None:
        event = {
            "metadata": {
                "annotations": {
                    "offending_containers": "app",
                    "offending_containers_usage": "2Gi",
                    "starved_resource": resource,
                }
            },
            "reason": "Evicted",
            "involvedObject": {"kind": "Pod", "namespace": "shop", "name": name},
        }
        self.ooms._on_event(Delta(CacheEvent.ADDED, None, wire.convert(event, Event)))

    def taken(self) -> list[str]:
        return [kill.oom.pod for kill in self.ooms.take()]


def test_kills_are_taken_once_in_their_order():
    world = World()
    world.kill("db-0")
    world.evict("db-1")
    world.evict("db-2", resource="disk")
    world.kill("db-3")
    assert [kill.name for kill in world.ooms.victims()] == ["db-0", "db-3"], "an event has no pod"
    assert world.taken() == ["db-0", "db-1", "db-3"]
    assert (world.taken(), list(world.ooms.victims())) == ([], [])


def test_the_usage_of_an_event_counts_and_the_request_of_a_pod():
    world = World()
    world.kill()
    world.evict()
    of_pod, of_event = world.ooms.take()
    assert of_pod.oom.memory_bytes == 2**30
    assert of_event.oom.memory_bytes == 2**31
    assert of_event.pod is None


def test_kills_that_are_put_back_come_before_newer_ones():
    world = World()
    for name in ("db-0", "db-1"):
        world.kill(name)
    kills = world.ooms.take()
    world.kill("db-2")
    world.ooms.put_back(kills)
    assert world.taken() == ["db-0", "db-1", "db-2"]


@pytest.mark.parametrize("change", [CacheEvent.ADDED, CacheEvent.DELETED], ids=["first seen dead", "deleted"])
def test_only_an_update_shows_a_kill(change):
    world = World()
    world.kill(change=change)
    assert world.taken() == []


def test_events_that_expire_are_no_kills():
    world = World()
    world.ooms._on_event(Delta(CacheEvent.DELETED, None, None))
    world.ooms._on_event(Delta(CacheEvent.SYNCED))
    assert world.taken() == []


@pytest.mark.parametrize(("rules", "kills"), [(Rules.TRIMTAB, 1), (Rules.VPA_1_8, 0)])
def test_a_kill_that_no_version_of_the_pod_shows_counts_unless_as_upstream(rules, kills):
    world = World(rules=rules)
    before = pod(statuses=[{"name": "app", "state": {"waiting": {}}}])
    after = pod(statuses=[{"name": "app", "state": {"waiting": {}}, "lastState": KILLED}])
    world.pods.change(Delta(CacheEvent.UPDATED, before, after))
    assert len(world.taken()) == kills


def test_the_oldest_kills_are_dropped_beyond_the_bound():
    world = World()
    kills = tuple(Kill(OOM("shop", f"p-{number}", "app", 0, 1)) for number in range(MAX_WAITING))
    world.ooms.put_back(kills)
    world.kill("newest")
    taken = world.taken()
    assert (len(taken), taken[0], taken[-1]) == (10_000, "p-1", "newest")


def shown(finished: str | None, *, reason: str = "OOMKilled") -> dict[str, Any]:
    return {"terminated": {"reason": reason, "exitCode": 137, "finishedAt": finished}}


NOW_NS = times.parse_ns("2026-01-01T01:00:00Z")
LATELY, EARLIER = "2026-01-01T00:58:01Z", "2026-01-01T00:58:00Z"


@pytest.mark.parametrize(
    ("status", "found"),
    [
        pytest.param({"state": RUNNING}, [], id="never ended"),
        pytest.param({"state": RUNNING, "lastState": shown(LATELY)}, [(LATELY, False)], id="runs again"),
        pytest.param({"state": shown(LATELY)}, [(LATELY, False)], id="ended"),
        pytest.param(
            {"state": shown(LATELY), "lastState": shown(EARLIER)},
            [(EARLIER, True), (LATELY, False)],
            id="twice; one that is 2 minutes old needs a checkpoint before it",
        ),
        pytest.param(
            {"state": shown(LATELY, reason="Error"), "lastState": shown(EARLIER)},
            [(EARLIER, True)],
            id="ended otherwise since",
        ),
        pytest.param({"state": shown(None)}, [], id="without a time nothing can be said"),
    ],
)
def test_the_pods_of_a_gained_shard_show_the_kills_that_were_missed(status, found):
    world = World()
    world.ooms.add_missed([pod("db-0", statuses=[{"name": "app", **status}])], NOW_NS)
    kills = world.ooms.take()
    assert [(kill.oom.time_ns, kill.needs_checkpoint) for kill in kills] == [
        (times.parse_ns(when), needs) for when, needs in found
    ]
    assert all(kill.oom.memory_bytes == 2**30 and kill.pod is not None for kill in kills)


def test_a_kill_that_was_seen_and_is_shown_counts_once():
    world = World()
    world.kill("db-0")
    world.ooms.add_missed(
        [pod(name, statuses=[{"name": "app", "state": KILLED}]) for name in ("db-0", "db-1")], NOW_NS
    )
    assert world.taken() == ["db-0", "db-1"]


@pytest.mark.parametrize(
    ("namespaces", "watched"), [((), [None]), (("shop",), ["shop"]), (("shop", "mail"), ["shop", "mail"])]
)
def test_eviction_events_are_watched_where_vpas_are(namespaces, watched):
    events = World(*namespaces).ooms._events
    selections = [informer._options() for _, informer in events.informers()]
    assert [selection.namespace for selection in selections] == watched
    assert {selection.fields for selection in selections} == {"reason=Evicted"}


def test_a_watch_that_fails_is_a_problem():
    world = World("shop", "mail")
    assert world.ooms.problems() == {}
    dict(world.ooms._events.informers())["mail"].last_error = "403"
    assert world.ooms.problems() == {"eviction events": "403"}
