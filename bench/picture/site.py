"""The place where contenders meet: etcd, API server, stand-in and objects, the same for everyone."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.picture.api import Api, requests_by_kind
from bench.picture.contenders import account
from bench.picture.generator import Generator, Load
from bench.picture.machine import Reading
from bench.picture.standin import Standin
from tools.peers.cluster import RealCluster
from tools.peers.vpa_definitions import native_definitions

METRICS_API = "LIST metrics.k8s.io/pods"


@dataclass
class Site:
    """A cluster that has been filled."""

    cluster: RealCluster
    api: Api
    standin: Standin
    generator: Generator
    kubeconfig: Path

    @property
    def directory(self) -> Path:
        """Return where logs go."""
        return self.cluster.directory

    def last_words(self) -> str:
        """Return the end of the newest log of a controller: the directory is gone when somebody reads the error."""
        names = ("trimtab.log", "recommender.log", "kube-controller-manager.log")
        logs = [self.directory / name for name in names if (self.directory / name).exists()]
        if not logs:
            return "it left no log"
        newest = max(logs, key=lambda path: path.stat().st_mtime)
        return f"{newest.name} ends with: {newest.read_text(errors='replace')[-300:].strip()}"

    def pids(self, controller: int | None = None) -> dict[str, int]:
        """Return whose CPU is counted."""
        pids = self.cluster.pids
        kept = {
            "kube-apiserver": pids["kube-apiserver"],
            "etcd": pids["etcd"],
            "standin": self.standin.process.pid,
        }
        return kept | ({} if controller is None else {"controller": controller})

    def reading(self, controller: int) -> Reading:
        """Read all CPU counters."""
        return Reading.take(self.pids(controller))

    def requests(self) -> dict[str, float]:
        """Return requests by kind; those that the aggregator passes on are counted by the stand-in."""
        return requests_by_kind(self.api.text("/metrics")) | {METRICS_API: float(self.standin.requests())}

    def fill(self, load: Load) -> float:
        """Write the objects afresh and return the pods written per second."""
        rate = self.generator.fill(load)
        self.standin.know(load)
        return rate

    def define_vpas(self) -> None:
        """Create the custom resource definitions and wait until they are served."""
        for definition in native_definitions():
            self.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, "bench")
        deadline = time.monotonic() + 30
        while True:
            try:
                self.api.get("/apis/autoscaling.k8s.io/v1/verticalpodautoscalers?limit=1")
                self.api.get("/apis/autoscaling.k8s.io/v1/verticalpodautoscalercheckpoints?limit=1")
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)
            else:
                return


@contextmanager
def put_up(directory: Path) -> Iterator[Site]:
    """Start a cluster with the stand-in behind its aggregator, and take both down again."""
    with RealCluster(directory) as cluster:
        standin = Standin(directory)
        try:
            api = Api(cluster.url, cluster.tokens["admin"])
            standin.register(api)
            yield Site(cluster, api, standin, Generator(api, cluster.etcd), account(api, cluster.kubeconfig))
        finally:
            standin.stop()
