"""Plays random worlds under our rules and under upstream's, and tells the stories of those in which ours are worse.

python -m tests.worlds --seed 1 --count 2000        # the stories, then the sums of all outcomes
python -m tests.worlds --world hpas-17              # one world, explained; --shrink for the smallest that fails the same way
python -m tests.worlds --world hpas-17 --keep R4-3  # adds the smallest one to known_failures.yaml, for a review item
python -m tests.worlds --renew                      # moves mended failures to kept.yaml, lists failing short worlds anew
python -m tests.worlds --real --help                # beside the real controllers
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import ctypes
import logging
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import Any, TypeVar

from tests.worlds.known import KEPT, KNOWN, Failure, Failures, difference, load, save
from tests.worlds.shrink import Played, play, shrink
from tests.worlds.stories import tell
from tests.worlds.world import FAMILIES, World, family_of

SHORT = {"hpas": 40, "sizes": 160}
"""Short worlds that `make test` plays, by family."""
STORIES = 24
"""Failures that are shrunk at most in one run; the others are counted."""
ROUND = 8
"""Failures that are shrunk before the next ones are chosen, so that known stories are not told again and again."""

T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """What came of one world, without its lives."""

    family: str
    seed: int
    is_short: bool
    name: str
    kinds: frozenset[str]
    verdicts: tuple[str, ...]
    ours: dict[str, float]
    upstream: dict[str, float]
    seconds: float
    """Of CPU time."""


@dataclass
class Story:
    """Failures that say the same: the smallest of them, and the names of all."""

    verdict: str
    told: Played
    names: list[str]

    @property
    def key(self) -> tuple[str, str, frozenset[str]]:
        return self.told.world.family, self.verdict, self.told.world.kinds


def find(name: str) -> World:
    """Return a world by its name: FAMILY-SEED or FAMILY-short-SEED."""
    family, _, seed = name.rpartition("-")
    if family.removesuffix("-short") not in FAMILIES or not seed.isdecimal():
        sys.exit(f"there is no world {name!r}: write FAMILY-SEED or FAMILY-short-SEED, as in hpas-17")
    return family_of(family.removesuffix("-short")).make(int(seed), is_short=family.endswith("-short"))


def result_of(family: str, seed: int, is_short: bool) -> Result:
    """Play the world of a seed."""
    started = time.process_time()
    world = family_of(family).make(seed, is_short=is_short)
    try:
        played = play(family_of(family), world)
    except Exception as error:  # noqa: BLE001 - some errors cannot be sent to another process
        raise RuntimeError(f"{world.name} cannot be played: {error!r}") from None
    verdicts = tuple(verdict.name for verdict in played.verdicts)
    seconds = time.process_time() - started
    outcomes = played.ours.outcomes, played.upstream.outcomes
    return Result(family, seed, is_short, world.name, world.kinds, verdicts, *outcomes, seconds)


def smallest(name: str, verdict: str) -> Played:
    """Return the smallest world that fails with a verdict as this one does."""
    world = find(name)
    family = family_of(world.family)
    return shrink(family, play(family, world), verdict)


def results(pool: Executor, families: Iterable[str], seeds: range, is_short: bool) -> list[Result]:
    """Play the worlds of all seeds, and report progress on stderr."""
    running = [pool.submit(result_of, family, seed, is_short) for family in families for seed in seeds]
    failing = 0
    for number, future in enumerate(as_completed(running), 1):
        failing += bool(future.result().verdicts)
        if number % 50 == 0 or number == len(running):
            print(f"{number} of {len(running)} worlds, {failing} fail", file=sys.stderr)
    return [future.result() for future in running]


def stories_of(pool: Executor, failing: list[Result], most: int) -> tuple[list[Story], int]:
    """Shrink failures and group them; return how many were left for another run, too."""
    waiting = [(result, verdict) for result in failing for verdict in result.verdicts[:2]]
    stories: dict[tuple[str, str, frozenset[str]], Story] = {}
    shrunk: Counter[tuple[str, str]] = Counter()

    def urgency(failure: tuple[Result, str]) -> tuple[Any, ...]:
        result, verdict = failure
        is_told = any(key[:2] == (result.family, verdict) and key[2] <= result.kinds for key in stories)
        return shrunk[result.family, verdict], is_told, len(result.kinds), result.family, result.seed

    while waiting and most > 0:
        waiting.sort(key=urgency)
        chosen: list[tuple[Result, str]] = []
        for failure in waiting:
            if len(chosen) < min(ROUND, most) and all(failure[1] != verdict for _, verdict in chosen):
                chosen.append(failure)
        waiting = [failure for failure in waiting if failure not in chosen]
        most -= len(chosen)
        told = [pool.submit(smallest, result.name, verdict) for result, verdict in chosen]
        for (result, verdict), future in zip(chosen, told, strict=True):
            shrunk[result.family, verdict] += 1
            story = Story(verdict, future.result(), [result.name])
            known = stories.setdefault(story.key, story)
            if known is not story:
                known.names.append(result.name)
                if _size(story.told.world) < _size(known.told.world):
                    known.told = story.told
        print(f"{len(stories)} stories, {len(waiting)} failures not shrunk", file=sys.stderr)
    return list(stories.values()), len(waiting)


def _size(world: World) -> tuple[int, float]:
    return len(world.happenings), world.seconds


def sums(played: list[Result]) -> Iterator[str]:
    """Yield the sums of all outcomes, ours beside upstream's."""
    yield f"{'outcome':42}{'ours':>12}{'upstream':>12}{'ratio':>8}{'worse':>8}{'better':>8}"
    for name in sorted(set(chain.from_iterable((*one.ours, *one.upstream) for one in played))):
        pairs = [(one.ours.get(name, 0.0), one.upstream.get(name, 0.0)) for one in played]
        ours, upstream = (sum(column) for column in zip(*pairs, strict=True))
        worse, better = sum(own > theirs for own, theirs in pairs), sum(own < theirs for own, theirs in pairs)
        ratio = f"{ours / upstream:8.2f}" if upstream else f"{'-':>8}"
        yield f"{name:42}{ours:12.1f}{upstream:12.1f}{ratio}{worse:8}{better:8}"


