"""Roles, reviews, eviction and resize."""

from tests.lab.answers import MERGE, STRATEGIC, Script, Step
from tests.lab.scripts.builders import CORE, RBAC_PATH, pod

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
