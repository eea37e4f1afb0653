"""Custom resources, from definition to scale."""

from typing import Any

from tests.lab.answers import APPLY, MERGE, STRATEGIC, Script, Step
from tests.lab.scripts.builders import TABLE

CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/{ns}.example.com/v1/namespaces/{ns}/widgets"
WIDGET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "x-kubernetes-validations": [
                {"rule": "self.size <= self.most", "message": "size must not exceed most"}
            ],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 100},
                "most": {"type": "integer", "default": 10},
                "mode": {"type": "string", "enum": ["Off", "On"], "default": "On"},
                "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
                "ratio": {"type": "number"},
                "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
                "tags": {
                    "type": "array",
                    "items": {"type": "string"},
                    "maxItems": 2,
                    "x-kubernetes-list-type": "set",
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "port": {
                    "x-kubernetes-int-or-string": True,
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                },
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["id"],
                    "items": {
                        "type": "object",
                        "required": ["id"],
                        "properties": {"id": {"type": "string"}, "n": {"type": "integer"}},
                    },
                },
                "when": {"type": "string", "format": "date-time"},
                "maybe": {"type": "string", "nullable": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
        },
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.{ns}.example.com"},
    "spec": {
        "group": "{ns}.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd{ns}"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": WIDGET_SCHEMA},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.size",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    },
}


def widget(name: str, /, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "{ns}.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def bad(**spec: Any) -> Step:
    return Step("POST", WIDGETS, widget("bad", size=1, **spec))


CUSTOM = Script(
    "custom resources",
    (
        Step("POST", CRD_PATH, DEFINITION, ignored=("status",)),
        Step("GET", f"{CRD_PATH}/widgets.{{ns}}.example.com", wait="Established", ignored=("status",)),
        Step("POST", WIDGETS, widget("a", size=3, unknown="x", free={"any": [1]}, maybe=None)),
        Step("POST", WIDGETS, widget("b", size=3, unknown="x"), query="fieldValidation=Strict"),
        Step("POST", WIDGETS, {**widget("b"), "spec": {}}),
        Step("POST", WIDGETS, {**widget("b"), "spec": "text"}, ignored=("message", "details")),
        Step("POST", WIDGETS, widget("b", size=0)),
        Step("POST", WIDGETS, widget("b", size=101, most=200)),
        Step("POST", WIDGETS, widget("b", size="3"), ignored=("message", "details")),
        bad(mode="Maybe"),
        bad(name="x"),
        bad(name="toolong"),
        bad(name="UP"),
        bad(tags=["a", "a"]),
        bad(tags=["a", "b", "c"]),
        bad(map={"a": "b"}),
        bad(parts=[{"id": "1"}, {"id": "1"}]),
        bad(parts=[{"n": 1}]),
        bad(when="yesterday"),
        bad(mode=5),
        Step("PATCH", f"{WIDGETS}/a", {"spec": {"size": 4}}, media=MERGE),
        Step("PATCH", f"{WIDGETS}/a", {"spec": {"fixed": "one"}}, media=MERGE),
        Step("PATCH", f"{WIDGETS}/a", {"spec": {"size": 4}}, media=STRATEGIC),
        Step(
            "PATCH",
            f"{WIDGETS}/a/status",
            {"status": {"replicas": 2, "selector": "a=b"}, "spec": {"size": 9}},
            media=MERGE,
        ),
        Step("GET", f"{WIDGETS}/a/scale"),
        Step("PATCH", f"{WIDGETS}/a/scale", {"spec": {"replicas": 7}}, media=MERGE),
        Step("GET", f"{WIDGETS}/a"),
        Step("GET", WIDGETS),
        Step("GET", WIDGETS, accept=TABLE),
        Step(
            "PATCH",
            f"{WIDGETS}/z",
            widget("z", size=2, parts=[{"id": "1", "n": 1}]),
            query="fieldManager=one",
            media=APPLY,
        ),
        Step(
            "PATCH",
            f"{WIDGETS}/z",
            widget("z", size=2, parts=[{"id": "2", "n": 1}]),
            query="fieldManager=two",
            media=APPLY,
        ),
        Step(
            "PATCH",
            f"{WIDGETS}/z",
            widget("z", size=3, parts=[{"id": "2", "n": 1}]),
            query="fieldManager=two",
            media=APPLY,
        ),
        Step("GET", f"{WIDGETS}/z"),
        Step("POST", CRD_PATH, {**DEFINITION, "metadata": {"name": "other.{ns}.example.com"}}),
        Step(
            "DELETE",
            f"{CRD_PATH}/widgets.{{ns}}.example.com",
            ignored=("status", "metadata", "spec", "details", "kind", "apiVersion"),
        ),
    ),
)