def play_many(chosen: argparse.Namespace, pool: Executor) -> int:
    """Play worlds and print stories and sums; return how many stories are not known."""
    families = _families(chosen)
    seeds = range(chosen.seed, chosen.seed + -(-chosen.count // len(families)))
    played = results(pool, families, seeds, chosen.short)
    failing = [result for result in played if result.verdicts]
    stories, left = stories_of(pool, failing, chosen.stories)
    known = load(KNOWN).stories
    new = 0
    for story in sorted(
        stories, key=lambda story: (story.told.world.family, story.verdict, _size(story.told.world))
    ):
        items = sorted({failure.item for failure in known if failure.is_as(story.told, story.verdict)})
        new += not items
        print(f"\n=== {story.verdict}: {' '.join(items) or 'NOT KNOWN'}; found in {' '.join(story.names)}")
        print(tell(family_of(story.told.world.family), story.told))
    print(
        f"\n{len(played)} worlds, {len(failing)} fail, {len(stories)} stories, {new} not known, {left} failures not shrunk"
    )
    print(f"{sum(result.seconds for result in played):.0f} s of CPU time for both lives of all worlds\n")
    print("\n".join(sums(played)))
    counted = Counter((result.family, verdict) for result in failing for verdict in result.verdicts)
    print(
        "\nworlds by what is wrong:",
        *(f"{count:6} {family}: {verdict}" for (family, verdict), count in sorted(counted.items())),
        sep="\n",
    )
    return new


def play_one(chosen: argparse.Namespace) -> int:
    """Play one world, kept or made from its name, and explain it."""
    kept = next(
        (one for one in (*load(KNOWN).stories, *load(KEPT).stories) if one.name == chosen.world), None
    )
    world = kept.world if kept else find(chosen.world)
    family = family_of(world.family)
    played = play(family, world)
    verdict = chosen.verdict or next((found.name for found in played.verdicts), "")
    if verdict and (chosen.shrink or chosen.keep):
        played = shrink(family, played, verdict)
    print(tell(family, played, None))
    if chosen.keep:
        known = load(KNOWN)
        known.stories.append(Failure(chosen.keep, verdict, tell(family, played, 24), played.world))
        save(KNOWN, known)
    return int(bool(played.verdicts))


def renew(families: Iterable[str], pool: Executor) -> int:
    """Move mended failures to those that are kept, and list the failing short worlds anew; print what changed."""
    known, kept = load(KNOWN), load(KEPT)
    mended = [
        failure
        for failure in known.stories
        if failure.world.family in families
        and not play(family_of(failure.world.family), failure.world).has(failure.verdict)
    ]
    short = {name: verdicts for name, verdicts in known.short.items() if not name.startswith(tuple(families))}
    for family in families:
        played = results(pool, [family], range(SHORT[family]), is_short=True)
        short |= {result.name: sorted(result.verdicts) for result in played if result.verdicts}
    print(*(f"{failure.name}: mended" for failure in mended), *difference(known.short, short), sep="\n")
    save(KNOWN, Failures([failure for failure in known.stories if failure not in mended], short))
    save(KEPT, Failures([*kept.stories, *mended]))
    return 0


def main(arguments: list[str]) -> int:
    if "--real" in arguments:
        real: int = import_module("tests.worlds.real.play").main(
            [one for one in arguments if one != "--real"]
        )
        return real
    parser = argparse.ArgumentParser(
        prog="python -m tests.worlds",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=200, help="how many worlds, of all families together")
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--short", action="store_true", help="worlds as short as those of `make test`")
    parser.add_argument("--stories", type=int, default=STORIES, help="how many failures are shrunk at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--world", metavar="NAME", help="play one world and explain it")
    parser.add_argument(
        "--shrink", action="store_true", help="with --world: explain the smallest one that still fails"
    )
    parser.add_argument(
        "--verdict", help="with --shrink or --keep: which verdict must stay; the gravest by default"
    )
    parser.add_argument(
        "--keep", metavar="ITEM", help="with --world: add the smallest one to known_failures.yaml"
    )
    parser.add_argument(
        "--renew",
        action="store_true",
        help="renew known_failures.yaml and kept.yaml, of one --family or of all",
    )
    chosen = parser.parse_args(arguments)
    _prepare()
    if chosen.world:
        return play_one(chosen)
    with ProcessPoolExecutor(chosen.jobs, initializer=_prepare_worker) as pool:
        return renew(_families(chosen), pool) if chosen.renew else min(play_many(chosen, pool), 1)


def _families(chosen: argparse.Namespace) -> Sequence[str]:
    return [chosen.family] if chosen.family else FAMILIES


def _prepare() -> None:
    logging.disable(logging.CRITICAL)
    # The programs of a life would take the signals that are meant for this command.
    asyncio.SelectorEventLoop.add_signal_handler = lambda *_: None  # type: ignore[method-assign]


def _prepare_worker() -> None:
    """Let a worker end with its parent, and at once when it is interrupted."""
    _prepare()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ends_with_parent = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(ends_with_parent, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
