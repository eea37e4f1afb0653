"""The scripts of `answers`: what clients do, right and wrong."""

from typing import Any

from tests.lab.answers import APPLY, JSON_PATCH, MERGE, STRATEGIC, Script, Step

CORE = "/api/v1/namespaces/{ns}"
APPS = "/apis/apps/v1/namespaces/{ns}"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}], **spec},
    }


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def hpa(name: str, **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, **spec},
    }


CM = f"{CORE}/configmaps"
CRUD = Script(
    "create, read, update and delete",
    (
        Step("POST", CM, config_map("a", x="1")),
        Step("POST", CM, config_map("a", x="1")),
        Step("GET", f"{CM}/a"),
        Step("GET", f"{CM}/missing"),
        Step("PUT", f"{CM}/a", config_map("a", x="2")),
        Step("PUT", f"{CM}/a", {**config_map("a"), "metadata": {"name": "a", "resourceVersion": "1"}}),
        Step("PUT", f"{CM}/a", config_map("b")),
        Step("PUT", f"{CM}/missing", config_map("missing")),
        Step(
            "POST",
            CM,
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "q"}},
            ignored=("message",),
        ),
        Step(
            "POST",
            CM,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "q", "namespace": "other"}},
        ),
        Step("POST", CM, "{not json", ignored=("message",)),
        Step("POST", CM, "[]", ignored=("message",)),
        Step("POST", CM, config_map("a", x="1"), media="text/plain"),
        Step("POST", CM, config_map("Bad_Name")),
        Step("POST", CM, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
        Step("POST", CM, {**config_map("l"), "metadata": {"name": "l", "labels": {"a b": "c d"}}}),
        Step("POST", "/api/v1/namespaces/nowhere-{ns}/configmaps", config_map("a")),
        Step("POST", CM, {**config_map("v"), "metadata": {"name": "v", "resourceVersion": "5"}}),
        Step("DELETE", f"{CM}/a"),
        Step("DELETE", f"{CM}/a"),
        Step("GET", f"{CORE}/nothings"),
        Step("GET", "/apis/nowhere.example.com/v1/things"),
        Step("PUT", CM, config_map("a")),
        Step("POST", f"{CM}/a", config_map("a")),
    ),
)
FIELD_VALIDATION = Script(
    "unknown, duplicate and mistyped fields",
    (
        Step("POST", CM, {**config_map("w"), "colour": "red"}, query="fieldValidation=Strict"),
        Step("POST", CM, {**config_map("w"), "colour": "red"}, query="fieldValidation=Warn"),
        Step("POST", CM, {**config_map("w2"), "colour": "red"}, query="fieldValidation=Ignore"),
        Step(
            "POST", CM, '{"metadata":{"name":"d"},"data":{"a":"1","a":"2"}}', query="fieldValidation=Strict"
        ),
        Step("POST", f"{APPS}/deployments", deployment("t", replicas="three")),
        Step("POST", f"{APPS}/deployments", {**deployment("t"), "metadata": {"name": "t", "labels": "none"}}),
        Step("POST", CM, {**config_map("m"), "data": {"n": 5}}),
        Step("POST", CM, config_map("dry", x="1"), query="dryRun=All"),
        Step("GET", f"{CM}/dry"),
        Step("POST", CM, config_map("dry", x="1"), query="dryRun=Some"),
    ),
)
LISTS = Script(
    "lists, pages and selectors",
    (
        *(
            Step(
                "POST",
                CM,
                {**config_map(f"c{i}"), "metadata": {"name": f"c{i}", "labels": {"n": str(i % 2)}}},
            )
            for i in range(4)
        ),
        Step("GET", CM),
        Step("GET", CM, query="limit=3"),
        Step("GET", CM, query="labelSelector=n%3D1"),
        Step("GET", CM, query="labelSelector=n+in+%280%29%2Cn%21%3D1"),
        Step("GET", CM, query="labelSelector=n+in+%280"),
        Step("GET", CM, query="fieldSelector=metadata.name%3Dc2"),
        Step("GET", CM, query="fieldSelector=data.x%3Dc2"),
        Step("GET", CM, query="fieldSelector=nonsense"),
        Step("GET", CM, query="resourceVersion=nonsense"),
        Step("GET", CM, query="resourceVersionMatch=Exact"),
        Step("GET", CM, query="resourceVersion=0&resourceVersionMatch=Exact"),
        Step("GET", CM, query="resourceVersion=1&resourceVersionMatch=Sometimes"),
        Step("GET", CM, query="limit=2&continue=garbage", ignored=("message",)),
        Step("GET", CM, query="limit=x"),
        Step("GET", CM, query="watch=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"),
        Step("GET", CM, query="watch=true&sendInitialEvents=true&timeoutSeconds=1"),
        Step("GET", CM, accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
        Step("GET", CM, accept="image/png", ignored=("message",)),
        Step("GET", CM, accept=TABLE, ignored=("columnDefinitions", "rows")),
        Step("DELETE", CM, query="labelSelector=n%3D1"),
        Step("GET", CM),
    ),
)
DEPLOY = f"{APPS}/deployments"
WORKLOADS = Script(
    "deployments: defaults, validation, scale, status",
    (
        Step("POST", DEPLOY, deployment("web", replicas=2)),
        Step("GET", f"{DEPLOY}/web/scale"),
        Step("PATCH", f"{DEPLOY}/web/scale", {"spec": {"replicas": 5}}, media=MERGE),
        Step("PATCH", f"{DEPLOY}/web/scale", {"spec": {"replicas": -1}}, media=MERGE),
        Step("GET", f"{DEPLOY}/web"),
        Step("PATCH", f"{DEPLOY}/web/status", {"status": {"replicas": 5, "readyReplicas": 1}}, media=MERGE),
        Step("PATCH", f"{DEPLOY}/web", {"status": {"replicas": 9}}, media=MERGE),
        Step(
            "PATCH", f"{DEPLOY}/web", {"spec": {"selector": {"matchLabels": {"app": "other"}}}}, media=MERGE
        ),
        Step("POST", DEPLOY, {**deployment("bad"), "spec": {}}),
        Step("POST", DEPLOY, deployment("bad", selector={"matchLabels": {"x": "y"}})),
        Step("POST", DEPLOY, deployment("bad", replicas=-1)),
        Step("POST", DEPLOY, deployment("bad", strategy={"type": "Sometimes"})),
        Step(
            "PATCH",
            f"{DEPLOY}/web",
            {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "b"}]}}}},
            media=STRATEGIC,
        ),
        Step(
            "PATCH",
            f"{DEPLOY}/web",
            {"spec": {"template": {"spec": {"containers": [{"name": "main", "$patch": "delete"}]}}}},
            media=STRATEGIC,
        ),
        Step(
            "PATCH",
            f"{DEPLOY}/web",
            [{"op": "replace", "path": "/spec/replicas", "value": 3}],
            media=JSON_PATCH,
        ),
        Step(
            "PATCH",
            f"{DEPLOY}/web",
            [{"op": "test", "path": "/spec/replicas", "value": 9}],
            media=JSON_PATCH,
            ignored=("details",),
        ),
        Step(
            "PATCH",
            f"{DEPLOY}/web",
            [{"op": "remove", "path": "/spec/nothing"}],
            media=JSON_PATCH,
            ignored=("details",),
        ),
        Step("PATCH", f"{DEPLOY}/web", {"op": "remove"}, media=JSON_PATCH, ignored=("message",)),
        Step("PATCH", f"{DEPLOY}/web", {"spec": {"replicas": None}}, media=MERGE),
        Step("PATCH", f"{DEPLOY}/web", {"spec": {}}, media="application/json"),
        Step("DELETE", f"{DEPLOY}/web"),
    ),
)
OTHERS = Script(
    "defaults of other kinds",
    (
        Step("POST", f"{CORE}/pods", pod("p")),
        Step(
            "PATCH",
            f"{CORE}/pods/p",
            {"spec": {"nodeName": "n"}},
            media=MERGE,
            ignored=("message", "details"),
        ),
        Step(
            "POST",
            f"{CORE}/pods/p/binding",
            {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}},
        ),
        Step(
            "POST",
            f"{CORE}/pods/p/binding",
            {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n2"}},
        ),
        Step("GET", f"{CORE}/pods/p"),
        Step(
            "GET",
            f"{CORE}/pods",
            query="fieldSelector=spec.nodeName%3Dn1",
            accept=TABLE,
            ignored=("columnDefinitions",),
        ),
        Step("DELETE", f"{CORE}/pods/p"),
        Step("DELETE", f"{CORE}/pods/p", query="gracePeriodSeconds=0"),
        Step("POST", f"{CORE}/pods", pod("q", containers=[])),
        Step("POST", f"{CORE}/pods", pod("q", containers=[{"name": "A", "image": ""}])),
        Step("POST", f"{CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
        Step("POST", f"{CORE}/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}}),
        Step(
            "POST",
            f"{CORE}/services",
            {"metadata": {"name": "e"}, "spec": {"type": "ExternalName", "externalName": "localhost"}},
        ),
        Step(
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
            {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
        ),
        Step(
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l",
            {"metadata": {"name": "l"}, "spec": {"holderIdentity": "you"}},
        ),
        Step(
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
            {"metadata": {"name": "m"}, "spec": {"leaseDurationSeconds": 0}},
        ),
        Step("POST", f"{APPS}/replicasets", {**deployment("rs"), "kind": "ReplicaSet"}),
        Step("POST", f"{APPS}/statefulsets", {**deployment("ss", serviceName="s"), "kind": "StatefulSet"}),
        Step("PATCH", f"{APPS}/statefulsets/ss", {"spec": {"serviceName": "t"}}, media=MERGE),
        Step("POST", f"{APPS}/daemonsets", {**deployment("ds"), "kind": "DaemonSet"}),
        Step(
            "POST",
            "/apis/batch/v1/namespaces/{ns}/jobs",
            {
                "metadata": {"name": "j"},
                "spec": {
                    "template": {
                        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "b"}]}
                    }
                },
            },
        ),
        Step(
            "POST",
            "/apis/batch/v1/namespaces/{ns}/cronjobs",
            {
                "metadata": {"name": "cj"},
                "spec": {
                    "schedule": "* * * * *",
                    "jobTemplate": {
                        "spec": {
                            "template": {
                                "spec": {
                                    "restartPolicy": "Never",
                                    "containers": [{"name": "c", "image": "b"}],
                                }
                            }
                        }
                    },
                },
            },
        ),
        Step(
            "POST",
            "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
            {
                "metadata": {"name": "pdb"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}},
            },
        ),
        Step(
            "POST",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
            {
                "metadata": {"name": "r"},
                "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
            },
        ),
        Step(
            "POST",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
            {
                "metadata": {"name": "r"},
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "User", "name": "eve"}],
            },
        ),
    ),
)
AUTOSCALING = "/apis/autoscaling/{v}/namespaces/{{ns}}/horizontalpodautoscalers"
V1, V2 = AUTOSCALING.format(v="v1"), AUTOSCALING.format(v="v2")
HPAS = Script(
    "autoscalers in both versions",
    (
        Step("POST", V2, hpa("web")),
        Step("GET", f"{V1}/web"),
        Step("PATCH", f"{V1}/web", {"spec": {"targetCPUUtilizationPercentage": 60}}, media=MERGE),
        Step("GET", f"{V2}/web"),
        Step("POST", V2, hpa("bad", maxReplicas=0)),
        Step("POST", V2, hpa("bad", minReplicas=9)),
        Step("POST", V2, hpa("tol", behavior={"scaleUp": {"tolerance": "0.3"}})),
        Step(
            "PATCH", f"{V2}/web/status", {"status": {"currentReplicas": 1, "desiredReplicas": 2}}, media=MERGE
        ),
        Step("GET", f"{V1}/web"),
        Step("GET", V1),
    ),
)
EVENTS = Script(
    "events of both groups",
    (
        Step(
            "POST",
            f"{CORE}/events",
            {
                "metadata": {"name": "e"},
                "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}"},
                "reason": "R",
                "message": "m",
                "type": "Normal",
            },
        ),
        Step("GET", "/apis/events.k8s.io/v1/namespaces/{ns}/events/e"),
        Step("GET", f"{CORE}/events", query="fieldSelector=involvedObject.name%3Dp%2Ctype%3DNormal"),
    ),
)
APPLY_SCRIPT = Script(
    "server-side apply",
    (
        Step("PATCH", f"{CM}/a", config_map("a", x="1", y="1"), query="fieldManager=one", media=APPLY),
        Step("PATCH", f"{CM}/a", config_map("a", x="2"), query="fieldManager=two", media=APPLY),
        Step("PATCH", f"{CM}/a", config_map("a", x="2"), query="fieldManager=two&force=true", media=APPLY),
        Step("PATCH", f"{CM}/a", config_map("a"), query="fieldManager=one", media=APPLY),
        Step("GET", f"{CM}/a"),
        Step("PATCH", f"{CM}/a", config_map("a", x="2"), media=APPLY),
        Step("PATCH", f"{DEPLOY}/d", deployment("d", replicas=3), query="fieldManager=one", media=APPLY),
        Step("PATCH", f"{DEPLOY}/d", {"spec": {"replicas": 4}}, query="fieldManager=two", media=MERGE),
        Step("PATCH", f"{DEPLOY}/d", deployment("d", replicas=3), query="fieldManager=one", media=APPLY),
    ),
)
FINALIZERS = Script(
    "finalizers and preconditions",
    (
        Step("POST", CM, {**config_map("f"), "metadata": {"name": "f", "finalizers": ["example.com/x"]}}),
        Step("DELETE", f"{CM}/f"),
        Step("GET", f"{CM}/f"),
        Step(
            "PATCH",
            f"{CM}/f",
            {"metadata": {"finalizers": ["example.com/x", "example.com/y"]}},
            media=MERGE,
            ignored=("details",),
        ),
        Step("PATCH", f"{CM}/f", {"metadata": {"finalizers": None}}, media=MERGE),
        Step("GET", f"{CM}/f"),
        Step("POST", CM, {**config_map("g"), "metadata": {"name": "g", "finalizers": ["x"]}}),
        Step("POST", CM, config_map("h")),
        Step("DELETE", f"{CM}/h", {"preconditions": {"uid": "wrong"}}),
        Step("DELETE", f"{CM}/h", {"propagationPolicy": "Sideways"}),
        Step("DELETE", f"{CM}/h", {"gracePeriodSeconds": -5}),
        Step("POST", CM, config_map("i")),
        Step("DELETE", f"{CM}/i", {"propagationPolicy": "Foreground"}, ignored=("metadata",)),
    ),
)
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
        Step("POST", WIDGETS, widget("b", size=11)),
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
        Step("PATCH", f"{WIDGETS}/a", {"spec": {"fixed": "two"}}, media=MERGE),
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
RBAC_PATH = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}"
REVIEW = "/apis/authorization.k8s.io/v1"


