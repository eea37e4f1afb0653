"""What the checks of all pure kinds share: asking twice, and saying what is wrong."""

import io
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, NamedTuple

from trimtab.model.readable import counted
from trimtab.plugins.errors import (
    DeclinedError,
    WrongAnswerError,
    describe,
    describe_place,
    is_plugin_code,
    place_of,
    plain_error,
    quote,
)
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.registry import shape_problem
from trimtab.plugins.time_limit import WALL_TIME, TookTooLong, WaitCount, call_within, ends_the_program

Stopwatch = Callable[[], float]


class PluginTestError(AssertionError):
    """The plug-in does not keep its protocol; the message has the input that it fails on."""


class PluginTestWarning(UserWarning):
    """The plug-in keeps its protocol, and does something that its author hardly wants."""


class Declined(NamedTuple):
    """A plug-in's refusal to answer."""

    reason: str
    """With the line that raised it."""


class AnswerCount:
    """Counts the answers about the inputs of a check."""

    def __init__(self) -> None:
        self._inputs = 0
        self._refusals: list[str] = []

    def add(self, answer: object) -> None:
        """Count an answer of `Asker`."""
        self._inputs += 1
        if isinstance(answer, Declined):
            self._refusals.append(answer.reason)

    def require_one(self) -> None:
        """Raise PluginTestError if the plug-in declined every input."""
        if len(self._refusals) == self._inputs:
            raise PluginTestError(
                f"it declines all of the {counted(self._inputs, 'input')}, so no answer could be checked; first: {self._refusals[0]}"
            )


class _Printed(io.TextIOBase):
    """Takes the place of standard output, and keeps the first text with the line that printed it."""

    def __init__(self) -> None:
        self.first = ""
        self.place = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if not self.place:
            frame = sys._getframe(1)
            while frame.f_back is not None and not is_plugin_code(frame.f_code.co_filename):
                frame = frame.f_back
            self.place = describe_place(frame.f_code.co_filename, frame.f_lineno)
        if "\n" not in self.first:
            self.first += text
        return len(text)


@contextmanager
def warn_of_prints() -> Iterator[None]:
    """Keep standard output free of what a plug-in prints, and warn of it."""
    printed = _Printed()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        if printed.place:
            text = shortened(printed.first.strip().partition("\n")[0])
            _warn(
                f"it prints to standard output, first {text}{printed.place}; the operator prints it with every decision"
            )


def warn_of_all_left_out(function: object) -> None:
    """Warn of a filter that leaves out all generated pods."""
    _warn(
        f"it leaves out every pod of every input{_first_line(function)}; "
        "an HPA without a pod that counts keeps its replicas and says AllPodsLeftOut"
    )


def warn_of_changing_memory(function: object) -> None:
    """Warn of a policy whose memory changes although nothing but the time does."""
    _warn(
        f"its memory changes in every sync in which only the time moves{_first_line(function)}; "
        "that is a write of the status in every sync of each HPA"
    )


def _first_line(function: object) -> str:
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return "" if code is None else describe_place(code.co_filename, code.co_firstlineno)


def _warn(message: str) -> None:
    warnings.warn(message, PluginTestWarning, stacklevel=4)


def check_shape(function: object, kind: PluginKind) -> None:
    """Raise PluginTestError if a function cannot be a plug-in of a kind."""
    if problem := shape_problem(function, kind):
        raise PluginTestError(f"it is no {kind.label}: {problem}")


class Asker:
    """Calls a pure plug-in with the limits of the operator, and checks its answers."""

    def __init__(
        self, ask: Callable[[Any], Any], budget: float, stopwatch: Stopwatch, wall_clock: Stopwatch
    ) -> None:
        """Call `ask`. `stopwatch` measures its CPU time."""
        self._function = ask
        self._budget = budget
        self._stopwatch = stopwatch
        self._wall_clock = wall_clock
        self._waits = WaitCount(budget)

    def check_answer(self, seen: Any, again: Any) -> Any:
        """Return the answer about one input, which may be `Declined`.

        `again` is an equal input of other objects, so that an answer cannot depend on identity.
        """
        text = shortened(seen)  # as it was before the plug-in had it
        start = self._stopwatch()
        first = self._ask(seen, text)
        taken = self._stopwatch() - start
        second = self._ask(again, text)
        is_declined = isinstance(first, Declined) and isinstance(second, Declined)
        if first != second and not is_declined:
            raise PluginTestError(
                f"time, randomness or state: equal inputs give {first!r} and {second!r}, for {text}"
            )
        if taken > self._budget:
            raise PluginTestError(
                f"time: a call took {taken * 1000:.0f} ms, and its budget is {self._budget * 1000:.0f} ms, for {text}"
            )
        return first

    def _ask(self, seen: Any, text: str) -> Any:
        limit, begun = self._budget * WALL_TIME, self._wall_clock()
        try:
            answer = call_within(limit, self._answer, (seen, text))
        except DeclinedError as error:
            answer = Declined(f"{quote(error)}{place_of(error)}")
        except TookTooLong:
            raise PluginTestError(f"time: a call did not end within {limit:g} s, for {text}") from None
        self._waits.add(self._wall_clock() - begun)
        if waits := self._waits.problem:
            raise PluginTestError(f"time: it {waits}, for {text}")
        return answer

    def _answer(self, call: tuple[Any, str]) -> Any:
        seen, text = call
        try:
            return self._function(seen)
        except (DeclinedError, TookTooLong):
            raise
        except BaseException as error:
            if ends_the_program(error):
                raise
            raise PluginTestError(f"{problem_of(error)}, for {text}") from plain_error(error)


def problem_of(error: BaseException) -> str:
    """Return in words what an exception of a plug-in, or of the check of its answer, says about it."""
    if isinstance(error, WrongAnswerError):
        return f"bounds: it returned {error}"
    changes = ("assignment", "deletion") if isinstance(error, TypeError) else ("immutable",)
    if isinstance(error, TypeError | AttributeError) and any(word in quote(error) for word in changes):
        return f"purity: it changes its input: {quote(error)}{place_of(error)}"
    return f"it raised {describe(error)}{place_of(error)}"


def shortened(seen: object) -> str:
    """Return an input as text for a message."""
    text = repr(seen)
    return text if len(text) <= 600 else f"{text[:600]}…"
