"""Resources of whole pods: LimitRanges, pod-level resources, claims and resizes beyond them."""

from typing import Any

from tests.lab.answers import JSON_PATCH, Script, Step
from tests.lab.scripts.builders import CORE, pod


def container(name: str = "main", **resources: Any) -> dict[str, Any]:
    return {"name": name, "image": "b:1", "resources": resources}


def both(cpu: str, limit: str | None = None) -> dict[str, Any]:
    return {"requests": {"cpu": cpu}, "limits": {"cpu": limit or cpu}}


def limit_range(name: str, *items: dict[str, Any]) -> Step:
    body = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name},
        "spec": {"limits": list(items)},
    }
    return Step("POST", f"{CORE}/limitranges", body)


def created(name: str, *containers: dict[str, Any], **spec: Any) -> Step:
    return Step("POST", f"{CORE}/pods", pod(name, containers=list(containers), **spec), query="dryRun=All")


def resized(name: str, cpu: str, kind: str = "requests") -> Step:
    patch = [{"op": "add", "path": f"/spec/containers/0/resources/{kind}/cpu", "value": cpu}]
    return Step("PATCH", f"{CORE}/pods/{name}/resize", patch, media=JSON_PATCH, ignored=("status",))


SIDECAR = {**container("side", **both("400m")), "restartPolicy": "Always"}
CLAIM = [{"name": "device", "resourceClaimTemplateName": "any"}]

CONTAINER_RANGE = Script(
    "pods under a LimitRange of containers",
    (
        limit_range(
            "c",
            {
                "type": "Container",
                "max": {"cpu": "2"},
                "min": {"cpu": "10m"},
                "maxLimitRequestRatio": {"cpu": "4"},
            },
        ),
        created("defaulted", container()),
        created("fits", container(**both("100m", "400m"))),
        created("ratio", container(**both("25m", "1"))),
        created("large", container(**both("1", "3"))),
        created("small", container(**both("5m"))),
        created("init", container(**both("100m")), initContainers=[container("first", **both("3"))]),
        Step("POST", f"{CORE}/pods", pod("r", containers=[container(**both("100m", "400m"))])),
        resized("r", "50m"),
        resized("r", "200m"),
    ),
)

POD_RANGE = Script(
    "pods under a LimitRange of pods",
    (
        limit_range("p", {"type": "Pod", "max": {"cpu": "2"}, "min": {"cpu": "500m"}}),
        created("unlimited", container(requests={"cpu": "1"})),
        created("small", container(**both("100m"))),
        created("fits", container(**both("1600m")), initContainers=[SIDECAR]),
        created("sidecar", container(**both("1900m")), initContainers=[SIDECAR]),
        created("level", container(**both("3")), resources=both("2", "3")),
    ),
)

POD_LEVEL = Script(
    "pods with resources of their own",
    (
        created("defaulted", container(**both("100m")), resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
        created("fits", container("a", **both("700m")), container("b", **both("300m")), resources=both("1")),
        created("sum", container("a", **both("700m")), container("b", **both("400m")), resources=both("1")),
        created("limit", container(**both("500m", "2")), resources=both("1")),
        Step(
            "POST", f"{CORE}/pods", pod("r", containers=[container(**both("100m", "1"))], resources=both("1"))
        ),
        resized("r", "900m"),
        resized("r", "2", "limits"),
    ),
)

CLASSES = Script(
    "resizes that would change more than sizes",
    (
        Step("POST", f"{CORE}/pods", pod("bare", containers=[container(requests={"memory": "1Gi"})])),
        Step(
            "POST",
            f"{CORE}/pods",
            pod(
                "claim",
                containers=[container(**both("1"), claims=[{"name": "device"}])],
                resourceClaims=CLAIM,
            ),
        ),
        resized("claim", "900m"),
        resized("bare", "100m"),
    ),
)
