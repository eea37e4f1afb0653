"""A day of leadership that moves every ten minutes, of two databases with the same load: one sized by role, one as a whole.

What each pod asks for is held against what it uses: asked and not used is wasted, used and not asked is starved.
"""

from dataclasses import dataclass, field

from tests.scenarios.vertical.stage import MINUTE, Actor, Stage
from trimtab.model.quantity import Quantity

REPLICAS = 3
ROLES, PLAIN = "roles", "plain"
SOON = 5.0
"""Seconds from the move of a label to the resize: more than the updater waits for further moves."""
LEADER = {"cpu": "2", "memory": "8e9"}
FOLLOWER = {"cpu": "300m", "memory": "1e9"}


@dataclass
class Ledger:
    """Resource-hours of one database: core-hours, or byte-hours."""

    used: dict[str, float] = field(default_factory=lambda: {"cpu": 0.0, "memory": 0.0})
    wasted: dict[str, float] = field(default_factory=lambda: {"cpu": 0.0, "memory": 0.0})
    starved: dict[str, float] = field(default_factory=lambda: {"cpu": 0.0, "memory": 0.0})

    def add(self, hours: float, asked: dict[str, float], used: dict[str, float]) -> None:
        """Account for one pod over some time."""
        for resource, amount in used.items():
            self.used[resource] += amount * hours
            self.wasted[resource] += max(asked[resource] - amount, 0.0) * hours
            self.starved[resource] += max(amount - asked[resource], 0.0) * hours


@dataclass
class Point:
    """What one pod asked for and used, from one moment on."""

    hour: float
    asked: float
    used: float


@dataclass
class Day:
    """The stage, both databases and their books."""

    stage: Stage
    ledgers: dict[str, Ledger] = field(default_factory=lambda: {ROLES: Ledger(), PLAIN: Ledger()})
    points: dict[str, list[Point]] = field(default_factory=lambda: {ROLES: [], PLAIN: []})
    """Memory of the first pod of each, over time."""
    leader: int = 0
    hour: float = 0.0

    async def open(self) -> None:
        """Make both databases, their VPAs, and the first leader."""
        stage = self.stage
        for name in (ROLES, PLAIN):
            await stage.statefulset(name, REPLICAS)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("base", ROLES)
        await stage.vpa("lead", ROLES, scope="leader")
        await stage.vpa("plain", PLAIN)
        await stage.label(f"{ROLES}-0", role="leader")
        self._use()

    def _use(self) -> None:
        for name in (ROLES, PLAIN):
            for index in range(REPLICAS):
                amounts = LEADER if index == self.leader else FOLLOWER
                self.stage.metrics.use(self.stage.namespace, f"{name}-{index}", **amounts)

    async def rotate(self, actor: Actor) -> None:
        """Let leadership move and ten minutes pass."""
        old, self.leader = self.leader, (self.leader + 1) % REPLICAS
        await self.stage.label(f"{ROLES}-{old}", role=None)
        await self.stage.label(f"{ROLES}-{self.leader}", role="leader")
        self._use()
        # A role that moves wakes the updater; once it has looked, it looks every minute.
        for seconds in (SOON, MINUTE):
            await self._account(seconds)
            await self.stage.update(actor, after=seconds)
        await self._account(9 * MINUTE - SOON)
        await self.stage.pass_time(MINUTE - SOON)
        for _ in range(7):
            await self.stage.pass_time(MINUTE)
            await actor.recommender.step()
        await self.stage.recommend(actor)

    async def _account(self, seconds: float) -> None:
        for name, ledger in self.ledgers.items():
            for index in range(REPLICAS):
                asked = await self._asked(f"{name}-{index}")
                used = amounts_of(LEADER if index == self.leader else FOLLOWER)
                ledger.add(seconds / 3600, asked, used)
                if index == 0:
                    self.points[name].append(Point(self.hour, asked["memory"], used["memory"]))
        self.hour += seconds / 3600

    async def _asked(self, pod: str) -> dict[str, float]:
        found = await self.stage.read_pod(pod)
        return amounts_of(found["spec"]["containers"][0]["resources"]["requests"])


def amounts_of(amounts: dict[str, str]) -> dict[str, float]:
    """Return quantities as numbers."""
    return {resource: Quantity.parse(text).as_float() for resource, text in amounts.items()}
