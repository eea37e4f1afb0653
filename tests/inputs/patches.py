"""Patches that are none, do not fit, or would leave an object that may not be."""

import json
from collections.abc import Iterator
from typing import Any

from tests.inputs.input import DRY_RUN, HPAS, LAB_ONLY, SERVERS, VPAS, Door, Input, Refusal, Sent

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
KEPT = f"{HPAS}/kept"
SCALE = "/apis/apps/v1/namespaces/{ns}/deployments/web/scale"


def _patch(
    name: str, media: str, body: Any, refusal: Refusal, doors: frozenset[Door] = LAB_ONLY, path: str = KEPT
) -> Input:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    query = (*DRY_RUN, *((("fieldManager", "suite"),) if media == APPLY else ()))
    return Input(f"patch: {name}", Sent("PATCH", path, raw, media, query), refusal, doors)


def _merges() -> Iterator[Input]:
    most = "spec.maxReplicas"
    yield _patch("a maximum of 0", MERGE, {"spec": {"maxReplicas": 0}}, Refusal(most, 0), SERVERS)
    yield _patch("a maximum taken away", MERGE, {"spec": {"maxReplicas": None}}, Refusal(most), SERVERS)
    yield _patch("a spec that is text", MERGE, {"spec": "none"}, Refusal("spec", "none"), SERVERS)
    yield _patch("no spec any more", MERGE, {"spec": None}, Refusal("spec"), SERVERS)
    yield _patch("another name", MERGE, {"metadata": {"name": "other"}}, Refusal("name", "other"), SERVERS)
    yield _patch("another uid", MERGE, {"metadata": {"uid": "1-2-3"}}, Refusal("UID", "1-2-3"))
    yield _patch(
        "an old version", MERGE, {"metadata": {"resourceVersion": "1"}}, Refusal("kept", why="modified")
    )
    yield _patch("a list", MERGE, [1], Refusal("", why="not a list"))
    yield _patch("text", MERGE, "spec", Refusal("", why="not text"))
    yield _patch("half of one", MERGE, b'{"spec":', Refusal("", why="truncated"))
    yield _patch(
        "nested too deep",
        MERGE,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        Refusal("", why="deeper than 100 levels"),
    )
    mode = "spec.updatePolicy.updateMode"
    body = {"spec": {"updatePolicy": {"updateMode": "Never"}}}
    yield _patch("a mode that is none", MERGE, body, Refusal(mode, "Never"), SERVERS, f"{VPAS}/kept")


def _operations() -> Iterator[Input]:
    def one(name: str, refusal: Refusal, **operation: Any) -> Input:
        return _patch(name, JSON_PATCH, [operation], refusal)

    yield _patch(
        "no list of operations",
        JSON_PATCH,
        {"op": "add"},
        Refusal("", why="list of operations, not an object"),
    )
    yield _patch("an operation that is text", JSON_PATCH, ["add"], Refusal("", why="an object, not text"))
    yield _patch(
        "10,001 operations",
        JSON_PATCH,
        [{"op": "test", "path": "/kind", "value": "x"}] * 10_001,
        Refusal("operations", 10_001),
    )
    yield one(
        "an unknown operation",
        Refusal("operation", "multiply"),
        op="multiply",
        path="/spec/maxReplicas",
        value=2,
    )
    yield one("an operation without a path", Refusal("path"), op="add", value=1)
    yield one(
        "a pointer without a slash", Refusal("path", "spec/maxReplicas"), op="remove", path="spec/maxReplicas"
    )
    yield one("an add without a value", Refusal("/spec/maxReplicas"), op="add", path="/spec/maxReplicas")
    yield one(
        "a path that is not there",
        Refusal("/spec/nothing/here", "nothing"),
        op="replace",
        path="/spec/nothing/here",
        value=1,
    )
    yield one("an index beyond the end", Refusal("/spec/metrics/7", "7"), op="remove", path="/spec/metrics/7")
    yield one(
        "an index that is none",
        Refusal("/spec/metrics/first", "first"),
        op="replace",
        path="/spec/metrics/first",
        value={},
    )
    yield one(
        "a test that fails", Refusal("/spec/maxReplicas"), op="test", path="/spec/maxReplicas", value=77
    )
    yield one("the whole object removed", Refusal("", why="cannot be removed"), op="remove", path="")
    yield one(
        "a move from nowhere",
        Refusal("/spec/nothing", "nothing"),
        op="move",
        path="/spec/x",
        **{"from": "/spec/nothing"},
    )
    grow = [{"op": "copy", "from": "/spec", "path": f"/spec/metrics/0/x{index}"} for index in range(40)]
    yield _patch("copies of copies", JSON_PATCH, grow, Refusal("", why="more than 3145728 bytes"))


def _others() -> Iterator[Input]:
    yield _patch(
        "strategic, on a custom resource", STRATEGIC, {"spec": {}}, Refusal("", why="accepted media types")
    )
    yield _patch("apply of broken YAML", APPLY, b"spec: [", Refusal("", why="flow node"))
    yield _patch("apply without a kind", APPLY, {"spec": {}}, Refusal("kind"))
    managed = {
        "apiVersion": "autoscaling.trimtab.dev/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"managedFields": [{}]},
    }
    yield _patch("apply of managedFields", APPLY, managed, Refusal("metadata.managedFields"))
    wrong = Refusal("spec.replicas", -1)
    yield _patch("a scale below zero", MERGE, {"spec": {"replicas": -1}}, wrong, SERVERS, SCALE)
    yield _patch(
        "a scale that is text",
        MERGE,
        {"spec": {"replicas": "many"}},
        Refusal("spec.replicas", "many"),
        LAB_ONLY,
        SCALE,
    )
    yield _patch(
        "a scale of 2^31",
        MERGE,
        {"spec": {"replicas": 2**31}},
        Refusal("spec.replicas", 2**31),
        LAB_ONLY,
        SCALE,
    )


BAD = (*_merges(), *_operations(), *_others())
