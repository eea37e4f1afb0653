"""Trees with holes become plain data."""

import pytest

from trimtab.install.template import (
    NAMESPACE,
    Both,
    Each,
    If,
    Item,
    Joined,
    Not,
    Pairs,
    Text,
    Val,
    resolve,
)

VALUES = {
    "namespace": {"name": "trimtab"},
    "on": True,
    "off": False,
    "empty": [],
    "names": ["a", "b"],
    "gates": {"B": False, "A": True},
    "kinds": [{"group": "g", "resource": "r"}],
}


@pytest.mark.parametrize(
    ("tree", "want"),
    [
        pytest.param(Val("on"), True, id="a value keeps its type"),
        pytest.param({"a": [Val("names")]}, {"a": [["a", "b"]]}, id="a value may be a list"),
        pytest.param(
            Text("x-", NAMESPACE, "-", Val("on")), "x-trimtab-true", id="text says true as Kubernetes does"
        ),
        pytest.param(Joined("names"), "a,b", id="a list joins with commas"),
        pytest.param(Pairs("gates"), "A=true,B=false", id="pairs are sorted"),
        pytest.param({"a": If(Val("off"), 1), "b": 2}, {"b": 2}, id="a key whose condition fails is absent"),
        pytest.param([If(Val("on"), 1), If(Val("empty"), 2)], [1], id="an empty list is no condition"),
        pytest.param([If(Not(Val("on")), 1)], [], id="not"),
        pytest.param([If(Both(Val("on"), Not(Val("off"))), 1)], [1], id="both"),
        pytest.param([Each("names", {"n": Item()})], [{"n": "a"}, {"n": "b"}], id="one item per entry"),
        pytest.param([If(Val("on"), Each("names", Item()))], ["a", "b"], id="entries under a condition"),
        pytest.param(
            [Each("kinds", {"r": [Text(Item("resource"), "/scale")]})],
            [{"r": ["r/scale"]}],
            id="fields of entries",
        ),
    ],
)
def test_resolve(tree, want):
    assert resolve(tree, VALUES) == want
