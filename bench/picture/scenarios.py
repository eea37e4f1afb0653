"""What is played, in order, and how long it takes: the loads and plans of the whole picture and of the quick one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench.picture import growth, held, horizontal, others, vertical
from bench.picture.api import Json
from bench.picture.contenders import BOUNDED, DEFAULTS, OURS, RECOMMENDER, TRIMTAB, W5, W50, Contender
from bench.picture.generator import Load
from bench.picture.site import Site

Say = Callable[[str], None]

THOUSAND = Load(1000, 10, 100)
THOUSAND_VPAS = Load(1000, 10, 100, autoscaler="vpa")
STEADY = horizontal.Plan()
HELD = (THOUSAND, Load(5000, 2, 100))
_CLUSTER_SECONDS = 15


@dataclass(frozen=True)
class Turn:
    """One contender once; `seconds` is about how long it takes."""

    contender: str
    round: int
    load: str
    seconds: float
    play: Callable[[Site, Say], Json]


@dataclass(frozen=True)
class Scenario:
    """A named row of turns on one cluster; `needs` names its autoscalers."""

    name: str
    title: str
    turns: tuple[Turn, ...]
    needs: str = "hpa"

    @property
    def seconds(self) -> float:
        """Return about how long it takes."""
        return sum(turn.seconds for turn in self.turns) + _CLUSTER_SECONDS


@dataclass(frozen=True)
class Alone:
    """A figure that needs no API server."""

    name: str
    title: str
    measure: Callable[[], Json]
    seconds: float


def _in_turn(
    load: Load, seconds: dict[Contender, float], pairs: int, play: Callable[[Site, Contender, Say], Json]
) -> tuple[Turn, ...]:
    """Peers and ours one after the other, again and again, so that the noise of the machine falls on all."""

    def turn(who: Contender, number: int) -> Turn:
        return Turn(who.name, number, str(load), seconds[who], lambda site, say: play(site, who, say))

    return tuple(turn(who, number) for number in range(pairs) for who in seconds)


def _hpas(load: Load, plan: horizontal.Plan, seconds: dict[Contender, float], pairs: int) -> tuple[Turn, ...]:
    return _in_turn(load, seconds, pairs, lambda site, who, say: horizontal.play(site, who, load, plan, say))


def _vpas(load: Load, plan: vertical.Plan, seconds: dict[Contender, float], pairs: int) -> tuple[Turn, ...]:
    return _in_turn(load, seconds, pairs, lambda site, who, say: vertical.play(site, who, load, plan, say))


def _held(loads: Sequence[Load], plan: held.Plan) -> tuple[Turn, ...]:
    def turn(load: Load, number: int) -> Turn:
        seconds = 30 + plan.periods * held.PERIOD
        return Turn(OURS, number, str(load), seconds, lambda site, say: held.play(site, load, plan, say))

    return tuple(turn(load, number) for number, load in enumerate(loads))


def _grown(points: Sequence[growth.Point], plan: horizontal.Plan) -> tuple[Turn, ...]:
    def turn(point: growth.Point, number: int) -> Turn:
        def play(site: Site, say: Say) -> Json:
            return horizontal.play(site, TRIMTAB, point.load, plan, say) | point.figures()

        seconds = 10 + plan.settle + plan.window + point.load.workloads * point.load.pods / 2500
        return Turn(OURS, number, str(point.load), seconds, play)

    return tuple(turn(point, number) for number, point in enumerate(points))


def whole(pairs: int = 3) -> list[Scenario | Alone]:
    """Return the whole picture: every figure of the goals. `pairs` is for the main scenario; others have fewer."""
    fewer, one = max(1, pairs - 1), max(1, pairs - 2)
    slow = replace(STEADY, period=15, refresh=15)
    return [
        Scenario(
            "main", "usage moves, every cycle writes a status; 1 s period",
            _hpas(THOUSAND, replace(STEADY, window=15), {W5: 54, W50: 46, TRIMTAB: 41}, pairs),
        ),
        Scenario(
            "quiet", "nothing changes; 1 s period",
            _hpas(THOUSAND, replace(STEADY, window=15, jitter=0, rounds=0), {W5: 35, TRIMTAB: 30}, fewer),
        ),
        Scenario(
            "noisy", "usage moves by 5 %, statuses are written by each one's own rule; 15 s period",
            _hpas(
                THOUSAND, replace(slow, settle=60, window=120, rounds=1, is_paced=True), {W5: 230, BOUNDED: 220}, one
            ),
        ),
        Scenario(
            "one-namespace", "all in one namespace; 1 s period",
            _hpas(replace(THOUSAND, namespaces=1), replace(STEADY, window=15, rounds=0), {W5: 42, TRIMTAB: 30}, fewer),
        ),
        Scenario(
            "start", "from start to decisions, limits lifted; 15 s period",
            _hpas(THOUSAND, replace(slow, settle=0, windows=0, rounds=0), {W5: 31, TRIMTAB: 11}, fewer),
        ),
        Scenario(
            "defaults", "each as it comes, from start to decisions, then all change at once; 15 s period",
            _hpas(THOUSAND, replace(slow, windows=0, rounds=1), {DEFAULTS: 235, TRIMTAB: 40}, one),
        ),
        Scenario(
            "two-metrics", "CPU and memory of each; 1 s period",
            _hpas(replace(THOUSAND, metrics=("cpu", "memory")), replace(STEADY, rounds=0), {W5: 45, TRIMTAB: 36}, one),
        ),
        Scenario(
            "large", "100,000 pods; 15 s period",
            _hpas(Load(2000, 50, 100), replace(slow, window=15, rounds=1), {W5: 170, TRIMTAB: 120}, one),
        ),
        Scenario(
            "vpa", "recommendations for 1,000 VPAs; 20 s loop",
            _vpas(THOUSAND_VPAS, vertical.Plan(loops=2), {RECOMMENDER: 85, TRIMTAB: 70}, fewer), "vpa",
        ),
        Scenario(
            "vpa-500", "recommendations for 500 VPAs, ours alone; 20 s loop",
            _vpas(replace(THOUSAND_VPAS, workloads=500), vertical.Plan(loops=2), {TRIMTAB: 60}, one), "vpa",
        ),
        Scenario(
            "vpa-5000", "recommendations for 5,000 VPAs, ours alone; 30 s loop",
            _vpas(replace(THOUSAND_VPAS, workloads=5000), vertical.Plan(period=30, loops=2), {TRIMTAB: 125}, 1), "vpa",
        ),
        Scenario("held", "HPAs kept at 15 s by one process on one core, ours alone", _held(HELD, held.Plan(periods=3))),
        Scenario(
            "growth", "more HPAs, more pods, more namespaces, ours alone; 5 s period",
            _grown(growth.POINTS, replace(STEADY, period=5, refresh=3, settle=4, window=10, rounds=0)),
        ),
        Alone("cores", "the pure decision and histogram cores", others.cores, 60),
        Alone("backtest", "7 days of one workload at 15 s steps", others.backtest, 10),
        Alone("first-scale", "from clone to first scaled workload", others.first_scale, 60),
        Alone("reaction", "from load to first scale with the real metrics-server, idle and busy", others.load_to_scale, 800),
        Alone("faults", "faults survived", others.faults, 180),
    ]  # fmt: skip


def quick() -> list[Scenario | Alone]:
    """Return the picture in about two minutes: a fifth of the size, one pair, short windows."""
    load, vpas = Load(200, 10, 20), Load(100, 10, 20, autoscaler="vpa")
    short = horizontal.Plan(settle=2, window=6, rounds=1, gap=1)
    loops = vertical.Plan(period=5, refresh=2, settle=1, loops=5)
    return [
        Scenario("main", "usage moves, every cycle writes a status; 1 s period", _hpas(load, short, {W5: 18, TRIMTAB: 15}, 1)),
        Scenario("quiet", "nothing changes; 1 s period", _hpas(load, replace(short, jitter=0, rounds=0), {W5: 13, TRIMTAB: 12}, 1)),
        Scenario("vpa", "recommendations for 100 VPAs; 5 s loop", _vpas(vpas, loops, {RECOMMENDER: 33, TRIMTAB: 33}, 1), "vpa"),
    ]  # fmt: skip
