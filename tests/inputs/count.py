"""What became of the inputs: how many were refused clearly, and how long the slowest took."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.inputs.clarity import Answer, unclear
from tests.inputs.input import Input


@dataclass(frozen=True)
class Outcome:
    """One input at one door; `problem` says what is wrong with the answer, if anything."""

    name: str
    is_bad: bool
    milliseconds: float
    problem: str = ""


def judge(one: Input, answer: Answer) -> Outcome:
    """Compare an answer with what it has to be."""
    if one.refusal is not None:
        problem = unclear(answer, one.refusal)
    else:
        problem = "" if answer.code < 400 else f"refused with {answer.code}: {answer.message[:300]}"
    return Outcome(one.name, one.refusal is not None, answer.seconds * 1000, problem)


@dataclass
class Count:
    """The outcomes of all doors that were tried; an input counts once, wherever it was sent."""

    doors: dict[str, list[Outcome]] = field(default_factory=dict)

    def add(self, door: str, outcomes: Iterable[Outcome]) -> None:
        """Add what one door answered."""
        self.doors.setdefault(door, []).extend(outcomes)

    def __str__(self) -> str:
        if not self.doors:
            return "bad inputs: none was sent"
        slowest = max((one for each in self.doors.values() for one in each), key=lambda one: one.milliseconds)
        refused = _share(self._whole(is_bad=True))
        taken = _share(self._whole(is_bad=False))
        doors = ", ".join(f"{door} {_share(_marks(each, is_bad=True))}" for door, each in self.doors.items())
        return (
            f"bad inputs refused clearly {refused}, slowest {slowest.milliseconds:.0f} ms ({slowest.name}); "
            f"good ones taken {taken}\n  by door: {doors}"
        )

    def problems(self) -> Iterator[str]:
        """Yield what was answered wrongly."""
        for door, outcomes in self.doors.items():
            for one in outcomes:
                if one.problem:
                    yield f"{door}: {one.name}: {one.problem}"

    def _whole(self, *, is_bad: bool) -> Mapping[str, bool]:
        marks: dict[str, bool] = {}
        for outcomes in self.doors.values():
            for name, is_right in _marks(outcomes, is_bad=is_bad).items():
                marks[name] = marks.get(name, True) and is_right
        return marks


def _marks(outcomes: Iterable[Outcome], *, is_bad: bool) -> dict[str, bool]:
    return {one.name: not one.problem for one in outcomes if one.is_bad == is_bad}


def _share(marks: Mapping[str, bool]) -> str:
    return f"{sum(marks.values())} / {len(marks)}"
