"""What came of both sides: outcomes, allowances, the table of sums, and the stories of worlds in which ours is worse."""

import gzip
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.worlds.real.hpas import Json
from tests.worlds.real.oracle import Broken, Size, broken_promises, rules_at
from tests.worlds.real.server import SIDES

ALLOWANCES = {
    "starved pod-s": (0.15, 10.0), "excess pod-s": (0.15, 15.0), "changes": (0.15, 2.0), "flaps": (0.0, 1.0), "late steps": (0.25, 1.0),
    "reaction up s": (0.15, 5.0), "reaction down s": (0.15, 6.0), "error s": (0.15, 5.0),
    "scale writes": (0.15, 3.0), "status writes": (0.15, 10.0), "events writes": (0.15, 10.0),
    "broken promises": (0.0, 0.0),
    "OOM kills": (0.25, 1.0), "starved GiB-s": (0.25, 80.0), "starved core-s": (0.25, 20.0), "wasted GiB-s": (0.25, 150.0),
    "wasted core-s": (0.25, 60.0), "unavailable pod-s": (0.25, 10.0), "eviction writes": (0.25, 2.0),
    "resize writes": (0.25, 8.0), "checkpoint writes": (0.25, 20.0), "blind resizes": (-1.0, 0.0), "targets apart s": (0.0, 0.0),
}  # fmt: skip
"""By outcome: how much more ours may have than upstream, as a share and as an amount. A share of -1: whatever upstream has.

Pauses of ours that last seconds are long beside a day of a VPA world: for 5 s after a resize, ours waits until it is seen.
"""
UNFAIR_SECONDS = 12.0
"""A world is left out where one side was asked for nothing so much longer than the other: the machine was busy."""
_BELIEVED_Z, _FEWEST_WORLDS = 3.0, 20
"""A sum is believed from so many standard errors on, and of so many worlds."""
_SEEN_SECONDS = 0.8
"""Until a decision is seen."""
_TOLD = 30
"""Lines of the life of a VPA's pods."""
_NOT_BELIEVED = frozenset({"error s", "targets apart s"})
"""Shown, and not held against ours. Stale samples are refused and refused writes are told by ruling, and another target may be better."""
_APART = 1.25
"""From this ratio on, targets count as different."""

Outcomes = dict[str, float]
Target = tuple[float, float, float]
"""The moment, the cores and the bytes of memory."""


class Pair(NamedTuple):
    """A world as both played it."""

    world: str
    profile: str
    tell: list[str]
    lives: dict[str, Json]
    outcomes: dict[str, Outcomes]
    broken: dict[str, list[Broken]]

    @property
    def worse(self) -> list[str]:
        """Return the outcomes in which ours is worse beyond the allowance."""
        upstream, ours = self.outcomes["upstream"], self.outcomes["ours"]
        return [
            name for name, (share, amount) in ALLOWANCES.items()
            if ours[name] > upstream[name] * (1 + share) + amount
        ]  # fmt: skip


def load(files: Iterable[Path]) -> tuple[list[Pair], list[str]]:
    """Return the worlds of some records, and the names of those that were not fair."""
    pairs, unfair = [], []
    for path in files:
        with gzip.open(path) as file:
            record = json.load(file)
        found: dict[tuple[str, int], dict[str, Json]] = {}
        for life in record["lives"]:
            found.setdefault((life["world"], life["replay"]), {})[life["side"]] = life
        for (world, _), lives in found.items():
            is_of_hpas = all("rows" in life for life in lives.values())
            unasked = [
                _unasked_seconds(life, record["events"]) if is_of_hpas else 0.0 for life in lives.values()
            ]
            if max(unasked) - min(unasked) > UNFAIR_SECONDS or max(unasked) > 3 * UNFAIR_SECONDS:
                unfair.append(world)
                continue
            broken = {
                side: broken_promises(life) if is_of_hpas else _blind(life) for side, life in lives.items()
            }
            judge = _outcomes if is_of_hpas else _vpa_outcomes
            outcomes = {side: judge(life, len(broken[side])) for side, life in lives.items()}
            if not is_of_hpas:
                outcomes["ours"]["targets apart s"] = _seconds_apart(
                    *(lives[side]["targets"] for side in SIDES)
                )
            tell = [f"{record['tell']}; played late by {record['lag']} s at most", *lives["ours"]["tell"]]
            pairs.append(Pair(world, record["profile"], tell, lives, outcomes, broken))
    return pairs, unfair


def flagged(path: Path) -> list[str]:
    """Return the worlds of a record in which ours is worse, in more than seconds of error."""
    return sorted({pair.world for pair in load([path])[0] if set(pair.worse) - _NOT_BELIEVED})


