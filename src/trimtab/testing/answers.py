"""What the checks of all pure kinds share: asking twice, and saying what is wrong."""

from collections.abc import Callable
from typing import Any

from trimtab.plugins.errors import DeclinedError, WrongAnswerError, plain_error, quote
from trimtab.plugins.kinds import PluginKind
from trimtab.plugins.registry import shape_problem
from trimtab.plugins.time_limit import TookTooLong, call_within, ends_the_program

Stopwatch = Callable[[], float]

LONGEST_CALL = 10.0
"""Seconds after which a call is ended that does not end by itself."""


class PluginTestError(AssertionError):
    """The plug-in does not keep its protocol; the message has the input that it fails on."""


def check_shape(function: object, kind: PluginKind) -> None:
    """Raise PluginTestError if a function cannot be a plug-in of a kind."""
    if problem := shape_problem(function, kind):
        raise PluginTestError(f"it is no {kind.label}: {problem}")


def check_answer(
    ask: Callable[[Any], Any], seen: Any, again: Any, budget: float, stopwatch: Stopwatch
) -> Any:
    """Return the answer about one input, or None if the plug-in declines.

    `again` is an equal input of other objects, so that an answer cannot depend on identity.
    """
    text = shortened(seen)  # as it was before the plug-in had it
    start = stopwatch()
    first = _ask(ask, seen, text)
    taken = stopwatch() - start
    second = _ask(ask, again, text)
    if first != second:
        raise PluginTestError(
            f"time, randomness or state: equal inputs give {first!r} and {second!r}, for {text}"
        )
    if taken > budget:
        raise PluginTestError(
            f"time: a call took {taken * 1000:.0f} ms, and its budget is {budget * 1000:.0f} ms, for {text}"
        )
    return first


def _ask(ask: Callable[[Any], Any], seen: Any, text: str) -> Any:
    def answer(seen: Any) -> Any:
        try:
            return ask(seen)
        except (DeclinedError, TookTooLong):
            raise
        except BaseException as error:
            if ends_the_program(error):
                raise
            raise PluginTestError(f"{problem_of(error)}, for {text}") from plain_error(error)

    try:
        return call_within(LONGEST_CALL, answer, seen)
    except DeclinedError:
        return None
    except TookTooLong:
        raise PluginTestError(f"time: a call did not end within {LONGEST_CALL:.0f} s, for {text}") from None


def problem_of(error: BaseException) -> str:
    """Return in words what an exception of a plug-in, or of the check of its answer, says about it."""
    if isinstance(error, WrongAnswerError):
        return f"bounds: it returned {error}"
    changes = ("assignment", "deletion") if isinstance(error, TypeError) else ("immutable",)
    if isinstance(error, TypeError | AttributeError) and any(word in quote(error) for word in changes):
        return f"purity: it changes its input: {quote(error)}"
    return f"it raised {type(error).__name__}: {quote(error)}"


def shortened(seen: object) -> str:
    """Return an input as text for a message."""
    text = repr(seen)
    return text if len(text) <= 600 else f"{text[:600]}…"
