"""Puts the image together as an OCI archive: Debian packages, wheels of the lock, and our own wheel, a layer each.

No engine is needed and no command runs inside, so the same inputs give the same digest. Each layer has the bytecode of its
modules, because nothing in the image can be written when it runs.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tools.release import debian
from tools.release.archives import Entry, compressed, digest, files_below, symbolic_link, tar
from tools.release.bytecode import bytecode
from tools.release.version import ROOT, ReleaseError

_PACKAGES: Final = "usr/local/lib/python3.11/dist-packages"
_MEDIA: Final = "application/vnd.oci.image"
_PROGRAMS: Final = {"trimtab": "main", "kubectl-trimtab": "main"}
_UV: Final = ROOT / ".tools" / "bin" / "uv"


def write_image(path: Path, wheel: Path, version: str, seconds: int) -> str:
    """Write the archive and return the digest of the image's manifest."""
    base = list(debian.base(ROOT / ".cache" / "debian"))
    layers = [tar([*base, *bytecode(base)], seconds), *_python_layers(wheel, seconds)]
    blobs: dict[str, bytes] = {}
    settings = _settings(version)
    config = {
        "created": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "architecture": "amd64",
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(layer)}" for layer in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.manifest.v1+json",
        "config": _blob(blobs, _json(config), f"{_MEDIA}.config.v1+json"),
        "layers": [_blob(blobs, compressed(layer), f"{_MEDIA}.layer.v1.tar+gzip") for layer in layers],
        "annotations": settings["Labels"],
    }
    listed = {
        **_blob(blobs, _json(manifest), f"{_MEDIA}.manifest.v1+json"),
        "platform": {"architecture": "amd64", "os": "linux"},
        "annotations": {
            "org.opencontainers.image.ref.name": version,
            # The whole name, as container runtimes read `trimtab:VERSION` of the chart.
            "io.containerd.image.name": f"docker.io/library/trimtab:{version}",
        },
    }
    files = [
        Entry("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
        Entry(
            "index.json",
            _json({"schemaVersion": 2, "mediaType": f"{_MEDIA}.index.v1+json", "manifests": [listed]}),
        ),
        *(Entry(f"blobs/sha256/{name}", data) for name, data in blobs.items()),
    ]
    path.write_bytes(tar(files, seconds))
    return str(listed["digest"])


def _settings(version: str) -> dict[str, Any]:
    return {
        # The number is the one that the chart runs as.
        "User": "65532:65532",
        "Env": [
            "PATH=/usr/local/bin:/usr/bin:/bin",
            "PYTHONUNBUFFERED=1",
            "PYTHONDONTWRITEBYTECODE=1",
            "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
        ],
        "Entrypoint": ["trimtab"],
        "Cmd": ["run"],
        "WorkingDir": "/tmp",
        "Labels": {
            "org.opencontainers.image.title": "trimtab",
            "org.opencontainers.image.description": "A Kubernetes pod autoscaler that counts the right pods and shows why.",
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.base.name": f"debian:{debian.RELEASE} packages of requirements/image.lock",
        },
    }


def _python_layers(wheel: Path, seconds: int) -> list[bytes]:
    """Return the layer of the lock's wheels and the layer of our own wheel."""
    programs = [
        Entry(
            f"usr/local/bin/{name}",
            f"#!/usr/bin/python3.11\nimport sys\nfrom trimtab.cli import {function}\nsys.exit({function}())\n".encode(),
            0o755,
        )
        for name, function in _PROGRAMS.items()
    ]
    pythons = [
        symbolic_link(f"usr/local/bin/{name}", "/usr/bin/python3.11") for name in ("python", "python3")
    ]
    with tempfile.TemporaryDirectory() as folder:
        locked, own = Path(folder, "locked"), Path(folder, "own")
        lock = ROOT / "requirements" / "run.lock"
        _install(locked, "--require-hashes", "--only-binary=:all:", "-r", str(lock))
        _install(own, "--no-deps", str(wheel))
        layers = []
        for packages, others in ((locked, pythons), (own, programs)):
            files = files_below(packages, _PACKAGES)
            layers.append(tar([*files, *bytecode(files), *others], seconds))
        return layers


def _install(target: Path, *what: str) -> None:
    if not _UV.exists():
        raise ReleaseError(f"{_UV} is missing; call this by `make release`")
    command = [
        str(_UV), "pip", "install", "-q", "--python", sys.executable, "--python-version", "3.11",
        "--python-platform", "x86_64-manylinux_2_28", "--link-mode=copy", "--target", str(target), *what,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"the packages of the image cannot be installed: {done.stderr.strip()}")
    shutil.rmtree(target / "bin", ignore_errors=True)  # scripts for the interpreter of this machine
    for name in (".lock", ".gitignore"):
        (target / name).unlink(missing_ok=True)
    for path in target.rglob("*.dist-info"):
        for name in ("RECORD", "direct_url.json", "uv_cache.json", "uv_build.json", "REQUESTED"):
            (path / name).unlink(missing_ok=True)  # where and when it was installed


def _blob(blobs: dict[str, bytes], data: bytes, media: str) -> dict[str, Any]:
    name = digest(data)
    blobs[name] = data
    return {"mediaType": media, "digest": f"sha256:{name}", "size": len(data)}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
