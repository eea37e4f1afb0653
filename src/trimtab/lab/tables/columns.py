"""The columns of built-in kinds, as kubectl users know them.

Headers, order and priorities are API contract; each row function returns one cell per column.
"""

from trimtab.lab.resources.registry import TableColumn
from trimtab.lab.tables.cells import Cells, columns
from trimtab.lab.tables.cluster import (
    api_service_cells,
    binding_cells,
    budget_cells,
    data_cells,
    endpoints_cells,
    event_cells,
    named_cells,
    node_cells,
    quota_cells,
    revision_cells,
    service_cells,
)
from trimtab.lab.tables.hpa import hpa_cells
from trimtab.lab.tables.pods import pod_cells
from trimtab.lab.tables.workloads import (
    cron_job_cells,
    daemon_set_cells,
    deployment_cells,
    job_cells,
    replica_set_cells,
    stateful_set_cells,
)

_WORKLOAD = ("Containers*", "Images*")
_EVENTS = columns(
    "Last Seen",
    "Type",
    "Reason",
    "Object",
    "Subobject*",
    "Source*",
    "Message",
    "First Seen*",
    "Count*",
    "Name*",
)
_REPLICAS = columns("Name", "Desired#", "Current#", "Ready#", "Age", *_WORKLOAD, "Selector*")

BUILTIN: dict[tuple[str, str], tuple[tuple[TableColumn, ...], Cells]] = {
    ("", "pods"): (
        columns(
            "Name",
            "Ready",
            "Status",
            "Restarts",
            "Age",
            "IP*",
            "Node*",
            "Nominated Node*",
            "Readiness Gates*",
        ),
        pod_cells,
    ),
    ("", "nodes"): (
        columns(
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            "Internal-IP*",
            "External-IP*",
            "OS-Image*",
            "Kernel-Version*",
            "Container-Runtime*",
        ),
        node_cells,
    ),
    ("", "namespaces"): (columns("Name", "Status", "Age"), named_cells("status.phase")),
    ("", "services"): (
        columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"),
        service_cells,
    ),
    ("", "configmaps"): (columns("Name", "Data", "Age"), data_cells),
    ("", "secrets"): (columns("Name", "Type", "Data", "Age"), data_cells),
    ("", "serviceaccounts"): (columns("Name", "Age"), named_cells()),
    ("", "endpoints"): (columns("Name", "Endpoints", "Age"), endpoints_cells),
    ("", "resourcequotas"): (columns("Name", "Request", "Limit", "Age"), quota_cells),
    ("apps", "controllerrevisions"): (columns("Name", "Controller", "Revision", "Age"), revision_cells),
    ("", "replicationcontrollers"): (_REPLICAS, replica_set_cells),
    ("", "events"): (_EVENTS, event_cells),
    ("events.k8s.io", "events"): (_EVENTS, event_cells),
    ("apps", "deployments"): (
        columns("Name", "Ready", "Up-to-date", "Available", "Age", *_WORKLOAD, "Selector*"),
        deployment_cells,
    ),
    ("apps", "replicasets"): (_REPLICAS, replica_set_cells),
    ("apps", "statefulsets"): (columns("Name", "Ready", "Age", *_WORKLOAD), stateful_set_cells),
    ("apps", "daemonsets"): (
        columns(
            "Name",
            "Desired#",
            "Current#",
            "Ready#",
            "Up-to-date#",
            "Available#",
            "Node Selector",
            "Age",
            *_WORKLOAD,
            "Selector*",
        ),
        daemon_set_cells,
    ),
    ("batch", "jobs"): (
        columns("Name", "Status", "Completions", "Duration", "Age", *_WORKLOAD, "Selector*"),
        job_cells,
    ),
    ("batch", "cronjobs"): (
        columns(
            "Name",
            "Schedule",
            "Timezone",
            "Suspend?",
            "Active#",
            "Last Schedule",
            "Age",
            *_WORKLOAD,
            "Selector*",
        ),
        cron_job_cells,
    ),
    ("autoscaling", "horizontalpodautoscalers"): (
        columns("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
        hpa_cells,
    ),
    ("policy", "poddisruptionbudgets"): (
        columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions#", "Age"),
        budget_cells,
    ),
    ("coordination.k8s.io", "leases"): (columns("Name", "Holder", "Age"), named_cells("spec.holderIdentity")),
    ("rbac.authorization.k8s.io", "rolebindings"): (
        columns("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*"),
        binding_cells,
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): (
        columns("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*"),
        binding_cells,
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): (
        columns("Name", "Webhooks#", "Age"),
        named_cells("webhooks"),
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): (
        columns("Name", "Webhooks#", "Age"),
        named_cells("webhooks"),
    ),
    ("apiregistration.k8s.io", "apiservices"): (
        columns("Name", "Service", "Available", "Age"),
        api_service_cells,
    ),
}
