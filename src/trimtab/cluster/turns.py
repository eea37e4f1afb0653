"""Orders work so that namespaces take turns, and none waits for all the work of another."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def take_turns(items: Iterable[T], namespace_of: Callable[[T], str]) -> Iterator[T]:
    """Yield the first item of each namespace, then the second of each, and so on."""
    by_namespace: dict[str, deque[T]] = {}
    for item in items:
        by_namespace.setdefault(namespace_of(item), deque()).append(item)
    waiting = deque(by_namespace.values())
    while waiting:
        queue = waiting.popleft()
        yield queue.popleft()
        if queue:
            waiting.append(queue)
