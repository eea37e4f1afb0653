"""What plug-ins, and the checks of their answers, raise."""

import inspect
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any

from trimtab.plugins.time_limit import CtrlC, TookTooLong, ends_the_program

LONGEST_TEXT = 300
"""Characters of an exception's text that a failure quotes."""
LONGEST_CHAIN = 5
"""Causes of an exception that the log shows."""
MOST_IN_A_GROUP = 5
"""Exceptions of a group that are named."""


_NOT_PLUGINS = (str(Path(__file__).parent.parent), sysconfig.get_path("stdlib"), "<frozen ")
"""Where code lives that is not a plug-in's: Trimtab and Python's own modules. Packages are below the latter, too."""
_PACKAGES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


class DeclinedError(Exception):
    """The plug-in says that it cannot answer now, and why; it does not pause for that."""


class WrongAnswerError(ValueError):
    """An answer that the protocol does not allow; checks raise it with what is wrong."""


def wrong_type(answer: Any, wanted: str) -> WrongAnswerError:
    """Return the error of an answer that is of another type than `wanted`."""
    if inspect.iscoroutine(answer):
        answer.close()  # Python would warn that nothing awaits it
        return WrongAnswerError(
            f"a coroutine, not {wanted}; call no async function, or await it in a metric source"
        )
    if inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        found = "a generator" if inspect.isgenerator(answer) else "an async generator"
        return WrongAnswerError(f"{found}, not {wanted}; write return in place of yield")
    return WrongAnswerError(f"{'None' if answer is None else type(answer).__name__}, not {wanted}")


def plain_error(error: BaseException, chain: int = LONGEST_CHAIN) -> Exception:
    """Return an exception of the same name, text and traceback that runs no code of the plug-in.

    It is made within the time limit of the call, because the text of a plug-in's exception is a function too.
    """
    inner = _exceptions_in(error) if chain else ()
    if inner:
        plain: Exception = _group_of(error, [plain_error(found, chain - 1) for found in inner])
    else:
        plain = _class_of(error)(quote(error))
    plain.__traceback__ = plugin_frames(error) or error.__traceback__
    if chain:
        if error.__cause__ is not None:
            plain.__cause__ = plain_error(error.__cause__, chain - 1)
        elif error.__context__ is not None and not error.__suppress_context__:
            plain.__context__ = plain_error(error.__context__, chain - 1)
    return plain


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise what code of a plug-in raises as a plain exception, so that its callers catch Exception and nothing else."""
    try:
        yield
    except TookTooLong:
        raise
    except BaseException as error:  # the function of another project may raise anything
        if ends_the_program(error):
            raise
        raise plain_error(error) from None


def describe(error: BaseException) -> str:
    """Return name and text of an exception as one line: `KeyError: 'zone'`."""
    text = quote(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def quote(error: BaseException) -> str:
    """Return the text of an exception as one line of limited length. That of a group names what is in it."""
    try:
        text = " ".join(str(error).split())
    except (TookTooLong, CtrlC):
        raise
    except BaseException:  # noqa: BLE001 - even the text of another project's exception may raise
        return "(its text cannot be read)"
    if inner := _exceptions_in(error):
        text = f"{text}: {', '.join(map(describe, inner))}"
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _exceptions_in(error: BaseException) -> tuple[BaseException, ...]:
    """Return the first exceptions of a group; none if it is no group."""
    if not isinstance(error, BaseExceptionGroup):
        return ()
    # A class of the plug-in may say anything about what is in it.
    exceptions: tuple[BaseException, ...] = BaseExceptionGroup.exceptions.__get__(error)
    return exceptions[:MOST_IN_A_GROUP]


def _group_of(error: BaseException, inner: list[Exception]) -> "ExceptionGroup[Exception]":
    """Return a group of the name and the message of another one."""
    message = " ".join(str.split(BaseExceptionGroup.message.__get__(error)))[:LONGEST_TEXT]
    if (number := len(BaseExceptionGroup.exceptions.__get__(error))) > len(inner):
        message = f"{message}, the first {len(inner)} of {number}"
    named = type(type(error).__name__, (ExceptionGroup,), {"__module__": str(type(error).__module__)})
    group: ExceptionGroup[Exception] = named(message, inner)
    return group


def place_of(error: BaseException) -> str:
    """Return the line of the plug-in that an exception passed last, as ` (rule.py, line 7)`, or an empty text.

    The first code that is neither Trimtab's nor Python's own is the plug-in's.
    """
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    first = next((file for file, _ in lines if is_plugin_code(file)), None)
    if first is None:
        return ""
    return describe_place(first, next(line for file, line in reversed(lines) if file == first))


ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def plugin_exc_info(error: BaseException) -> ExcInfo:
    """Return what the log shows of an exception: its last line below the frames of the plug-in."""
    return type(error), error, plugin_frames(error)


def plugin_frames(error: BaseException) -> TracebackType | None:
    """Return the traceback of an exception without the frames of Trimtab and of Python's own modules."""
    frames, place = [], error.__traceback__
    while place is not None:
        if is_plugin_code(place.tb_frame.f_code.co_filename):
            frames.append(place)
        place = place.tb_next
    found: TracebackType | None = None
    for frame in reversed(frames):
        found = TracebackType(found, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return found


def is_plugin_code(file: str) -> bool:
    """Return whether a file may belong to a plug-in, and neither to Trimtab nor to Python itself."""
    if file.startswith(_NOT_PLUGINS[0]):
        return False
    return file.startswith(_PACKAGES) or not file.startswith(_NOT_PLUGINS)


def describe_place(file: str, line: int) -> str:
    """Return a line of a file as it follows a message."""
    return f" ({Path(file).name}, line {line})"


def _class_of(error: BaseException) -> type[Exception]:
    for known in (DeclinedError, WrongAnswerError):
        if isinstance(error, known):
            return known
    found = type(error)
    return type(found.__name__, (Exception,), {"__module__": str(found.__module__)})
