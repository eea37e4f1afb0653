"""Reads and writes the failures that are known: `known_failures.yaml` until they are mended, `kept.yaml` from then on.

A failure is kept as data, so that it stays the same world when the generator changes. The short worlds of `make test` are
made anew each time, and only the names of those that fail are listed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.worlds.shrink import Played
from tests.worlds.world import World, as_data, from_data

KNOWN = Path(__file__).with_name("known_failures.yaml")
KEPT = Path(__file__).with_name("kept.yaml")
HEADS = {
    KNOWN: "# Worlds in which a life of ours is worse than it may be, until that is mended: `make worlds ARGS=--renew` moves those to\n# kept.yaml. `short` lists the short worlds of `make test` that fail, with what is wrong.\n",
    KEPT: "# Worlds in which a life of ours was worse than it may be once, and is not any more.\n",
}


@dataclass(frozen=True)
class Failure:
    """A world that fails, or failed, with one verdict."""

    item: str
    """The review item, such as R4-3."""
    verdict: str
    story: str
    world: World

    @property
    def name(self) -> str:
        return f"{self.item}-{self.world.name}"

    def is_as(self, played: Played, verdict: str) -> bool:
        """Return whether another world tells the same story: the same verdict, and no other kinds of happenings.

        One of them may need fewer kinds. What fails without any happening is a story of its own.
        """
        other, kinds, found = played.world, self.world.kinds, played.world.kinds
        is_alike = (found <= kinds or kinds <= found) and bool(found) == bool(kinds)
        return is_alike and (self.world.family, self.verdict) == (other.family, verdict)


@dataclass
class Failures:
    """What one of the files holds."""

    stories: list[Failure] = field(default_factory=list)
    short: dict[str, list[str]] = field(default_factory=dict)
    """The verdicts on short worlds, by the world's name; those without are left out."""


def load(path: Path) -> Failures:
    data = yaml.safe_load(path.read_text()) or {}
    stories = [
        Failure(one["item"], one["verdict"], one["story"], from_data(one["world"]))
        for one in data.get("stories") or ()
    ]
    return Failures(stories, data.get("short") or {})


def save(path: Path, failures: Failures) -> None:
    stories = [
        {"item": one.item, "verdict": one.verdict, "story": _Text(one.story), "world": _world(one.world)}
        for one in failures.stories
    ]
    data: dict[str, Any] = {"stories": stories}
    if failures.short:
        data["short"] = failures.short
    path.write_text(
        HEADS[path] + yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=140)
    )


def difference(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """Yield what changed between two lists of failing worlds, a line for each verdict."""
    for name in sorted({*before, *after}):
        old, new = set(before.get(name, ())), set(after.get(name, ()))
        yield from (f"{name}: no longer {verdict}" for verdict in sorted(old - new))
        yield from (f"{name}: {verdict}" for verdict in sorted(new - old))


def _world(world: World) -> dict[str, Any]:
    data = as_data(world)
    return {**data, "happenings": [_Row(happening) for happening in data["happenings"]]}


class _Row(list[Any]):
    """A list that is written in one line."""


class _Text(str):
    """A text of some lines, which is written as such."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    _Text, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
)
_Dumper.add_representer(
    _Row, lambda dumper, row: dumper.represent_sequence("tag:yaml.org,2002:seq", row, flow_style=True)
)
