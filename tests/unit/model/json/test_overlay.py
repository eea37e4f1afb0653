"""A changed value is written over its JSON without touching the rest."""

from typing import Any

import msgspec

from trimtab.model.json import wire
from trimtab.model.json.overlay import overlay
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity


class Leaf(Wire, frozen=True):
    amount: Quantity | None = None
    count: int = 0


class Tree(Wire, frozen=True):
    leaf: Leaf = Leaf()
    leaves: tuple[Leaf, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)


RAW = {
    "unknown": 1,
    "leaf": {"amount": "0.5", "hidden": True},
    "leaves": [{"count": 1, "a": 1}, {"count": 2, "b": 2}],
    "labels": {"x": "y"},
}
TREE = wire.convert(RAW, Tree)


def written(**changes: Any) -> Any:
    return overlay(RAW, TREE, msgspec.structs.replace(TREE, **changes))


def test_what_did_not_change_keeps_its_spelling():
    assert written(leaf=Leaf(amount=Quantity.parse("500m"))) == RAW


def test_a_changed_member_leaves_its_unknown_siblings():
    assert written(leaf=Leaf(amount=Quantity.parse("1")))["leaf"] == {"amount": "1", "hidden": True}


def test_a_removed_member_goes_and_its_unknown_siblings_stay():
    assert written(leaf=Leaf())["leaf"] == {"hidden": True}


def test_elements_keep_their_unknown_fields_while_the_list_keeps_its_length():
    assert written(leaves=(Leaf(count=1), Leaf(count=3)))["leaves"] == [
        {"count": 1, "a": 1},
        {"count": 3, "b": 2},
    ]
    assert written(leaves=(Leaf(count=1),))["leaves"] == [{"count": 1}]


def test_a_number_that_becomes_zero_is_written_out():
    assert written(leaves=(Leaf(count=0), Leaf(count=2)))["leaves"][0] == {"count": 0, "a": 1}


def test_an_emptied_list_or_map_goes():
    assert written(leaves=(), labels={}) == {"unknown": 1, "leaf": RAW["leaf"]}


def test_the_original_is_not_touched():
    written(leaf=Leaf(), labels={"x": "z"})
    assert wire.convert(RAW, Tree) == TREE
