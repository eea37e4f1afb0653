"""Run functions in forks of this process, some at a time, with limits on time and memory."""

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEMORY = 4 << 30
"""Bytes that a fork may map. A mutant that allocates without end then fails in its own process."""

WALL_FACTOR = 15
"""How much longer than its CPU limit a fork may take. A deadlock uses no CPU; a busy machine gives little of it."""


@dataclass
class Fork:
    """One running fork."""

    token: Any
    pid: int
    pipe: int
    deadline: float
    directory: Path
    received: bytes = b""


class Forks:
    """Starts at most `jobs` forks at a time and returns what each wrote."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.running: list[Fork] = []

    @property
    def is_full(self) -> bool:
        """Whether a new fork has to wait."""
        return len(self.running) >= self.jobs

    def start(self, token: Any, work: Callable[[], Any], cpu_seconds: float) -> None:
        """Start a fork. Its result is the JSON value that `work` returns."""
        directory = Path(tempfile.mkdtemp(prefix="mutant-"))
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _run(work, writing, cpu_seconds, directory)
        os.close(writing)
        deadline = time.monotonic() + WALL_FACTOR * cpu_seconds
        self.running.append(Fork(token, pid, reading, deadline, directory))

    def wait(self) -> Iterator[tuple[Any, Any]]:
        """Wait until a fork ends; yield the token and the result of each, None where it ended without."""
        ended: list[Fork] = []
        while self.running and not ended:
            ready, _, _ = select.select([fork.pipe for fork in self.running], [], [], 1.0)
            for fork in self.running:
                if fork.pipe in ready:
                    data = os.read(fork.pipe, 1 << 16)
                    fork.received += data
                    if not data:
                        ended.append(fork)
                elif time.monotonic() > fork.deadline:
                    ended.append(fork)
        for fork in ended:
            self.running.remove(fork)
            yield fork.token, _end(fork)


def _end(fork: Fork) -> Any:
    # The fork leads a process group of its own, in which the programs that its tests started end with it.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(fork.pid, signal.SIGKILL)
    os.waitpid(fork.pid, 0)
    os.close(fork.pipe)
    shutil.rmtree(fork.directory, ignore_errors=True)
    try:
        return json.loads(fork.received)
    except ValueError:
        return None


def _run(work: Callable[[], Any], writing: int, cpu_seconds: float, directory: Path) -> None:
    try:
        os.setsid()
        limit = int(cpu_seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        nothing = os.open(os.devnull, os.O_RDWR)
        if not os.environ.get("MUTANTS_VERBOSE"):
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = str(directory)
        tempfile.tempdir = str(directory)
        result = work()
    except BaseException:  # noqa: BLE001 - the fork ends here, and its parent reports whatever happened
        result = {"error": traceback.format_exc()}
    _write(writing, json.dumps(result).encode())
    os._exit(0)


def _write(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as out:
        out.write(data)


def limit_next_test(seconds: float) -> None:
    """End this process if the next test takes much longer than it did unmutated: no result is a result."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    allowed = int(usage.ru_utime + usage.ru_stime + 10 * seconds + 6)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (allowed if hard < 0 else min(allowed, hard), hard))
    # A deadlock uses no CPU. A busy machine gives little of it, so this limit is far away.
    signal.alarm(int(90 + 60 * seconds))
