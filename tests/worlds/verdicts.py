"""How much worse than upstream's a life of ours may be, outcome by outcome, and which rulings allow more.

Each outcome is a sum over a life, and less is better. A family that counts something else adds a line to `ALLOWANCES`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tests.worlds.world import Life


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
    "OOM kills": Allowance(0, 1),
    "starved minutes": Allowance(0.15, 10),
    "starved core-hours": Allowance(0.15, 0.1),
    "starved GiB-hours": Allowance(0.15, 0.1),
    "throttled minutes": Allowance(0.15, 10),
    "pod-minutes below the needed replicas": Allowance(0.15, 4),
    "unavailable pod-minutes": Allowance(0.15, 5),
    "restarts": Allowance(0, 1),
    "evictions": Allowance(0, 1),
    "minutes from a role's move to its size": Allowance(1, 60),
    "minutes outside the recommendation": Allowance(0.15, 30),
    "pods evicted at once": Allowance(0, 1),
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
    "writes of roles": Allowance(1, 60),
    "wasted core-hours of roles": Allowance(1, 10),
    "wasted GiB-hours of roles": Allowance(1, 40),
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
    """A rule of ours that is meant to cost something, and does where it buys what it is for."""

    name: str
    """The page of `docs/decisions`, without its suffix."""
    buys: str
    """The outcome that must be better than upstream's by more than its allowance."""
    costs: tuple[str, ...]
    """The outcomes that may be worse for it."""
    price: Allowance
    """What each of them may cost beside its own allowance."""

    def is_felt(self, ours: Life, upstream: Life) -> bool:
        allowance = ALLOWANCES[self.buys]
        return not allowance.covers(upstream.outcomes.get(self.buys, 0.0), ours.outcomes.get(self.buys, 0.0))


RULINGS = (
    Ruling(
        # Upstream leaves at zero what a user or a target's recreation brought there; ours wakes it, so it goes on to scale.
        "workloads-scaled-to-zero-can-always-scale-up",
        buys="pod-minutes below the needed replicas",
        costs=("pod-minutes above the needed replicas", "replica changes", "reversals", "writes"),
        price=Allowance(1.0, 60),
    ),
    Ruling(
        # Upstream evicts half of a workload at once; ours one pod, or a tenth of them, per minute, and the others wait.
        "limit-evictions-per-workload-per-minute-and-by-outcome",
        buys="pods evicted at once",
        costs=("starved minutes", "minutes outside the recommendation"),
        price=Allowance(0, 60),
    ),
    Ruling(
        "limit-evictions-per-workload-per-minute-and-by-outcome",
        buys="pods evicted at once",
        costs=("starved core-hours", "starved GiB-hours"),
        price=Allowance(1, 1),
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


def judge(ours: Life, upstream: Life) -> list[Verdict]:
    """Return what is wrong with our life, the gravest first."""
    found = {
        name: Verdict(name, text) for name, _, text in (line.partition(": ") for line in ours.broken[::-1])
    }
    return [
        *sorted(found.values(), key=lambda verdict: verdict.name),
        *sorted(_worse(ours, upstream), key=lambda verdict: (-verdict.weight, verdict.name)),
    ]


def _worse(ours: Life, upstream: Life) -> Iterator[Verdict]:
    felt = [ruling for ruling in RULINGS if ruling.is_felt(ours, upstream)]
    for name, own in ours.outcomes.items():
        theirs = upstream.outcomes.get(name, 0.0)
        granted = [ALLOWANCES[name], *(ruling.price for ruling in felt if name in ruling.costs)]
        allowed = Allowance(sum(one.share for one in granted), sum(one.amount for one in granted))
        if not allowed.covers(own, theirs):
            limit = theirs * allowed.share + allowed.amount
            text = f"{own:.1f}, upstream {theirs:.1f}; {limit:.1f} more are allowed"
            yield Verdict(name, text, (own - theirs) / max(limit, 0.1))