def report(files: Sequence[Path], items: Mapping[str, str]) -> tuple[list[str], bool]:
    """Return the sums of all outcomes and the stories, and whether ours is believed to be worse.

    Some worlds have a review item: that of the known defect that shows there.
    """
    pairs, unfair = load(files)
    lines, worse_sums = [], []
    for profile in sorted({pair.profile for pair in pairs}):
        table, worse = _sums(profile, pairs)
        lines += table
        worse_sums += worse
    held = _held(pairs)
    for world, outcomes in held.items():
        plays = [pair for pair in pairs if pair.world == world]
        shown = max(plays, key=lambda pair: len(set(pair.worse) & set(outcomes)))
        times = ", ".join(f"{name} in {count} of {len(plays)}" for name, count in outcomes.items())
        lines += ["", f"=== {world} {items.get(world, '')}: ours is worse: {times}", *_tell(shown)]
    lines += ["", f"{len({pair.world for pair in pairs})} worlds, {len(held)} stories", *worse_sums]
    if unfair:
        lines.append(f"left out, as one side was asked late: {', '.join(unfair)}")
    return lines, bool(held or worse_sums)


def stories(files: Sequence[Path], world: str) -> list[str]:
    """Return both lives of a world in every play of it, with the replicas of both beside each other."""
    plays = [pair for pair in load(files)[0] if pair.world == world]
    return [line for pair in plays for line in (*_tell(pair), *_rows(pair), "")]


def _held(pairs: Iterable[Pair]) -> dict[str, dict[str, int]]:
    """Return the outcomes that are worse in three plays of a world and in most of them, with their numbers."""
    plays: dict[str, list[Pair]] = {}
    for pair in pairs:
        plays.setdefault(pair.world, []).append(pair)
    held = {}
    for world, of_world in plays.items():
        counts = Counter(name for pair in of_world for name in pair.worse if name not in _NOT_BELIEVED)
        believed = {name: count for name, count in counts.items() if count >= 3 and count * 2 > len(of_world)}
        if believed:
            held[world] = believed
    return held


def z(differences: Sequence[float]) -> float:
    """Return how many standard errors the mean difference is away from none."""
    count = len(differences)
    mean = sum(differences) / count
    variance = sum((each - mean) ** 2 for each in differences) / max(count - 1, 1)
    return float(mean / (variance / count) ** 0.5) if variance else 0.0


def _sums(profile: str, pairs: Iterable[Pair]) -> tuple[list[str], list[str]]:
    """Return the table of a profile, and what is worse in sum. Replays are left out of it."""
    plays = {pair.world: pair for pair in reversed(list(pairs)) if pair.profile == profile}.values()
    head = f"{'outcome':18}{'upstream':>11}{'ours':>11}{'ratio':>8}{'z':>7}"
    table, worse = ["", f"{profile}: {len(plays)} worlds", head], []
    seen = [
        name for name in ALLOWANCES if any(pair.outcomes[side][name] for pair in plays for side in pair.lives)
    ]
    for name in seen:
        share = ALLOWANCES[name][0]
        upstream, ours = (sum(pair.outcomes[side][name] for pair in plays) for side in SIDES)
        score = z([pair.outcomes["ours"][name] - pair.outcomes["upstream"][name] for pair in plays])
        table.append(
            f"{name:18}{upstream:11.1f}{ours:11.1f}{ours / upstream if upstream else 0:8.2f}{score:7.1f}"
        )
        is_sure = score > _BELIEVED_Z and len(plays) >= _FEWEST_WORLDS
        if is_sure and ours > upstream * (1 + share) and name not in _NOT_BELIEVED:
            worse.append(
                f"{name} is worse in the sum of {profile}: {upstream:.1f} -> {ours:.1f}, z {score:.1f}"
            )
    return table, worse


def _outcomes(life: Json, broken: int) -> Outcomes:
    found = dict.fromkeys(ALLOWANCES, 0.0)
    rows, sizes = life["rows"], [Size(*each) for each in life["sizes"]]
    end = rows[-1][0]
    for (at, wanted, _, ready, low, high), (until, *_) in pairwise(rows):
        if wanted is not None:
            found["starved pod-s"] += max(0, low - ready) * (until - at)
            found["excess pod-s"] += max(0, wanted - high) * (until - at)
    own = [size for size in sizes if size.by == "controller"]
    found["changes"] = len(own)
    for one, other in pairwise(sizes):
        turns = (one.new > one.old) != (other.new > other.old) and one.by == other.by == "controller"
        found["flaps"] += turns and other.at - one.at < 10
    found["late steps"] = _late_steps(life, sizes)
    for number, (at, _, _) in enumerate(life["steps"]):
        following = life["steps"][number + 1][0] if number + 1 < len(life["steps"]) else end
        row = next((row for row in rows if row[0] >= at + 0.3), None)
        until = min(end, at + 40, following)
        if row is None or row[1] is None or until - at < 3:
            continue
        size = next((each.new for each in reversed(sizes) if each.at <= at), row[1])
        if size < row[4]:
            reacted = [each.at for each in own if each.at >= at and each.new > each.old]
            found["reaction up s"] += min([*reacted, until]) - at
        elif size > row[5]:
            reacted = [each.at for each in own if each.at >= at and each.new < each.old]
            found["reaction down s"] += min([*reacted, until]) - at
    for (at, active, able), (until, *_) in zip(life["status"], [*life["status"][1:], [end]], strict=True):
        is_wrong = (active[0] == "False" and active[1] != "ScalingDisabled") or able[0] == "False"
        found["error s"] += max(0, min(until, end) - at) * is_wrong
    for kind in ("scale", "status", "events"):
        found[f"{kind} writes"] = life["writes"].get(kind, 0)
    found["broken promises"] = broken
    return found


