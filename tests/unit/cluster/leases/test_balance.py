"""How a cluster is divided, and that the seed which is named really divides it better."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.leases.balance import (
    NamespaceContents,
    best_layout,
    contents_of_shards,
    largest_share,
)
from trimtab.cluster.leases.layout import ShardLayout

CLUSTERS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4),
    st.builds(NamespaceContents, st.integers(0, 1000), st.lists(st.text("xyz", max_size=3)).map(tuple)),
    max_size=40,
)


@given(cluster=CLUSTERS, count=st.integers(2, 16), split=st.sets(st.sampled_from("abc")))
def test_everything_is_in_one_shard_and_pods_of_split_namespaces_in_none(cluster, count, split):
    found = contents_of_shards(ShardLayout(count, split), cluster)
    own = [contents for name, contents in cluster.items() if name not in split]
    assert len(found) == count
    assert sum(shard.namespaces for shard in found) == len(own)
    assert sum(shard.pods for shard in found) == sum(contents.pods for contents in own)
    assert sum(shard.autoscalers for shard in found) == sum(
        len(contents.autoscalers) for contents in cluster.values()
    )


@given(cluster=CLUSTERS, seed=st.integers(0, 999))
def test_a_better_seed_is_better_by_a_hundredth_or_is_not_named(cluster, seed):
    layout = ShardLayout(4, seed=seed)
    better = best_layout(layout, cluster)
    gain = largest_share(contents_of_shards(layout, cluster)) - largest_share(
        contents_of_shards(better, cluster)
    )
    assert gain >= 0.01 if better is not layout else gain == 0


def test_a_hundred_namespaces_are_divided_evenly_by_the_best_seed():
    cluster = {f"bench-{number}": NamespaceContents(100, ("web",)) for number in range(100)}
    layout = ShardLayout(4)
    assert largest_share(contents_of_shards(layout, cluster)) > 0.29
    assert largest_share(contents_of_shards(best_layout(layout, cluster), cluster)) < 0.27


def test_namespaces_of_very_different_sizes_are_divided_better_too():
    """One of them alone has 0.23 of the pods."""
    cluster = {f"team-{number}": NamespaceContents(10_000 // number, ()) for number in range(1, 41)}
    layout = ShardLayout(4)
    assert largest_share(contents_of_shards(layout, cluster)) > 0.35
    assert largest_share(contents_of_shards(best_layout(layout, cluster), cluster)) < 0.28


def test_nothing_at_all_has_no_better_seed():
    layout = ShardLayout(4)
    assert best_layout(layout, {}) is layout
    assert largest_share(contents_of_shards(layout, {})) == 0
