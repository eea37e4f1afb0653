"""A guest of user-mode Linux by itself, without a kubelet that joins anything."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.node import machine

pytestmark = pytest.mark.node

STARTER = """
import sys, tarfile, time
from pathlib import Path
from tools.node import disk
from tools.node.machine import Machine

folder = Path(sys.argv[1])
machine = Machine(folder, disk.ensure(), "256M")
(folder / "httpd.conf").write_text(machine.shell_settings)
(folder / "node.env").write_text("NODE_NAME=alone NODE_CPUS=1 API_SERVER=10.0.2.2:1")
with tarfile.open(folder / "settings.tar", "w") as settings:
    for name in ("httpd.conf", "node.env"):
        settings.add(folder / name, f"etc/{name}")
machine.start(folder / "settings.tar", {})
machine.wait_until("the guest has a shell", machine.has_shell)
print("started", flush=True)
time.sleep(600)
"""


def test_no_process_of_a_guest_outlives_a_starter_that_is_killed(tmp_path: Path):
    """The guest's kernel and each of its programs are processes here. The kernel alone was ended with its starter."""
    if missing := machine.missing_programs():
        pytest.skip(f"a guest needs {', '.join(missing)}")
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "started\n"
        guests = processes_in(tmp_path)
        starter.kill()
    assert len(guests) > 2
    deadline = time.monotonic() + 60
    while left := processes_in(tmp_path):
        if time.monotonic() > deadline:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        assert time.monotonic() < deadline, f"{len(left)} of {len(guests)} processes are left"
        time.sleep(0.1)


def processes_in(folder: Path) -> list[int]:
    """Return the processes that run in a folder, as those of a guest and its network do."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
        except OSError:
            continue
    return found
