"""Benchmarks: `python -m bench [name...]`.

Each module of this package is one benchmark: a function `run()` that returns rows, each a mapping from column
to cell. A new module is found by itself. Peers are measured beside us where they are installed.
"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

Row = Mapping[str, object]
Rows = Sequence[Row]


def best_seconds(action: Callable[[], object], rounds: int = 5) -> float:
    """Return the shortest time of several rounds, which is the one that others disturbed least; many short beat few long."""
    shortest = float("inf")
    for _ in range(rounds):
        begun = perf_counter()
        action()
        shortest = min(shortest, perf_counter() - begun)
    return shortest
