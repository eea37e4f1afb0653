"""What holds for objects of every kind."""

from tests.lab.answers import APPLY, MERGE, Script, Step
from tests.lab.scripts.builders import APPS, CM, CORE, DEPLOY, TABLE, config_map, deployment

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
        Step("GET", f"{CM}/child", until=404),
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
        Step("GET", f"{CM}/lost", until=404),
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
