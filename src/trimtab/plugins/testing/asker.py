"""What the checks of all kinds share: asking twice, and saying what is wrong."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from trimtab.plugins.errors import DeclinedError, WrongAnswerError, describe, place_of, plain_errors, quote
from trimtab.plugins.kinds import PluginKind, declaration_of
from trimtab.plugins.registry import shape_problem
from trimtab.plugins.testing.cases import CASES
from trimtab.plugins.time_limit import WALL_TIME, TookTooLong, call_within

Stopwatch = Callable[[], float]


class PluginTestError(AssertionError):
    """The plug-in does not keep its protocol; the message has the input that it fails on."""


class PluginTestWarning(UserWarning):
    """The plug-in keeps its protocol, and does something that its author hardly wants."""


class Declined(NamedTuple):
    """A plug-in's refusal to answer."""

    reason: str
    """With the line that raised it."""


class Asker:
    """Calls a pure plug-in with the limits of the operator, and checks its answers."""

    def __init__(
        self,
        function: object,
        kind: PluginKind,
        ask: Callable[[Any], Any],
        stopwatch: Stopwatch = time.thread_time,
    ) -> None:
        """Check the shape of `function`. `ask` calls it and checks its answer, `stopwatch` measures its CPU time."""
        check_shape(function, kind)
        self._ask = ask
        self._budget = declaration_of(function).budget
        self._stopwatch = stopwatch
        self._refusal = ""
        self._has_answered = False

    def check_answer(self, seen: Any, again: Any) -> Any:
        """Return the answer about one input, which may be `Declined`.

        `again` is an equal input of other objects, so that an answer cannot depend on identity.
        """
        text = shortened(seen)  # as it was before the plug-in had it
        start = self._stopwatch()
        first = self._answer(seen, text)
        taken = self._stopwatch() - start
        second = self._answer(again, text)
        is_declined = isinstance(first, Declined) and isinstance(second, Declined)
        if first != second and not is_declined:
            raise PluginTestError(
                f"time, randomness or state: equal inputs give {first!r} and {second!r}, for {text}"
            )
        if taken > self._budget:
            raise PluginTestError(
                f"time: a call took {taken * 1000:.0f} ms, and its budget is {self._budget * 1000:.0f} ms, for {text}"
            )
        if isinstance(first, Declined):
            self._refusal = self._refusal or first.reason
        else:
            self._has_answered = True
        return first

    def require_an_answer(self) -> None:
        """Raise PluginTestError if the plug-in declined every input."""
        if not self._has_answered:
            raise PluginTestError(
                f"it declines all of the {CASES} inputs, so no answer could be checked; first: {self._refusal}"
            )

    def _answer(self, seen: Any, text: str) -> Any:
        limit = self._budget * WALL_TIME
        try:
            return call_within(limit, self._plainly, seen)
        except DeclinedError as error:
            return Declined(f"{quote(error)}{place_of(error)}")
        except TookTooLong:
            raise PluginTestError(f"time: a call did not end within {limit:g} s, for {text}") from None
        except Exception as error:
            raise PluginTestError(f"{problem_of(error)}, for {text}") from error

    def _plainly(self, seen: Any) -> Any:
        with plain_errors():
            return self._ask(seen)


def check_shape(function: object, kind: PluginKind) -> None:
    """Raise PluginTestError if a function cannot be a plug-in of a kind."""
    if problem := shape_problem(function, kind):
        raise PluginTestError(f"it is no {kind.label}: {problem}")


def problem_of(error: BaseException) -> str:
    """Return in words what an exception of a plug-in, or of the check of its answer, says about it."""
    if isinstance(error, WrongAnswerError):
        return f"bounds: it returned {error}"
    text, name = quote(error), type(error).__name__  # it may be a plain copy of the plug-in's
    changes = {"TypeError": ("assignment", "deletion"), "AttributeError": ("immutable",)}.get(name, ())
    if any(word in text for word in changes):
        return f"purity: it changes its input: {text}{place_of(error)}"
    return f"it raised {describe(error)}{place_of(error)}"


def shortened(seen: object) -> str:
    """Return an input as text for a message."""
    text = repr(seen)
    return text if len(text) <= 600 else f"{text[:600]}…"
