"""A real Prometheus on loopback, from Debian's package: found on the path, or unpacked beside the other peers.

Nothing is installed: the package is downloaded with `apt-get download` and unpacked into the directory of the peers.
The package is Prometheus 2. Prometheus 3 is built with `python -m tools.peers.build prometheus-3` by whoever wants it.
"""

import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.peers import build, processes


class NoPrometheusError(Exception):
    """A Prometheus cannot be had here; the message says why."""


PROGRAMS = ("prometheus", "promtool")
VERSION_3 = "prometheus-3"


def ensure(program: str = "prometheus") -> Path:
    """Return one of the package's programs; download them if they are not there."""
    kept = build.binaries() / program
    if kept.exists():
        return kept
    if program == VERSION_3:
        raise NoPrometheusError(f"build it with python -m tools.peers.build {VERSION_3}")
    found = shutil.which(program)
    if found:
        return Path(found)
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise NoPrometheusError(f"no {program} on the path, and no {tool} to get it with")
    with build.locked(build.binaries() / PROGRAMS[0]):  # both programs come with one package
        if not kept.exists():
            _download()
    return kept


def _download() -> None:
    """Unpack the package's programs beside the other peers."""
    with tempfile.TemporaryDirectory(prefix="trimtab-prometheus-") as scratch:
        _run(scratch, "apt-get", "download", "prometheus")
        package = next(Path(scratch).glob("prometheus_*.deb"))
        _run(scratch, "dpkg-deb", "-x", str(package), "unpacked")
        for each in PROGRAMS:
            partial = build.binaries() / f".{each}.partial"
            shutil.copy(Path(scratch, "unpacked/usr/bin", each), partial)
            partial.rename(build.binaries() / each)


class RealPrometheus:
    """A Prometheus that scrapes the given targets every second; `kill` and `start` make an outage."""

    def __init__(
        self, directory: Path, port: int, targets: Mapping[str, str], program: str = "prometheus"
    ) -> None:
        self._program = ensure(program)
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{port}"
        self._address = f"127.0.0.1:{port}"
        directory.mkdir(parents=True, exist_ok=True)
        jobs = [
            {"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in targets.items()
        ]
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}
        # JSON is YAML.
        (directory / "prometheus.yml").write_text(json.dumps(config))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self, timeout: float = 60) -> None:
        """Start it and wait until it answers."""
        command = [
            str(self._program), "--config.file=prometheus.yml", "--storage.tsdb.path=data",
            f"--web.listen-address={self._address}", "--log.level=warn",
            "--storage.tsdb.retention.time=30d",
        ]  # fmt: skip
        self._process = processes.start(command, self._directory, self._directory / "prometheus.log")
        deadline = time.monotonic() + timeout
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise NoPrometheusError(f"prometheus did not start; see {self._directory / 'prometheus.log'}")
            time.sleep(0.1)

    def backfill(self, lines: Iterable[str]) -> None:
        """Put a past into its storage, as OpenMetrics lines with times; before it starts."""
        text = self._directory / "past.om"
        text.write_text("".join(f"{line}\n" for line in lines) + "# EOF\n")
        blocks = (str(ensure("promtool")), "tsdb", "create-blocks-from", "openmetrics", text.name, "data")
        _run(str(self._directory), *blocks)

    def kill(self) -> None:
        """Kill it, as an outage would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


def _run(directory: str, *command: str) -> None:
    run = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=300)
    if run.returncode:
        raise NoPrometheusError(f"{' '.join(command)}: {run.stderr.strip()[-500:]}")
