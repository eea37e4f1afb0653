"""How much worse than upstream's a life of ours may be, outcome by outcome, and which rulings allow more.

Each outcome is a sum over a life, and less is better. A family that counts something else adds a line to `ALLOWANCES`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tests.worlds.world import Life, World


@dataclass(frozen=True)
class Allowance:
    """How much more than upstream is still as good."""

    share: float
    """Of upstream's sum."""
    amount: float
    """Beside the share, in the outcome's unit."""

    def covers(self, ours: float, upstream: float) -> bool:
        return ours <= upstream * (1 + self.share) + self.amount + 1e-9


ALLOWANCES = {
    # What users of the workload notice.
    "OOM kills": Allowance(0, 0),
    "starved minutes": Allowance(0.15, 10),
    "starved core-hours": Allowance(0.15, 0.1),
    "starved GiB-hours": Allowance(0.15, 0.1),
    "throttled minutes": Allowance(0.15, 10),
    "pod-minutes below the needed replicas": Allowance(0.15, 4),
    "unavailable pod-minutes": Allowance(0.15, 5),
    "restarts": Allowance(0, 1),
    "evictions": Allowance(0, 1),
    "minutes from a role's move to its size": Allowance(0.15, 5),
    "minutes outside the recommendation": Allowance(0.15, 30),
    # The same where roles are sized by themselves: upstream's plain VPA makes every pod as large as the largest role asks for.
    "OOM kills of roles": Allowance(0.2, 3),
    "starved minutes of roles": Allowance(0.3, 60),
    "starved core-hours of roles": Allowance(0.5, 1),
    "starved GiB-hours of roles": Allowance(0.5, 1),
    "throttled minutes of roles": Allowance(0.3, 60),
    "unavailable pod-minutes of roles": Allowance(1, 30),
    "restarts of roles": Allowance(0.2, 4),
    "evictions of roles": Allowance(1, 30),
    "resizes of roles": Allowance(1, 40),
    "wasted core-hours of roles": Allowance(0.3, 2),
    "wasted GiB-hours of roles": Allowance(0.3, 4),
    # What it costs.
    "wasted core-hours": Allowance(0.15, 1),
    "wasted GiB-hours": Allowance(0.15, 1),
    "pod-minutes above the needed replicas": Allowance(0.15, 15),
    "pod-hours": Allowance(0.15, 1),
    # Unrest.
    "replica changes": Allowance(0.2, 3),
    "reversals": Allowance(0.2, 2),
    "resizes": Allowance(0.2, 5),
    # Load on the API server.
    "writes": Allowance(0.1, 30),
}


@dataclass(frozen=True)
class Ruling:
    """A rule of ours that is meant to cost something."""

    name: str
    """The page of `docs/decisions`, without its suffix."""
    happenings: frozenset[str]
    """It is felt only where one of these happens; where none are named, always."""
    outcomes: tuple[str, ...]
    price: Allowance
    """What it may cost beside the outcome's own allowance."""
    per_pod: float = 0.0
    """What it may cost for each pod that the workload has at the start."""


RULINGS: tuple[Ruling, ...] = (
    # One pod, or a tenth of them, is evicted per minute; upstream evicts half of a workload at once.
    Ruling(
        "limit-evictions-per-workload-per-minute-and-by-outcome",
        frozenset(),
        ("starved minutes", "minutes outside the recommendation"),
        Allowance(0, 0),
        per_pod=5,
    ),
    Ruling(
        "limit-evictions-per-workload-per-minute-and-by-outcome",
        frozenset(),
        ("starved core-hours", "starved GiB-hours"),
        Allowance(0, 0),
        per_pod=0.05,
    ),
)


@dataclass(frozen=True)
class Verdict:
    """One thing that is wrong with a life of ours."""

    name: str
    """The outcome that is worse than upstream's, or the promise that is broken."""
    text: str
    weight: float = inf
    """How many times the allowance it is beyond upstream's sum; a broken promise weighs most."""

    @property
    def is_absolute(self) -> bool:
        """Return whether a promise is broken, whatever upstream does."""
        return self.weight == inf


def judge(world: World, ours: Life, upstream: Life) -> list[Verdict]:
    """Return what is wrong with our life, the gravest first."""
    found = {
        name: Verdict(name, text) for name, _, text in (line.partition(": ") for line in ours.broken[::-1])
    }
    return [
        *sorted(found.values(), key=lambda verdict: verdict.name),
        *sorted(_worse(world, ours, upstream), key=lambda verdict: (-verdict.weight, verdict.name)),
    ]


def _worse(world: World, ours: Life, upstream: Life) -> Iterator[Verdict]:
    for name, own in ours.outcomes.items():
        theirs, allowance = upstream.outcomes.get(name, 0.0), allowed(world, name)
        if not allowance.covers(own, theirs):
            limit = theirs * allowance.share + allowance.amount
            text = f"{own:.1f}, upstream {theirs:.1f}; {limit:.1f} more are allowed"
            yield Verdict(name, text, (own - theirs) / max(limit, 0.1))


def allowed(world: World, outcome: str) -> Allowance:
    """Return how much worse an outcome may be in a world: its allowance, and the prices of the rulings that are felt in it."""
    share, amount = ALLOWANCES[outcome].share, ALLOWANCES[outcome].amount
    for ruling in RULINGS:
        if outcome in ruling.outcomes and (not ruling.happenings or ruling.happenings & world.kinds):
            pods = float(world.start.get("pods", 0))
            share, amount = share + ruling.price.share, amount + ruling.price.amount + ruling.per_pod * pods
    return Allowance(share, amount)
