"""Build the peer programs at pinned versions: `K8S=1.36 python -m tools.peers.build [NAME...]`.

They go to `$PEERS_BIN` (default: the user's cache, `trimtab/peers`). Those of Kubernetes go to a folder of their release
there, as `kubernetes-1.37.1`. A program that is there is not built again. A cold build takes about 8 minutes on two
cores.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.peers import releases
from trimtab.cli.progress import waiting

ETCD = "v3.6.7"
VPA = "v1.8.1"
HELM = "v3.22.0"
METRICS_SERVER = "v0.9.0"
KUBE_STATE_METRICS = "v2.18.0"
KEDA = "v2.21.0"
ARGO_ROLLOUTS = "v1.10.1"
PROMETHEUS = "v0.315.0"
"""The module's version of Prometheus 3.15."""


class Program(NamedTuple):
    """A Go main package and the module it belongs to. Without a version it has that of the chosen Kubernetes.

    One that replaces modules is built in its own source tree: Go heeds the replacements of the main module alone.
    """

    module: str
    package: str
    version: str = ""
    tags: str = ""
    has_replacements: bool = False


_KUBERNETES_MODULE = "k8s.io/kubernetes"
_IMAGES = f"{_KUBERNETES_MODULE}/test/images"
_VPA_MODULE = "k8s.io/autoscaler/vertical-pod-autoscaler"

PROGRAMS = {
    "etcd": Program("go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", ETCD),
    **{
        name: Program(_KUBERNETES_MODULE, f"{_KUBERNETES_MODULE}/cmd/{name}")
        for name in ("kube-apiserver", "kube-controller-manager", "kubectl")
    },
    **{
        f"vpa-{name}": Program(_VPA_MODULE, f"{_VPA_MODULE}/pkg/{name}", VPA)
        for name in ("recommender", "updater", "admission-controller")
    },
}

_PROMETHEUS_MODULE = "github.com/prometheus/prometheus"
_STATE_MODULE = "k8s.io/kube-state-metrics/v2"
_KEDA_MODULE = "github.com/kedacore/keda/v2"
_ARGO_MODULE = "github.com/argoproj/argo-rollouts"

OPTIONAL = {
    "helm": Program("helm.sh/helm/v3", "helm.sh/helm/v3/cmd/helm", HELM),
    "kube-state-metrics": Program(_STATE_MODULE, _STATE_MODULE, KUBE_STATE_METRICS),
}
"""Programs that a few tests use; where one is missing, those tests say so and are skipped."""

ON_DEMAND = {
    **{
        name: Program(_KUBERNETES_MODULE, f"{_KUBERNETES_MODULE}/cmd/{name}")
        for name in ("kube-scheduler", "kubelet")
    },
    # Without the clients of all clouds, which take longer to build than the rest.
    "prometheus-3": Program(
        _PROMETHEUS_MODULE,
        f"{_PROMETHEUS_MODULE}/cmd/prometheus",
        PROMETHEUS,
        "remove_all_sd,enable_static_sd",
    ),
    "metrics-server": Program(
        "sigs.k8s.io/metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server", METRICS_SERVER
    ),
    # The programs in the pods of Kubernetes' own tests.
    "agnhost": Program(_KUBERNETES_MODULE, f"{_IMAGES}/agnhost"),
    "resource-consumer": Program(_KUBERNETES_MODULE, f"{_IMAGES}/resource-consumer"),
    "consume-cpu": Program(_KUBERNETES_MODULE, f"{_IMAGES}/resource-consumer/consume-cpu"),
    "keda": Program(_KEDA_MODULE, f"{_KEDA_MODULE}/cmd/operator", KEDA),
    "keda-adapter": Program(_KEDA_MODULE, f"{_KEDA_MODULE}/cmd/adapter", KEDA),
    "argo-rollouts": Program(
        _ARGO_MODULE, f"{_ARGO_MODULE}/cmd/rollouts-controller", ARGO_ROLLOUTS, has_replacements=True
    ),
}
"""Programs that take long to build, for a single test or benchmark each; they are built only by name."""


class CannotBuildError(Exception):
    """The programs are not there and cannot be built on this machine; the message says why."""


class BuildFailedError(CannotBuildError):
    """A build failed although the machine has Go and a network, for example of a release that does not exist."""


_NO_NETWORK = re.compile(
    r"dial tcp|lookup |proxyconnect|GOPROXY=off|i/o timeout|TLS handshake|connection re(fused|set)|unreachable"
    r"|deadline exceeded|\bEOF\b|: 5\d\d "
)
"""What Go says where it reaches no module proxy."""


