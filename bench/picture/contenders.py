"""Who is measured: the Go peers in three settings, and ours. Each is only started and stopped, as a user would do it."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.picture.api import Api, series, unverified
from tools.peers import build, cluster

OURS = "ours"
_ACCOUNT = "bench-controller"
_RECONCILES = "horizontal_pod_autoscaler_controller_reconciliations_total"


@dataclass(frozen=True)
class Contender:
    """A controller and its setting."""

    name: str
    label: str
    workers: int = 5
    qps: int = 100_000
    burst: int = 100_000
    options: tuple[str, ...] = ()
    """More options of ours."""

    @property
    def is_ours(self) -> bool:
        """Return whether this is the one that we answer for."""
        return self.name.startswith(OURS)


W5 = Contender("w5", "kube-controller-manager, limits lifted, 5 workers")
W50 = Contender("w50", "kube-controller-manager, limits lifted, 50 workers", workers=50)
DEFAULTS = Contender("defaults", "kube-controller-manager as it comes", qps=20, burst=30)
RECOMMENDER = Contender("recommender", "vpa-recommender, limits lifted")
TRIMTAB = Contender(OURS, "trimtab run")
BOUNDED = Contender(OURS, "trimtab run with its bound of status writes", options=("--status-max-age=60s",))


@dataclass(frozen=True)
class Running:
    """A started contender."""

    pid: int
    metrics: str
    stop: Callable[[], None]

    def reconciles(self) -> float:
        """Return how many reconciles it says it has made; both count them under one name."""
        return sum(value for _, _, value in series(self.page(), _RECONCILES))

    def page(self) -> str:
        """Return its own metrics page."""
        context = unverified() if self.metrics.startswith("https") else None
        with urllib.request.urlopen(self.metrics, timeout=30, context=context) as answer:
            return str(answer.read().decode())

    def has_ended(self) -> bool:
        """Return whether it died by itself."""
        return not Path(f"/proc/{self.pid}/stat").exists() or _state(self.pid) == "Z"


def account(api: Api, admin: Path) -> Path:
    """Return a kubeconfig of an ordinary service account: priority and fairness lets administrators pass."""
    space = "/api/v1/namespaces/kube-system/serviceaccounts"
    api.create(space, {"metadata": {"name": _ACCOUNT}}, "bench")
    binding = {
        "metadata": {"name": _ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": "kube-system"}],
    }
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding, "bench")
    wanted = {"spec": {"expirationSeconds": 86_400}}
    token = api.create(f"{space}/{_ACCOUNT}/token", wanted, "bench")["status"]["token"]
    config = json.loads(admin.read_text())
    config["users"][0]["user"] = {"token": token}
    path = admin.parent / "controller.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


def start_peer(real: cluster.RealCluster, who: Contender, period: float) -> Running:
    """Start kube-controller-manager with nothing but its HPA controller."""
    url = real.start_controllers(
        cluster.HPA_CONTROLLER,
        f"--horizontal-pod-autoscaler-sync-period={period}s",
        f"--kube-api-qps={who.qps}",
        f"--kube-api-burst={who.burst}",
        f"--concurrent-horizontal-pod-autoscaler-syncs={who.workers}",
    )
    pid = real.pids["kube-controller-manager"]
    return Running(pid, f"{url}/metrics", lambda: real.stop("kube-controller-manager"))


def start_recommender(directory: Path, kubeconfig: Path, period: float) -> Running:
    """Start upstream's recommender."""
    build.ensure(["vpa-recommender"])
    port = cluster.free_port()
    command = [
        str(build.find("vpa-recommender")), f"--kubeconfig={kubeconfig}", f"--recommender-interval={period:.0f}s",
        f"--address=127.0.0.1:{port}", "--kube-api-qps=100000", "--kube-api-burst=100000", "--v=1",
    ]  # fmt: skip
    return _started(command, directory / "recommender.log", port)


def start_ours(directory: Path, kubeconfig: Path, *options: str, core: int | None = None) -> Running:
    """Start `trimtab run`, held to one core if asked."""
    port = cluster.free_port()
    pinned = ["taskset", "-c", str(core)] if core is not None else []
    command = [
        *pinned, sys.executable, "-m", "trimtab", "run", f"--kubeconfig={kubeconfig}", f"--port={port}",
        "--no-leader-elect", *options,
    ]  # fmt: skip
    return _started(command, directory / "trimtab.log", port)


def horizontal_options(period: float) -> tuple[str, ...]:
    """Return the options with which ours does what the peer does, a status write per cycle included."""
    return (
        "--native-hpas",
        "--no-own-hpas",
        f"--horizontal-pod-autoscaler-sync-period={period:g}s",
        "--status-max-age=0s",
    )


def vertical_options(period: float) -> tuple[str, ...]:
    """Return the options with which ours recommends."""
    return ("--components=recommender", "--native-vpas", f"--recommender-interval={period:g}s")


def _started(command: list[str], log: Path, port: int) -> Running:
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    return Running(process.pid, f"http://127.0.0.1:{port}/metrics", lambda: _end(process))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
