"""How evenly a layout of shards divides a cluster, and which seed divides it best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trimtab.cluster.leases.layout import MOST_SEED, ShardLayout

_MOST_HASHES = 1_000_000
"""How many hashes are computed at most, in about a second. Many namespaces are divided evenly with any seed."""

_WORTH = 0.01
"""By how much the largest share must shrink for another seed: a change of the seed moves most namespaces."""

_LARGE = 1.2
"""How many even shares a namespace may have. No seed divides a larger one."""


@dataclass(frozen=True, slots=True)
class NamespaceContents:
    """What a namespace has that a replica stores."""

    pods: int = 0
    autoscalers: tuple[str, ...] = ()
    """The names of its HPAs, of its VPAs, or of both."""


@dataclass(slots=True)
class ShardContents:
    """What a shard has. Pods of split namespaces are not counted, because every replica watches them."""

    namespaces: int = 0
    autoscalers: int = 0
    pods: int = 0


def contents_of_shards(layout: ShardLayout, cluster: Mapping[str, NamespaceContents]) -> list[ShardContents]:
    """Return what each shard has of a cluster, which is given by namespace."""
    shards = [ShardContents() for _ in range(layout.count)]
    for namespace, contents in cluster.items():
        number = layout.shard_of_namespace(namespace)
        if number is None:
            for name in contents.autoscalers:
                shards[layout.shard_of(f"{namespace}/{name}")].autoscalers += 1
            continue
        shards[number].namespaces += 1
        shards[number].autoscalers += len(contents.autoscalers)
        shards[number].pods += contents.pods
    return shards


def shares(amounts: Sequence[int]) -> list[float]:
    """Return the parts of the sum, which are 0 if there is nothing."""
    whole = sum(amounts)
    return [amount / whole if whole else 0.0 for amount in amounts]


@dataclass(frozen=True, slots=True)
class LargestShare:
    """The largest part of all pods, or of all autoscalers, that one shard has."""

    share: float
    shard: int
    is_of_pods: bool


def largest_share(shards: Sequence[ShardContents]) -> float:
    """Return the largest part of all pods, or of all autoscalers, that one shard has."""
    return find_largest(shards).share


def find_largest(shards: Sequence[ShardContents]) -> LargestShare:
    """Return the largest share and whose it is. Of equal ones it is that of the first shard, and of pods before autoscalers."""
    pods, autoscalers = [shard.pods for shard in shards], [shard.autoscalers for shard in shards]
    found = [
        LargestShare(share, number, is_of_pods)
        for is_of_pods, amounts in ((True, pods), (False, autoscalers))
        for number, share in enumerate(shares(amounts))
    ]
    return max(found, key=lambda largest: largest.share)


@dataclass(frozen=True, slots=True)
class LargeNamespace:
    """A namespace that alone has far more than an even share."""

    name: str
    share: float
    is_of_pods: bool
    can_be_split: bool
    """Whether it has several autoscalers, which can be divided by name."""


def large_namespaces(
    layout: ShardLayout, cluster: Mapping[str, NamespaceContents]
) -> tuple[LargeNamespace, ...]:
    """Return the namespaces that no seed can divide, the largest first. Those that are split are left out.

    One autoscaler makes no namespace large, because it cannot be divided.
    """
    whole = [name for name in cluster if name not in layout.split]
    pods = shares([cluster[name].pods for name in whole])
    total = sum(len(contents.autoscalers) for contents in cluster.values())
    found = []
    for name, of_pods in zip(whole, pods, strict=True):
        count = len(cluster[name].autoscalers)
        of_autoscalers = count / total if count > 1 else 0.0
        share = max(of_pods, of_autoscalers)
        if share > _LARGE / layout.count:
            found.append(LargeNamespace(name, share, of_pods >= of_autoscalers, count > 1))
    return tuple(sorted(found, key=lambda large: (-large.share, large.name)))


def best_layout(layout: ShardLayout, cluster: Mapping[str, NamespaceContents]) -> ShardLayout:
    """Return the layout with the seed that divides the cluster best, or the same one if none is worth a change."""
    units = sum(
        len(contents.autoscalers) if namespace in layout.split else 1
        for namespace, contents in cluster.items()
    )
    tries = min(MOST_SEED + 1, _MOST_HASHES // max(units * layout.count, 1))
    seeds = [ShardLayout(layout.count, layout.split, seed) for seed in range(tries)]
    best = min(seeds, key=lambda other: _largest(other, cluster), default=layout)
    return best if _largest(layout, cluster) - _largest(best, cluster) >= _WORTH else layout


def _largest(layout: ShardLayout, cluster: Mapping[str, NamespaceContents]) -> float:
    return largest_share(contents_of_shards(layout, cluster))
