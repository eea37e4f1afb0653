"""The columns of built-in kinds, as kubectl users know them.

Headers, order and priorities are API contract; each row function returns one cell per column.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from trimtab.lab.codec import JsonObject
from trimtab.lab.columns_hpa import hpa_cells
from trimtab.lab.columns_pods import pod_cells
from trimtab.lab.durations import age, short_duration
from trimtab.lab.registry import Column
from trimtab.model.selector import LabelSelector, Selector, SelectorError
from trimtab.model.times import parse_time
from trimtab.model.wire import convert

Cells = Callable[[JsonObject, datetime], list[Any]]
UNSET = "<none>"


def columns(*names: str) -> tuple[Column, ...]:
    """Build columns from names; `*` marks wide-only ones, `#` whole numbers."""
    built = []
    for text in names:
        name = text.strip("*#")
        kind = "integer" if "#" in text else "string"
        built.append(
            Column(
                name,
                "",
                kind,
                "name" if name == "Name" else "",
                1 if text.endswith("*") else 0,
                f"{name} of the object.",
            )
        )
    return tuple(built)


def age_of(obj: JsonObject, now: datetime, *path: str) -> str:
    """Return the age of an object, or the time since another of its moments."""
    value: Any = obj
    for name in path or ("metadata", "creationTimestamp"):
        value = value.get(name) if isinstance(value, dict) else None
    return age(parse_time(value), now) if value else "<unknown>"


def selector_text(selector: JsonObject | None) -> str:
    """Return a label selector in one line."""
    if selector is None:
        return UNSET
    try:
        return str(Selector.from_label_selector(convert(selector, LabelSelector))) or UNSET
    except (SelectorError, ValueError):
        return "<invalid>"


def labels_text(labels: JsonObject | None) -> str:
    """Return a label map in one line."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or UNSET


def _containers(obj: JsonObject) -> tuple[str, str]:
    found = obj.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or []
    return ",".join(c.get("name", "") for c in found), ",".join(c.get("image", "") for c in found)


def _name(obj: JsonObject) -> str:
    return str(obj["metadata"].get("name", ""))


