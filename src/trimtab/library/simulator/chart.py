"""Draws a backtest: the replicas of HPAs beside those that were needed, or the targets of VPAs beside usage."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from trimtab.library.simulator.hpa_runs import Candidate
from trimtab.library.simulator.model import Model, model_metrics, replicas_for
from trimtab.library.simulator.results import Results
from trimtab.library.trace import Trace
from trimtab.model.core.pod import CPU

if TYPE_CHECKING:
    from trimtab.library.simulator.sizes import SizeResults

WIDTH, HEIGHT = 960, 360
LEFT, RIGHT, TOP, BOTTOM = 48, 40, 40, 32
DAY = 86_400.0
POINTS = 800
"""Columns of the area of needed replicas. A column shows the maximum of its rows."""

COLOURS = ("#0969da", "#bf3989", "#1a7f37", "#9a6700", "#8250df", "#57606a")
"""Distinguishable on light and dark, and with most kinds of colour blindness."""

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}"
    ".need{fill:#8c959f;fill-opacity:.35}.grid{stroke:#8c959f;stroke-opacity:.3}"
    ".line{fill:none;stroke-width:1.8}"
    "@media (prefers-color-scheme:dark){text{fill:#c9d1d9}}"
)

Points = Sequence[tuple[float, int]]
Lines = Sequence[tuple[str, Points]]
"""What is drawn as lines, each with its name."""


def render_chart(first: Candidate, results: Sequence[Results], trace: Trace, model: Model) -> str:
    """Return a self-contained SVG of the replicas of HPAs, and of those that the first of them needs."""
    lines = [(result.name, result.replicas) for result in results]
    metrics = model_metrics(first.hpa, trace, model)
    # What keeps every pod at its target.
    need = _highest_per_column(trace, partial(replicas_for, metrics, trace))
    return _draw([(_title("Replicas", lines, trace), ("needed at target", need), lines)], trace)


def render_sizes(results: "Sequence[SizeResults]", resources: Sequence[str], trace: Trace) -> str:
    """Return a self-contained SVG of what all pods of VPAs request and use: a panel per resource, below another."""
    panels = []
    for resource in resources:
        unit, name = (1, "millicores") if resource == CPU else (2**20, "MiB")
        lines = [
            (
                result.name,
                _changes(
                    [(at, round(requested[resource] / unit)) for at, _, requested in result.life.amounts]
                ),
            )
            for result in results
        ]
        amounts = results[0].life.amounts
        times, used = [at for at, _, _ in amounts], [round(used[resource] / unit) for _, used, _ in amounts]
        area = _highest_per_column(trace, partial(_held, times, used))
        title = _title(f"Requested {resource} in {name}", lines, trace)
        panels.append((title, (f"used, in {name}", area), lines))
    return _draw(panels, trace)


def _changes(points: Points) -> Points:
    return [point for before, point in pairwise([(0.0, -1), *points]) if point[1] != before[1]]


def _held(times: Sequence[float], values: Sequence[int], moment: float) -> int:
    return values[max(bisect_right(times, moment) - 1, 0)]


Panel = tuple[str, tuple[str, Points], Lines]
"""A title, the area behind the lines, and the lines."""


def _draw(panels: Sequence[Panel], trace: Trace) -> str:
    """Return an SVG with panels below each other."""
    height = HEIGHT * len(panels)
    title = "; ".join(title for title, _, _ in panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
    ]
    for number, (_, area, lines) in enumerate(panels):
        values = [value for _, points in (area, *lines) for _, value in points]
        frame = _Frame(trace.start, trace.end, max([*values, 1]))
        inside = [
            *frame.grid(),
            f'<path class="need" d="{frame.area(area[1])}"/>',
            *(
                f'<path class="line" stroke="{_colour_of(index)}" d="{frame.line(points)}"/>'
                for index, (_, points) in enumerate(lines)
            ),
            *_legend(area[0], [name for name, _ in lines]),
        ]
        if number:
            inside = [f'<g transform="translate(0 {number * HEIGHT})">', *inside, "</g>"]
        parts += inside
    return "\n".join([*parts, "</svg>"]) + "\n"


def _highest_per_column(trace: Trace, value_at: Callable[[float], int]) -> Points:
    """Return the maximum of each drawn column."""
    width = (trace.end - trace.start) / POINTS
    highest: dict[int, int] = {}
    for moment in trace.times:
        column = min(int((moment - trace.start) / width), POINTS - 1)
        highest[column] = max(highest.get(column, 0), value_at(moment))
    return [(trace.start + column * width, value) for column, value in sorted(highest.items())]


def _colour_of(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


class _Frame:
    """Maps times and replicas to coordinates."""

    def __init__(self, start: float, end: float, highest: int) -> None:
        self._start, self._end, self._highest = start, end, highest

    def x(self, moment: float) -> float:
        share = (moment - self._start) / (self._end - self._start)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, replicas: float) -> float:
        return round(HEIGHT - BOTTOM - replicas / self._highest * (HEIGHT - TOP - BOTTOM), 1)

    def line(self, points: Points) -> str:
        """Return the path of steps through the points, held to the end."""
        path = [f"M{self.x(points[0][0])} {self.y(points[0][1])}"]
        path += [f"H{self.x(moment)}V{self.y(replicas)}" for moment, replicas in points[1:]]
        return "".join([*path, f"H{self.x(self._end)}"])

    def area(self, points: Points) -> str:
        """Return the path of steps, closed to the ground."""
        if not points:
            return ""
        ground = self.y(0)
        return f"{self.line(points)}V{ground}H{self.x(points[0][0])}Z"

    def grid(self) -> list[str]:
        """Return grid lines with replica numbers, and the times below."""
        step = _step(self._highest)
        parts = []
        for replicas in range(0, self._highest + 1, step):
            y = self.y(replicas)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
            parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{replicas}</text>')
        for moment, text in _ticks(self._start, self._end):
            parts.append(f'<text x="{self.x(moment)}" y="{HEIGHT - 10}" text-anchor="middle">{text}</text>')
        return parts


def _ticks(start: float, end: float) -> list[tuple[float, str]]:
    """Return the labelled times: midnights, or four times in between for short traces."""
    first = -(-start // DAY) * DAY
    days = int((end - first) // DAY) + 1
    if days >= 3:
        every = -(-days // 8)
        midnights = [first + number * DAY for number in range(0, days, every)]
        return [(moment, f"{datetime.fromtimestamp(moment, UTC):%a %d %b}") for moment in midnights]
    between = [start + (end - start) * share / 8 for share in (1, 3, 5, 7)]
    return [(moment, f"{datetime.fromtimestamp(moment, UTC):%a %d %b %H:%M}") for moment in between]


def _step(highest: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50, ... that gives at most ten grid lines."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if highest <= 10 * step:
                return step
        power *= 10


def _legend(area: str, names: Sequence[str]) -> list[str]:
    parts = [f'<rect class="need" x="{LEFT}" y="14" width="14" height="10"/>']
    parts.append(f'<text x="{LEFT + 20}" y="23">{area}</text>')
    x, y = LEFT + 140, 19
    for index, name in enumerate(names):
        if x + 20 + 7 * len(name) > WIDTH:
            x, y = LEFT, y + 16
        stroke = f'stroke="{_colour_of(index)}" x1="{x}" x2="{x + 14}" y1="{y}" y2="{y}"'
        parts.append(f'<line class="line" {stroke}/>')
        parts.append(f'<text x="{x + 20}" y="{y + 4}">{escape(name)}</text>')
        x += 44 + 7 * len(name)
    return parts


def _title(what: str, lines: Lines, trace: Trace) -> str:
    first, last = (datetime.fromtimestamp(moment, UTC) for moment in (trace.start, trace.end))
    names = ", ".join(name for name, _ in lines)
    return f"{what} of {names} from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
