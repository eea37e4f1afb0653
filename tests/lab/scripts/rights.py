"""Who may act as whom, and who may grant what: a service account that has some rights and tries to get more."""

from typing import Any

from tests.lab.answers import MERGE, Script, Step
from tests.lab.scripts.builders import CORE, RBAC_PATH

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "{ns}"}


def rule(groups: str, resources: str, verbs: str, *names: str) -> dict[str, Any]:
    """Return a rule from words."""
    found: dict[str, Any] = {
        "apiGroups": groups.split() or [""],
        "resources": resources.split(),
        "verbs": verbs.split(),
    }
    return {**found, "resourceNames": list(names)} if names else found


def role(name: str, *rules: dict[str, Any], path: str = f"{RBAC_PATH}/roles", **step: Any) -> Step:
    """Return the step that creates a role."""
    return Step("POST", path, {"metadata": {"name": name}, "rules": list(rules)}, **step)


def binding(name: str, kind: str, to: str, path: str = f"{RBAC_PATH}/rolebindings", **step: Any) -> Step:
    """Return the step that binds a role to the service account."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": to}
    return Step("POST", path, {"metadata": {"name": name}, "roleRef": reference, "subjects": [ROBOT]}, **step)


def granted(name: str, *rules: dict[str, Any]) -> tuple[Step, Step]:
    """Return the steps that give the service account rights in the whole cluster."""
    return (
        role(f"{{ns}}-{name}", *rules, path=f"{RBAC}/clusterroles"),
        binding(f"{{ns}}-{name}", "ClusterRole", f"{{ns}}-{name}", f"{RBAC}/clusterrolebindings"),
    )


def acting(*ignored: str, **headers: str) -> Step:
    """Return the step in which the service account acts as another user and asks who it is."""
    named = tuple((f"Impersonate-{name.replace('_', '-')}", value) for name, value in headers.items())
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    ignored = ("metadata.creationTimestamp", *ignored)
    return Step("POST", path, review, headers=named, has_kept_token=True, ignored=ignored)


TOKEN = (
    Step("POST", f"{CORE}/serviceaccounts", {"metadata": {"name": "robot"}}),
    Step(
        "POST",
        f"{CORE}/serviceaccounts/robot/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        keep="status.token",
        ignored=("status", "spec", "metadata"),
    ),
)
IMPERSONATION = Script(
    "impersonation",
    (
        *TOKEN,
        *granted("users", rule("", "users", "impersonate", "eve")),
        Step("GET", f"{CORE}/pods", settle=1),
        # A server whose gate ConstrainedImpersonation is on names one of the newer verbs.
        acting("message", "details", User="mallory"),
        acting(User="eve"),
        acting(User="eve", Group="system:masters"),
        acting(User="eve", Group="devs"),
        acting(User="eve", Uid="7"),
        acting(User="eve", Extra_scopes="all"),
        acting(User="system:serviceaccount:{ns}:other"),
        *granted(
            "others",
            rule("", "groups", "impersonate", "devs"),
            rule("", "serviceaccounts", "impersonate", "other"),
            rule("authentication.k8s.io", "uids", "impersonate", "7"),
            rule("authentication.k8s.io", "userextras/scopes", "impersonate", "all"),
        ),
        Step("GET", f"{CORE}/pods", settle=1),
        acting(User="eve", Group="devs", Uid="7", Extra_scopes="all"),
        acting(User="eve", Group="system:masters"),
        acting(User="eve", Uid="8"),
        acting(User="eve", Extra_scopes="more"),
        acting(User="eve", Extra_colours="all"),
        acting(User="system:serviceaccount:{ns}:other"),
        acting(User="system:serviceaccount:{ns}:another"),
        # Names that only look like those of service accounts, and the user who is nobody.
        acting("message", "details", User="system:serviceaccount::other"),
        acting("message", "details", User="system:serviceaccount:{ns}:"),
        acting("message", "details", User="system:serviceaccount:{ns}:Other"),
        *granted(
            "anyone",
            rule("", "users", "impersonate"),
            rule("", "groups", "impersonate", "devs", "system:authenticated", "system:unauthenticated"),
        ),
        Step("GET", f"{CORE}/pods", settle=1),
        acting(User="system:serviceaccount::other"),
        acting(User="system:serviceaccount:{ns}:Other"),
        acting(User="system:anonymous"),
        acting(User="system:anonymous", Group="devs"),
        acting(User="system:anonymous", Group="system:authenticated"),
        acting(User="system:anonymous", Group="system:unauthenticated"),
        acting(User="eve", Group="system:unauthenticated"),
        acting(User="eve", Group="system:authenticated"),
    ),
)

SECRETS = rule("", "secrets", "get list")
ESCALATION = Script(
    "roles beyond one's own rights",
    (
        *TOKEN,
        *granted(
            "writer",
            rule("rbac.authorization.k8s.io", "roles rolebindings clusterroles clusterrolebindings", "create patch delete"),
            rule("", "pods", "get list"),
            rule("", "configmaps", "get", "one"),
            rule("apps", "*/scale", "*"),
            {"nonResourceURLs": ["/healthz/*"], "verbs": ["get"]},
        ),
        role("strong", SECRETS),
        binding("strong", "Role", "strong"),
        Step("DELETE", f"{RBAC_PATH}/rolebindings/strong"),
        Step("GET", f"{CORE}/pods", settle=1),
        role("held", rule("", "pods", "get"), has_kept_token=True),
        role("more", rule("", "pods", "get list delete watch"), has_kept_token=True),
        role("other", SECRETS, rule("", "pods", "get"), has_kept_token=True),
        role("star", rule("", "*", "get"), has_kept_token=True),
        role("every", rule("*", "pods", "get"), has_kept_token=True),
        role("named", rule("", "configmaps", "get", "one"), has_kept_token=True),
        role("misnamed", rule("", "configmaps", "get", "one", "two"), has_kept_token=True),
        role("unnamed", rule("", "configmaps", "get"), has_kept_token=True),
        role("scales", rule("apps", "deployments/scale", "get update"), has_kept_token=True),
        role("parents", rule("apps", "deployments", "get"), has_kept_token=True),
        role("{ns}-path", {"nonResourceURLs": ["/healthz/ping"], "verbs": ["get"]},
             path=f"{RBAC}/clusterroles", has_kept_token=True),
        role("{ns}-paths", {"nonResourceURLs": ["/healthz/*", "/metrics", "*"], "verbs": ["get"]},
             path=f"{RBAC}/clusterroles", has_kept_token=True),
        role("invalid", {"verbs": ["get"]}, has_kept_token=True),
        Step("PATCH", f"{RBAC_PATH}/roles/held", {"rules": [SECRETS]}, media=MERGE, has_kept_token=True),
        Step("PATCH", f"{RBAC_PATH}/roles/held", {"metadata": {"labels": {"a": "b"}}}, media=MERGE, has_kept_token=True),
        Step("PATCH", f"{RBAC_PATH}/roles/strong", {"metadata": {"labels": {"a": "b"}}}, media=MERGE, has_kept_token=True),
        Step("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "{ns}-all"}, "aggregationRule": {
             "clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}, has_kept_token=True),
        binding("held", "Role", "held", has_kept_token=True),
        binding("strong", "Role", "strong", has_kept_token=True),
        binding("dangling", "Role", "missing", has_kept_token=True),
        binding("dangling", "ClusterRole", "{ns}-missing", has_kept_token=True),
        binding("{ns}-dangling", "ClusterRole", "{ns}-missing", f"{RBAC}/clusterrolebindings", has_kept_token=True),
        binding("dangling", "Role", "", has_kept_token=True),
        binding("boss", "ClusterRole", "cluster-admin", has_kept_token=True),
        binding("{ns}-boss", "ClusterRole", "cluster-admin", f"{RBAC}/clusterrolebindings", has_kept_token=True),
        Step("PATCH", f"{RBAC_PATH}/rolebindings/held", {"subjects": []}, media=MERGE, has_kept_token=True),
        *granted(
            "boss",
            rule("rbac.authorization.k8s.io", "clusterroles", "bind", "cluster-admin"),
            rule("rbac.authorization.k8s.io", "roles", "escalate"),
        ),
        Step("GET", f"{CORE}/pods", settle=1),
        role("raised", SECRETS, has_kept_token=True),
        role("{ns}-raised", SECRETS, path=f"{RBAC}/clusterroles", has_kept_token=True),
        binding("strong", "Role", "strong", has_kept_token=True),
        binding("boss", "ClusterRole", "cluster-admin", has_kept_token=True),
    ),
)  # fmt: skip
