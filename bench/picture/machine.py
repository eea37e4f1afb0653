"""What the kernel says about processes: CPU-seconds, memory, and how much of the machine others took."""

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the CPU a process and its ended children have used.

    The process is read from its CPU clock, in nanoseconds. Ticks of 10 ms are too coarse for a loop that takes 60 ms.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = sum(int(fields[place]) for place in (13, 14)) / _TICK
    return time.clock_gettime(_cpu_clock(pid)) + children


def _cpu_clock(pid: int) -> int:
    """Return the id that Linux gives to the CPU clock of another process (`clock_getcpuclockid(3)`)."""
    return ~pid << 3 | 2


def machine_seconds() -> float:
    """Return the CPU all processes have used."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle, waiting = ticks[3], ticks[4]
    return (sum(ticks) - idle - waiting) / _TICK


def peak_mb(pid: int) -> float:
    """Return the most memory a process has had resident, in MB of 2^20 bytes."""
    return _status(pid, "VmHWM")


def resident_mb(pid: int) -> float:
    """Return the memory a process has resident now."""
    return _status(pid, "VmRSS")


def _status(pid: int, field: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


@dataclass(frozen=True)
class Reading:
    """CPU of several processes and of the whole machine, at one moment."""

    at: float
    processes: Mapping[str, float]
    machine: float

    @classmethod
    def take(cls, pids: Mapping[str, int]) -> "Reading":
        """Read all counters now."""
        return cls(
            time.monotonic(), {name: cpu_seconds(pid) for name, pid in pids.items()}, machine_seconds()
        )

    def since(self, before: "Reading") -> "Spent":
        """Return what was used between two readings."""
        used = {name: value - before.processes.get(name, 0.0) for name, value in self.processes.items()}
        seconds = self.at - before.at
        other = (self.machine - before.machine - sum(used.values())) / max(seconds, 1e-9)
        return Spent(seconds, used, max(other, 0.0))


@dataclass(frozen=True)
class Spent:
    """CPU used in a stretch of time; `other_cpu` is the cores taken by everything that is not measured."""

    seconds: float
    cpu: Mapping[str, float]
    other_cpu: float


def describe() -> str:
    """Return the machine in a few words."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{os.cpu_count()} cores, {model}, Python {platform.python_version()}"
