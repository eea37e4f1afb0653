"""A guest in user-mode Linux: two processes of this machine, and ports on loopback.

User-mode Linux is a kernel that runs as a process. Its network is a QEMU without a machine: QEMU's user network and a pair of
UDP sockets on one hub.
"""

import base64
import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.node.disk import Boot
from tools.peers import processes
from tools.peers.cluster import HOST, free_port

GUEST_ADDRESS = "10.0.2.15"
HOST_ADDRESS = "10.0.2.2"
"""This machine's loopback as the guest sees it."""

_SHELL_PORT = 9000
_SHARED_MEMORY = "/dev/shm"
"""The guest's memory is a file, which belongs on a tmpfs."""
_BOOT_SECONDS = 120
"""How long the kernel may take to start one process; an idle machine needs about a second."""


class MachineError(Exception):
    """The guest did not start, or a command in it failed; the message names its log."""


def missing_programs() -> list[str]:
    """Return the programs of this machine that a guest needs and that are not there."""
    return [name for name in ("qemu-system-x86_64", "mke2fs", "gcc") if shutil.which(name) is None]


def why_it_does_not_boot(boot: Boot) -> str | None:
    """Boot a guest that ends at once; return why it did not, or None if it did."""
    with tempfile.TemporaryDirectory(prefix="trimtab-boot-") as folder:
        command = [
            str(boot.kernel), "mem=128M", f"ubd0={folder}/changes,{boot.disk}", "root=/dev/ubda", "rw", "init=/etc/test-boot",
            "con0=null,fd:1", "con=null", "quiet", f"uml_dir={folder}", "umid=uml",
        ]  # fmt: skip
        process = subprocess.Popen(
            command, env=_environment(boot), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        guard = processes.guard(process)
        try:
            said = process.communicate(timeout=_BOOT_SECONDS)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            return f"user-mode Linux did not boot within {_BOOT_SECONDS} s"
        finally:
            _kill_session(process)
            processes.dismiss(guard)
    if "the guest has booted" in said:
        return None
    return f"user-mode Linux does not boot here: {' / '.join(filter(None, said.splitlines()))[-500:]}"


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill a guest; the processes of the guest are those of its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(boot: Boot) -> dict[str, str]:
    return os.environ | {"TMPDIR": _SHARED_MEMORY, "LD_PRELOAD": str(boot.preload)}


class Machine:
    """One guest, with a shell inside that only the holder of its password can use."""

    def __init__(self, directory: Path, boot: Boot, memory: str) -> None:
        self.directory = directory
        self._boot = boot
        self._memory = memory
        self._password = secrets.token_hex(16)
        self._shell_port = free_port()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._guards: list[subprocess.Popen[bytes]] = []

    @property
    def shell_settings(self) -> str:
        """Return the guest's file `/etc/httpd.conf`, which protects its shell."""
        return f"/cgi-bin:root:{self._password}\n"

    @property
    def log(self) -> Path:
        """Return what the guest's kernel and start scripts print."""
        return self.directory / "console.log"

    def start(self, settings: Path, forwards: Mapping[int, int], image: Path | None = None) -> None:
        """Start the guest with a tar archive of its settings; forward loopback ports to ports of the guest.

        `image` is the archive of a container image that the guest imports.
        """
        wires = free_udp_port(), free_udp_port()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
            wire.bind((HOST, wires[1]))
            wire.connect((HOST, wires[0]))
            self._start_network({**forwards, self._shell_port: _SHELL_PORT}, *wires)
            command = [
                str(self._boot.kernel), f"mem={self._memory}", f"ubd0={self.directory / 'changes'},{self._boot.disk}",
                f"ubd1r={settings}", "root=/dev/ubda", "rw", "init=/sbin/init", "con0=null,fd:1", "con=null",
                f"vec0:transport=fd,fd={wire.fileno()},depth=64", "quiet", "cgroup_no_v1=all",
                f"uml_dir={self.directory}", "umid=uml", *([f"ubd2r={image}"] if image else []),
            ]  # fmt: skip
            self._add(
                processes.start(
                    command, self.directory, self.log,
                    environment=_environment(self._boot), descriptors=[wire.fileno()],
                )
            )  # fmt: skip

    def _add(self, process: subprocess.Popen[bytes]) -> None:
        self._processes.append(process)
        self._guards.append(processes.guard(process))

    def _start_network(self, forwards: Mapping[int, int], near: int, far: int) -> None:
        hosts = "".join(
            f",hostfwd=tcp:{HOST}:{port}-{GUEST_ADDRESS}:{inside}" for port, inside in forwards.items()
        )
        wire = (
            f"dgram,id=wire,local.type=inet,local.host={HOST},local.port={near},"
            f"remote.type=inet,remote.host={HOST},remote.port={far}"
        )
        command = [
            "qemu-system-x86_64", "-M", "none", "-nodefaults", "-display", "none",
            "-netdev", f"user,id=user{hosts}", "-netdev", wire,
            "-netdev", "hubport,id=port1,hubid=0,netdev=user", "-netdev", "hubport,id=port2,hubid=0,netdev=wire",
        ]  # fmt: skip
        self._add(processes.start(command, self.directory, self.directory / "network.log"))

    def wait_until(self, what: str, is_true: Callable[[], bool], seconds: float = 240) -> None:
        """Wait for something of the guest; raise MachineError if it ends first, or after so many seconds."""
        deadline = time.monotonic() + seconds
        while not is_true():
            for process in self._processes:
                if process.poll() is not None:
                    raise MachineError(f"the guest ended with {process.returncode}; see {self.log}")
            if time.monotonic() > deadline:
                raise MachineError(f"it took more than {seconds:.0f} s until {what}; see {self.log}")
            time.sleep(0.3)

    def has_shell(self) -> bool:
        """Return whether commands can be run inside."""
        try:
            return self.run("true") == ""
        except (OSError, MachineError):
            return False

    def run(self, script: str) -> str:
        """Run a shell script in the guest and return what it printed; raise MachineError if it failed."""
        code, text = self._post(script)
        if code:
            raise MachineError(f"a command in the guest ended with {code}: {text.strip()[-1000:]}")
        return text

    def _post(self, script: str) -> tuple[int, str]:
        credentials = base64.b64encode(f"root:{self._password}".encode()).decode()
        request = urllib.request.Request(
            f"http://{HOST}:{self._shell_port}/cgi-bin/sh",
            data=script.encode(), headers={"Authorization": f"Basic {credentials}"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=300) as answer:
            text, _, code = answer.read().decode(errors="replace").rpartition("exit code ")
        return int(code or 1), text

    def stop(self) -> None:
        """Stop the guest and its network."""
        while self._processes:
            process = self._processes.pop()
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            _kill_session(process)
        while self._guards:
            processes.dismiss(self._guards.pop())


def free_udp_port() -> int:
    """Return a UDP port of loopback that nobody uses at the moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
