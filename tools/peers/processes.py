"""Starts a peer so that it never outlives the program that wanted it, however that one ends."""

import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path


def start(
    command: Sequence[str],
    directory: Path,
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program in a directory of its own, its output appended to `log`; it inherits the named descriptors."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [*_tied_to_us(), *command],
            cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env=environment, pass_fds=tuple(descriptors),
        )  # fmt: skip


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a program to end, and kill it if it has not after a while."""
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tied_to_us() -> list[str]:
    """Return what makes the kernel end the program with us, even if we are killed.

    The kernel looks at the thread that started it, so only what the main thread starts is tied.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None or threading.current_thread() is not threading.main_thread():
        return []
    return [setpriv, "--pdeathsig", "KILL"]
