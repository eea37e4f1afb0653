"""What is particular to built-in kinds: defaults, validation, tables."""

from tests.lab.answers import JSON_PATCH, MERGE, STRATEGIC, Script, Step
from tests.lab.scripts.builders import APPS, CORE, DEPLOY, RBAC_PATH, TABLE, V1, V2, deployment, hpa, pod

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
HPA_BOUNDS = Script(
    "autoscalers with impossible bounds",
    (
        Step("POST", V2, hpa("bad", maxReplicas=-1)),
        Step("POST", V2, hpa("bad", minReplicas=-1, maxReplicas=-5, scaleTargetRef={})),
        Step("POST", V1, {**hpa("bad", minReplicas=-1, maxReplicas=-5), "apiVersion": "autoscaling/v1"}),
        Step("POST", V2, hpa("web", minReplicas=2)),
        Step("PATCH", f"{V2}/web", {"spec": {"minReplicas": -1, "maxReplicas": -5}}, media=MERGE),
        Step(
            "PATCH",
            f"{V2}/web",
            {"spec": {"minReplicas": -1, "behavior": {"scaleUp": {"stabilizationWindowSeconds": -1}}}},
            media=MERGE,
        ),
        Step("PATCH", f"{V2}/web", {"spec": {"maxReplicas": 0, "scaleTargetRef": None}}, media=MERGE),
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
NAMESPACED_TABLES = (
    *(
        f"{CORE}/{name}"
        for name in ("pods", "services", "configmaps", "secrets", "serviceaccounts", "events")
    ),
    *(f"{CORE}/{name}" for name in ("replicationcontrollers", "limitranges", "resourcequotas", "endpoints")),
    *(
        f"{APPS}/{name}"
        for name in ("deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions")
    ),
    *(f"/apis/batch/v1/namespaces/{{ns}}/{name}" for name in ("jobs", "cronjobs")),
    V1,
    V2,
    "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
    "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
    "/apis/events.k8s.io/v1/namespaces/{ns}/events",
    f"{RBAC_PATH}/roles",
    f"{RBAC_PATH}/rolebindings",
)
NOTED = {"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}}}
STATUS_METADATA = Script(
    "what a status write may change besides the status",
    (
        Step("POST", DEPLOY, deployment("d")),
        Step("PATCH", f"{DEPLOY}/d/status", NOTED, media=MERGE),
        Step("POST", f"{APPS}/replicasets", {**deployment("r"), "kind": "ReplicaSet"}),
        Step("PATCH", f"{APPS}/replicasets/r/status", NOTED, media=MERGE),
        Step("POST", f"{CORE}/pods", pod("p")),
        Step("PATCH", f"{CORE}/pods/p/status", NOTED, media=MERGE),
        Step("POST", V2, hpa("h")),
        Step("PATCH", f"{V2}/h/status", NOTED, media=MERGE),
        Step("PATCH", f"{V2}/h/status", {"status": {"currentReplicas": -1}}, media=MERGE),
        Step("PATCH", "/api/v1/namespaces/{ns}/status", NOTED, media=MERGE),
    ),
)
TABLES = Script(
    "the columns of every built-in kind",
    (
        *(Step("GET", path, accept=TABLE) for path in NAMESPACED_TABLES),
        Step("POST", f"{CORE}/pods", pod("shown")),
        Step("GET", f"{CORE}/pods", accept=TABLE),
        Step("POST", DEPLOY, deployment("shown")),
        Step("GET", DEPLOY, accept=TABLE),
        Step("POST", V2, hpa("shown")),
        Step("GET", V2, accept=TABLE),
        Step("GET", f"{V1}/shown", accept=TABLE),
    ),
)
