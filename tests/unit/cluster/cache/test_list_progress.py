"""A namespace is complete when an object behind it has arrived, and only in a list in order of its keys."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.cache.informer import ListProgress
from trimtab.cluster.codec.objects import Unreadable
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.pod import Pod

NAMES = st.text("ab-0", min_size=1, max_size=3)
KEYS = st.lists(st.tuples(NAMES, NAMES), unique=True, max_size=30)


def pods(keys):
    return [Pod(metadata=ObjectMeta(namespace=namespace, name=name)) for namespace, name in keys]


def pages_of(keys, size):
    return [keys[first : first + size] for first in range(0, len(keys), size)]


@given(KEYS, st.integers(1, 5))
def test_a_namespace_is_complete_only_when_all_its_objects_have_arrived(keys, size):
    """In the order of keys `a-b/x` comes before `a/x`, which is not the order of the namespaces."""
    ordered = sorted(keys, key=lambda key: f"{key[0]}/{key[1]}")
    progress, arrived = ListProgress(), set()
    for page in pages_of(ordered, size):
        progress.add(pods(page))
        arrived |= set(page)
        last = page[-1][0]
        for namespace in {namespace for namespace, _ in keys}:
            is_there = {key for key in keys if key[0] == namespace} <= arrived
            assert progress.covers(namespace) == (is_there and namespace != last)


@given(KEYS.filter(lambda keys: len(keys) > 1), st.integers(1, 5), st.randoms())
def test_no_namespace_of_a_list_in_another_order_is_complete_too_early(keys, size, chance):
    chance.shuffle(keys)
    progress, arrived = ListProgress(), set()
    for page in pages_of(keys, size):
        progress.add(pods(page))
        arrived |= set(page)
        text = [f"{namespace}/{name}" for namespace, name in arrived]
        if sorted(text) != [f"{namespace}/{name}" for namespace, name in keys[: len(arrived)]]:
            assert not any(progress.covers(namespace) for namespace, _ in keys)


def test_a_failed_list_and_an_unreadable_object_make_namespaces_incomplete():
    progress = ListProgress()
    broken = [Unreadable(ObjectMeta(namespace="b", name="y"), "broken")]
    progress.add(pods([("a", "x"), ("b", "x"), ("c", "x")]), broken)
    assert [progress.covers(namespace) for namespace in "abc"] == [True, False, False]
    progress.begin_again(["a", "b"])
    assert not progress.covers("a")
    assert progress.take_left_over() == []
    progress.add(pods([("a", "x"), ("b", "x")]))
    assert [progress.covers(namespace) for namespace in "abc"] == [True, False, False]
    assert progress.take_left_over() == ["a"]
    assert progress.take_left_over() == []
