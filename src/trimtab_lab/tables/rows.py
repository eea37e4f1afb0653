"""The rows of built-in kinds: each column's header and the cell under it. Headers, order and priorities are API contract."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from trimtab.model.json.wire import convert
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError
from trimtab.model.times import parse_time
from trimtab_lab.kinds.registry import TableColumn
from trimtab_lab.kinds.strategy import is_condition_true
from trimtab_lab.storage.codec import JsonObject

Cell = Callable[[JsonObject, datetime], Any]
UNSET, UNKNOWN = "<none>", "<unknown>"
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 365 * 86_400
#: Below so many seconds: the unit to show, its letter, and the smaller unit shown beside it, if any.
STEPS = (
    (10 * MINUTE, MINUTE, "m", 1, "s"),
    (3 * HOUR, MINUTE, "m", 0, ""),
    (8 * HOUR, HOUR, "h", MINUTE, "m"),
    (2 * DAY, HOUR, "h", 0, ""),
    (8 * DAY, DAY, "d", HOUR, "h"),
    (2 * YEAR, DAY, "d", 0, ""),
    (8 * YEAR, YEAR, "y", DAY, "d"),
)


def age(since: datetime, now: datetime) -> str:
    """Return the time since a moment as `kubectl get` shows it."""
    seconds = int((now - since).total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    for below, unit, letter, small_unit, small_letter in STEPS:
        if seconds < below:
            large, small = seconds // unit, seconds % unit // small_unit if small_unit else 0
            return f"{large}{letter}" + (f"{small}{small_letter}" if small else "")
    return f"{seconds // YEAR}y"


def value_at(obj: Any, path: str) -> Any:
    for name in path.split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def at(path: str, default: Any = "") -> Cell:
    """Return the cell of a value. What is empty shows the default."""
    return lambda obj, _now: value_at(obj, path) or default


def count(*paths: str) -> Cell:
    """Return the cell of how many entries some lists or maps have."""
    return lambda obj, _now: sum(len(value_at(obj, path) or ()) for path in paths)


def since(path: str, default: str = UNKNOWN) -> Cell:
    """Return the cell of the time since a moment."""
    return lambda obj, now: age(parse_time(moment), now) if (moment := value_at(obj, path)) else default


def labels(path: str) -> Cell:
    return lambda obj, _now: (
        ",".join(f"{key}={value}" for key, value in sorted((value_at(obj, path) or {}).items())) or UNSET
    )


def selector(path: str) -> Cell:

    def cell(obj: JsonObject, _now: datetime) -> str:
        found = value_at(obj, path)
        if found is None:
            return UNSET
        try:
            return str(Selector.from_label_selector(convert(found, LabelSelector))) or UNSET
        except (SelectorError, ValueError):
            return "<invalid>"

    return cell


def template(path: str, field: str) -> Cell:
    """Return the cell of the names or images of a template's containers."""
    return lambda obj, _now: ",".join(
        container.get(field, "") for container in value_at(obj, f"{path}.spec.containers") or ()
    )


def _ready(obj: JsonObject, _now: datetime) -> str:
    return f"{value_at(obj, 'status.readyReplicas') or 0}/{value_at(obj, 'spec.replicas') or 0}"


