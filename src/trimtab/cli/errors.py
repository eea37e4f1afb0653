"""Errors of commands: one line on stderr, a hint, and an exit code for scripts.

    click.ClickException
      CommandError         the command cannot go on; `exit_code` says why

Exit codes of every command:
    0    done, nothing found
    1    done, and something was found (validate: errors; convert: an object that cannot be converted)
    2    the command could not be run as asked: wrong usage, a file that cannot be read
    70   a defect of Trimtab itself
    74   the system refused: a full disk, too few open files
    130  interrupted
"""

import errno

import click

FOUND = 1
CANNOT_READ = 2
DEFECT = 70
OUT_OF_RESOURCES = 74
INTERRUPTED = 130


class CommandError(click.ClickException):
    """A failure that the user can fix: its message, a hint, and the exit code."""

    def __init__(self, message: str, hint: str = "", exit_code: int = CANNOT_READ) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it from the instance, its stub says class


_EXHAUSTED = {
    errno.ENOSPC: "free some space, or write elsewhere",
    errno.EDQUOT: "free some space, or write elsewhere",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or write elsewhere",
    errno.EIO: "the disk is failing: write elsewhere",
    errno.EMFILE: "raise the limit of open files: ulimit -n 1024",
    errno.ENFILE: "the system has no open files left: end other programs",
    errno.ENOMEM: "free some memory, or raise its limit",
}
"""What to do when the system has no more of something."""


def system_error(error: OSError) -> CommandError | None:
    """Return what the system refused and what to do, or None if the error is a defect of ours."""
    what = f"{error.filename}: " if error.filename else ""
    text = f"{what}{error.strerror or error}"
    if (hint := _EXHAUSTED.get(error.errno or 0)) is not None:
        return CommandError(text, hint, OUT_OF_RESOURCES)
    if error.filename and isinstance(
        error, PermissionError | FileNotFoundError | FileExistsError | NotADirectoryError | IsADirectoryError
    ):
        return CommandError(text)
    return None


def one_line(message: str, hint: str = "") -> str:
    """Return `trimtab: message (hint)` without line breaks."""
    text = " ".join(message.split())
    return f"trimtab: {text} ({hint})" if hint else f"trimtab: {text}"
