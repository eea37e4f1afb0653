"""A world is data: what there is at the start, and what happens when. A life is what came of it under some rules."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
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

    @property
    def name(self) -> str:
        return f"{self.family}-{self.seed}"

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
    """What happened and what was done, by time, as a story tells it."""

    def note(self, at: float, text: str) -> None:
        self.log.append((at, text))


class Family(Protocol):
    """Worlds of one kind."""

    name: str

    def make(self, seed: int) -> World:
        """Return the world of a seed. The same seed gives the same world, on any machine."""
        ...

    def play(self, world: World, rules: Rules) -> Life:
        """Play a world to its end in virtual time. The same world and rules give the same life."""
        ...

    def simpler(self, world: World) -> Iterable[World]:
        """Yield worlds that differ from this one by something that a story can do without, happenings aside."""
        ...

    def tell(self, world: World) -> list[str]:
        """Return what there is at the start, in a few lines."""
        ...

    def tell_happening(self, happening: Happening) -> str:
        """Return one happening in a few words."""
        ...
