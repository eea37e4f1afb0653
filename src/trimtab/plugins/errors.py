"""What plug-ins, and the checks of their answers, raise."""

from trimtab.plugins.time_limit import CtrlC, TookTooLong

LONGEST_TEXT = 300
"""Characters of an exception's text that a failure quotes."""
LONGEST_CHAIN = 5
"""Causes of an exception that the log shows."""


class DeclinedError(Exception):
    """The plug-in says that it cannot answer now, and why; it does not pause for that."""


class WrongAnswerError(ValueError):
    """An answer that the protocol does not allow; checks raise it with what is wrong."""


def plain_error(error: BaseException, chain: int = LONGEST_CHAIN) -> Exception:
    """Return an exception of the same name, text and traceback that runs no code of the plug-in.

    It is made within the time limit of the call, because the text of a plug-in's exception is a function too.
    """
    plain = _class_of(error)(quote(error)).with_traceback(error.__traceback__)
    if chain:
        if error.__cause__ is not None:
            plain.__cause__ = plain_error(error.__cause__, chain - 1)
        elif error.__context__ is not None and not error.__suppress_context__:
            plain.__context__ = plain_error(error.__context__, chain - 1)
    return plain


def quote(error: BaseException) -> str:
    """Return the text of an exception as one line of limited length."""
    try:
        text = " ".join(str(error).split())
    except (TookTooLong, CtrlC):
        raise
    except BaseException:  # noqa: BLE001 - even the text of another project's exception may raise
        return "(its text cannot be read)"
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _class_of(error: BaseException) -> type[Exception]:
    for known in (DeclinedError, WrongAnswerError):
        if isinstance(error, known):
            return known
    found = type(error)
    return type(found.__name__, (Exception,), {"__module__": str(found.__module__)})
