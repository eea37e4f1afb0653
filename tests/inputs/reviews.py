"""AdmissionReviews that are none, or of objects that may not be; as our webhooks get them from whoever calls."""

import json
from collections.abc import Iterator
from typing import Any

from tests.inputs.input import LAB_ONLY, Input, Refusal, Sent
from tests.inputs.vpas import VPA
from tests.unit.model.crds.objects import SCOPE, changed
from trimtab.model.vpa.webhooks import MUTATE_PODS, VALIDATE_SCOPES, VALIDATE_VPAS


def review(obj: Any, operation: str = "CREATE") -> bytes:
    """Return a review of an object."""
    request = {"uid": "u-1", "name": "it", "namespace": "shop", "operation": operation, "object": obj}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(body).encode()


def _sent(name: str, path: str, body: bytes, refusal: Refusal | None) -> Input:
    return Input(f"review: {name}", Sent("POST", path, body), refusal, LAB_ONLY)


def _bad() -> Iterator[Input]:
    yield _sent("{}", VALIDATE_VPAS, b"{}", Refusal("request"))
    yield _sent("nothing", VALIDATE_VPAS, b"", Refusal("", why="truncated"))
    yield _sent("null", VALIDATE_SCOPES, b"null", Refusal("", why="got `null`"))
    yield _sent("half of one", VALIDATE_SCOPES, review(SCOPE)[:-20], Refusal("", why="truncated"))
    yield _sent("100,000 brackets", VALIDATE_VPAS, b"[" * 100_000, Refusal("", why="nested too deep"))
    yield _sent(
        "a request that is text", VALIDATE_VPAS, b'{"request": "please"}', Refusal("request", "please")
    )
    yield _sent(
        "5 MiB",
        VALIDATE_VPAS,
        b'{"request":{"uid":"' + b"x" * (5 << 20) + b'"}}',
        Refusal("", why="larger than 4194304 bytes"),
    )
    yield _sent("no object", VALIDATE_VPAS, review(None), Refusal("", why="not null"))
    yield _sent(
        "an object that is text", VALIDATE_SCOPES, review("scope"), Refusal("", "scope", "must be an object")
    )
    wrong = changed(VPA, "spec.updatePolicy.updateMode", "Sometimes")
    yield _sent(
        "a VPA of an unknown mode",
        VALIDATE_VPAS,
        review(wrong),
        Refusal("spec.updatePolicy.updateMode", "Sometimes"),
    )
    wrong = changed(SCOPE, "spec.podSelector.matchExpressions.0.operator", "Like")
    yield _sent(
        "a scope of an unknown operator", VALIDATE_SCOPES, review(wrong), Refusal("spec.podSelector", "Like")
    )
    yield _sent(
        "another path",
        "/validate-everything",
        review(SCOPE),
        Refusal("", why="no webhook at /validate-everything; there are"),
    )


BAD = tuple(_bad())
GOOD = tuple(
    _sent(f"for pods, {name}", MUTATE_PODS, body, None)
    for name, body in (
        ("{}", b"{}"), ("null", b"null"), ("half of one", review({})[:-9]), ("100,000 brackets", b"[" * 100_000),
        ("an object that is text", review("pod")), ("a pod without containers", review({"metadata": {"name": "x"}})),
    )
)  # fmt: skip
