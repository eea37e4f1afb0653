"""Finds the smallest world that still fails with one verdict: the shortest, with the simplest start and the fewest happenings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise

from tests.worlds.verdicts import Verdict, judge
from tests.worlds.world import Family, Happening, Life, Rules, World

PLAYS = 60
"""How many smaller worlds are tried for one failure."""
PHASES = 3
"""In so many phases a life must be worse than upstream's."""


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
    """Play a world under both rules and judge it.

    Syncs of the two lives fall on other moments, so one of them may be lucky. Where ours is worse than upstream's, that
    must hold in other phases too.
    """
    played = _play_once(family, world)
    for phase in range(1, PHASES):
        if not all(verdict.is_absolute for verdict in played.verdicts):
            again = _play_once(family, replace(world, phase=phase))
            played.verdicts = [one for one in played.verdicts if one.is_absolute or again.has(one.name)]
    return played


def _play_once(family: Family, world: World) -> Played:
    ours, upstream = family.play(world, Rules.OURS), family.play(world, Rules.UPSTREAM)
    return Played(world, ours, upstream, judge(ours, upstream))


def shrink(family: Family, failing: Played, verdict: str, plays: int = PLAYS) -> Played:
    """Return the smallest world found that fails with the same verdict."""
    left = plays
    is_absolute = any(found.is_absolute for found in failing.verdicts if found.name == verdict)

    def fails(world: World) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            return False
        # A promise is broken whatever upstream does.
        if is_absolute:
            return any(line.startswith(f"{verdict}: ") for line in family.play(world, Rules.OURS).broken)
        return play(family, world).has(verdict)

    best, before = failing.world, None
    while best is not before:
        before = best
        while smaller := next(filter(fails, chain(_shorter(best), family.simpler(best))), None):
            best = smaller
        best = _fewest_happenings(best, fails)
    return failing if best is failing.world else play(family, best)


def _shorter(world: World) -> Iterator[World]:
    """Yield the world with an earlier end."""
    for share in (0.25, 0.5, 0.75, 0.9):
        end = world.seconds * share
        yield replace(world.with_only(one for one in world.happenings if one.at < end), seconds=end)


def _fewest_happenings(best: World, fails: Callable[[World], bool]) -> World:
    """Leave out halves, then quarters, and so on down to single happenings, as long as it still fails."""
    parts = 2
    while happenings := best.happenings:
        parts = min(parts, len(happenings))
        smaller = next(filter(fails, map(best.with_only, _without_a_part(happenings, parts))), None)
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
