"""Errors of commands: one line on stderr, a hint, and an exit code for scripts.

    click.ClickException
      CommandError         the command cannot go on; `exit_code` says why

Exit codes of every command:
    0    done, nothing found
    1    done, and something was found (validate: errors; convert: an object that cannot be converted)
    2    the command could not be run as asked: wrong usage, a file that cannot be read
    70   a defect of Trimtab itself
    130  interrupted
"""

import click

FOUND = 1
CANNOT_READ = 2
DEFECT = 70
INTERRUPTED = 130


class CommandError(click.ClickException):
    """A failure that the user can fix: its message, a hint, and the exit code."""

    def __init__(self, message: str, hint: str = "", exit_code: int = CANNOT_READ) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it from the instance, its stub says class


def one_line(message: str, hint: str = "") -> str:
    """Return `trimtab: message (hint)` without line breaks."""
    text = " ".join(message.split())
    return f"trimtab: {text} ({hint})" if hint else f"trimtab: {text}"
