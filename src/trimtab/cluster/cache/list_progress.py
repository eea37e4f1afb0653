"""The objects of a list that arrives in pages, and which namespaces of it are complete.

The server lists objects in the order of their keys, `namespace/name`. So all objects of a namespace have arrived once
an object of a later namespace has. Pages in any other order make no namespace complete.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from trimtab.cluster.cache.store import Store
from trimtab.cluster.codec.objects import ListPage, Object, Unreadable

T = TypeVar("T", bound=Object)


class ListedObjects(Generic[T]):
    """A list under construction."""

    def __init__(self) -> None:
        self.objects: Store[T] = Store()
        self.unreadable: list[Unreadable] = []
        self.version = ""

    def add(
        self, page: ListPage[Any], unreadable: list[Unreadable], known: Callable[[T], T]
    ) -> tuple[list[T], list[Unreadable]]:
        """Add a page and objects that cannot be read, and return its objects and those that cannot be read."""
        arrived: list[T] = []
        for obj in page.items:
            if isinstance(obj, Unreadable):
                unreadable.append(obj)
            else:
                arrived.append(known(obj))
                self.objects.put(arrived[-1])
        self.unreadable += unreadable
        self.version = page.resource_version
        return arrived, unreadable


class ListProgress:
    """How far a list in pages has come."""

    def __init__(self) -> None:
        self._last = ""
        self._is_usable = True
        self._incomplete: set[str] = set()
        self._left_over: set[str] = set()

    def add(self, arrived: Iterable[Object], unreadable: Iterable[Unreadable] = ()) -> None:
        """Add the objects of a page, and those that cannot be read."""
        self._incomplete.update(obj.metadata.namespace for obj in unreadable)
        for obj in arrived:
            key = f"{obj.metadata.namespace}/{obj.metadata.name}"
            self._is_usable &= key > self._last
            self._last = key

    def begin_again(self, cached: Iterable[str]) -> None:
        """Count no namespace as complete, because the list failed. `cached` are those with objects of that list."""
        self._last, self._is_usable, self._incomplete = "", True, set()
        self._left_over.update(cached)

    def take_left_over(self) -> list[str]:
        """Return the namespaces that are complete now and may have objects of a failed list, each once."""
        complete = [namespace for namespace in self._left_over if self.covers(namespace)]
        self._left_over.difference_update(complete)
        return complete

    def covers(self, namespace: str) -> bool:
        """Return whether all objects of a namespace have arrived."""
        prefix = f"{namespace}/"
        return (
            self._is_usable
            and prefix < self._last
            and not self._last.startswith(prefix)
            and namespace not in self._incomplete
        )
