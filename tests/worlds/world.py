"""A world is data: what there is at the start, and what happens when. A life is what came of it under some rules."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol


class Rules(Enum):
    """Whose rules decide."""

    OURS = "ours"
    UPSTREAM = "upstream"
    """Those of `--compat`, by the same programs."""


@dataclass(frozen=True)
class Happening:
    """Something that happens to a world at a moment."""

    at: float
    """Seconds since the start."""
    what: str
    """Its name in the family's table."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Numbers, texts, lists and maps of them only, so that a world can be written to a file."""


@dataclass(frozen=True)
class World:
    """What exists at the start, and what happens."""

    family: str
    seed: int
    seconds: float
    """How long it lasts."""
    start: Mapping[str, Any]
    """The workload, its autoscalers and its load, as the family reads them: texts, numbers, lists and maps only."""
    happenings: tuple[Happening, ...] = ()
    is_short: bool = False
    """Whether it was made for `make test`, which plays two hundred of them."""
    phase: int = 0
    """Which luck it has where nothing but luck decides, such as when a loop begins to go its rounds."""

    @property
    def name(self) -> str:
        return f"{self.family}-short-{self.seed}" if self.is_short else f"{self.family}-{self.seed}"

    @property
    def kinds(self) -> frozenset[str]:
        """Return the kinds of its happenings."""
        return frozenset(happening.what for happening in self.happenings)

    def with_only(self, happenings: Iterable[Happening]) -> "World":
        """Return the world with some of its happenings."""
        return replace(self, happenings=tuple(happenings))


@dataclass
class Life:
    """What came of a world under some rules."""

    outcomes: dict[str, float] = field(default_factory=dict)
    """Sums by name; less is better. `verdicts.ALLOWANCES` names them all."""
    broken: list[str] = field(default_factory=list)
    """Promises that were broken, whatever upstream does: each a sentence that begins with the promise's name and a colon."""
    log: list[tuple[float, str]] = field(default_factory=list)
    """What was done by autoscalers and what came of it, by time, as a story tells it; happenings are told by the family."""

    def note(self, at: float, text: str) -> None:
        self.log.append((at, text))

    def add(self, outcome: str, amount: float = 1.0) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0.0) + amount


class Family(Protocol):
    """Worlds of one kind. The module `tests.worlds.NAME` has it as `FAMILY`."""

    name: str

    def make(self, seed: int, *, is_short: bool = False) -> World:
        """Return the world of a seed. The same seed gives the same world, on any machine.

        A short one is for `make test`: both lives together cost a tenth of a second of `sizes`, and half a second of `hpas`.
        """
        ...

    def play(self, world: World, rules: Rules) -> Life:
        """Play a world to its end in virtual time. The same world and rules give the same life."""
        ...

    def simpler(self, world: World) -> Iterable[World]:
        """Yield worlds that differ from this one by something that a story can do without.

        The most promising ones come first. Happenings are left out by `shrink` itself; simpler facts of them belong here.
        """
        ...

    def tell(self, world: World) -> list[str]:
        """Return what there is at the start, in a few lines."""
        ...

    def tell_happening(self, happening: Happening) -> str:
        """Return one happening in a few words."""
        ...


FAMILIES = tuple(name for name in ("hpas", "sizes") if find_spec(f"tests.worlds.{name}"))


def family_of(name: str) -> Family:
    """Return a family by its name."""
    family: Family = import_module(f"tests.worlds.{name}").FAMILY
    return family


def as_data(world: World) -> dict[str, Any]:
    """Return a world as maps and lists, for a file."""
    return {
        "family": world.family,
        "seed": world.seed,
        "seconds": world.seconds,
        "start": world.start,
        "happenings": [[one.at, one.what, dict(one.facts)] for one in world.happenings],
    }


def from_data(data: Mapping[str, Any]) -> World:
    """Return the world that `as_data` wrote."""
    happenings = tuple(Happening(at, what, facts) for at, what, facts in data["happenings"])
    return World(data["family"], data["seed"], data["seconds"], data["start"], happenings)
