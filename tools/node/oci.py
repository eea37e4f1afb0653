"""An OCI image of static programs, as an archive that `ctr images import` takes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.release.archives import Entry, digest, directory, tar

_MEDIA = "application/vnd.oci.image"
_FOLDERS = ("dev", "etc", "proc", "sys", "tmp")
"""Folders that a container runtime mounts over, or that programs expect."""


def write_image(name: str, programs: Sequence[Path], archive: Path) -> None:
    """Write an image whose only files are programs. The first is its entry point."""
    files = [Entry(program.name, program.read_bytes(), 0o755) for program in programs]
    layer = tar([*map(directory, _FOLDERS), *files], 0)
    platform = {"architecture": "amd64", "os": "linux"}
    config = {
        **platform,
        "config": {"Entrypoint": [f"/{programs[0].name}"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(layer)}"]},
    }
    blobs: list[bytes] = []

    def blob(data: bytes, kind: str) -> dict[str, Any]:
        blobs.append(data)
        return {"mediaType": f"{_MEDIA}.{kind}", "digest": f"sha256:{digest(data)}", "size": len(data)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.manifest.v1+json",
        "config": blob(_json(config), "config.v1+json"),
        "layers": [blob(layer, "layer.v1.tar")],
    }
    listed = {
        **blob(_json(manifest), "manifest.v1+json"),
        "platform": platform,
        "annotations": {"io.containerd.image.name": name},
    }
    entries = [
        Entry("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
        Entry("index.json", _json({"schemaVersion": 2, "manifests": [listed]})),
        *(Entry(f"blobs/sha256/{digest(data)}", data) for data in blobs),
    ]
    archive.write_bytes(tar(entries, 0))


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