def binaries() -> Path:
    """Return the directory of the programs; those of Kubernetes are in a folder of their release below it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PEERS_BIN") or cache / "trimtab" / "peers")


def kubernetes_folder() -> Path:
    """Return the directory of the programs of the chosen release of Kubernetes."""
    return binaries() / f"kubernetes-{releases.chosen()}"


def place_of(name: str) -> Path:
    """Return where a program is or will be."""
    if _program(name).module == _KUBERNETES_MODULE:
        return kubernetes_folder() / name
    return binaries() / name


def find(name: str) -> Path | None:
    """Return the program, built by us or (kubectl only) found on the path."""
    place = place_of(name)
    if place.exists() or _adopt(name, place):
        return place
    found = shutil.which(name) if name == "kubectl" else None
    return Path(found) if found else None


def ensure(names: Sequence[str]) -> None:
    """Build what is missing of `names`, or wait until another process has built it."""
    missing = [name for name in names if find(name) is None]
    if missing and shutil.which("go") is None:
        raise CannotBuildError(
            f"{', '.join(missing)} not in {binaries()}, and there is no `go` to build with"
        )
    for position, name in enumerate(missing, 1):
        started = time.monotonic()
        program = _program(name)
        _require_version(program)
        print(f"[{position}/{len(missing)}] building {name} {program.version} ...", flush=True)
        with locked(place_of(name)):
            if find(name) is None:
                with waiting(f"[{position}/{len(missing)}] building {name}", sys.stdout):
                    _build(name, program)
        print(f"[{position}/{len(missing)}] {name} built in {time.monotonic() - started:.0f} s", flush=True)


def ensure_optional() -> None:
    """Build the optional programs that are missing; print why one cannot be had."""
    for name in OPTIONAL:
        try:
            ensure([name])
        except CannotBuildError as error:
            print(f"without {name}: {error}", flush=True)


def _program(name: str) -> Program:
    program = (PROGRAMS | OPTIONAL | ON_DEMAND)[name]
    return program if program.version else program._replace(version=f"v{releases.chosen()}")


def _adopt(name: str, place: Path) -> bool:
    """Move a program of Kubernetes to its folder if it is where all releases used to be, and is of this release."""
    before = binaries() / name
    if before == place or not before.exists():
        return False
    said = subprocess.run([before, "--version"], capture_output=True, text=True, check=False).stdout
    if said.strip() != f"Kubernetes v{releases.chosen()}":
        return False
    place.parent.mkdir(exist_ok=True)
    before.rename(place)
    return True


@contextlib.contextmanager
def locked(place: Path) -> Iterator[None]:
    """Let a single process make a program: CI builds in the background, and tests run in two processes."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_name(f".{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _require_version(program: Program) -> None:
    """Raise BuildFailedError if the program's module has no such version, before anything is made for it."""
    with tempfile.TemporaryDirectory(prefix="trimtab-peer-") as scratch:
        go(scratch, "mod", "init", "trimtab.dev/peer")
        try:
            go(scratch, "list", "-m", f"{program.module}@{program.version}")
        except BuildFailedError as error:
            if program.module != _KUBERNETES_MODULE:
                raise
            known = ", ".join(releases.RELEASES)
            raise BuildFailedError(
                f"{error}; choose with K8S: {known}, or a full version that exists"
            ) from error


def _build(name: str, program: Program) -> None:
    with tempfile.TemporaryDirectory(prefix="trimtab-peer-") as scratch:
        stamp = f"-s -w -X k8s.io/component-base/version.gitVersion={program.version}"
        flags = ("-tags", program.tags, "-ldflags", stamp, "-o", f"{scratch}/{name}")
        if program.has_replacements:
            # The tree is part of Go's cache, so nothing is written there.
            go(str(sources_of(name)), "build", "-mod=readonly", *flags, program.package)
        else:
            _require(program, scratch)
            go(scratch, "build", *flags, program.package)
        put_in_place(Path(scratch) / name, place_of(name))


def _require(program: Program, scratch: str) -> None:
    """Make a module that requires a program's module and all it needs."""
    go(scratch, "mod", "init", "trimtab.dev/peer")
    if program.module == _KUBERNETES_MODULE:
        point_staging_at_releases(scratch, program.version)
    go(scratch, "get", f"{program.package}@{program.version}")


def sources_of(name: str) -> Path:
    """Return the source tree of a program's module in Go's cache, where its manifests are, too."""
    program = _program(name)
    with tempfile.TemporaryDirectory(prefix="trimtab-peer-") as scratch:
        go(scratch, "mod", "init", "trimtab.dev/peer")
        answer = json.loads(go(scratch, "mod", "download", "-json", f"{program.module}@{program.version}"))
    return Path(answer["Dir"])


def put_in_place(built: Path, target: Path) -> None:
    """Move a program to its place, so that it is either whole or not there."""
    partial = target.with_name(f".{target.name}.partial")
    shutil.move(built, partial)
    partial.rename(target)


def point_staging_at_releases(scratch: str, version: str) -> None:
    """Use the released k8s.io/* modules where Kubernetes' own go.mod points into its source tree."""
    answer = json.loads(go(scratch, "mod", "download", "-json", f"{_KUBERNETES_MODULE}@{version}"))
    staged = re.findall(
        r"^\s*(k8s\.io/[a-z-]+) => \./staging/", Path(answer["GoMod"]).read_text(), re.MULTILINE
    )
    library = "v0." + version.removeprefix("v1.")
    for module in staged:
        go(scratch, "mod", "edit", f"-replace={module}={module}@{library}")
    go(scratch, "mod", "edit", f"-require={_KUBERNETES_MODULE}@{version}")


def go(directory: str, *arguments: str) -> str:
    """Run a command of Go in a scratch module and return what it printed."""
    environment = os.environ | {
        "CGO_ENABLED": "0",
        "GOWORK": "off",
        "GOFLAGS": "-buildvcs=false -mod=mod",
    }
    run = subprocess.run(
        ["go", *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode:
        # `go mod download -json` says what is wrong in its answer.
        said = (run.stderr.strip() or run.stdout.strip())[-2000:]
        kind = CannotBuildError if _NO_NETWORK.search(said) else BuildFailedError
        raise kind(f"go {' '.join(arguments[:2])} failed: {said}")
    return run.stdout


def main() -> None:
    """Build the named programs, or all that `make test-real` uses."""
    names = sys.argv[1:] or list(PROGRAMS)
    known = [*PROGRAMS, *OPTIONAL, *ON_DEMAND]
    unknown = sorted(set(names) - set(known))
    if unknown:
        sys.exit(f"unknown program {', '.join(unknown)}; known: {', '.join(known)}")
    try:
        ensure(names)
        if not sys.argv[1:]:
            ensure_optional()
    except (CannotBuildError, releases.UnknownReleaseError) as error:
        sys.exit(str(error))
    for name in names:
        print(find(name))


if __name__ == "__main__":
    main()
