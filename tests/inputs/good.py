"""Inputs that look wrong and are not: a server that refused them would break somebody's manifests."""

from collections.abc import Iterator
from typing import Any

import yaml

from tests.inputs.hpas import SPEC, TARGET, hpa
from tests.inputs.input import (
    DRY_RUN,
    EVERYWHERE,
    HPAS,
    SCOPES,
    SERVERS,
    VPAS,
    YAML,
    Door,
    Input,
    Sent,
    created,
)  # fmt: skip
from tests.inputs.reviews import GOOD as REVIEWS
from tests.inputs.vpas import VPA
from tests.support.objects import cpu_metric, external_metric
from tests.unit.model.crds.objects import GONE, POLICY, SCOPE, changed


def _hpa(name: str, **spec: Any) -> Input:
    return Input(f"good HPA: {name}", created(HPAS, hpa(SPEC | spec)), None)


def _hpas() -> Iterator[Input]:
    yield _hpa("as it is")
    for amount in ("1", "1.5", "500m", "1e3", "1E3", "+5", "2Ki", ".5", "5.", 7, 0.5):
        yield _hpa(f"an average of {amount!r}", metrics=[_average(amount)])
    yield _hpa("the largest maximum", maxReplicas=2**31 - 1)
    yield _hpa("minimum and maximum the same", minReplicas=5)
    yield _hpa("zero replicas on an external metric", minReplicas=0)
    yield _hpa("a tolerance of 0", behavior={"scaleUp": {"tolerance": "0"}})
    yield _hpa("an empty behavior", behavior={})
    yield _hpa("a hole in behavior", behavior={"scaleUp": None})
    yield _hpa(
        "a metric's name of letters that are not ASCII", metrics=[external_metric("größe_名", average="1")]
    )
    yield _hpa("a utilization above 100", metrics=[cpu_metric(250)])
    yield _hpa("a custom target", scaleTargetRef=TARGET | {"apiVersion": "example.com/v1", "kind": "Fleet"})
    yield _hpa(
        "a selector of 32 labels",
        metrics=[external_metric("q", average="1", **{f"k{i}": "v" for i in range(32)})],
    )


def _average(amount: Any) -> Any:
    metric = external_metric("queue", average="10")
    metric["external"]["target"]["averageValue"] = amount
    return metric


def _others() -> Iterator[Input]:
    def vpa(name: str, body: Any, path: str = VPAS, doors: frozenset[Door] = EVERYWHERE) -> Input:
        return Input(f"good {body['kind']}: {name}", created(path, body), None, doors)

    yield vpa("as it is", VPA)
    yield vpa("without a policy", changed(VPA, "spec.resourcePolicy", GONE))
    yield vpa(
        "a least that equals the most", changed(VPA, f"{POLICY}.minAllowed", {"cpu": 2, "memory": "4Gi"})
    )
    other = changed(SCOPE, "metadata.name", "other")
    yield vpa("as it is", other, SCOPES)
    yield vpa(
        "of nodes", changed(other, "spec", {"nodeSelector": {"matchLabels": {"size": "large"}}}), SCOPES
    )
    text = yaml.safe_dump(hpa(SPEC)).encode()
    yield Input("good body: YAML", Sent("POST", HPAS, text, YAML, DRY_RUN), None)
    yield Input("good body: an unknown field", created(HPAS, hpa(SPEC | {"colour": 1})), None)
    merge = "application/merge-patch+json"
    yield Input("good patch: empty", Sent("PATCH", f"{HPAS}/kept", b"{}", merge, DRY_RUN), None, SERVERS)
    yield Input("good query: version 0", Sent("GET", HPAS, query=(("resourceVersion", "0"),)), None, SERVERS)
    yield Input("good query: an unknown option", Sent("GET", HPAS, query=(("colour", "red"),)), None, SERVERS)


GOOD = (*_hpas(), *_others(), *REVIEWS)