def _deployment(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [
        _name(obj),
        ready,
        *counts,
        age_of(obj, now),
        *_containers(obj),
        selector_text(spec.get("selector")),
    ]


def _replica_set(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    selector = spec.get("selector")
    shown = labels_text(selector) if obj["kind"] == "ReplicationController" else selector_text(selector)
    return [_name(obj), *counts, age_of(obj, now), *_containers(obj), shown]


def _stateful_set(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [_name(obj), ready, age_of(obj, now), *_containers(obj)]


def _daemon_set(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    names = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    counts = [status.get(name, 0) for name in names]
    node_selector = labels_text(spec.get("template", {}).get("spec", {}).get("nodeSelector"))
    selector = selector_text(spec.get("selector"))
    return [_name(obj), *counts, node_selector, age_of(obj, now), *_containers(obj), selector]


def _job(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    done, wanted = status.get("succeeded", 0), spec.get("completions")
    parallel = spec.get("parallelism", 0)
    if wanted is not None:
        shown = f"{done}/{wanted}"
    else:
        shown = f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    types = {c["type"]: c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    state = types.get("Complete") or types.get("Failed") or types.get("Suspended") or "Running"
    start, end = status.get("startTime"), status.get("completionTime")
    if start is None:
        took = ""
    else:
        took = short_duration(((parse_time(end) if end else now) - parse_time(start)).total_seconds())
    return [
        _name(obj),
        state,
        shown,
        took,
        age_of(obj, now),
        *_containers(obj),
        selector_text(spec.get("selector")),
    ]


def _cron_job(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    last = age_of(obj, now, "status", "lastScheduleTime") if status.get("lastScheduleTime") else UNSET
    inner = _containers({"spec": spec.get("jobTemplate", {}).get("spec", {})})
    active = len(status.get("active") or ())
    suspend = "True" if spec.get("suspend") else "False"
    zone = spec.get("timeZone", UNSET)
    selector = selector_text(spec.get("jobTemplate", {}).get("spec", {}).get("selector"))
    return [
        _name(obj),
        spec.get("schedule", ""),
        zone,
        suspend,
        active,
        last,
        age_of(obj, now),
        *inner,
        selector,
    ]


def _node(obj: JsonObject, now: datetime) -> list[Any]:
    status = obj.get("status", {})
    ready = next(
        (c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"), "Unknown"
    )
    state = {"True": "Ready", "False": "NotReady"}.get(ready, "Unknown")
    if obj.get("spec", {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    roles = ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))) or UNSET
    addresses = {a.get("type"): a.get("address") for a in status.get("addresses") or ()}
    info = status.get("nodeInfo", {})
    unknown = "<unknown>"
    return [
        _name(obj),
        state,
        roles,
        age_of(obj, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", UNSET),
        addresses.get("ExternalIP", UNSET),
        info.get("osImage") or unknown,
        info.get("kernelVersion") or unknown,
        info.get("containerRuntimeVersion") or unknown,
    ]


def _service(obj: JsonObject, now: datetime) -> list[Any]:
    spec = obj.get("spec", {})
    ports = ",".join(
        f"{p.get('port')}{':' + str(p['nodePort']) if p.get('nodePort') else ''}/{p.get('protocol', 'TCP')}"
        for p in spec.get("ports") or ()
    )
    external = spec.get("externalName") or ",".join(spec.get("externalIPs") or ()) or UNSET
    cluster = spec.get("clusterIP") or UNSET
    kind = spec.get("type", "ClusterIP")
    return [
        _name(obj),
        kind,
        cluster,
        external,
        ports or UNSET,
        age_of(obj, now),
        labels_text(spec.get("selector")),
    ]


def _event(obj: JsonObject, now: datetime) -> list[Any]:
    # Rows are made from whichever of the two event kinds was asked for; both name the same things.
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    series = obj.get("series") or {}
    last = (
        series.get("lastObservedTime")
        or obj.get("lastTimestamp")
        or obj.get("deprecatedLastTimestamp")
        or first
    )
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = (
        source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    )
    reporter = ", ".join(filter(None, (component, source.get("host") or obj.get("reportingInstance"))))
    count = series.get("count") or obj.get("count") or obj.get("deprecatedCount") or 1
    return [
        age(parse_time(last), now) if last else "<unknown>",
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        reporter,
        (obj.get("message") or obj.get("note") or "").strip(),
        age(parse_time(first), now) if first else "<unknown>",
        count,
        _name(obj),
    ]


def _pdb(obj: JsonObject, now: datetime) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    low = str(spec["minAvailable"]) if "minAvailable" in spec else "N/A"
    high = str(spec["maxUnavailable"]) if "maxUnavailable" in spec else "N/A"
    return [_name(obj), low, high, status.get("disruptionsAllowed", 0), age_of(obj, now)]


def _api_service(obj: JsonObject, now: datetime) -> list[Any]:
    service = obj.get("spec", {}).get("service")
    shown = f"{service.get('namespace')}/{service.get('name')}" if service else "Local"
    condition = next(
        iter(c for c in obj.get("status", {}).get("conditions") or () if c["type"] == "Available"), None
    )
    state = "Unknown" if condition is None else condition["status"]
    if condition is not None and state != "True":
        state += f" ({condition.get('reason')})"
    return [_name(obj), shown, state, age_of(obj, now)]


def _binding(obj: JsonObject, now: datetime) -> list[Any]:
    ref = obj.get("roleRef", {})
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        by_kind.setdefault(subject.get("kind", ""), []).append(name)
    role = f"{ref.get('kind')}/{ref.get('name')}"
    who = [", ".join(by_kind[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [_name(obj), role, age_of(obj, now), *who]


def _named(*paths: str) -> Cells:
    """Build the row function of a kind that shows its name, plain values, and its age."""

    def cells(obj: JsonObject, now: datetime) -> list[Any]:
        row: list[Any] = [_name(obj)]
        for path in paths:
            value: Any = obj
            for name in path.split("."):
                value = value.get(name) if isinstance(value, dict) else None
            row.append(len(value) if isinstance(value, dict | list) else ("" if value is None else value))
        return [*row, age_of(obj, now)]

    return cells


def _sum_of_data(obj: JsonObject, now: datetime) -> list[Any]:
    size = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    if obj["kind"] == "Secret":
        return [_name(obj), obj.get("type", ""), size, age_of(obj, now)]
    return [_name(obj), size, age_of(obj, now)]


_WORKLOAD = ("Containers*", "Images*")
_REPLICAS = columns("Name", "Desired#", "Current#", "Ready#", "Age", *_WORKLOAD, "Selector*")

BUILTIN: dict[tuple[str, str], tuple[tuple[Column, ...], Cells]] = {
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
        _node,
    ),
    ("", "namespaces"): (columns("Name", "Status", "Age"), _named("status.phase")),
    ("", "services"): (
        columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"),
        _service,
    ),
    ("", "configmaps"): (columns("Name", "Data", "Age"), _sum_of_data),
    ("", "secrets"): (columns("Name", "Type", "Data", "Age"), _sum_of_data),
    ("", "serviceaccounts"): (columns("Name", "Age"), _named()),
    ("", "replicationcontrollers"): (_REPLICAS, _replica_set),
    ("", "events"): (
        columns(
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
        ),
        _event,
    ),
    ("events.k8s.io", "events"): (
        columns(
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
        ),
        _event,
    ),
    ("apps", "deployments"): (
        columns("Name", "Ready", "Up-to-date", "Available", "Age", *_WORKLOAD, "Selector*"),
        _deployment,
    ),
    ("apps", "replicasets"): (_REPLICAS, _replica_set),
    ("apps", "statefulsets"): (columns("Name", "Ready", "Age", *_WORKLOAD), _stateful_set),
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
        _daemon_set,
    ),
    ("batch", "jobs"): (
        columns("Name", "Status", "Completions", "Duration", "Age", *_WORKLOAD, "Selector*"),
        _job,
    ),
    ("batch", "cronjobs"): (
        columns(
            "Name",
            "Schedule",
            "Timezone",
            "Suspend",
            "Active#",
            "Last Schedule",
            "Age",
            *_WORKLOAD,
            "Selector*",
        ),
        _cron_job,
    ),
    ("autoscaling", "horizontalpodautoscalers"): (
        columns("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
        hpa_cells,
    ),
    ("policy", "poddisruptionbudgets"): (
        columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"),
        _pdb,
    ),
    ("coordination.k8s.io", "leases"): (columns("Name", "Holder", "Age"), _named("spec.holderIdentity")),
    ("rbac.authorization.k8s.io", "rolebindings"): (
        columns("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*"),
        _binding,
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): (
        columns("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*"),
        _binding,
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): (
        columns("Name", "Webhooks#", "Age"),
        _named("webhooks"),
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): (
        columns("Name", "Webhooks#", "Age"),
        _named("webhooks"),
    ),
    ("apiregistration.k8s.io", "apiservices"): (columns("Name", "Service", "Available", "Age"), _api_service),
}
