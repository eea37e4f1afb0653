"""`make up` as a person types it: the command, what it prints, and Ctrl-C."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parents[2]
SECONDS = 180
"""After this long a wait has failed; nothing is expected to take it."""


class Up:
    """A running `make up`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.printed: list[str] = []
        self._lines: Queue[str] = Queue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def until(self, pattern: str) -> "re.Match[str]":
        """Read on until a line fits; what was printed before stays in `printed`."""
        while True:
            line = self._lines.get(timeout=SECONDS)
            self.printed.append(line)
            found = re.search(pattern, line)
            if found:
                return found

    def told(self, pattern: str) -> str:
        """Return what one of the printed lines says."""
        return next(found[1] for line in self.printed if (found := re.search(pattern, line)))

    def close(self) -> None:
        """Let go of the pipe."""
        self._reading.join(timeout=SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def interrupt(self) -> str:
        """Press Ctrl-C, which a terminal sends to everything in the foreground; return what was printed then."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(timeout=SECONDS)
        self._reading.join(timeout=SECONDS)
        rest = []
        while not self._lines.empty():
            rest.append(self._lines.get())
        return "\n".join(rest)


@contextmanager
def make_up(*arguments: str) -> Iterator[Up]:
    """Type `make up ARGS="..."` in the clone."""
    # A newcomer's terminal has neither our virtual environment nor a make around it.
    own = str(ROOT / ".venv/bin")
    path = ":".join(one for one in os.environ.get("PATH", "").split(":") if one != own)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "ARGS"))}
    process = subprocess.Popen(
        ["make", "up", f"ARGS={' '.join(arguments)}"],
        cwd=ROOT,
        env={**environment, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # a session of its own has its own foreground, as a terminal window has
    )
    up = Up(process)
    try:
        yield up
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        up.close()
