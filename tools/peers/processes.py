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


def guard(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """Start a process that kills the whole session of a program once we are gone; stop it with `dismiss`.

    What makes the kernel end a program with us does not reach the processes that the program has started.
    """
    # The other end of this pipe is closed by the kernel when we end, and no other program inherits it.
    kill = 'read -r _; kill -s KILL -- "-$1"'
    command = ["/bin/sh", "-c", kill, "guard", str(process.pid)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )  # fmt: skip


def dismiss(guarding: subprocess.Popen[bytes]) -> None:
    """End a guard that is no longer needed, without any effect on what it guards."""
    guarding.kill()
    guarding.communicate()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a program to end, and kill it if it has not after a while."""
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tied_to_this_thread() -> list[str]:
    """Return what makes the kernel end a program with the thread that starts it, even if we are killed."""
    setpriv = shutil.which("setpriv")
    return [] if setpriv is None else [setpriv, "--pdeathsig", "KILL"]


def _tied_to_us() -> list[str]:
    """Return what makes the kernel end the program with us. A thread may end before us, unless it is the main one."""
    is_main = threading.current_thread() is threading.main_thread()
    return tied_to_this_thread() if is_main else []
