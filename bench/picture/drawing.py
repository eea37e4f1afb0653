"""Bars for those who would rather look than read: SVG, drawn here, readable on light and dark pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from bench.picture.contenders import OURS
from bench.picture.results import Results
from bench.picture.tables import LABELS, contenders

IMAGES = Path(__file__).parents[2] / "docs" / "images"
_WIDTH, _LEFT, _BAR, _GAP = 760, 250, 18, 8
_STYLE = """<style>
text{font:12px system-ui,sans-serif;fill:#24292f}.head{font-weight:600;font-size:14px}.small{font-size:11px;fill:#57606a}
.c0{fill:#0969da}.c1{fill:#8c959f}.c2{fill:#d0d7de}.ours .c0{fill:#1a7f37}.axis{stroke:#d0d7de}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.c0{fill:#4493f8}.c1{fill:#656c76}.c2{fill:#3d444d}
.ours .c0{fill:#3fb950}.axis{stroke:#3d444d}}
</style>"""


@dataclass(frozen=True)
class Bar:
    """A bar of stacked parts."""

    label: str
    parts: Sequence[float]
    is_ours: bool

    @property
    def total(self) -> float:
        """Return its length in the unit of the chart."""
        return sum(self.parts)


@dataclass(frozen=True)
class Chart:
    """Groups of bars on one scale."""

    title: str
    unit: str
    legend: Sequence[str]
    groups: Sequence[tuple[str, Sequence[Bar]]]

    def svg(self) -> str:
        """Draw it."""
        longest = max((bar.total for _, bars in self.groups for bar in bars), default=1.0) or 1.0
        scale = (_WIDTH - _LEFT - 90) / longest
        lines, y = [], 50
        for name, bars in self.groups:
            lines.append(f'<text x="10" y="{y + 2}" class="small">{escape(name)}</text>')
            y += _GAP
            for bar in bars:
                lines += self._bar(bar, y, scale)
                y += _BAR + 4
            y += 2 * _GAP + 4
        head = f'<text x="10" y="20" class="head">{escape(self.title)}</text>{self._legend()}'
        size = f'viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}"'
        label = escape(self.title, quote=True)
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">{_STYLE}{head}{"".join(lines)}</svg>\n'

    def _bar(self, bar: Bar, y: float, scale: float) -> list[str]:
        x, drawn = float(_LEFT), []
        for number, part in enumerate(bar.parts):
            width = part * scale
            drawn.append(f'<rect class="c{number}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}"/>')
            x += width
        text = f"{bar.total:.3g} {self.unit}"
        return [
            f"<g{' class=' + chr(34) + 'ours' + chr(34) if bar.is_ours else ''}>",
            f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(bar.label)}</text>',
            *drawn,
            f'<text x="{x + 6:.1f}" y="{y + 13}" class="small">{escape(text)}</text></g>',
        ]

    def _legend(self) -> str:
        drawn, x = [], _LEFT
        for number, word in enumerate(self.legend):
            drawn.append(f'<rect class="c{number}" x="{x}" y="28" width="10" height="10"/>')
            drawn.append(f'<text x="{x + 14}" y="37" class="small">{escape(word)}</text>')
            x += 30 + 7 * len(word)
        return "".join(drawn)


def charts(results: Results) -> dict[str, Chart]:
    """Return the pictures by file name; those without figures are left out."""
    cpu = Chart(
        "CPU per 1,000 cycles",
        "CPU-s",
        ("controller", "API server", "etcd"),
        _groups(
            results,
            ("main", "quiet", "one-namespace", "two-metrics", "large"),
            ("controller_ms", "apiserver_ms", "etcd_ms"),
        ),
    )
    reaction = Chart(
        "All 1,000 workloads change at once: time until 99 % are scaled",
        "s",
        (),
        _groups(results, ("main", "defaults"), ("react_p99",)),
    )
    memory = Chart("Peak memory", "MB", (), _groups(results, ("main", "large", "vpa"), ("peak_mb",)))
    drawn = {
        "performance-cpu.svg": cpu,
        "performance-reaction.svg": reaction,
        "performance-memory.svg": memory,
    }
    return {name: chart for name, chart in drawn.items() if chart.groups}


def _groups(
    results: Results, scenarios: Sequence[str], figures: Sequence[str]
) -> list[tuple[str, list[Bar]]]:
    groups = []
    for scenario in scenarios:
        bars = []
        for who in contenders(results, scenario):
            parts = [results.median(scenario, who, figure) for figure in figures]
            if all(part is not None for part in parts):
                bars.append(Bar(_short(who), [part or 0.0 for part in parts], who == OURS))
        if bars:
            loads = {one.load for one in results.of(scenario)}
            groups.append((f"{scenario}: {' '.join(sorted(loads))}", bars))
    return groups


def _short(who: str) -> str:
    return LABELS[who].replace("kube-controller-manager", "kcm").replace("limits lifted", "unlimited")


def draw(results: Results) -> list[str]:
    """Write all pictures and return their file names."""
    names = []
    for name, chart in charts(results).items():
        IMAGES.mkdir(parents=True, exist_ok=True)
        (IMAGES / name).write_text(chart.svg(), encoding="utf-8")
        names.append(name)
    return names
