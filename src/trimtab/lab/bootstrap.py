"""What a new cluster contains: its namespaces and the roles that everyone expects."""

from trimtab.clock import Clock
from trimtab.lab import metadata
from trimtab.lab.codec import JsonObject
from trimtab.lab.identities import Identities
from trimtab.lab.registry import Registry
from trimtab.lab.store import Store
from trimtab.lab.strategies.base import Scene

RBAC = "rbac.authorization.k8s.io"
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
READ = ["get", "list", "watch"]
WRITE = ["create", "delete", "deletecollection", "patch", "update"]
#: What `view` shows: everything but secrets and access rules, as upstream's role.
VISIBLE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "",
        (
            "configmaps",
            "endpoints",
            "events",
            "limitranges",
            "namespaces",
            "persistentvolumeclaims",
            "pods",
            "pods/log",
            "pods/status",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "resourcequotas",
            "serviceaccounts",
            "services",
        ),
    ),
    (
        "apps",
        (
            "controllerrevisions",
            "daemonsets",
            "deployments",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ),
    ),
    ("autoscaling", ("horizontalpodautoscalers", "horizontalpodautoscalers/status")),
    ("batch", ("cronjobs", "jobs")),
    ("policy", ("poddisruptionbudgets",)),
    ("metrics.k8s.io", ("pods", "nodes")),
)


def _role(name: str, rules: list[JsonObject]) -> JsonObject:
    return {
        "kind": "ClusterRole",
        "apiVersion": f"{RBAC}/v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "rules": rules,
    }


def _rules(verbs: list[str]) -> list[JsonObject]:
    return [{"apiGroups": [group], "resources": list(names), "verbs": verbs} for group, names in VISIBLE]


def _binding(name: str, group: str) -> JsonObject:
    return {
        "kind": "ClusterRoleBinding",
        "apiVersion": f"{RBAC}/v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group}],
    }


def first_objects() -> list[JsonObject]:
    """Return the objects of a new cluster."""
    everything: list[JsonObject] = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]
    reviews = {"apiGroups": ["authorization.k8s.io"], "verbs": ["create"]}
    basic: list[JsonObject] = [
        {**reviews, "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ]
    edits = [
        *_rules(READ + WRITE),
        {"apiGroups": [""], "resources": ["secrets", "pods/eviction"], "verbs": READ + WRITE},
    ]
    access: JsonObject = {"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": READ + WRITE}
    return [
        *({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}} for name in NAMESPACES),
        _role("cluster-admin", everything),
        _role("system:basic-user", basic),
        _role("view", _rules(READ)),
        _role("edit", edits),
        _role("admin", [*edits, access]),
        _binding("cluster-admin", "system:masters"),
        _binding("system:basic-user", "system:authenticated"),
    ]


def create_first_objects(clock: Clock, store: Store, registry: Registry, identities: Identities) -> None:
    """Put the first objects into an empty store."""
    for obj in first_objects():
        put_object(clock, store, registry, identities, obj)


def put_object(
    clock: Clock, store: Store, registry: Registry, identities: Identities, obj: JsonObject
) -> None:
    """Store a built-in object as the server itself, replacing one of the same name."""
    scene = Scene(clock.now(), identities.uid, "system:apiserver")
    resource = registry.by_kind(obj["apiVersion"].rpartition("/")[0], obj["kind"])
    assert resource is not None, f"{obj['kind']} is built in"
    resource.strategy.default(obj)
    metadata.fill_on_create(obj, resource, scene)
    resource.strategy.prepare_for_create(obj, scene)
    store.commit(resource.storage, obj, resource.strategy.fields(obj))
