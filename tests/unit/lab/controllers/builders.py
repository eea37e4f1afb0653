"""Manifests with sane defaults, and a way to run a scene on an embedded cluster in virtual time."""

from collections.abc import Awaitable, Callable
from typing import Any

from trimtab.clock import VirtualClock
from trimtab.model.core.pod import PodCondition
from trimtab_lab.controllers.kinds import PODS, LabPod
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.embedded import EmbeddedCluster

Scene = Callable[[EmbeddedCluster], Awaitable[Any]]


def virtual(
    setting: DataPlaneConfig | None = None, *, seed: int = 1
) -> Callable[[Scene], Callable[[], None]]:
    """Turn a scene into a test that runs it on a fresh cluster, without sleeping."""

    def decorate(scene: Scene) -> Callable[[], None]:
        def test() -> None:
            play(scene, setting, seed=seed)

        test.__name__, test.__doc__ = scene.__name__, scene.__doc__
        test.__module__ = scene.__module__
        return test

    return decorate


def play(scene: Scene, setting: DataPlaneConfig | None = None, *, seed: int = 1) -> Any:
    clock = VirtualClock()

    async def main() -> Any:
        async with EmbeddedCluster(clock, seed=seed, setting=setting or DataPlaneConfig()) as cluster:
            return await scene(cluster)

    return clock.run(main())


def workload(
    kind: str, name: str, *, image: str = "web:1", pod: Any = None, annotations: Any = None, **spec: Any
) -> Any:
    labels = {"app": name}
    container = {
        "name": "app",
        "image": image,
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    template = {
        "metadata": {"labels": labels, "annotations": annotations or {}},
        "spec": {"containers": [container], **(pod or {})},
    }
    body: dict[str, Any] = {"template": template, **spec}
    if kind != "Job":
        body["selector"] = labels if kind == "ReplicationController" else {"matchLabels": labels}
    api_version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": body}


def resources(manifest: Any, requests: Any = None, limits: Any = None) -> Any:
    """Give the container of a workload other resources."""
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {
        key: value for key, value in (("requests", requests), ("limits", limits)) if value
    }
    return manifest


async def pods(cluster: EmbeddedCluster, app: str | None = None) -> list[LabPod]:
    """Return the pods of an app, by name."""
    listing = await cluster.client.list(PODS)
    return [pod for pod in listing.items if app in (None, pod.metadata.labels.get("app"))]


async def names(cluster: EmbeddedCluster, app: str | None = None) -> list[str]:
    return [pod.metadata.name for pod in await pods(cluster, app)]


def condition(pod: LabPod, kind: str) -> PodCondition:
    """Return a condition that must be there."""
    found = pod.status.condition(kind)
    assert found is not None, f"{pod.metadata.name} has no condition {kind}"
    return found


def images(found: list[LabPod]) -> list[str]:
    return [pod.spec.containers[0].image for pod in found]


def watch_pods(cluster: EmbeddedCluster, note: Callable[[str, LabPod], None]) -> None:
    """Call `note` with what happened to each pod, in order."""
    cluster.side.caches.pods.subscribe(
        lambda delta: note(delta.change.value, delta.object) if delta.new or delta.old else None
    )
