"""The goals in figures, and what each is measured by. Order, words and bounds are those of the project's goals."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.picture import growth
from bench.picture.contenders import DEFAULTS, OURS, RECOMMENDER, W5, W50, Contender
from bench.picture.held import LONGEST
from bench.picture.results import Results


@dataclass(frozen=True)
class Measured:
    """A figure as the table shows it; `value` is what the bounds are compared with."""

    value: float
    ours: str
    peer: str = ""
    noise: str = ""


@dataclass(frozen=True)
class Part:
    """One figure of a goal: at most `first` is reached, at most `moonshot` is more than was asked."""

    goal: int | None
    """Its number among the goals. None for a figure that is watched and has none."""
    key: str
    title: str
    first: float
    moonshot: float
    measure: Callable[[Results], Measured | None]
    is_ratio: bool = True
    at_least: bool = False

    def reached(self, measured: Measured) -> str:
        """Return how far it came."""
        if self._meets(measured.value, self.moonshot):
            return "moonshot"
        return "yes" if self._meets(measured.value, self.first) else "no"

    def _meets(self, value: float, bound: float) -> bool:
        return value >= bound if self.at_least else value <= bound

    def bound(self, value: float) -> str:
        """Return a bound as it is written."""
        return f"{'≥' if self.at_least else '≤'} {value:,g}"


def _against(scenario: str, peer: Contender, figure: str, unit: str) -> Callable[[Results], Measured | None]:
    def measure(results: Results) -> Measured | None:
        found = results.ratio(scenario, peer.name, figure)
        if found is None:
            return None
        noise = f"±{found.spread:.0%} of {found.pairs}" if found.pairs > 1 else "one pair"
        return Measured(found.ratio, f"{found.ours:.3g} {unit}", f"{found.peer:.3g} {unit}", noise)

    return measure


def _ours(over: tuple[str, str], under: tuple[str, str], unit: str) -> Callable[[Results], Measured | None]:
    """Ours in one scenario over ours in another."""

    def measure(results: Results) -> Measured | None:
        above, below = results.median(over[0], OURS, over[1]), results.median(under[0], OURS, under[1])
        if above is None or not below:
            return None
        return Measured(above / below, f"{above:.3g} / {below:.3g} {unit}")

    return measure


def _growth(axis: str) -> Callable[[Results], Measured | None]:
    def measure(results: Results) -> Measured | None:
        points = growth.costs([one.figures for one in results.of("growth", OURS)], axis)
        found = growth.exponent(points)
        if found is None:
            return None
        shown = ", ".join(f"{size:,.0f}: {cost:,.0f} ms" for size, cost in points)
        return Measured(found, f"{found:.2f} ({shown})")

    return measure


def _held(results: Results) -> Measured | None:
    held = [one.figures for one in results.of("held", OURS)]
    if not held:
        return None
    kept = [one for one in held if one["p99_gap"] <= LONGEST]
    most = max((int(one["hpas"]) for one in kept), default=0)
    shown = "; ".join(
        f"{one['hpas']:,}: p99 {one['p99_gap']:.1f} s, {one['cores']:.2f} cores" for one in held
    )
    return Measured(most, shown, "300 at its default limits (arithmetic)")


def _alone(scenario: str) -> Callable[[Results], Measured | None]:
    def measure(results: Results) -> Measured | None:
        seconds = results.median(scenario, OURS, "seconds")
        return None if seconds is None else Measured(seconds, f"{seconds:.3g} s")

    return measure


def _faults(groups: str, peer: str) -> Callable[[Results], Measured | None]:
    """Return the share of faults survived, over the groups whose letters are given."""

    def measure(results: Results) -> Measured | None:
        for one in results.of("faults", OURS):
            chosen = [counts for title, counts in one.figures["groups"].items() if title[0] in groups]
            survived, total = sum(counts[0] for counts in chosen), sum(counts[2] for counts in chosen)
            return Measured(survived / total, f"{survived} / {total}", peer) if total else None
        return None

    return measure


def _inputs(results: Results) -> Measured | None:
    """Return the share of bad inputs that were refused clearly."""
    for one in results.of("faults", OURS):
        counted = one.figures.get("inputs")
        if not counted:
            return None
        shown = f"{counted['refused']} / {counted['sent']}, slowest {counted['slowest_ms']} ms"
        return Measured(counted["refused"] / counted["sent"], shown, "82 / 93, slowest 60,007 ms")
    return None


def _reaction(machine: str) -> Callable[[Results], Measured | None]:
    """Return the ratio of the medians from load to first scale with the real metrics-server."""

    def measure(results: Results) -> Measured | None:
        for one in results.of("reaction", OURS):
            found = one.figures.get(machine)
            if found:
                loads = f"{found['loads'][0]} loads"
                return Measured(found["ratio"], f"{found['ours']:.1f} s", f"{found['peer']:.1f} s", loads)
        return None

    return measure


def _with_units(
    goal: int, scenario: str, peer: Contender, rows: tuple[tuple[str, str, str, float, float], ...]
) -> tuple[Part, ...]:
    return tuple(
        Part(
            goal,
            f"{scenario}/{peer.name}/{figure}",
            title,
            first,
            moonshot,
            _against(scenario, peer, figure, unit),
        )
        for figure, title, unit, first, moonshot in rows
    )


PARTS = (
    *_with_units(1, "main", W5, (("controller_ms", "controller CPU per cycle with a write, vs w5", "ms", 0.22, 0.15),)),
    *_with_units(1, "main", W50, (("controller_ms", "the same, vs w50", "ms", 0.32, 0.22),)),
    *_with_units(
        2, "main", W5,
        (
            ("server_ms", "API server + etcd CPU per cycle", "ms", 0.42, 0.35),
            ("requests", "requests per cycle", "", 0.40, 0.33),
        ),
    ),
    *_with_units(
        3, "quiet", W5,
        (
            ("controller_ms", "nothing changes: controller CPU", "ms", 0.08, 0.04),
            ("server_ms", "nothing changes: API server + etcd CPU", "ms", 0.04, 0.02),
            ("requests", "nothing changes: requests", "", 0.01, 0.001),
        ),
    ),
    *(
        Part(None, f"noisy/{figure}", f"usage moves by 5 % at 15 s: {title}", 0.25, 0.2, _against("noisy", W5, figure, unit))
        for figure, title, unit in (
            ("server_ms", "API server + etcd CPU per cycle", "ms"),
            ("controller_ms", "controller CPU per cycle", "ms"),
            ("status_writes", "status writes per HPA and hour", ""),
        )
    ),
    *_with_units(4, "one-namespace", W5, (("controller_ms", "all in one namespace: controller CPU", "ms", 0.05, 0.03),)),
    Part(
        4, "one-namespace/ours", "ours in 1 namespace / ours in 100", 1.10, 1.03,
        _ours(("one-namespace", "controller_ms"), ("main", "controller_ms"), "ms"),
    ),
    *_with_units(5, "defaults", DEFAULTS, (("react_p99", "reaction p99, each at its defaults", "s", 0.05, 0.025),)),
    *_with_units(5, "main", W5, (("react_p99", "reaction p99 at 1 s, vs w5", "s", 0.40, 0.28),)),
    *_with_units(5, "main", W50, (("react_p99", "reaction p99 at 1 s, vs w50", "s", 0.50, 0.35),)),
    *_with_units(
        6, "start", W5,
        (("start_first", "start: first decision", "s", 0.9, 0.5), ("start_p99", "start: all decided (p99), limits lifted", "s", 0.30, 0.20)),
    ),
    *_with_units(6, "defaults", DEFAULTS, (("start_p99", "start: all decided (p99), each at its defaults", "s", 0.04, 0.025),)),
    *_with_units(7, "main", W5, (("peak_mb", "peak RSS at 10,000 pods", "MB", 0.36, 0.30),)),
    *_with_units(7, "large", W5, (("peak_mb", "peak RSS at 100,000 pods", "MB", 0.15, 0.11),)),
    *_with_units(
        8, "vpa", RECOMMENDER,
        (
            ("controller_s", "VPA loop, 1,000 × 10: CPU", "s", 0.06, 0.04),
            ("server_s", "VPA loop: API server + etcd CPU", "s", 0.40, 0.25),
            ("peak_mb", "VPA: peak RSS", "MB", 0.33, 0.28),
        ),
    ),
    Part(None, "vpa/ours", "ours 1,000 VPAs / ours 500", 2.2, 2.0, _ours(("vpa", "controller_s"), ("vpa-500", "controller_s"), "s")),
    *(
        Part(None, f"growth/{axis}", f"growth with {axis}: fitted exponent", 1.1, 1.02, _growth(axis), is_ratio=False)
        for axis in growth.AXES
    ),
    Part(
        10, "faults/horizontal", "HPA faults survived (share)", 1.0, 1.0, _faults("ABCD", "17 / 38"), is_ratio=False, at_least=True
    ),
    Part(10, "faults/vertical", "VPA faults survived (share)", 1.0, 1.0, _faults("E", "4 / 6"), is_ratio=False, at_least=True),
    Part(10, "faults/inputs", "bad inputs refused clearly (share)", 1.0, 1.0, _inputs, is_ratio=False, at_least=True),
    Part(
        11, "held", "HPAs held at 15 s by one process on one core (p99 gap ≤ 16.5 s)", 5000, 10000, _held, is_ratio=False, at_least=True
    ),
    Part(12, "first-scale", "from clone to first scaled workload, seconds", 45, 25, _alone("first-scale"), is_ratio=False),
    Part(13, "backtest", "backtest: 7 days of one workload at 15 s steps, seconds", 0.8, 0.4, _alone("backtest"), is_ratio=False),
    Part(17, "reaction/idle", "load to first scale with the real metrics-server, machine idle", 0.7, 0.5, _reaction("idle")),
    Part(17, "reaction/busy", "the same, every core busy", 0.8, 0.6, _reaction("busy")),
)  # fmt: skip
