"""Role labels follow their Leases: which pods count, which failure stops what, and which watches end."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.decide.vertical.policy_builders import pod
from tests.unit.operator.horizontal.fakes import api_error
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.decide.vertical.control.lease_holder import HolderState
from trimtab.decide.vertical.control.role_labels import LABEL_ANNOTATION, LEASE_ANNOTATION
from trimtab.model.core.meta import NamespacedName
from trimtab.operator.vertical.role_labels import UNUSED_SECONDS, RoleLabelController, RoleLeases

ROLE = {LEASE_ANNOTATION: "db"}
BROKEN = {LEASE_ANNOTATION: "db", LABEL_ANNOTATION: "no label"}
LEADER = {"role": "leader"}


class World:
    """Pods with roles, their Leases, and a server that fails as it is told."""

    def __init__(self, *pods: Any, holder: str = "db-0", state: HolderState = HolderState.HELD) -> None:
        self.clock = VirtualClock()
        self.is_dry_run = False
        self.pods = Pods(pods)
        self.holder, self.state = holder, state
        self.read_state: HolderState | Exception = state
        self.reads = 0
        self.listed = True
        self.owned = True
        self.failures: dict[str, Exception] = {}
        self.patched: list[tuple[str, str | None]] = []
        self.events: list[tuple[str, str]] = []
        self.used: list[set[str]] = []
        self.controllers: Any = SimpleNamespace(selector_keys=lambda _key: {"app"}, get=lambda _key: None)
        itself: Any = self
        self.roles = RoleLabelController(itself, itself, itself, itself, excluded={"kube-system"})
        self.roles._leases = itself

    # The ownership.
    def owns(self, _key: str) -> bool:
        return self.owned

    def writing_for(self, _key: str) -> Any:
        return nullcontext(self)

    def share(self, _key: str) -> int:
        return 3

    # The view.
    def has_shard(self, shard: int) -> bool:
        return shard == 3

    # The client.
    async def patch(self, _resource: Any, name: str, _namespace: str, body: Any, **_options: Any) -> None:
        if name in self.failures:
            raise self.failures[name]
        ((_, value),) = body["metadata"]["labels"].items()
        self.patched.append((name, value))

    # The recorder of events.
    def event(self, about: Any, _type: str, _reason: str, message: str) -> None:
        self.events.append((about.name, message))

    # The Leases.
    def watch(self, _namespace: str) -> bool:
        return self.listed

    def problem(self, _namespace: str) -> str:
        return "403"

    def holder_state(self, _lease: Any) -> HolderState:
        return self.state

    async def read(self, _lease: Any) -> HolderState:
        self.reads += 1
        if isinstance(self.read_state, Exception):
            raise self.read_state
        return self.read_state

    def get(self, _lease: Any) -> Any:
        held = SimpleNamespace(holder=self.holder, held_since=0.0, duration=15.0)
        return held if self.holder else None

    async def end_unused(self, used: set[str]) -> None:
        self.used.append(used)

    def step(self) -> int:
        return self.clock.run(self.roles.step())


class Pods(list[Any]):
    """A cache of pods."""

    def subscribe(self, _subscriber: Any) -> None:
        """Tell nobody."""


def member(name: str, labels: Any = None, annotations: Any = None, **more: Any) -> Any:
    return pod(name, labels, annotations=ROLE if annotations is None else annotations, **more)


def test_the_holder_gets_the_label_and_the_last_one_loses_it_first():
    world = World(member("db-0"), member("db-1", LEADER))
    assert world.step() == 2
    assert world.patched == [("db-1", None), ("db-0", "leader")]
    assert world.used == [{"shop"}]
    assert world.roles.health() == {}


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(member("sys-0", namespace="kube-system"), id="in an excluded namespace"),
        pytest.param(member("web-0", annotations={}), id="without a role"),
        pytest.param(member("odd-0", annotations=BROKEN), id="with a declaration that is none"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_pod_that_is_left_out_hides_none_after_it(odd, is_first):
    good = member("db-0")
    world = World(*([odd, good] if is_first else [good, odd]))
    assert world.step() == 1
    assert world.patched == [("db-0", "leader")]
    is_broken = odd.metadata.name == "odd-0"
    assert [name for name, _ in world.events] == (["odd-0"] if is_broken else [])
    assert bool(world.roles.health()) is is_broken


@pytest.mark.parametrize(
    ("state", "read", "changed"),
    [
        pytest.param(HolderState.HELD, HolderState.HELD, 0, id="held"),
        pytest.param(HolderState.UNCONFIRMED, HolderState.HELD, 0, id="uncertain"),
        pytest.param(HolderState.FREE, HolderState.HELD, 1, id="free"),
        pytest.param(HolderState.EXPIRED, HolderState.FREE, 1, id="expired, and the server says so too"),
        pytest.param(HolderState.EXPIRED, HolderState.HELD, 0, id="renewed since, as the server says"),
        pytest.param(HolderState.EXPIRED, errors.TransportError("no answer"), 0, id="the server is silent"),
    ],
)
def test_a_label_is_removed_only_when_its_holder_surely_lost_it(state, read, changed):
    world = World(member("db-0", LEADER), state=state)
    world.read_state = read
    assert world.step() == changed
    assert world.patched == [("db-0", None)] * changed
    assert bool(world.roles.health()) is isinstance(read, Exception)


ORPHANING = {LEASE_ANNOTATION: "db", LABEL_ANNOTATION: "app=leader"}
"""A role whose label is one by which the controller selects its pods."""


@pytest.mark.parametrize(
    ("labelled", "annotations", "reads", "warned"),
    [
        pytest.param(LEADER, ROLE, 1, [], id="a label would be removed"),
        pytest.param(None, ROLE, 0, [], id="nothing would change"),
        pytest.param(LEADER, ORPHANING, 0, ["db-0"], id="the declaration is wrong with any holder"),
    ],
)
def test_an_expired_lease_is_read_only_if_a_label_depends_on_it(labelled, annotations, reads, warned):
    world = World(member("db-0", labelled, annotations), state=HolderState.EXPIRED)
    world.step()
    assert world.reads == reads
    assert [name for name, _ in world.events] == warned


def test_a_lease_that_vanished_has_no_holder():
    world = World(member("db-0", LEADER), holder="")
    assert world.step() == 1
    assert world.patched == [("db-0", None)]


@pytest.mark.parametrize(
    ("end", "patched", "is_problem"),
    [
        pytest.param(api_error(errors.NotFound, 404), [("db-0", "leader")], False, id="deleted meanwhile"),
        pytest.param(errors.Fenced("no lease"), [], False, id="another replica owns the role"),
        pytest.param(api_error(errors.Conflict, 409), [], True, id="changed meanwhile"),
        pytest.param(errors.TransportError("no answer"), [], True, id="no answer"),
    ],
)
def test_no_two_pods_get_a_role_when_a_write_fails(end, patched, is_problem):
    world = World(member("db-0"), member("db-1", LEADER))
    world.failures = {"db-1": end}
    assert world.step() == len(patched)
    assert world.patched == patched
    assert bool(world.roles.health()) is is_problem
    world.failures = {}
    world.step()
    assert world.roles.health() == {}


def test_leases_that_are_not_listed_are_a_problem_and_change_nothing():
    world = World(member("db-0"))
    world.listed = False
    assert world.step() == 0
    assert world.roles.health() == {"Leases of shop": "403"}


def test_a_role_of_another_replica_is_left_to_it():
    world = World(member("db-0"), member("odd-0", annotations=BROKEN))
    world.owned = False
    assert world.step() == 0
    assert (world.patched, world.events, world.used) == ([], [], [set()])


@pytest.mark.parametrize(("seconds", "is_warned"), [(15.0, False), (15.1, True)])
def test_a_holder_that_is_no_pod_is_reported_after_the_duration_of_its_lease(seconds, is_warned):
    world = World(member("db-0"), holder="stranger")
    world.clock.advance(seconds)
    world.step()
    assert bool(world.events) is is_warned
    if is_warned:
        assert "is held by 'stranger', which names no pod" in world.events[0][1]


def test_a_dry_run_logs_each_change_once(caplog):
    caplog.set_level("INFO")
    world = World(member("db-0"))
    world.is_dry_run = True
    assert [world.step(), world.step()] == [0, 0]
    assert world.patched == []
    assert [record.getMessage() for record in caplog.records] == ["dry run: would change a role"]


def test_only_pods_with_a_role_wake_the_loop():
    world = World()
    plain, role = member("web-0", annotations={}), member("db-0")
    for delta, is_woken in (
        (Delta(CacheEvent.UPDATED, plain, plain), False),
        (Delta(CacheEvent.SYNCED), False),
        (Delta(CacheEvent.DELETED, role, None), True),
        (Delta(CacheEvent.ADDED, None, role), True),
    ):
        world.roles._woken.clear()
        world.roles._on_pod(delta)
        assert world.roles._woken.is_set() is is_woken


def test_the_watch_of_a_namespace_ends_when_no_pod_has_a_role_there_any_more(monkeypatch):
    clock = VirtualClock()
    client: Any = SimpleNamespace(clock=clock)

    class Watched:
        """An informer that runs until it is cancelled."""

        has_synced = True
        last_error = ""
        running = 0

        def __init__(self, *_args: Any) -> None:
            pass

        def subscribe(self, _subscriber: Any) -> None:
            """Tell nobody."""

        async def run(self) -> None:
            Watched.running += 1
            try:
                await asyncio.Event().wait()
            finally:
                Watched.running -= 1

    monkeypatch.setattr("trimtab.operator.vertical.role_labels.Informer", Watched)

    async def main() -> None:
        leases = RoleLeases(client, lambda: None)
        for namespace in ("shop", "mail"):
            assert leases.watch(namespace)
        leases.watch("shop")
        await clock.sleep(UNUSED_SECONDS)
        leases._seen = {NamespacedName(name, "db"): SimpleNamespace() for name in ("shop", "mail")}  # type: ignore[misc]  # only its keys matter
        await leases.end_unused({"shop"})
        assert Watched.running == 2, "for a while"
        await clock.sleep(1)
        await leases.end_unused({"shop"})
        assert Watched.running == 1
        assert set(leases._informers) == set(leases._tasks) == {"shop"}
        assert [lease.namespace for lease in leases._seen] == ["shop"]
        assert leases.problem("shop") == "the first list is not complete"
        await leases.close()
        assert Watched.running == 0

    clock.run(main())
