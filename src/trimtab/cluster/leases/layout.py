"""Which shard an object belongs to.

The unit is the namespace, because HPAs, VPAs, their workloads and their pods share it and the API server can select by
it. So a replica watches only the namespaces of its shards. A namespace that is too large for one replica is split by
name, and every replica watches it. Another seed is another assignment, for clusters whose namespaces are divided badly
(`balance`).
"""

from collections.abc import Collection
from hashlib import blake2b
from zlib import crc32

MOST_SHARDS = 16
"""More shards cost more renewals than they save. The chart's RBAC rules name all their Leases."""

_BY_NAMESPACE = 100
"""What a mark has above the number of shards. Marks below are of releases that sharded by name alone."""

MOST_SEED = 999
"""The largest seed."""

_SEEDED = 2_000_000
"""What a mark has, in hundreds, with a seed or split namespaces. Releases without seeds have less, so none is equal."""


def rank(key: str, number: int, seed: int = 0) -> bytes:
    """Return the weight of `number` for `key`. The highest weight wins (rendezvous hashing)."""
    drawn = f"{seed}:{number}" if seed else f"{number}"
    return blake2b(f"{drawn}/{key}".encode(), digest_size=8).digest()


class ShardLayout:
    """The assignment of objects to shards. Replicas with different layouts never work at the same time."""

    def __init__(self, count: int, split: Collection[str] = (), seed: int = 0) -> None:
        self.count = count
        self.split = frozenset(split)
        """The namespaces that are split by name."""
        self.seed = seed

    @property
    def mark(self) -> int:
        """Return the number that ends a holder's name.

        Equal layouts have equal marks. Layouts that differ have different ones, but for two sets of split namespaces in
        four billion.
        """
        if not self.split and not self.seed:
            return _BY_NAMESPACE + self.count
        split = 1 + crc32(",".join(sorted(self.split)).encode()) if self.split else 0
        return _BY_NAMESPACE * (_SEEDED + (MOST_SEED + 1) * split + self.seed) + self.count

    def shard_of(self, key: str) -> int:
        """Return the shard of `namespace/name`."""
        namespace = key.partition("/")[0]
        return self._winner(key if namespace in self.split else namespace)

    def shard_of_namespace(self, namespace: str) -> int | None:
        """Return the shard of a namespace, or None if it is split."""
        return None if namespace in self.split else self._winner(namespace)

    def _winner(self, unit: str) -> int:
        return max(range(self.count), key=lambda number: rank(unit, number, self.seed))
