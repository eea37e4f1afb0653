"""The command `picture`: measure, print, and write the page."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from bench.picture import page, scenarios, tables
from bench.picture.play import Player
from bench.picture.results import Results
from bench.picture.scenarios import Alone, Scenario
from bench.picture.standin import NoStandinError, program
from tools.peers import build

_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "vpa-recommender")


def main(arguments: Sequence[str]) -> int:
    """Do what the command line asks; return the exit code."""
    options = _parse(arguments)
    chosen = _chosen(options)
    if options.list:
        for one in chosen:
            print(f"{one.name:14} about {one.seconds / 60:4.1f} min  {one.title}")
        return 0
    if options.render:
        results = Results.load()
    else:
        results = Results([]) if options.quick else Results.load()
        try:
            build.ensure(_PROGRAMS)
            program()
        except (build.CannotBuildError, NoStandinError) as error:
            print(f"bench: nothing was measured beside the peers: {error}", file=sys.stderr)
            return 1
        try:
            Player(chosen, results).play()
        except KeyboardInterrupt:
            print("stopped; what was measured until now is kept")
    _print(results)
    if not options.quick:
        page.write(results)
        print(f"written: {page.PAGE.relative_to(page.ROOT)}")
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench picture", description=__doc__)
    parser.add_argument(
        "--only", default="", help="scenarios to measure, separated by commas; the others keep their results"
    )
    parser.add_argument("--skip", default="", help="scenarios to leave out, separated by commas")
    parser.add_argument(
        "--pairs",
        type=int,
        default=0,
        help="how often peer and ours take turns (default 3, fewer where a turn is long)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a small picture in two minutes; prints, writes nothing"
    )
    parser.add_argument(
        "--render", action="store_true", help="write the page again from what was measured before"
    )
    parser.add_argument("--list", action="store_true", help="name the scenarios and how long they take")
    return parser.parse_args(arguments)


def _chosen(options: argparse.Namespace) -> list[Scenario | Alone]:
    available = scenarios.quick() if options.quick else scenarios.whole(options.pairs or 3)
    known = [one.name for one in available]
    only, skip = (list(filter(None, text.split(","))) for text in (options.only, options.skip))
    unknown = [name for name in (*only, *skip) if name not in known]
    if unknown:
        sys.exit(f"no scenario named {', '.join(unknown)}; there are: {', '.join(known)}")
    chosen = [one for one in available if (not only or one.name in only) and one.name not in skip]
    return [_cut(one, options.pairs) for one in chosen] if options.pairs else chosen


def _cut(one: Scenario | Alone, pairs: int) -> Scenario | Alone:
    """Leave out the rounds beyond those asked for, where rounds repeat the same contenders."""
    if isinstance(one, Alone) or len({turn.load for turn in one.turns}) > 1:
        return one
    return replace(one, turns=tuple(turn for turn in one.turns if turn.round < pairs))


def _print(results: Results) -> None:
    """Print what was measured; columns as wide as they need to be, for a terminal or a file."""
    for title, (head, *rows) in (
        ("goals", [row for row in tables.goal_table(results) if row[-1] != "not measured"]),
        ("HPAs: medians per cycle", tables.horizontal_table(results)),
        ("VPAs: medians per loop", tables.vertical_table(results)),
        ("not measured, and why", tables.error_table(results) or [[]]),
    ):
        if rows:
            print(f"\n{title}")
            print(_aligned([head, *rows]))


def _aligned(table: tables.Table) -> str:
    cells = [[cell.replace("**", "") for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)
