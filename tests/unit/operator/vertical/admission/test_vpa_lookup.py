"""What the review of a pod depends on, and how little of the cluster is read for it."""

from typing import Any

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import index, limit_range, pod, vpa, world
from tests.unit.operator.horizontal.fakes import api_error
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.server_rules import rules_of
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.labels.selector import Selector
from trimtab.model.quantity import Quantity
from trimtab.operator.vertical.admission.vpa_lookup import VpaLookup

DOWN = errors.TransportError("no answer")


class View:
    """A view whose workload is a StatefulSet `db`."""

    def __init__(self, *, boosts: bool = False, serves_resize: bool | Exception = False) -> None:
        self.gates = FeatureGates(cpu_startup_boost=boosts)
        self.rules = Rules.TRIMTAB
        self.server_rules = rules_of("")
        self.limit_ranges = [limit_range(max={"cpu": "1"}), _elsewhere(limit_range(max={"cpu": "2"}))]
        self.vpas: Any = self
        self.controllers: Any = self
        self.on_vpa: Any = None
        self.done: list[str] = []
        self.known_scopes: frozenset[str] | None = frozenset({"leader"})
        self._serves_resize = serves_resize

    def is_superseded(self, vpa: Any) -> bool:
        return False

    def subscribe(self, subscriber: Any) -> None:
        self.on_vpa = subscriber

    async def resolve(self, pods: Any) -> None:
        self.done += [f"resolve {found.name}" for found in pods]

    async def read_kubernetes(self) -> None:
        self.done.append("read version")

    def owners(self) -> Any:
        return world([], [pod()]).owners()

    async def selector_of(self, found: Any) -> Selector:
        self.done.append(f"selector of {found.key}")
        return Selector.parse("app=db")

    def index(self, targeted: Any) -> Any:
        return index(world([found.vpa for found in targeted]))

    def node_labels(self) -> Any:
        self.done.append("nodes")
        return {"n1": {"disk": "fast"}}

    async def serves_resize(self) -> bool:
        self.done.append("discovery")
        if isinstance(self._serves_resize, Exception):
            raise self._serves_resize
        return self._serves_resize

    def scope_names(self, namespace: str) -> frozenset[str] | None:
        assert namespace == "shop"
        return self.known_scopes


def _elsewhere(found: Any) -> Any:
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, namespace="other"))


class World:
    """A lookup over a view, and a client that reads scopes."""

    def __init__(self, view: View | None = None, answer: Exception | None = None) -> None:
        self.view: Any = View() if view is None else view
        self.read: list[tuple[str, str]] = []
        self._answer = answer
        itself: Any = self
        self.lookup = VpaLookup(itself, itself.view, Quantity.parse("2"))

    async def get(self, _resource: Any, name: str, namespace: str) -> None:
        self.read.append((namespace, name))
        if self._answer is not None:
            raise self._answer

    def change(self, old: Any, new: Any) -> None:
        self.view.on_vpa(Delta(CacheEvent.UPDATED, old, new))

    def context(self, **options: Any) -> Any:
        return VirtualClock().run(self.lookup.admission_context(pod(**options)))

    def found(self) -> set[str]:
        index = self.context().index
        return {claim.key for claims in index.by_target.values() for claim in claims}


def test_vpas_are_found_by_their_present_target():
    test = World()
    first, second, moved = vpa("first"), vpa("second"), vpa("first", target="StatefulSet/web")
    assert test.found() == set()
    test.change(None, first)
    test.change(None, second)
    assert test.found() == {"shop/first", "shop/second"}
    test.change(first, moved)
    assert test.found() == {"shop/second"}
    test.change(moved, first)
    test.change(second, second)
    assert test.found() == {"shop/first", "shop/second"}
    test.change(second, None)
    assert test.found() == {"shop/first"}
    test.change(first, None)
    assert test.found() == set()
    assert test.lookup._by_target == {}, "nothing is kept of deleted VPAs"


def test_a_vpa_without_a_target_is_nobodys():
    test = World()
    targeted = vpa("first")
    spec = msgspec.structs.replace(targeted.spec, target_ref=None)
    test.change(None, msgspec.structs.replace(targeted, spec=spec))
    assert test.lookup._by_target == {}
    test.change(None, targeted)
    test.change(targeted, msgspec.structs.replace(targeted, spec=spec))
    assert test.lookup._by_target == {}


def test_only_what_the_pod_needs_is_read():
    test = World()
    test.change(None, vpa("base"))
    test.change(None, vpa("far", target="StatefulSet/far"))
    context = test.context()
    assert test.view.done == ["resolve db-0", "read version", "selector of shop/base", "nodes"]
    assert context.nodes == {"n1": {"disk": "fast"}}
    assert set(context.ranges) == {"shop"}
    assert context.ranges["shop"] is not None
    assert context.max_boost_cpu == Quantity.parse("2")
    test.view.done.clear()
    assert test.context(owner=None).nodes == {}
    assert test.view.done == ["resolve db-0", "read version"]


@pytest.mark.parametrize(
    ("view", "serves", "asks"),
    [
        pytest.param(View(serves_resize=False), True, False, id="without boosts nobody asks"),
        pytest.param(View(boosts=True, serves_resize=False), False, True, id="boosts cannot be undone"),
        pytest.param(View(boosts=True, serves_resize=True), True, True, id="boosts can be undone"),
        pytest.param(View(boosts=True, serves_resize=DOWN), True, True, id="no answer"),
    ],
)
def test_whether_boosts_can_be_undone_is_asked_only_if_there_are_any(view, serves, asks):
    assert World(view).context().serves_resize is serves
    assert ("discovery" in view.done) is asks


@pytest.mark.parametrize(
    ("answer", "known", "want"),
    [
        pytest.param(None, frozenset({"leader"}), {"leader", "new"}, id="it exists"),
        pytest.param(None, None, {"new"}, id="it exists, and the cache is not complete"),
        pytest.param(api_error(errors.NotFound, 404), frozenset({"leader"}), {"leader"}, id="it is missing"),
        pytest.param(ValueError("a name with /"), frozenset({"leader"}), {"leader"}, id="it cannot exist"),
        pytest.param(DOWN, frozenset({"leader"}), {"leader", "new"}, id="no answer blocks nobody"),
    ],
)
def test_a_scope_that_the_cache_lacks_is_read(answer, known, want):
    test = World(answer=answer)
    test.view.known_scopes = known
    assert VirtualClock().run(test.lookup.scopes_with("shop", "new")) == want
    assert test.read == [("shop", "new")]
