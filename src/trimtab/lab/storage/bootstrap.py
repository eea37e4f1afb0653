"""What a new cluster contains: its namespaces and the roles that everyone expects."""

import random
import secrets
import uuid

from trimtab.clock import Clock
from trimtab.lab.handlers import metadata
from trimtab.lab.resources.registry import Registry
from trimtab.lab.resources.strategy import WriteContext
from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.storage.store import ObjectStore

#: Letters of generated names; without vowels and look-alikes no word appears by chance.
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Identities:
    """A source of fresh names."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.SystemRandom() if seed is None else random.Random(seed)  # noqa: S311 - seeded on purpose
        self.is_seeded = seed is not None

    def uid(self) -> str:
        """Return a new uid."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def token(self) -> str:
        """Return a new bearer token."""
        if self.is_seeded:
            return f"{self._random.getrandbits(192):048x}"
        return secrets.token_hex(24)

    def suffix(self) -> str:
        """Return the five letters that complete a `generateName`."""
        return "".join(self._random.choice(SUFFIX_LETTERS) for _ in range(5))


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


def create_first_objects(
    clock: Clock, store: ObjectStore, registry: Registry, identities: Identities
) -> None:
    """Put the first objects into an empty store."""
    for obj in first_objects():
        put_object(clock, store, registry, identities, obj)


def put_object(
    clock: Clock, store: ObjectStore, registry: Registry, identities: Identities, obj: JsonObject
) -> None:
    """Store a built-in object as the server itself, replacing one of the same name."""
    scene = WriteContext(clock.now(), identities.uid, "system:apiserver")
    resource = registry.by_kind(obj["apiVersion"].rpartition("/")[0], obj["kind"])
    assert resource is not None, f"{obj['kind']} is built in"
    resource.strategy.default(obj)
    metadata.fill_on_create(obj, resource, scene)
    resource.strategy.prepare_for_create(obj, scene)
    store.commit(resource.storage, obj, resource.strategy.fields(obj))
