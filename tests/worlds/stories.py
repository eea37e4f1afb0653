"""Tells a world and its two lives in a few lines, for people."""

from itertools import chain

from tests.worlds.shrink import Played
from tests.worlds.world import Family, Life

WIDTH = 58
"""Of the column of our life; upstream's stands right of it."""
LINES = 60
"""Longest time line of a story; `--world` shows all of it."""


def clock(seconds: float) -> str:
    """Return a moment as days, hours, minutes and seconds, as short as it can be."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{hours:02}:{minutes:02}:{rest:02}"
    return f"{days}d {text}" if days else text


def tell(family: Family, played: Played, most: int | None = LINES) -> str:
    """Return what there is, what happens, both lives on one time line, what came of them, and the verdicts."""
    world = played.world
    lines = [f"{world.name}, {clock(world.seconds)}", *(f"  {line}" for line in family.tell(world))]
    lines += [f"  {'':11} {'ours':{WIDTH}} upstream", *_time_line(family, played, most)]
    lines += [f"  {line}" for line in _outcomes(played.ours, played.upstream)]
    lines += [f"  WRONG {verdict.name}: {verdict.text}" for verdict in played.verdicts]
    return "\n".join(lines)


def _time_line(family: Family, played: Played, most: int | None) -> list[str]:
    happened = [(one.at, 0, f"** {family.tell_happening(one)}") for one in played.world.happenings]
    ours = [(at, 1, text) for at, text in played.ours.log]
    upstream = [(at, 2, text) for at, text in played.upstream.log]
    entries = sorted(chain(happened, ours, upstream), key=lambda entry: entry[:2])
    lines: list[str] = []
    waiting: tuple[int, str] | None = None
    for at, column, text in entries:
        second = round(at)
        if column == 2 and waiting == (second, "ours"):
            lines[-1] = f"{lines[-1]:{WIDTH + 14}} {text}"
            waiting = None
            continue
        pad = " " * (WIDTH + 1) if column == 2 else ""
        lines.append(f"  {clock(at):>11} {pad}{text}")
        waiting = (second, "ours") if column == 1 else None
    if most is None or len(lines) <= most:
        return lines
    return [*lines[: most // 2], f"  {'...':>11} {len(lines) - most} lines", *lines[len(lines) - most // 2 :]]


def _outcomes(ours: Life, upstream: Life) -> list[str]:
    names = sorted({*ours.outcomes, *upstream.outcomes})
    differing = [(name, ours.outcomes.get(name, 0.0), upstream.outcomes.get(name, 0.0)) for name in names]
    return [
        f"{name}: {own:.1f} ours, {theirs:.1f} upstream"
        for name, own, theirs in differing
        if abs(own - theirs) > 0.05
    ]
