"""Nodes are watched and shown only where a filter of pods needs them."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.decide.horizontal.builders import pod
from trimtab.model.core.objects import Node
from trimtab.model.json import wire
from trimtab.operator.horizontal.nodes import FilterNeeds, NodeCache
from trimtab.plugins.kinds import PluginKind


def needs(*, nodes: bool, owners: bool = False) -> FilterNeeds:
    declaration = SimpleNamespace(needs_nodes=nodes, needs_owners=owners)
    plugins = [
        SimpleNamespace(kind=PluginKind.POD_FILTER, name="mine", declaration=declaration),
        SimpleNamespace(
            kind=PluginKind.POD_FILTER,
            name="other",
            declaration=SimpleNamespace(needs_nodes=False, needs_owners=False),
        ),
    ]
    guards: Any = SimpleNamespace(all=lambda: [SimpleNamespace(plugin=plugin) for plugin in plugins])
    return FilterNeeds(guards)


class Nodes(dict[str, Any]):
    """The cached nodes by name."""

    has_synced = True


def node(name: str, *, is_unschedulable: bool = False) -> Node:
    data = {"metadata": {"name": name, "labels": {"n": name}}, "spec": {"unschedulable": is_unschedulable}}
    return wire.convert(data, Node)


@pytest.mark.parametrize(
    ("needed", "strategy", "is_listed", "want"),
    [
        pytest.param(True, "mine", True, ["a"], id="needed"),
        pytest.param(True, "other", True, None, id="another filter"),
        pytest.param(True, "", True, None, id="no filter"),
        pytest.param(True, "mine", False, None, id="not listed yet"),
        pytest.param(False, "mine", True, None, id="not needed"),
    ],
)
def test_a_filter_sees_the_nodes_of_its_pods_if_it_needs_them(needed, strategy, is_listed, want):
    cached = Nodes(a=node("a", is_unschedulable=True), b=node("b"))
    cached.has_synced = is_listed
    watched: list[str] = []

    def get(resource: Any) -> Nodes:
        watched.append(resource.plural)
        return cached

    caches: Any = SimpleNamespace(get=get)
    cache = NodeCache(caches, needs(nodes=needed))
    assert watched == (["nodes"] if needed else [])
    chosen: Any = SimpleNamespace(selection_strategy=strategy or None)
    pods = [pod("web-1", node="a"), pod("web-2", node="gone"), pod("web-3", node=""), pod("web-4", node="a")]
    found = cache.nodes_for(chosen, pods)
    assert (None if found is None else list(found)) == want
    if found is not None:
        assert (found["a"].is_unschedulable, found["a"].labels) == (True, {"n": "a"})


def test_owners_are_needed_where_the_filter_says_so():
    assert needs(nodes=False, owners=True).needs_owners("mine")
    assert not needs(nodes=True).needs_owners("mine")
    assert not needs(nodes=False, owners=True).needs_owners("other")
    assert not needs(nodes=False, owners=True).needs_owners("unknown")