def _late_steps(life: Json, sizes: Sequence[Size]) -> int:
    """Return how many syncs steps came later than the rate allows, although they were needed all the time.

    Counted where all policies have one period and that is a whole number of syncs: else every step waits for a sync.
    """
    sync, late = life["settings"]["sync"], 0
    for one, other in pairwise(sizes):
        up = other.new > other.old
        rules = rules_at(life, other.at, up=up)
        periods = {policy["periodSeconds"] for policy in rules["policies"] or ()}
        if (
            sync == 1
            or len(periods) != 1
            or (one.new > one.old) != up
            or {one.by, other.by} != {"controller"}
        ):
            continue
        (period,) = periods
        rows = [row for row in life["rows"] if one.at + period - sync < row[0] < other.at - _SEEN_SECONDS]
        was_needed = all(row[4] > one.new if up else row[5] < one.new for row in rows)
        if period % sync == 0 and was_needed:
            late += max(0, math.ceil((other.at - one.at - period - _SEEN_SECONDS) / sync))
    return late


def _blind(life: Json) -> list[Broken]:
    return [Broken(*each) for each in life["broken"]]


def _vpa_outcomes(life: Json, blind: int) -> Outcomes:
    found: Outcomes = dict.fromkeys(ALLOWANCES, 0.0) | life["outcomes"] | {"blind resizes": blind}
    kinds = {"checkpoint": "verticalpodautoscalercheckpoints"}
    for kind in ("status", "events", "eviction", "resize", "checkpoint"):
        found[f"{kind} writes"] = life["writes"].get(kinds.get(kind, kind), 0)
    return found


def _seconds_apart(upstream: Sequence[Target], ours: Sequence[Target]) -> float:
    """Return the seconds in which the targets of both differ."""
    seconds = 0.0
    for (at, *target), (until, *_) in pairwise(upstream):
        other = next((amounts for moment, *amounts in reversed(ours) if moment <= at), [0.0, 0.0])
        is_apart = any(min(pair) * _APART < max(pair) for pair in zip(target, other, strict=True))
        seconds += (until - at) * is_apart
    return seconds


def _unasked_seconds(life: Json, events: Iterable[Json]) -> float:
    """Return the seconds without a question although a sync was due, outside of what befell the controllers."""
    excused = [(event["from"], event["to"] + 16) for event in events]
    excused += [(start, end + 3) for _, start, end in life["gone"]]
    zero = None
    for size in (Size(*each) for each in life["sizes"]):
        if size.new == 0:
            zero = size.at
        elif zero is not None:
            excused.append((zero, size.at + 1))
            zero = None
    if zero is not None:
        excused.append((zero, float("inf")))
    asked, sync = sorted({each[0] for each in life["served"]}), life["settings"]["sync"]
    end = life["rows"][-1][0]
    gaps = 0.0
    for at, until in zip([0.0, *asked], [*asked, end], strict=True):
        if until - at > sync + 1.5 and not any(start < until and at < over for start, over in excused):
            gaps += until - at - sync
    return gaps


def _tell(pair: Pair) -> Iterable[str]:
    """Yield a world and the sizes, outcomes and broken promises of both its lives."""
    yield from (f"  {line}" for line in pair.tell)
    for side, life in pair.lives.items():
        by_hand = {"hand": " by hand", "controller": ""}
        sizes = [Size(*each) for each in life.get("sizes", ())]
        yield f"  {side:9}" + " ".join(
            f"{each.at:.1f}:{each.old}>{each.new}{by_hand[each.by]}" for each in sizes
        )
        yield from (f"           {at:5.1f} s {text}" for at, text in life.get("log", ())[:_TOLD])
        outcomes = pair.outcomes[side].items()
        yield "           " + ", ".join(f"{name} {amount:.1f}" for name, amount in outcomes if amount)
        yield from (
            f"           {each.at:.1f} s {each.promise}: {each.text}" for each in pair.broken[side][:4]
        )


def _rows(pair: Pair) -> Iterable[str]:
    """Yield the replicas that were needed beside those of both sides, whenever something changed."""
    if "rows" not in pair.lives["ours"]:
        return
    yield "  seconds: needed | upstream wanted/ready | ours wanted/ready"
    last = None
    for one, other in zip(pair.lives["upstream"]["rows"], pair.lives["ours"]["rows"], strict=False):
        line = f"{one[4]}-{one[5]} | {one[1]}/{one[3]} | {other[1]}/{other[3]}"
        if line != last:
            yield f"  {one[0]:6.1f}: {line}"
        last = line
