"""Finds the smallest world that still fails with one verdict: fewest happenings first, then the simplest start."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.worlds.verdicts import Verdict, judge
from tests.worlds.world import Family, Happening, Life, Rules, World

PLAYS = 60
"""How many smaller worlds are tried for one failure."""


@dataclass
class Played:
    """A world, both of its lives, and what is wrong with ours."""

    world: World
    ours: Life
    upstream: Life
    verdicts: list[Verdict] = field(default_factory=list)

    def has(self, verdict: str) -> bool:
        return any(verdict == found.name for found in self.verdicts)


def play(family: Family, world: World) -> Played:
    """Play a world under both rules and judge it."""
    ours, upstream = family.play(world, Rules.OURS), family.play(world, Rules.UPSTREAM)
    return Played(world, ours, upstream, judge(world, ours, upstream))


def shrink(family: Family, failing: Played, verdict: str, plays: int = PLAYS) -> Played:
    """Return the smallest world found that fails with the same verdict."""
    left = plays

    def try_to(world: World) -> Played | None:
        nonlocal left
        if left <= 0:
            return None
        left -= 1
        played = play(family, world)
        return played if played.has(verdict) else None

    best = _fewest_happenings(failing, try_to)
    while smaller := next((found for world in family.simpler(best.world) if (found := try_to(world))), None):
        best = smaller
    return _fewest_happenings(best, try_to)


def _fewest_happenings(failing: Played, try_to: Callable[[World], Played | None]) -> Played:
    """Leave out halves, then quarters, and so on down to single happenings, as long as it still fails."""
    best, parts = failing, 2
    while happenings := best.world.happenings:
        parts = min(parts, len(happenings))
        rests = (best.world.with_only(rest) for rest in _without_a_part(happenings, parts))
        smaller = next((found for world in rests if (found := try_to(world))), None)
        if smaller:
            best, parts = smaller, max(parts - 1, 2)
        elif parts == len(happenings):
            break
        else:
            parts *= 2
    return best


def _without_a_part(happenings: Sequence[Happening], parts: int) -> Iterator[Sequence[Happening]]:
    """Yield the happenings without the last part, without the last but one, and so on: late ones matter least."""
    edges = [len(happenings) * number // parts for number in range(parts + 1)]
    for start, end in reversed(list(pairwise(edges))):
        yield [*happenings[:start], *happenings[end:]]
