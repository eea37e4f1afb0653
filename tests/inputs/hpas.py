"""HPAs that must be refused, each with the path of the field that is wrong.

kube-apiserver 1.36 stores some of them in autoscaling/v2 (control characters and 64 KiB in a metric's name, selectors that are none,
ten thousand requirements, `1e1000000000`); ours refuses all.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.inputs.input import AT_PATH, GONE, HPAS, OURS, Input, Refusal, created, value_at
from tests.support.objects import cpu_metric, external_metric, object_metric, pods_metric
from trimtab.cluster.resource import Json

TARGET: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SPEC: Json = {"scaleTargetRef": TARGET, "maxReplicas": 5, "metrics": [external_metric("queue", average="10")]}


def hpa(spec: Json) -> Json:
    """Return an HPA of our kind."""
    kind = {"apiVersion": "autoscaling.trimtab.dev/v2", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": {"name": "web"}, "spec": spec}


def _bad(name: str, field: str, spec: Json, shown: Any = AT_PATH) -> Input:
    body = hpa(spec)
    refusal = Refusal(field, value_at(body, field) if shown is AT_PATH else shown)
    return Input(f"HPA: {name}", created(HPAS, body), refusal)


def _spec(name: str, field: str, shown: Any = AT_PATH, **spec: Any) -> Input:
    return _bad(name, field, SPEC | spec, shown)


def _external(name: str, field: str, shown: Any = AT_PATH, **external: Any) -> Input:
    metric = {"type": "External", "external": external_metric("queue", average="10")["external"] | external}
    return _spec(name, f"spec.metrics[0].external.{field}", shown, metrics=[metric])


def _behavior(name: str, field: str, **rules: Any) -> Input:
    return _spec(name, f"spec.behavior.scaleUp.{field}", behavior={"scaleUp": rules})


def _policy(name: str, field: str, **policy: Any) -> Input:
    usual = {"type": "Pods", "value": 1, "periodSeconds": 15}
    return _behavior(f"a policy with {name}", f"policies[0].{field}", policies=[usual | policy])


def _replicas() -> Iterator[Input]:
    for least in (0, -1, -(2**31)):
        yield _spec(f"a maximum of {least}", "spec.maxReplicas", maxReplicas=least)
    odd: tuple[Any, ...] = ("5", 1.5, True, 2**63, [5], {"a": 5})
    for high in odd:
        one = _spec(f"a maximum that is {high!r}", "spec.maxReplicas", maxReplicas=high)
        # Of these kube-apiserver's schema says "must be of type int32", but not what they are instead.
        yield replace(one, doors=OURS) if isinstance(high, bool | dict) else one
    yield _bad("no maximum", "spec.maxReplicas", {k: v for k, v in SPEC.items() if k != "maxReplicas"})
    for low in (-1, "1", 1.5, 2**40):
        yield _spec(f"a minimum that is {low!r}", "spec.minReplicas", minReplicas=low)
    yield _spec("a minimum above the maximum", "spec.maxReplicas", GONE, minReplicas=6)
    cpu: Json = {"metrics": [cpu_metric(50)], "minReplicas": 0}
    yield _spec("zero on CPU alone", "spec.metrics", GONE, **cpu)


def _targets() -> Iterator[Input]:
    yield _bad("no target", "spec.scaleTargetRef", {k: v for k, v in SPEC.items() if k != "scaleTargetRef"})
    for field in ("kind", "name"):
        reference = {k: v for k, v in TARGET.items() if k != field}
        yield _spec(f"a target without {field}", f"spec.scaleTargetRef.{field}", scaleTargetRef=reference)
        for value in ("", "a/b", "a%2fb", "..", "a\nb", "x" * 65_536):
            named = f"{value[:8]!r}" if len(value) < 9 else "64 KiB"
            yield _spec(
                f"a target whose {field} is {named}",
                f"spec.scaleTargetRef.{field}",
                scaleTargetRef=TARGET | {field: value},
            )
    yield _spec(
        "a target without a group",
        "spec.scaleTargetRef.apiVersion",
        GONE,
        scaleTargetRef=TARGET | {"apiVersion": "v1"},
    )
    shapes: tuple[Any, ...] = ("Deployment/web", 7, ["web"])
    for shape in shapes:
        yield _spec(f"a target that is {shape!r}", "spec.scaleTargetRef", scaleTargetRef=shape)


def _metric_sources() -> Iterator[Input]:
    yield _spec("an unknown type", "spec.metrics[0]", "CheddarCheese", metrics=[{"type": "CheddarCheese"}])
    yield _spec("no type", "spec.metrics[0].type", metrics=[{"external": SPEC["metrics"][0]["external"]}])
    yield _spec("a type without its source", "spec.metrics[0]", GONE, metrics=[{"type": "Pods"}])
    both = external_metric("queue", average="10") | {"pods": pods_metric("rate", "1")["pods"]}
    yield _spec("two sources", "spec.metrics[0]", GONE, metrics=[both])
    yield _spec("metrics that are no list", "spec.metrics", metrics={"type": "External"})
    yield _spec("more metrics than anybody needs", "spec.metrics", metrics=SPEC["metrics"] * 51)
    described = object_metric("hits", ("v1", "Service", ""), value="1")
    yield _spec("an object without a name", "spec.metrics[0].object.describedObject", "", metrics=[described])
    container = {"name": "cpu", "container": "Not_A_Label", "target": cpu_metric(5)["resource"]["target"]}
    wrong = [{"type": "ContainerResource", "containerResource": container}]
    yield _spec("a container's name", "spec.metrics[0].containerResource.container", metrics=wrong)
    for name in ("", ".", "..", "a/b", "a%b", "a\x01b", "a\x7fb", "q" * 65_536):
        shown = repr(name) if len(name) < 9 else "64 KiB"
        yield _external(f"a metric called {shown}", "metric.name", metric={"name": name})


def _metric_targets() -> Iterator[Input]:
    amounts = (
        "0",
        "-1",
        " 10",
        "10 ",
        "ten",
        "1e1000000000",
        "1e33",
        "1_000",
        "0x10",
        "١٠",
        "9" * 65,
        "NaN",
        "Inf",
    )
    for amount in amounts:
        shown = amount if len(amount) < 20 else "65 digits"
        target = {"type": "AverageValue", "averageValue": amount}
        yield _external(f"an average of {shown!r}", "target.averageValue", target=target)
    yield _external("neither value nor average", "target", GONE, target={"type": "Value"})
    both = {"type": "Value", "value": "1", "averageValue": "1"}
    yield _external("value and average", "target", GONE, target=both)
    yield _external("an unknown kind of target", "target.type", target={"type": "Median", "value": "1"})
    yield _external("no kind of target", "target.type", target={"value": "1"})
    for percent in (0, -5, "50"):
        metric = cpu_metric(50)
        metric["resource"]["target"]["averageUtilization"] = percent
        field = "spec.metrics[0].resource.target.averageUtilization"
        yield _spec(f"a utilization of {percent!r}", field, metrics=[metric])


def _selectors() -> Iterator[Input]:
    def expression(**parts: Any) -> Json:
        return {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]} | parts]}

    many = {f"key{index}": "x" for index in range(10_000)}
    bad: dict[str, tuple[Json, Any]] = {
        "an unknown operator": (expression(operator="Near"), "Near"),
        "In without values": (expression(values=[]), GONE),
        "Exists with values": (expression(operator="Exists"), ["b"]),
        "a key with a space": (expression(key="a b"), "a b"),
        "a value with a space": (expression(values=["b c"]), "b c"),
        "a value of 64 characters": ({"matchLabels": {"a": "x" * 64}}, "x" * 64),
        "a label's key with a space": ({"matchLabels": {"a b": "c"}}, GONE),
        "10,000 requirements": ({"matchLabels": many}, many),
    }
    for name, (selector, shown) in bad.items():
        metric = {"name": "q", "selector": selector}
        yield _external(f"a selector with {name}", "metric.selector", shown, metric=metric)


def _behaviors() -> Iterator[Input]:
    for window in (-1, 3601, "60"):
        yield _behavior(
            f"a window of {window!r}", "stabilizationWindowSeconds", stabilizationWindowSeconds=window
        )
    for tolerance in ("-0.1", "a lot", "1e400", " 0.1"):
        yield _behavior(f"a tolerance of {tolerance!r}", "tolerance", tolerance=tolerance)
    yield _behavior("a choice that is none", "selectPolicy", selectPolicy="Median")
    for value in (0, -1, 2**31):
        yield _policy(f"a value of {value}", "value", value=value)
    for seconds in (0, -1, 1801):
        yield _policy(f"a period of {seconds}", "periodSeconds", periodSeconds=seconds)
    yield _policy("an unknown type", "type", type="Nodes")
    yield _spec("an unknown strategy", "spec.selectionStrategy", selectionStrategy="OwnerReferences")
    yield _spec("an empty strategy", "spec.selectionStrategy", selectionStrategy="")


BAD = (
    *_replicas(), *_targets(), *_metric_sources(), *_metric_targets(), *_selectors(), *_behaviors(),
)  # fmt: skip
