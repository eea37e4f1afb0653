"""What the shared caches of the vertical components report about themselves."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decide.vertical.policy_builders import pod, scope, vpa
from trimtab.clock import VirtualClock
from trimtab.cluster.cache.parts import Share
from trimtab.cluster.resource import resource_of
from trimtab.decide.vertical.control.controllers import Controller, ControllerKey
from trimtab.decide.vertical.input.usage import Capacity
from trimtab.model.core.objects import Node
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.operator.vertical.cluster_view import ClusterView, Targeted
from trimtab.operator.vertical.targets import Unsupported

KINDS = ("pods", "verticalpodautoscalers", "nodes")
CACHES = st.tuples(st.booleans(), st.sampled_from(["", "403"]), st.sampled_from(["", "the watch is silent"]))
"""Whether the first list is complete, why the last request failed, and why the cache cannot be watched."""


@given(st.lists(CACHES, min_size=len(KINDS), max_size=len(KINDS)), st.booleans())
def test_a_kind_is_a_problem_until_it_is_listed_and_while_it_cannot_be_watched(
    drawn: list[Any], is_fixed: bool
) -> None:
    """A replica stays ready while it lists a shard that it gained, unless the list fails."""
    caches = dict(zip(KINDS, drawn, strict=True))
    fakes = [
        SimpleNamespace(
            resource=SimpleNamespace(plural=kind),
            is_settled=is_listed,
            last_error=lambda error=error: error,
            failure=lambda failure=failure: failure,
        )
        for kind, (is_listed, error, failure) in caches.items()
    ]
    view: Any = SimpleNamespace(all_caches=lambda: fakes, share=SimpleNamespace(is_fixed=is_fixed))
    problems = ClusterView.problems(view)
    for kind, (is_listed, error, failure) in caches.items():
        is_awaited = not is_listed and (is_fixed or error)
        assert problems.get(kind, "") == (
            error or "the first list is not complete" if is_awaited else failure
        )


class Cache(list[Any]):
    """A cache that is listed or not."""

    def __init__(self, plural: str, *, is_settled: bool = True) -> None:
        super().__init__()
        self.resource = SimpleNamespace(plural=plural)
        self.is_settled = self.has_synced = is_settled
        self.waited = 0
        self.stale: dict[str, str] = {}
        self.refused: dict[str, str] = {}

    def subscribe(self, _subscriber: Any) -> None:
        """Tell nobody."""

    def incomplete(self) -> dict[str, str]:
        return self.stale

    def refusals(self) -> dict[str, str]:
        return self.refused

    def failure(self) -> str:
        return ""

    def last_error(self) -> str:
        return ""

    async def wait_settled(self) -> None:
        self.waited += 1


class Caches:
    """The caches of a component, by kind."""

    share = Share()

    def __init__(self) -> None:
        self.by_plural: dict[str, Cache] = {}

    def get(self, what: Any) -> Cache:
        plural = resource_of(what).plural
        return self.by_plural.setdefault(plural, Cache(plural))


def seen_by(*, has_scopes: bool) -> tuple[ClusterView, dict[str, Cache]]:
    """Return a view of everything, with its caches by kind."""
    caches: Any = Caches()

    async def served(*_names: Any) -> Any:
        return object() if has_scopes else None

    discovery: Any = SimpleNamespace(served=served)
    client: Any = SimpleNamespace(clock=VirtualClock())
    view = ClusterView(
        client, discovery, caches, gates=FeatureGates(vpa_selector_refinement=True)
    ).size_pods()
    VirtualClock().run(view.begin())
    return view, caches.by_plural


WATCHED = {
    "pods",
    "verticalpodautoscalers",
    "nodes",
    "limitranges",
    "vpascopes",
    "deployments",
    "statefulsets",
}


def test_every_watched_kind_is_waited_for():
    view, caches = seen_by(has_scopes=True)
    assert set(caches) >= WATCHED
    VirtualClock().run(view.wait_synced())
    assert {plural for plural, cache in caches.items() if cache.waited} == set(caches)
    assert (view.has_synced, view.problems()) == (True, {})
    for plural, cache in caches.items():
        cache.is_settled = False
        found = (view.has_synced, view.problems())
        assert found == (False, {plural: "the first list is not complete"})
        cache.is_settled = True


def test_each_stale_or_refused_kind_is_named():
    view, caches = seen_by(has_scopes=True)
    assert (view.stale_namespaces(), view.warnings()) == ({}, {})
    for plural, cache in caches.items():
        cache.stale, cache.refused = {"shop": "silent"}, {"mail": "403"}
        assert view.stale_namespaces() == {"shop": f"{plural}: silent"}
        assert view.warnings() == {f"{plural} of mail": "403"}
        cache.stale, cache.refused = {}, {}


def test_without_the_kind_there_are_no_scopes():
    view, caches = seen_by(has_scopes=False)
    assert "vpascopes" not in caches
    assert (list(view.scopes()), view.scope_names("shop")) == ([], None)


def test_scopes_are_watched_once_and_only_if_the_gate_is_on():
    for is_on, watched in ((True, 1), (False, 0)):
        asked: list[tuple[str, ...]] = []

        async def served(*names: str, asked: Any = asked) -> Any:
            asked.append(names)
            return object()

        discovery: Any = SimpleNamespace(served=served)
        client: Any = SimpleNamespace(clock=VirtualClock())
        caches: Any = Caches()
        gates = FeatureGates(vpa_selector_refinement=is_on)
        view = ClusterView(client, discovery, caches, gates=gates)
        for _ in range(3):
            VirtualClock().run(view.begin())
        assert len(asked) == watched
        assert ("vpascopes" in caches.by_plural) is is_on
        assert "limitranges" not in caches.by_plural, "whoever sizes no pod does not watch them"


def test_a_selector_that_selects_nothing_is_none():
    for target, selector in (
        (Selector.parse("app=db"), "app=db"),
        (Selector.from_label_selector(None), None),
        (Unsupported("no target"), None),
    ):
        found = Targeted(vpa("base"), target).selector
        assert (None if found is None else str(found)) == selector


def test_the_scopes_of_a_namespace_are_known_once_they_are_listed():
    view, caches = seen_by(has_scopes=True)
    caches["vpascopes"].append(scope("leader"))
    assert view.scope_names("shop") == frozenset({"leader"})
    assert view.scope_names("other") == frozenset()
    caches["vpascopes"].has_synced = False
    assert view.scope_names("shop") is None


def test_only_nodes_with_cpu_and_memory_have_a_capacity():
    view, caches = seen_by(has_scopes=False)
    whole = {"cpu": "2", "memory": "1Ki"}
    for name, capacity in (("a", {"cpu": "2"}), ("b", {"memory": "1Ki"}), ("c", whole)):
        data = {"metadata": {"name": name, "labels": {"n": name}}, "status": {"capacity": capacity}}
        caches["nodes"].append(wire.convert(data, Node))
    assert view.capacities() == {"c": Capacity(2000, 1024)}
    assert view.node_labels() == {"a": {"n": "a"}, "b": {"n": "b"}, "c": {"n": "c"}}


def test_each_controller_of_pods_is_observed_with_its_parents_once():
    """A controller that is shared or unknown hides none that comes after it."""
    chain = {
        ControllerKey("shop", "ReplicaSet", "web-1"): Controller(ControllerKey("shop", "Deployment", "web")),
        ControllerKey("shop", "ReplicaSet", "web-2"): Controller(ControllerKey("shop", "Deployment", "web")),
        ControllerKey("shop", "Deployment", "web"): Controller(),
        ControllerKey("shop", "Job", "once"): Controller(is_scalable=False),
    }
    owners = ["ReplicaSet/web-1", "ReplicaSet/web-2", "Gone/away", "Job/once", None, *["Gone/far"] * 2]
    pods = [pod(f"p-{place}", owner=owner) for place, owner in enumerate(owners)]
    view, _ = seen_by(has_scopes=False)
    controllers: Any = SimpleNamespace(get=chain.get, replicas=lambda key: len(key.name))
    view.controllers = controllers
    observed = view._observed_controllers(pods)
    assert {key: (found.parent, found.is_scalable, found.replicas) for key, found in observed.items()} == {
        "ReplicaSet/shop/web-1": ("Deployment/shop/web", True, 5),
        "ReplicaSet/shop/web-2": ("Deployment/shop/web", True, 5),
        "Deployment/shop/web": (None, True, 3),
        "Job/shop/once": (None, False, 4),
    }


class Owners:
    """Controllers that note which targets and pods they resolve."""

    def __init__(self) -> None:
        self.targets: list[str] = []
        self.pods: list[str] = []

    async def resolve_target(self, found: Any) -> None:
        self.targets.append(found.key)

    async def resolve(self, pods: Any) -> None:
        self.pods += [found.metadata.key for found in pods]

    def cached_selector(self, _vpa: Any) -> Selector:
        return Selector.parse("app=db")

    def owners(self) -> Any:
        return object()


def test_targets_and_owners_are_resolved_where_vpas_are():
    view, caches = seen_by(has_scopes=False)
    owners: Any = Owners()
    view.controllers = owners
    caches["verticalpodautoscalers"] += [vpa("lead"), vpa("base"), vpa("base", namespace="mail")]
    caches["pods"] += [pod("p", namespace=namespace) for namespace in ("shop", "mail", "left", "none")]
    snapshot = VirtualClock().run(view.control_snapshot(["left"]))
    assert owners.targets == ["mail/base", "shop/base", "shop/lead"]
    assert owners.pods == ["shop/p", "mail/p", "left/p"]
    assert [targeted.vpa.key for targeted in snapshot.vpas] == owners.targets
    assert set(snapshot.claims) == set(owners.targets)
    again = VirtualClock().run(view.control_snapshot())
    assert again is snapshot
    assert owners.pods == ["shop/p", "mail/p", "left/p", "shop/p", "mail/p"], "owners may have expired"
    view.gates = FeatureGates()
    assert VirtualClock().run(view.control_snapshot()) is not snapshot
