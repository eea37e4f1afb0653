"""Namespaces take turns."""

from trimtab.cluster.turns import take_turns


def test_each_namespace_has_one_item_per_turn_and_the_items_of_a_namespace_keep_their_order():
    items = ["a1", "a2", "a3", "b1", "c1", "c2"]
    assert list(take_turns(items, lambda item: item[0])) == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert list(take_turns([], str)) == []
