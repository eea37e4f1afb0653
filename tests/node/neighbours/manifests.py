"""Reads the manifests in the source trees of other projects, and makes them run the image of the tests."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.node.neighbours.conftest import IMAGE


def objects_in(folder: Path, *patterns: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of manifests, without lists of files for kustomize."""
    for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
        for found in yaml.safe_load_all(path.read_text()):
            if found and "kustomize" not in found.get("apiVersion", "") and found.get("kind"):
                yield found


def with_our_image(deployment: dict[str, Any], program: str, *arguments: str) -> dict[str, Any]:
    """Return a Deployment whose container runs a program of the image, with more arguments."""
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    running = {
        **container,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": [f"/{program}"],
        "args": [*container.get("args", []), *arguments],
        # A guest of one CPU needs no reservations.
        "resources": {},
    }
    security = {**pod.get("securityContext", {}), "runAsUser": 65532}
    template = {
        **deployment["spec"]["template"],
        "spec": {**pod, "containers": [running], "securityContext": security},
    }
    return {**deployment, "spec": {**deployment["spec"], "template": template}}


def named(objects: Sequence[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    """Return the object of a kind and a name."""
    (found,) = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    return found
