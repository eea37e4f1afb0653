"""Several copies of a program that share the autoscalers out, be they HPAs or VPAs."""

import itertools
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from trimtab.cluster.leases.family import Family, rank, shard_of


class DividedByName(Family):
    """Leases of processes that watch everything, and divide the objects of one namespace."""

    def shard_of(self, key: str) -> int:
        return max(range(self.count), key=lambda number: rank(key, number))


class CopyOfProgram(Protocol):
    """One process with `--shards`."""

    shards: Family

    @property
    def is_dead(self) -> bool: ...

    def may_write(self, key: str) -> bool:
        """Return whether the copy may write for an autoscaler."""
        ...

    def caches(self) -> Iterable[Any]:
        """Return everything that the copy caches."""
        ...

    def start(self) -> None: ...

    async def stop(self) -> None: ...


C = TypeVar("C", bound=CopyOfProgram)


class Copies(Generic[C]):
    """All copies of a scenario, which end with it, and how many of them could write for one autoscaler at once."""

    def __init__(self) -> None:
        self.copies: list[C] = []
        self.most_owners = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for copy in self.copies:
            await copy.stop()

    def begin(self, copy: C) -> C:
        """Start a copy."""
        self.copies.append(copy)
        copy.start()
        return copy

    @property
    def living(self) -> list[C]:
        return [copy for copy in self.copies if not copy.is_dead]

    def count_owners(self, keys: Iterable[str]) -> None:
        """Count how many copies may write for each autoscaler now."""
        for key in keys:
            self.most_owners = max(self.most_owners, sum(copy.may_write(key) for copy in self.living))


class TeamCopies(Copies[C]):
    """Copies that divide teams: a namespace each, with an autoscaler of the same name."""

    def __init__(self, places: Iterable[str], count: int) -> None:
        super().__init__()
        self.places = list(places)
        self.count = count

    def count_owners_of_teams(self) -> None:
        self.count_owners(f"{place}/{place}" for place in self.places)

    def of(self, copy: C) -> set[str]:
        """Return the namespaces of a copy's shards."""
        held = copy.shards.held()
        return {place for place in self.places if shard_of(place, self.count) in held}


def cached(copy: CopyOfProgram, plural: str) -> dict[str, int]:
    """Return how many objects of each namespace a copy caches."""
    found: dict[str, int] = {}
    for cache in copy.caches():
        if cache.resource.plural == plural:
            for obj in cache:
                found[obj.metadata.namespace] = found.get(obj.metadata.namespace, 0) + 1
    return found


def owners_in_turn(writes: list[tuple[float, str]]) -> list[str]:
    """Return the copies that wrote, each once for writes in a row."""
    return [copy for copy, _ in itertools.groupby(copy for _, copy in writes)]
