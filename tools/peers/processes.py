"""Starts a peer so that it never outlives the program that wanted it, however that one ends."""

import shutil
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path


def start(command: Sequence[str], directory: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a program in a directory of its own, its output appended to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [*_tied_to_us(), *command],
            cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip


def _tied_to_us() -> list[str]:
    """Return what makes the kernel end the program with us, even if we are killed.

    The kernel looks at the thread that started it, so only what the main thread starts is tied.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None or threading.current_thread() is not threading.main_thread():
        return []
    return [setpriv, "--pdeathsig", "KILL"]
