"""Builds the test program of Kubernetes, the images of its pods and our simulated node from the Go module registry."""

import hashlib
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tools.node import oci, packages
from tools.peers import build, releases

GO_SOURCES = Path(__file__).with_name("go")
PEERS = (
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "metrics-server",
)  # fmt: skip
IN_PODS = ("agnhost", "resource-consumer", "consume-cpu")
"""The programs that pods of the tests run on a real node."""


def write_images(test_program: Path, archive: Path) -> None:
    """Write an archive of the images that the tests ask for, under the names by which they ask."""
    listing = subprocess.run([test_program, "--list-images"], capture_output=True, text=True, check=True)
    agnhost, consumer = listing.stdout.split()
    found = {name: build.place_of(name) for name in IN_PODS}
    programs = {
        "consumer": found["resource-consumer"],
        "consume-cpu/consume-cpu": found["consume-cpu"],
        **_stress(),
    }
    images = [oci.Image(agnhost, {"agnhost": found["agnhost"]}), oci.Image(consumer, programs)]
    oci.write_images(images, archive)


def _stress() -> dict[str, Path]:
    """Return Debian's `stress`, by which resource-consumer uses memory, with its libraries, by their paths."""
    program = packages.unpacked("stress", build.binaries() / "stress-package") / "usr/bin/stress"
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    libraries = {path.lstrip("/"): Path(path) for path in re.findall(r"(/\S+) \(0x", needed)}
    return {"usr/bin/stress": program, **libraries}


def ensure_program(folder: str) -> Path:
    """Return the program of a folder of Go sources, built once for each state of the sources."""
    place = place_of(folder)
    if not place.exists() and shutil.which("go") is None:
        raise build.CannotBuildError(
            f"{place.name} not in {place.parent}, and there is no `go` to build with"
        )
    with build.locked(place):
        if not place.exists():
            started = time.monotonic()
            print(f"building {place.name} (the first time: several minutes) ...", flush=True)
            _build(folder, place)
            print(f"{place.name} built in {time.monotonic() - started:.0f} s", flush=True)
    return place


def place_of(folder: str) -> Path:
    """Return where the program of a folder is or will be; the name changes with the sources."""
    digest = hashlib.sha256()
    for source in sorted((GO_SOURCES / folder).glob("*.go")):
        digest.update(source.read_bytes())
    return build.kubernetes_folder() / f"{folder}-{digest.hexdigest()[:12]}"


def _build(folder: str, place: Path) -> None:
    version = f"v{releases.chosen()}"
    with tempfile.TemporaryDirectory(prefix="trimtab-upstream-") as scratch:
        build.go(scratch, "mod", "init", "trimtab.dev/upstream")
        build.point_staging_at_releases(scratch, version)
        shutil.copytree(GO_SOURCES / folder, Path(scratch) / folder)
        built = f"{scratch}/{place.name}"
        if folder == "e2e":
            # Vet would go over every dependency of the tests.
            stamp = f"-s -w -X k8s.io/component-base/version.gitVersion={version}"
            build.go(scratch, "test", "-c", "-vet=off", "-ldflags", stamp, "-o", built, f"./{folder}")
        else:
            build.go(scratch, "build", "-ldflags", "-s -w", "-o", built, f"./{folder}")
        build.put_in_place(Path(built), place)
