"""The metrics stand-in: built once from `bench/go/standin`, started, registered with the real aggregator, ordered about."""

import hashlib
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from bench.picture.api import Api, Json
from bench.picture.generator import Load
from bench.picture.objects import Names
from tools.peers import build

_SOURCE = Path(__file__).parents[1] / "go" / "standin"
_PATIENCE = 30
_VERSIONS = ("v1", "v1beta1")
"""Each contender takes the one that it prefers. Both hold the same fields."""


class NoStandinError(Exception):
    """The stand-in cannot be had; the message says why."""


def program() -> Path:
    """Return the stand-in, building it if its source is new."""
    sources = sorted(_SOURCE.glob("*.go"))
    mark = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    built = build.binaries() / f"standin-{mark}"
    if built.exists():
        return built
    if shutil.which("go") is None:
        raise NoStandinError("the metrics stand-in is not built, and there is no `go` to build it with")
    built.parent.mkdir(parents=True, exist_ok=True)
    run = subprocess.run(
        ["go", "build", "-o", str(built), "."], cwd=_SOURCE, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise NoStandinError(f"the metrics stand-in does not build: {run.stderr.strip()[-500:]}")
    return built


class Standin:
    """A running metrics.k8s.io that uses what it is told."""

    def __init__(self, directory: Path) -> None:
        with (directory / "standin.log").open("ab") as log:
            self.process = subprocess.Popen([str(program())], stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        hello = json.loads(self.process.stdout.readline())
        self._port, self._control = int(hello["port"]), str(hello["control"])

    def register(self, api: Api) -> None:
        """Put it behind the aggregator and wait until it answers there."""
        name, space = "bench-metrics", "kube-system"
        service = {"metadata": {"name": name}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        api.create(f"/api/v1/namespaces/{space}/services", service, "bench")
        for version in _VERSIONS:
            spec = {
                "group": "metrics.k8s.io",
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100 if version == _VERSIONS[0] else 50,
                "insecureSkipTLSVerify": True,
                "service": {"name": name, "namespace": space, "port": self._port},
            }
            body = {"metadata": {"name": f"{version}.metrics.k8s.io"}, "spec": spec}
            api.create("/apis/apiregistration.k8s.io/v1/apiservices", body, "bench")
        for version in _VERSIONS:
            _wait_for(api, f"/apis/metrics.k8s.io/{version}/namespaces/none/pods")

    def know(self, load: Load) -> None:
        """Tell it all workloads."""
        self._order("PUT", "/workloads", [_described(load, names) for names in load.names()])

    def use(self, **values: float) -> None:
        """Set what everyone uses from now on: cpu (millicores), memory (bytes), jitter (share), refresh
        (seconds), never_repeats (1: each refresh shows another usage than the one before; 0: chance decides)."""
        self._order("POST", "/set", values)

    def requests(self) -> int:
        """Return how many requests it has answered."""
        with urllib.request.urlopen(f"{self._control}/stats", timeout=10) as answer:
            return int(json.load(answer)["requests"])

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(timeout=10)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _order(self, method: str, path: str, body: Json | Sequence[Json]) -> None:
        data = json.dumps(body).encode()
        request = urllib.request.Request(self._control + path, data=data, method=method)
        with urllib.request.urlopen(request, timeout=60):
            pass


def _wait_for(api: Api, path: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            api.get(path)
        except (OSError, RuntimeError, ValueError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _described(load: Load, names: Names) -> Json:
    pods = [names.pod(pod) for pod in range(load.pods)]
    return {"namespace": names.namespace, "labels": names.labels, "container": "main", "pods": pods}