def may(user: str, **about: str) -> Step:
    spec = {"user": user, "resourceAttributes": {"namespace": "{ns}", **about}}
    return Step("POST", f"{REVIEW}/subjectaccessreviews", {"spec": spec}, ignored=("status.reason",))


ACCESS = Script(
    "roles and reviews",
    (
        Step(
            "POST",
            f"{RBAC_PATH}/roles",
            {
                "metadata": {"name": "reader"},
                "rules": [
                    {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
                    {
                        "apiGroups": [""],
                        "resources": ["configmaps"],
                        "resourceNames": ["one"],
                        "verbs": ["*"],
                    },
                ],
            },
        ),
        Step(
            "POST",
            f"{RBAC_PATH}/rolebindings",
            {
                "metadata": {"name": "eve"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
                "subjects": [{"kind": "User", "name": "eve"}],
            },
        ),
        may("eve", verb="get", resource="pods"),
        may("eve", verb="get", resource="pods", subresource="log"),
        may("eve", verb="delete", resource="pods"),
        may("eve", verb="patch", resource="configmaps", name="one"),
        may("eve", verb="patch", resource="configmaps", name="two"),
        may("eve", verb="list", resource="deployments", group="apps"),
        Step("POST", f"{RBAC_PATH}/roles", {"metadata": {"name": "bad"}, "rules": [{"verbs": ["get"]}]}),
        Step(
            "POST",
            f"{RBAC_PATH}/rolebindings",
            {
                "metadata": {"name": "bad"},
                "roleRef": {"kind": "Boss", "name": "x"},
                "subjects": [{"kind": "ServiceAccount", "name": "x"}],
            },
        ),
        Step("PATCH", f"{RBAC_PATH}/rolebindings/eve", {"roleRef": {"name": "other"}}, media=MERGE),
        Step(
            "POST",
            f"{REVIEW}/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
            ignored=("status.reason",),
        ),
        Step(
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            {"spec": {"token": "wrong"}},
            ignored=("status.error",),
        ),
    ),
)
EVICTION = Script(
    "eviction without and with a budget",
    (
        Step("POST", f"{CORE}/pods", pod("a")),
        Step(
            "POST",
            f"{CORE}/pods/a/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}},
        ),
        Step("GET", f"{CORE}/pods/a"),
        Step(
            "POST",
            f"{CORE}/pods/none/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "none"}},
        ),
        Step("POST", f"{CORE}/pods", pod("b")),
        Step(
            "POST",
            "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
            {
                "metadata": {"name": "b"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "b"}}},
            },
        ),
        Step(
            "PATCH",
            f"{CORE}/pods/b/status",
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            media=MERGE,
            ignored=("status.conditions",),
        ),
        Step(
            "GET",
            "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b",
            settle=2,
            ignored=("status.conditions",),
        ),
        Step(
            "POST",
            f"{CORE}/pods/b/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}},
        ),
        Step(
            "PATCH",
            "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b",
            {"spec": {"minAvailable": 0}},
            media=MERGE,
            ignored=("status.conditions",),
        ),
        Step(
            "GET",
            "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b",
            settle=2,
            ignored=("status.conditions",),
        ),
        Step(
            "POST",
            f"{CORE}/pods/b/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}},
        ),
    ),
)
RESIZE = Script(
    "resize of a pod's resources",
    (
        Step(
            "POST",
            f"{CORE}/pods",
            pod(
                "r",
                containers=[
                    {
                        "name": "main",
                        "image": "b",
                        "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}},
                    }
                ],
            ),
        ),
        Step(
            "PATCH",
            f"{CORE}/pods/r/resize",
            {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "150m"}}}]}},
            media=STRATEGIC,
            ignored=("status",),
        ),
        Step(
            "PATCH",
            f"{CORE}/pods/r/resize",
            {"spec": {"containers": [{"name": "main", "image": "c"}]}},
            media=STRATEGIC,
            ignored=("message", "details"),
        ),
        Step(
            "PATCH",
            f"{CORE}/pods/r",
            {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "170m"}}}]}},
            media=STRATEGIC,
            ignored=("message", "details"),
        ),
        Step(
            "PATCH",
            f"{CORE}/pods/r",
            {"spec": {"containers": [{"name": "main", "image": "d:1"}]}},
            media=STRATEGIC,
        ),
        Step("GET", f"{CORE}/pods/r", ignored=("status",)),
    ),
)
WATCHES = Script(
    "watches that end by themselves",
    (
        Step("POST", CM, {**config_map("a"), "metadata": {"name": "a", "labels": {"n": "1"}}}),
        Step("GET", CM, query="watch=true&timeoutSeconds=1"),
        Step("GET", CM, query="watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dzz"),
        Step(
            "GET",
            CM,
            query="watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        ),
    ),
)
OWNERS = Script(
    "dependents follow their owner",
    (
        Step("POST", CM, config_map("owner")),
        Step("GET", f"{CM}/owner", keep="uid"),
        Step(
            "POST",
            CM,
            {
                **config_map("child"),
                "metadata": {
                    "name": "child",
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "{kept}"}
                    ],
                },
            },
        ),
        Step("DELETE", f"{CM}/owner", {"propagationPolicy": "Background"}),
        Step("GET", f"{CM}/child", settle=3),
        Step(
            "POST",
            CM,
            {
                **config_map("lost"),
                "metadata": {
                    "name": "lost",
                    "ownerReferences": [
                        {
                            "apiVersion": "v1",
                            "kind": "ConfigMap",
                            "name": "none",
                            "uid": "00000000-0000-4000-8000-000000000000",
                        }
                    ],
                },
            },
        ),
        Step("GET", f"{CM}/lost", settle=3),
        Step(
            "POST",
            CM,
            {
                **config_map("wrong"),
                "metadata": {"name": "wrong", "ownerReferences": [{"kind": "ConfigMap", "name": "none"}]},
            },
        ),
    ),
)
SCRIPTS = (
    CRUD,
    FIELD_VALIDATION,
    LISTS,
    WORKLOADS,
    OTHERS,
    HPAS,
    EVENTS,
    APPLY_SCRIPT,
    FINALIZERS,
    CUSTOM,
    ACCESS,
    EVICTION,
    RESIZE,
    WATCHES,
    OWNERS,
)