def _find_condition(obj: JsonObject, kind: str) -> JsonObject:
    conditions = value_at(obj, "status.conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), {})


def _restarts(obj: JsonObject, now: datetime) -> str:
    statuses = value_at(obj, "status.containerStatuses") or ()
    total = sum(status.get("restartCount", 0) for status in statuses)
    ends = [
        parse_time(end) for status in statuses if (end := value_at(status, "lastState.terminated.finishedAt"))
    ]
    return f"{total} ({age(max(ends), now)} ago)" if total and ends else str(total)


def _ready_containers(obj: JsonObject, _now: datetime) -> str:
    ready = sum(1 for status in value_at(obj, "status.containerStatuses") or () if status.get("ready"))
    return f"{ready}/{len(value_at(obj, 'spec.containers') or ())}"


def _pod_ip(obj: JsonObject, _now: datetime) -> str:
    ips = [address.get("ip") for address in value_at(obj, "status.podIPs") or ()]
    return (ips or [value_at(obj, "status.podIP")])[0] or UNSET


def _gates(obj: JsonObject, _now: datetime) -> str:
    gates = value_at(obj, "spec.readinessGates") or ()
    passed = sum(is_condition_true(obj, gate.get("conditionType")) for gate in gates)
    return f"{passed}/{len(gates)}" if gates else UNSET


def _pod_state(obj: JsonObject, _now: datetime) -> str:
    """Return the state of a pod: the problem of a container, else the phase."""
    status = obj.get("status", {})
    reason = _init_state(obj.get("spec", {}), status) or _running_state(obj, status)
    if "deletionTimestamp" not in obj["metadata"]:
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _running_state(obj: JsonObject, status: JsonObject) -> str:
    if any(condition.get("reason") == "SchedulingGated" for condition in status.get("conditions") or ()):
        return "SchedulingGated"
    containers = status.get("containerStatuses") or ()
    # The first container's problem wins.
    reasons = (_container_reason(container.get("state") or {}) for container in containers)
    reason = next(filter(None, reasons), "") or str(status.get("reason") or status.get("phase", "Unknown"))
    runs = (each.get("ready") and "running" in (each.get("state") or {}) for each in containers)
    if reason == "Completed" and any(runs):
        return "Running" if is_condition_true(obj, "Ready") else "NotReady"
    return reason


def _container_reason(state: JsonObject) -> str:
    if reason := value_at(state, "waiting.reason"):
        return str(reason)
    if "terminated" not in state:
        return ""
    ended = state["terminated"]
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _init_state(spec: JsonObject, status: JsonObject) -> str:
    total = len(spec.get("initContainers") or ())
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        state = container.get("state") or {}
        policy = (spec.get("initContainers") or [{}])[index].get("restartPolicy")
        has_started = container.get("started") and policy == "Always"
        if value_at(state, "terminated.exitCode") == 0 or has_started:
            continue
        reason = _container_reason(state)
        return f"Init:{reason}" if reason and reason != "PodInitializing" else f"Init:{index}/{total}"
    return ""


def _node_state(obj: JsonObject, _now: datetime) -> str:
    ready = _find_condition(obj, "Ready").get("status", "")
    state = {"True": "Ready", "False": "NotReady"}.get(ready, "Unknown")
    return state + (",SchedulingDisabled" if value_at(obj, "spec.unschedulable") else "")


def _roles(obj: JsonObject, _now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    keys = obj["metadata"].get("labels") or {}
    return ",".join(sorted(key.removeprefix(prefix) for key in keys if key.startswith(prefix))) or UNSET


def _address(kind: str) -> Cell:
    def cell(obj: JsonObject, _now: datetime) -> Any:
        addresses = value_at(obj, "status.addresses") or ()
        return next((each.get("address") for each in addresses if each.get("type") == kind), UNSET)

    return cell


def _ports(obj: JsonObject, _now: datetime) -> str:
    return (
        ",".join(
            f"{port.get('port')}{':' + str(port['nodePort']) if port.get('nodePort') else ''}"
            f"/{port.get('protocol', 'TCP')}"
            for port in value_at(obj, "spec.ports") or ()
        )
        or UNSET
    )


def _external_ip(obj: JsonObject, _now: datetime) -> str:
    spec = obj.get("spec", {})
    return spec.get("externalName") or ",".join(spec.get("externalIPs") or ()) or UNSET


def _endpoints(obj: JsonObject, _now: datetime) -> str:
    listed = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets") or ()
        for address in subset.get("addresses") or ()
        for port in subset.get("ports") or ()
    ]
    return ",".join(listed[:3]) + (f" + {len(listed) - 3} more..." if len(listed) > 3 else "") or UNSET


def _quota(*, of_limits: bool) -> Cell:
    def cell(obj: JsonObject, _now: datetime) -> str:
        hard, used = (value_at(obj, f"status.{name}") or {} for name in ("hard", "used"))
        return ", ".join(
            f"{name}: {used.get(name, '0')}/{amount}"
            for name, amount in sorted(hard.items())
            if name.startswith("limits") is of_limits
        )

    return cell


def _first(*paths: str, default: Any = None) -> Cell:
    return lambda obj, _now: next((value for path in paths if (value := value_at(obj, path))), default)


def _event_age(*paths: str) -> Cell:
    found = _first(*paths)
    return lambda obj, now: age(parse_time(moment), now) if (moment := found(obj, now)) else UNKNOWN


def _event_object(obj: JsonObject, _now: datetime) -> str:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(obj: JsonObject, _now: datetime) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController")
    return ", ".join(filter(None, (component, source.get("host") or obj.get("reportingInstance"))))


def _event_message(obj: JsonObject, _now: datetime) -> str:
    return (obj.get("message") or obj.get("note") or "").strip()


def _owner(obj: JsonObject, _now: datetime) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next(
        (f"{owner['kind'].lower()}.apps/{owner['name']}" for owner in owners if owner.get("controller")),
        UNSET,
    )


def _job_state(obj: JsonObject, _now: datetime) -> str:
    return next(
        (kind for kind in ("Complete", "Failed", "Suspended") if is_condition_true(obj, kind)), "Running"
    )


def _completions(obj: JsonObject, _now: datetime) -> str:
    completions, parallel = value_at(obj, "spec.completions"), value_at(obj, "spec.parallelism") or 0
    if completions is None:
        completions = f"1 of {parallel}" if parallel > 1 else "1"
    return f"{value_at(obj, 'status.succeeded') or 0}/{completions}"


def _duration(obj: JsonObject, now: datetime) -> str:
    start, end = value_at(obj, "status.startTime"), value_at(obj, "status.completionTime")
    return age(parse_time(start), parse_time(end) if end else now) if start is not None else ""


def _budget(name: str) -> Cell:
    return lambda obj, _now: "N/A" if (value := value_at(obj, f"spec.{name}")) is None else str(value)


def _service_of_api(obj: JsonObject, _now: datetime) -> str:
    service = value_at(obj, "spec.service")
    return f"{service.get('namespace')}/{service.get('name')}" if service else "Local"


def _is_api_available(obj: JsonObject, _now: datetime) -> str:
    condition = _find_condition(obj, "Available")
    state = condition.get("status", "Unknown")
    return state if not condition or state == "True" else f"{state} ({condition.get('reason')})"


def _subjects(kind: str) -> Cell:
    def cell(obj: JsonObject, _now: datetime) -> str:
        found = [each for each in obj.get("subjects") or () if each.get("kind") == kind]
        prefix = kind == "ServiceAccount"
        return ", ".join(
            f"{each.get('namespace', '')}/{each.get('name', '')}" if prefix else each.get("name", "")
            for each in found
        )

    return cell


def _hpa_targets(obj: JsonObject, _now: datetime) -> str:
    """Return each metric of an HPA, in v1 or v2 form, as current over target. After the second the rest is counted."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    if "targetCPUUtilizationPercentage" in spec:
        current = status.get("currentCPUUtilizationPercentage")
        shown = UNKNOWN if current is None else f"{current}%"
        return f"cpu: {shown}/{spec['targetCPUUtilizationPercentage']}%"
    metrics = spec.get("metrics") or []
    currents = [*(status.get("currentMetrics") or ()), *({} for _ in metrics)]
    texts = [_hpa_metric(metric, current or {}) for metric, current in zip(metrics, currents, strict=False)]
    shown = ", ".join(texts[:2]) or UNSET
    return shown if len(texts) <= 2 else f"{shown} + {len(texts) - 2} more..."


def _hpa_metric(metric: JsonObject, current: JsonObject) -> str:
    kind = metric.get("type", "")
    source = kind[:1].lower() + kind[1:]
    target, usage = value_at(metric, f"{source}.target") or {}, value_at(current, f"{source}.current") or {}
    prefix = f"{name}: " if (name := (metric.get(source) or {}).get("name")) else ""
    if target.get("averageUtilization") is not None:
        used = usage.get("averageUtilization")
        return f"{prefix}{UNKNOWN if used is None else f'{used}%'}/{target['averageUtilization']}%"
    if target.get("averageValue") is not None:
        suffix = " (avg)" if source in ("object", "external") else ""
        return f"{prefix}{usage.get('averageValue', UNKNOWN)}/{target['averageValue']}{suffix}"
    return f"{prefix}{usage.get('value', UNKNOWN)}/{target.get('value', '<auto>')}"


NAME, AGE = {"Name": at("metadata.name")}, {"Age": since("metadata.creationTimestamp")}
CONTAINERS = {"Containers*": template("spec.template", "name"), "Images*": template("spec.template", "image")}
TEMPLATE = {**CONTAINERS, "Selector*": selector("spec.selector")}
REPLICAS = {
    **NAME,
    "Desired#": at("spec.replicas", 0),
    "Current#": at("status.replicas", 0),
    "Ready#": at("status.readyReplicas", 0),
    **AGE,
}
EVENT = {
    "Last Seen": _event_age(
        "series.lastObservedTime", "lastTimestamp", "deprecatedLastTimestamp", "firstTimestamp",
        "deprecatedFirstTimestamp", "eventTime",
    ),
    "Type": at("type"),
    "Reason": at("reason"),
    "Object": _event_object,
    "Subobject*": _first("involvedObject.fieldPath", "regarding.fieldPath", default=""),
    "Source*": _event_source,
    "Message": _event_message,
    "First Seen*": _event_age("firstTimestamp", "deprecatedFirstTimestamp", "eventTime"),
    "Count*": _first("series.count", "count", "deprecatedCount", default=1),
    "Name*": at("metadata.name"),
}  # fmt: skip
BINDING = {
    **NAME,
    "Role": lambda obj, _now: f"{value_at(obj, 'roleRef.kind')}/{value_at(obj, 'roleRef.name')}",
    **AGE,
    **{f"{kind}s*": _subjects(kind) for kind in ("User", "Group")},
    "ServiceAccounts*": _subjects("ServiceAccount"),
}
WEBHOOKS = {**NAME, "Webhooks#": count("webhooks"), **AGE}
RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"

#: Group and plural -> headers and cells. `*` marks columns of `-o wide`, `#` integers, `?` booleans.
ROWS: dict[tuple[str, str], dict[str, Cell]] = {
    ("", "pods"): {
        **NAME,
        "Ready": _ready_containers,
        "Status": _pod_state,
        "Restarts": _restarts,
        **AGE,
        "IP*": _pod_ip,
        "Node*": at("spec.nodeName", UNSET),
        "Nominated Node*": at("status.nominatedNodeName", UNSET),
        "Readiness Gates*": _gates,
    },
    ("", "nodes"): {
        **NAME,
        "Status": _node_state,
        "Roles": _roles,
        **AGE,
        "Version": at("status.nodeInfo.kubeletVersion"),
        "Internal-IP*": _address("InternalIP"),
        "External-IP*": _address("ExternalIP"),
        "OS-Image*": at("status.nodeInfo.osImage", UNKNOWN),
        "Kernel-Version*": at("status.nodeInfo.kernelVersion", UNKNOWN),
        "Container-Runtime*": at("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
    },
    ("", "namespaces"): {**NAME, "Status": at("status.phase"), **AGE},
    ("", "services"): {
        **NAME,
        "Type": at("spec.type", "ClusterIP"),
        "Cluster-IP": at("spec.clusterIP", UNSET),
        "External-IP": _external_ip,
        "Port(s)": _ports,
        **AGE,
        "Selector*": labels("spec.selector"),
    },
    ("", "configmaps"): {**NAME, "Data": count("data", "binaryData"), **AGE},
    ("", "secrets"): {**NAME, "Type": at("type"), "Data": count("data", "binaryData"), **AGE},
    ("", "serviceaccounts"): {**NAME, **AGE},
    ("", "endpoints"): {**NAME, "Endpoints": _endpoints, **AGE},
    ("", "resourcequotas"): {
        **NAME, "Request": _quota(of_limits=False), "Limit": _quota(of_limits=True), **AGE,
    },
    ("", "replicationcontrollers"): {**REPLICAS, **CONTAINERS, "Selector*": labels("spec.selector")},
    ("", "events"): EVENT,
    ("events.k8s.io", "events"): EVENT,
    ("apps", "controllerrevisions"): {**NAME, "Controller": _owner, "Revision": at("revision", 0), **AGE},
    ("apps", "deployments"): {
        **NAME,
        "Ready": _ready,
        "Up-to-date": at("status.updatedReplicas", 0),
        "Available": at("status.availableReplicas", 0),
        **AGE,
        **TEMPLATE,
    },
    ("apps", "replicasets"): {**REPLICAS, **TEMPLATE},
    ("apps", "statefulsets"): {**NAME, "Ready": _ready, **AGE, **CONTAINERS},
    ("apps", "daemonsets"): {
        **NAME,
        "Desired#": at("status.desiredNumberScheduled", 0),
        "Current#": at("status.currentNumberScheduled", 0),
        "Ready#": at("status.numberReady", 0),
        "Up-to-date#": at("status.updatedNumberScheduled", 0),
        "Available#": at("status.numberAvailable", 0),
        "Node Selector": labels("spec.template.spec.nodeSelector"),
        **AGE,
        **TEMPLATE,
    },
    ("batch", "jobs"): {
        **NAME, "Status": _job_state, "Completions": _completions, "Duration": _duration, **AGE, **TEMPLATE,
    },
    ("batch", "cronjobs"): {
        **NAME,
        "Schedule": at("spec.schedule"),
        "Timezone": at("spec.timeZone", UNSET),
        "Suspend?": lambda obj, _now: "True" if value_at(obj, "spec.suspend") else "False",
        "Active#": count("status.active"),
        "Last Schedule": since("status.lastScheduleTime", UNSET),
        **AGE,
        "Containers*": template("spec.jobTemplate.spec.template", "name"),
        "Images*": template("spec.jobTemplate.spec.template", "image"),
        "Selector*": selector("spec.jobTemplate.spec.selector"),
    },
    ("autoscaling", "horizontalpodautoscalers"): {
        **NAME,
        "Reference": lambda obj, _now: (
            f"{value_at(obj, 'spec.scaleTargetRef.kind')}/{value_at(obj, 'spec.scaleTargetRef.name')}"
        ),
        "Targets": _hpa_targets,
        "MinPods": lambda obj, _now: (
            "<unset>" if (least := value_at(obj, "spec.minReplicas")) is None else str(least)
        ),
        "MaxPods": at("spec.maxReplicas", 0),
        "Replicas": at("status.currentReplicas", 0),
        **AGE,
    },
    ("policy", "poddisruptionbudgets"): {
        **NAME,
        "Min Available": _budget("minAvailable"),
        "Max Unavailable": _budget("maxUnavailable"),
        "Allowed Disruptions#": at("status.disruptionsAllowed", 0),
        **AGE,
    },
    ("coordination.k8s.io", "leases"): {**NAME, "Holder": at("spec.holderIdentity"), **AGE},
    (RBAC, "rolebindings"): BINDING,
    (RBAC, "clusterrolebindings"): BINDING,
    (ADMISSION, "mutatingwebhookconfigurations"): WEBHOOKS,
    (ADMISSION, "validatingwebhookconfigurations"): WEBHOOKS,
    ("apiregistration.k8s.io", "apiservices"): {
        **NAME, "Service": _service_of_api, "Available": _is_api_available, **AGE,
    },
}  # fmt: skip


def _column(header: str) -> TableColumn:
    name = header.strip("*#?")
    kind = "integer" if "#" in header else "boolean" if "?" in header else "string"
    form, priority = "name" if name == "Name" else "", 1 if header.endswith("*") else 0
    return TableColumn(name, "", kind, form, priority, f"{name} of the object.")


BUILTIN = {resource: (tuple(map(_column, row)), tuple(row.values())) for resource, row in ROWS.items()}
