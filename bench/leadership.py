"""Leadership that moves every ten minutes for a day: what a VPA per role wastes and starves beside one plain VPA.

Also draws it, into docs/images/leadership.svg.
"""

from html import escape
from pathlib import Path

from bench import Rows
from tests.scenarios.vertical.conftest import play_on_lab
from tests.scenarios.vertical.leadership import PLAIN, ROLES, Day, Ledger, Point
from tests.scenarios.vertical.stage import Stage

ROTATIONS = 24 * 6
IMAGE = Path(__file__).parents[1] / "docs" / "images" / "leadership.svg"
NAMES = {PLAIN: "one plain VPA", ROLES: "a VPA per role"}
GIGA = 1e9
_WIDTH, _LEFT, _PANEL, _SHOWN_HOURS = 760, 56, 120, 8.0
_TOP = 12e9
_STYLE = """<style>
text{font:12px system-ui,sans-serif;fill:#24292f}.head{font-weight:600;font-size:14px}.small{font-size:11px;fill:#57606a}
rect{shape-rendering:crispEdges}.used{fill:#0969da}.wasted{fill:#d4a72c;opacity:.55}.starved{fill:#cf222e}.axis{stroke:#d0d7de}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.used{fill:#4493f8}.axis{stroke:#3d444d}}
</style>"""


def run() -> Rows:
    """Live through the day, draw it, and return its resource-hours."""
    days: list[Day] = []

    async def scenario(stage: Stage) -> None:
        day = Day(stage)
        await day.open()
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            for _ in range(ROTATIONS):
                await day.rotate(actor)
            assert not actor.wrote("/eviction"), "nobody is to be evicted"
        days.append(day)

    play_on_lab(scenario)
    IMAGE.write_text(drawn(days[0]), encoding="utf-8")
    return [row(NAMES[name], days[0].ledgers[name]) for name in (PLAIN, ROLES)]


def row(name: str, ledger: Ledger) -> dict[str, object]:
    """Return one line of the table."""
    return {
        "24 h, 3 replicas": name,
        "memory used, GB h": round(ledger.used["memory"] / GIGA),
        "wasted": round(ledger.wasted["memory"] / GIGA),
        "starved": round(ledger.starved["memory"] / GIGA, 1),
        "CPU used, core h": round(ledger.used["cpu"], 1),
        "wasted ": round(ledger.wasted["cpu"], 1),
        "starved ": round(ledger.starved["cpu"], 2),
    }


def drawn(day: Day) -> str:
    """Draw the first hours of one pod under each, and the whole day's waste."""
    title = "Memory of one database pod while leadership moves every ten minutes"
    parts = [f'<text x="10" y="20" class="head">{title}</text>', _legend()]
    for place, name in enumerate((PLAIN, ROLES)):
        top = 62 + place * (_PANEL + 46)
        ledger = day.ledgers[name]
        told = (
            f"{NAMES[name]}: {ledger.wasted['memory'] / GIGA:,.0f} GB h wasted and "
            f"{ledger.starved['memory'] / GIGA:,.1f} GB h starved in 24 h by three pods"
        )
        parts.append(f'<text x="10" y="{top - 6}">{escape(told)}</text>')
        parts += _panel(day.points[name], top)
    height = 62 + 2 * (_PANEL + 46)
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">{_STYLE}{"".join(parts)}</svg>\n'


def _legend() -> str:
    words = (("used", "used"), ("wasted", "asked for, not used"), ("starved", "used, not asked for"))
    return "".join(
        f'<rect class="{kind}" x="{_LEFT + place * 150}" y="28" width="10" height="10"/>'
        f'<text x="{_LEFT + 14 + place * 150}" y="37" class="small">{word}</text>'
        for place, (kind, word) in enumerate(words)
    )


def _panel(points: list[Point], top: float) -> list[str]:
    bottom = top + _PANEL
    scale_x, scale_y = (_WIDTH - _LEFT - 10) / _SHOWN_HOURS, _PANEL / _TOP
    shown = [point for point in points if point.hour < _SHOWN_HOURS]
    ends = [*(point.hour for point in shown[1:]), _SHOWN_HOURS]
    parts = []
    for point, end in zip(shown, ends, strict=True):
        x, width = _LEFT + point.hour * scale_x, (end - point.hour) * scale_x
        low, high = min(point.asked, point.used), max(point.asked, point.used)
        kind = "wasted" if point.asked >= point.used else "starved"
        for style, start, stop in (("used", 0.0, low), (kind, low, high)):
            y, tall = bottom - stop * scale_y, (stop - start) * scale_y
            parts.append(
                f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{tall:.1f}"/>'
            )
    for amount in (0.0, 4e9, 8e9, 12e9):
        y = bottom - amount * scale_y
        parts.append(f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" class="small" text-anchor="end">{amount / GIGA:g} GB</text>'
        )
    return parts + [
        f'<text x="{_LEFT + hour * scale_x:.1f}" y="{bottom + 14:.1f}" class="small" text-anchor="middle">{hour} h</text>'
        for hour in range(int(_SHOWN_HOURS) + 1)
    ]
