"""The objects of a new cluster: its namespaces and the default roles."""

from trimtab_lab.handlers.bodies import fill_on_create
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.storage.codec import JsonObject

RBAC = "rbac.authorization.k8s.io"
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
READ = ["get", "list", "watch"]
WRITE = ["create", "delete", "deletecollection", "patch", "update"]
#: What `view` shows, by group: everything but secrets and access rules, as upstream's role.
VISIBLE = {
    "": (
        "configmaps endpoints events limitranges namespaces persistentvolumeclaims pods pods/log pods/status "
        "replicationcontrollers replicationcontrollers/scale resourcequotas serviceaccounts services"
    ),
    "apps": (
        "controllerrevisions daemonsets deployments deployments/scale replicasets replicasets/scale "
        "statefulsets statefulsets/scale"
    ),
    "autoscaling": "horizontalpodautoscalers horizontalpodautoscalers/status",
    "batch": "cronjobs jobs",
    "policy": "poddisruptionbudgets",
    "metrics.k8s.io": "pods nodes",
}


def _rule(group: str, resources: str, verbs: list[str]) -> JsonObject:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs}


def _rules(verbs: list[str]) -> list[JsonObject]:
    return [_rule(group, resources, verbs) for group, resources in VISIBLE.items()]


def _rbac_object(kind: str, name: str, **content: JsonObject | list[JsonObject]) -> JsonObject:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    meta = {"name": name, "labels": labels}
    return {"kind": kind, "apiVersion": f"{RBAC}/v1", "metadata": meta, **content}


def _role(name: str, *rules: JsonObject) -> JsonObject:
    return _rbac_object("ClusterRole", name, rules=list(rules))


def _binding(name: str, group: str) -> JsonObject:
    role: JsonObject = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    subjects: list[JsonObject] = [{"apiGroup": RBAC, "kind": "Group", "name": group}]
    return _rbac_object("ClusterRoleBinding", name, roleRef=role, subjects=subjects)


def first_objects() -> list[JsonObject]:
    """Return the objects of a new cluster."""
    edits = [*_rules(READ + WRITE), _rule("", "secrets pods/eviction", READ + WRITE)]
    return [
        *({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}} for name in NAMESPACES),
        _role("cluster-admin", _rule("*", "*", ["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}),
        _role(
            "system:basic-user",
            _rule("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", ["create"]),
            _rule("authentication.k8s.io", "selfsubjectreviews", ["create"]),
        ),
        _role("view", *_rules(READ)),
        _role("edit", *edits),
        _role("admin", *edits, _rule(RBAC, "roles rolebindings", READ + WRITE)),
        _binding("cluster-admin", "system:masters"),
        _binding("system:basic-user", "system:authenticated"),
    ]


def put_object(context: HandlerContext, obj: JsonObject) -> None:
    """Store a built-in object as the server itself, replacing an object of the same name."""
    resource = context.registry.by_kind(obj["apiVersion"].rpartition("/")[0], obj["kind"])
    assert resource is not None, f"{obj['kind']} is built in"
    now = context.clock.now()
    resource.strategy.default(obj)
    fill_on_create(obj, resource, context.identities.uid(), now)
    resource.strategy.prepare_for_create(obj, now)
    context.store.commit(resource.storage, obj, resource.strategy.fields(obj))
