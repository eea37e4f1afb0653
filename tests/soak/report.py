"""The table of a soak, and its verdict: what is larger at the end than it ever was at the beginning.

Counts go up and down with the churn. A count grew if its least value in the last part is above its greatest value in the early part,
and by more than noise. Memory is compared as the promise reads: the last day with the third.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.soak.gauges import Gauges

MEMORY_DAY = 3
MEMORY_SHARE = 0.05
SETTLED_DAYS = 9
"""From then on nothing should grow: the recommender keeps the usage of deleted pods for eight days, as upstream does."""
NOISE = 2
NOISE_SHARE = 0.02
MIB = 1024 * 1024
HEADINGS = ("RSS MiB", "tasks", "sockets", "watches", "labels", "objects", "entries")


@dataclass(frozen=True)
class Growth:
    """A count that grew, with its greatest early and its least late value."""

    name: str
    early: int
    late: int

    def __str__(self) -> str:
        return f"{self.name}: {self.early:,} -> {self.late:,}"


def heading(what: str = "day") -> str:
    """Return the first line of the table."""
    return f"{what:>6}" + "".join(f"{title:>10}" for title in HEADINGS)


def row(number: int, gauges: Gauges, mark: str = "") -> str:
    """Return a line of the table."""
    cells = (
        f"{gauges.rss_bytes / MIB:.1f}",
        *map(str, (gauges.tasks, gauges.sockets, gauges.watches, gauges.labels)),
        f"{sum(gauges.objects.values()):,}",
        f"{sum(gauges.lengths.values()):,}",
    )
    return f"{number:>5}{mark:1}" + "".join(f"{cell:>10}" for cell in cells)


def growths(counted: Sequence[Gauges]) -> list[Growth]:
    """Return all counts that grew, largest first. Fewer than four rows say nothing."""
    if len(counted) < 4:
        return []
    first = min(SETTLED_DAYS, len(counted) // 3)
    early = counted[first : max((first + len(counted)) // 2, first + 1)]
    late = counted[-max(len(counted) // 5, 2) :]
    found = [
        Growth(name, most, least)
        for name, most, least in _extremes(early, late)
        if least - most > max(NOISE, NOISE_SHARE * most)
    ]
    return sorted(found, key=lambda growth: growth.early - growth.late)


def _extremes(early: Sequence[Gauges], late: Sequence[Gauges]) -> Iterator[tuple[str, int, int]]:
    for name in ("tasks", "sockets", "watches", "labels"):
        yield name, max(getattr(g, name) for g in early), min(getattr(g, name) for g in late)
    for group in ("objects", "lengths"):
        names = sorted({name for gauges in late for name in getattr(gauges, group)})
        for name in names:
            yield (
                name,
                max(getattr(gauges, group).get(name, 0) for gauges in early),
                min(getattr(gauges, group).get(name, 0) for gauges in late),
            )


def memory_growth(counted: Sequence[Gauges]) -> float:
    """Return by which share the last row's memory is above the third's."""
    early = counted[min(MEMORY_DAY, len(counted)) - 1]
    return counted[-1].rss_bytes / early.rss_bytes - 1


def verdict(counted: Sequence[Gauges], what: str = "day") -> tuple[bool, str]:
    """Return whether nothing grew, and the last lines of the report."""
    grown, memory = growths(counted), memory_growth(counted)
    is_small = memory <= MEMORY_SHARE
    then = f"{what} {min(MEMORY_DAY, len(counted))}"
    judged = f"{'within' if is_small else 'NOT within'} {MEMORY_SHARE:.0%}"
    lines = [
        f"resident memory at {what} {len(counted)}: {memory:+.1%} of {then} ({judged})",
        *(f"grew: {growth}" for growth in grown),
    ]
    if not grown:
        lines.append(
            "no growth of tasks, sockets, watches, labels, objects of any type, or entries of any container"
        )
    return is_small and not grown, "\n".join(lines)
