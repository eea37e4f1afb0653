"""OCI images of static programs, in an archive that `ctr images import` takes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tools.release.archives import Entry, digest, directory, tar

_MEDIA = "application/vnd.oci.image"
_FOLDERS = ("dev", "etc", "proc", "sys", "tmp")
"""Folders that a container runtime mounts over, or that programs expect."""


_PLATFORM = {"architecture": "amd64", "os": "linux"}


@dataclass(frozen=True, slots=True)
class Image:
    """An image whose only files are programs, by their paths in it. The first is its entry point."""

    name: str
    programs: Mapping[str, Path]

    def layer(self) -> bytes:
        """Return the files as the archive of the only layer."""
        parents = {str(PurePosixPath(path).parent) for path in self.programs} - {"."}
        files = [Entry(path, program.read_bytes(), 0o755) for path, program in self.programs.items()]
        return tar([*map(directory, (*_FOLDERS, *parents)), *files], 0)


def write_images(images: Sequence[Image], archive: Path) -> None:
    """Write an archive of images."""
    blobs: dict[str, bytes] = {}
    manifests = [_listed(image, blobs) for image in images]
    entries = [
        Entry("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
        Entry("index.json", _json({"schemaVersion": 2, "manifests": manifests})),
        *(Entry(f"blobs/sha256/{name}", data) for name, data in blobs.items()),
    ]
    archive.write_bytes(tar(entries, 0))


def _listed(image: Image, blobs: dict[str, bytes]) -> dict[str, Any]:
    """Return the entry of an image in the index; add what it consists of to the blobs."""

    def blob(data: bytes, kind: str) -> dict[str, Any]:
        blobs[digest(data)] = data
        return {"mediaType": f"{_MEDIA}.{kind}", "digest": f"sha256:{digest(data)}", "size": len(data)}

    layer = blob(image.layer(), "layer.v1.tar")
    config = {
        **_PLATFORM,
        "config": {"Entrypoint": [f"/{next(iter(image.programs))}"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.manifest.v1+json",
        "config": blob(_json(config), "config.v1+json"),
        "layers": [layer],
    }
    return {
        **blob(_json(manifest), "manifest.v1+json"),
        "platform": _PLATFORM,
        "annotations": {"io.containerd.image.name": image.name},
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
