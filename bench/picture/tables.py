"""Results as tables: the goals, the figures of each scenario, growth, cores, history. Lists of rows, shown by others."""

from collections.abc import Iterable, Mapping, Sequence

from bench.picture import goals
from bench.picture.contenders import DEFAULTS, OURS, RECOMMENDER, TRIMTAB, W5, W50
from bench.picture.results import Results

Table = list[list[str]]
"""The first row is the header."""

LABELS = {one.name: one.label for one in (W5, W50, DEFAULTS, RECOMMENDER, TRIMTAB)}
HORIZONTAL = ("main", "quiet", "noisy", "one-namespace", "two-metrics", "large", "start", "defaults")
VERTICAL = ("vpa", "vpa-500", "vpa-5000")
_ORDER = (W5.name, W50.name, DEFAULTS.name, RECOMMENDER.name, OURS)
_RATES = {
    "cycles/s": "cycles_per_s",
    "reconciles/s": "reconciles_per_s",
    "controller ms": "controller_ms",
    "API server ms": "apiserver_ms",
    "etcd ms": "etcd_ms",
    "requests": "requests",
    "reaction p50 s": "react_p50",
    "reaction p99 s": "react_p99",
    "start first s": "start_first",
    "start all s": "start_last",
    "peak MB": "peak_mb",
    "other CPU": "other_cpu",
}
_LOOPS = {
    "loop s": "loop_seconds",
    "controller CPU-s": "controller_s",
    "API server CPU-s": "apiserver_s",
    "etcd CPU-s": "etcd_s",
    "requests": "requests",
    "all recommended s": "start_all",
    "peak MB": "peak_mb",
    "other CPU": "other_cpu",
}


def goal_table(results: Results) -> Table:
    """Every figure of the goals: bounds, peer's, ours, ratio, reached or not."""
    table = [["#", "figure", "goal", "moonshot", "peer", "ours", "ratio", "noise", "reached"]]
    for part in goals.PARTS:
        bounds = [
            "" if part.goal is None else str(part.goal),
            part.title,
            part.bound(round(part.first, 2)),
            part.bound(part.moonshot),
        ]
        measured = part.measure(results)
        if measured is None:
            table.append([*bounds, "", "", "", "", "not measured"])
            continue
        ratio = f"**{measured.value:.3g}**" if part.is_ratio else ""
        shown = [measured.peer, measured.ours, ratio, measured.noise]
        table.append([*bounds, *shown, part.reached(measured)])
    return table


def ratios(results: Results) -> dict[str, float]:
    """Return the value of every goal's figure by key, for the history."""
    found = ((part.key, part.measure(results)) for part in goals.PARTS)
    return {key: round(measured.value, 4) for key, measured in found if measured is not None}


def contenders(results: Results, scenario: str) -> list[str]:
    """Return who has figures in a scenario, peers first."""
    present = {one.contender for one in results.of(scenario)}
    return [name for name in _ORDER if name in present]


def figure_table(results: Results, scenarios: Iterable[str], columns: Mapping[str, str]) -> Table:
    """Medians of each scenario and contender."""
    table = [["scenario", "who", *columns]]
    for scenario in scenarios:
        for who in contenders(results, scenario):
            cells = [_number(results.median(scenario, who, figure)) for figure in columns.values()]
            table.append([scenario, who, *cells])
    return table


def horizontal_table(results: Results) -> Table:
    """CPU per cycle, rates, reactions, start and memory."""
    return figure_table(results, HORIZONTAL, _RATES)


def vertical_table(results: Results) -> Table:
    """CPU per loop of the recommenders."""
    return figure_table(results, VERTICAL, _LOOPS)


def request_table(results: Results) -> Table:
    """Requests per cycle or per loop, by kind."""
    table = [["scenario", "who", "requests, by kind"]]
    for scenario in (*HORIZONTAL, *VERTICAL):
        for who in contenders(results, scenario):
            kinds: dict[str, float] = next(
                (one.figures["by_kind"] for one in results.of(scenario, who) if one.figures.get("by_kind")),
                {},
            )
            shown = [
                f"{kind} {count:g}"
                for kind, count in sorted(kinds.items(), key=lambda pair: -pair[1])
                if count >= 0.005
            ]
            if shown:
                table.append([scenario, who, "; ".join(shown)])
    return table


def memory_table(results: Results) -> Table:
    """Peak memory per 1,000 pods, by load."""
    sizes = {"main": 10, "large": 100, "vpa": 10}
    table = [["scenario", "who", "peak MB", "MB per 1,000 pods"]]
    for scenario, thousands in sizes.items():
        for who in contenders(results, scenario):
            peak = results.median(scenario, who, "peak_mb")
            if peak is not None:
                table.append([scenario, who, f"{peak:.0f}", f"{peak / thousands:.1f}"])
    return table


def core_tables(results: Results) -> dict[str, Table]:
    """The rows of the two micro benchmarks, as they came."""
    return {
        name: _rows(one.figures[name])
        for one in results.of("cores", OURS)
        for name in ("horizontal", "vertical")
    }


def error_table(results: Results) -> Table:
    """What failed, and why."""
    failed = [[one.scenario, one.contender, str(one.round + 1), one.error] for one in results.errors()]
    return [["scenario", "who", "round", "why"], *failed] if failed else []


def history_table(history: Sequence[Mapping[str, object]]) -> Table:
    """The value of each goal's figure, release by release."""
    table = [["figure", *(f"{one['version']} ({one['date']})" for one in history)]]
    for part in goals.PARTS:
        cells = []
        for one in history:
            values = one["ratios"]
            assert isinstance(values, Mapping)
            cells.append(_number(values.get(part.key)))
        table.append([part.title, *cells])
    return table


def _rows(rows: Sequence[Mapping[str, object]]) -> Table:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return [columns, *([str(row.get(column, "")) for column in columns] for row in rows)]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
