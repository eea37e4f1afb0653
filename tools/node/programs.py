"""Builds the programs of a node from the Go module registry, static, at pinned versions, once."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tools.node import packages
from tools.peers import build

CONTAINERD = "v2.4.2"
RUNC = "v1.5.2"
CNI = "v1.9.1"
LOAD_SOURCES = Path(__file__).with_name("load")
"""The program of all containers: it uses as much CPU and memory as it is told."""


class Package(NamedTuple):
    """A Go main package with its version and how it is built."""

    path: str
    version: str
    flags: tuple[str, ...] = ("-ldflags", "-s -w")


_CONTAINERD_MODULE = "github.com/containerd/containerd/v2"
_CONTAINERD_FLAGS = (
    "-tags", "no_btrfs,no_devmapper,no_zfs",
    "-ldflags", f"-s -w -X {_CONTAINERD_MODULE}/version.Version={CONTAINERD}",
)  # fmt: skip
_CNI_MODULE = "github.com/containernetworking/plugins/plugins"

PACKAGES = {
    **{
        name: Package(f"{_CONTAINERD_MODULE}/cmd/{name}", CONTAINERD, _CONTAINERD_FLAGS)
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    },
    **{
        path.rpartition("/")[2]: Package(f"{_CNI_MODULE}/{path}", CNI)
        for path in ("main/bridge", "ipam/host-local", "main/loopback")
    },
}
RUNTIME = (*PACKAGES, "runc")
"""The programs of the node beside the kubelet."""


def ensure() -> dict[str, Path]:
    """Return the programs of a node by name; build what is missing."""
    build.ensure(["kubelet"])
    found = {"kubelet": build.place_of("kubelet")}
    for name in (*RUNTIME, "load"):
        found[name] = place_of(name)
        with build.locked(found[name]):
            if not found[name].exists():
                started = time.monotonic()
                print(f"building {name} ...", flush=True)
                _build(name, found[name])
                print(f"{name} built in {time.monotonic() - started:.0f} s", flush=True)
    return found


def place_of(name: str) -> Path:
    """Return where a program is or will be; the folder changes with its version, or with our own source."""
    version = _sources() if name == "load" else repr((PACKAGES, RUNC)).encode()
    return build.binaries() / f"node-{hashlib.sha256(version).hexdigest()[:12]}" / name


def _sources() -> bytes:
    return b"".join(source.read_bytes() for source in sorted(LOAD_SOURCES.glob("*.go")))


def _build(name: str, place: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="trimtab-node-") as scratch:
        build.go(scratch, "mod", "init", "trimtab.dev/node")
        built = Path(scratch) / f"{name}.built"
        if name == "load":
            shutil.copytree(LOAD_SOURCES, Path(scratch) / name)
            build.go(scratch, "build", "-ldflags", "-s -w", "-o", str(built), f"./{name}")
        elif name == "runc":
            _build_runc(scratch, built)
        else:
            package = PACKAGES[name]
            build.go(scratch, "get", f"{package.path}@{package.version}")
            build.go(scratch, "build", *package.flags, "-o", str(built), package.path)
        build.put_in_place(built, place)


def _build_runc(scratch: str, built: Path) -> None:
    """Build runc with seccomp: containerd gives every sandbox a profile, and a runc without seccomp refuses it."""
    headers = packages.unpacked("libseccomp-dev", Path(scratch) / "seccomp")
    (found,) = headers.glob("usr/lib/*/pkgconfig/libseccomp.pc")
    config = Path(scratch) / "pkgconfig"
    config.mkdir()
    text = found.read_text().replace("prefix=/usr\n", f"prefix={headers}/usr\n", 1)
    (config / found.name).write_text(text)
    package = "github.com/opencontainers/runc"
    build.go(scratch, "get", f"{package}@{RUNC}")
    link = f"-s -w -linkmode external -extldflags -static -X main.version={RUNC.removeprefix('v')}"
    run = subprocess.run(
        ["go", "build", "-tags", "netgo osusergo seccomp", "-ldflags", link, "-o", str(built), package],
        cwd=scratch, capture_output=True, text=True, check=False,
        env=os.environ | {"CGO_ENABLED": "1", "PKG_CONFIG_PATH": str(config), "GOWORK": "off", "GOFLAGS": "-buildvcs=false -mod=mod"},
    )  # fmt: skip
    if run.returncode:
        raise build.BuildFailedError(f"runc was not built: {run.stderr.strip()[-2000:]}")
