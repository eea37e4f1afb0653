"""The columns of built-in kinds. Headers, order and priorities are API contract."""

from trimtab_lab.kinds.registry import TableColumn
from trimtab_lab.tables import cluster, workloads
from trimtab_lab.tables.cells import Cells
from trimtab_lab.tables.hpa import hpa_cells
from trimtab_lab.tables.pods import pod_cells

RBAC, WEBHOOKS = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
EVENTS = "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name*"
TEMPLATE = "Containers*, Images*, Selector*"
REPLICAS = f"Name, Desired#, Current#, Ready#, Age, {TEMPLATE}"
NODE_DETAILS = "Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*"
BINDINGS = "Name, Role, Age, Users*, Groups*, ServiceAccounts*"

#: Group and plural -> headers and the function that makes a row. `*` marks columns of `-o wide`, `#` integers, `?` booleans.
ROWS: dict[tuple[str, str], tuple[str, Cells]] = {
    ("", "pods"): (
        "Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*",
        pod_cells,
    ),
    ("", "nodes"): (f"Name, Status, Roles, Age, Version, {NODE_DETAILS}", cluster.node_cells),
    ("", "namespaces"): ("Name, Status, Age", cluster.named_cells("status.phase")),
    ("", "services"): ("Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*", cluster.service_cells),
    ("", "configmaps"): ("Name, Data, Age", cluster.data_cells),
    ("", "secrets"): ("Name, Type, Data, Age", cluster.data_cells),
    ("", "serviceaccounts"): ("Name, Age", cluster.named_cells()),
    ("", "endpoints"): ("Name, Endpoints, Age", cluster.endpoints_cells),
    ("", "resourcequotas"): ("Name, Request, Limit, Age", cluster.quota_cells),
    ("", "replicationcontrollers"): (REPLICAS, workloads.replica_set_cells),
    ("", "events"): (EVENTS, cluster.event_cells),
    ("events.k8s.io", "events"): (EVENTS, cluster.event_cells),
    ("apps", "controllerrevisions"): ("Name, Controller, Revision, Age", cluster.revision_cells),
    ("apps", "deployments"): (
        f"Name, Ready, Up-to-date, Available, Age, {TEMPLATE}",
        workloads.deployment_cells,
    ),
    ("apps", "replicasets"): (REPLICAS, workloads.replica_set_cells),
    ("apps", "statefulsets"): ("Name, Ready, Age, Containers*, Images*", workloads.stateful_set_cells),
    ("apps", "daemonsets"): (
        f"Name, Desired#, Current#, Ready#, Up-to-date#, Available#, Node Selector, Age, {TEMPLATE}",
        workloads.daemon_set_cells,
    ),
    ("batch", "jobs"): (f"Name, Status, Completions, Duration, Age, {TEMPLATE}", workloads.job_cells),
    ("batch", "cronjobs"): (
        f"Name, Schedule, Timezone, Suspend?, Active#, Last Schedule, Age, {TEMPLATE}",
        workloads.cron_job_cells,
    ),
    ("autoscaling", "horizontalpodautoscalers"): (
        "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age",
        hpa_cells,
    ),
    ("policy", "poddisruptionbudgets"): (
        "Name, Min Available, Max Unavailable, Allowed Disruptions#, Age",
        cluster.budget_cells,
    ),
    ("coordination.k8s.io", "leases"): ("Name, Holder, Age", cluster.named_cells("spec.holderIdentity")),
    (RBAC, "rolebindings"): (BINDINGS, cluster.binding_cells),
    (RBAC, "clusterrolebindings"): (BINDINGS, cluster.binding_cells),
    (WEBHOOKS, "mutatingwebhookconfigurations"): ("Name, Webhooks#, Age", cluster.named_cells("webhooks")),
    (WEBHOOKS, "validatingwebhookconfigurations"): ("Name, Webhooks#, Age", cluster.named_cells("webhooks")),
    ("apiregistration.k8s.io", "apiservices"): ("Name, Service, Available, Age", cluster.api_service_cells),
}


def _column(header: str) -> TableColumn:
    name = header.strip("*#?")
    kind = "integer" if "#" in header else "boolean" if "?" in header else "string"
    return TableColumn(
        name,
        "",
        kind,
        format="name" if name == "Name" else "",
        priority=1 if header.endswith("*") else 0,
        description=f"{name} of the object.",
    )


BUILTIN = {
    resource: (tuple(map(_column, headers.split(", "))), cells) for resource, (headers, cells) in ROWS.items()
}
