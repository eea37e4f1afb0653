"""The rows of nodes, services, events, budgets and configuration."""

from datetime import datetime
from typing import Any

from trimtab.model.times import parse_time
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.tables.cells import UNKNOWN, UNSET, Cells, age, age_of, find_condition, labels_text, name_of


def node_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a Node."""
    status = obj.get("status", {})
    ready = (find_condition(obj, "Ready") or {}).get("status", "")
    state = {"True": "Ready", "False": "NotReady"}.get(ready, "Unknown")
    if obj.get("spec", {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    roles = ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))) or UNSET
    addresses = {a.get("type"): a.get("address") for a in status.get("addresses") or ()}
    info = status.get("nodeInfo", {})
    return [
        name_of(obj),
        state,
        roles,
        age_of(obj, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", UNSET),
        addresses.get("ExternalIP", UNSET),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def service_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a Service."""
    spec = obj.get("spec", {})
    ports = ",".join(
        f"{p.get('port')}{':' + str(p['nodePort']) if p.get('nodePort') else ''}/{p.get('protocol', 'TCP')}"
        for p in spec.get("ports") or ()
    )
    external = spec.get("externalName") or ",".join(spec.get("externalIPs") or ()) or UNSET
    return [
        name_of(obj),
        spec.get("type", "ClusterIP"),
        spec.get("clusterIP") or UNSET,
        external,
        ports or UNSET,
        age_of(obj, now),
        labels_text(spec.get("selector")),
    ]


def event_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of an Event of either group."""
    about = _first(obj, "involvedObject", "regarding") or {}
    series = obj.get("series") or {}
    first = _first(obj, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
    last = series.get("lastObservedTime") or _first(obj, "lastTimestamp", "deprecatedLastTimestamp") or first
    source = _first(obj, "source", "deprecatedSource") or {}
    component = source.get("component") or _first(obj, "reportingComponent", "reportingController")
    reporter = ", ".join(filter(None, (component, source.get("host") or obj.get("reportingInstance"))))
    return [
        _since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        reporter,
        (_first(obj, "message", "note") or "").strip(),
        _since(first, now),
        series.get("count") or _first(obj, "count", "deprecatedCount") or 1,
        name_of(obj),
    ]


def _first(obj: JsonObject, *names: str) -> Any:
    return next((obj[name] for name in names if obj.get(name)), None)


def _since(moment: str | None, now: datetime) -> str:
    return age(parse_time(moment), now) if moment else UNKNOWN


def budget_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a PodDisruptionBudget."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    low = str(spec["minAvailable"]) if "minAvailable" in spec else "N/A"
    high = str(spec["maxUnavailable"]) if "maxUnavailable" in spec else "N/A"
    return [name_of(obj), low, high, status.get("disruptionsAllowed", 0), age_of(obj, now)]


def api_service_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of an APIService."""
    service = obj.get("spec", {}).get("service")
    shown = f"{service.get('namespace')}/{service.get('name')}" if service else "Local"
    condition = find_condition(obj, "Available")
    state = "Unknown" if condition is None else condition["status"]
    if condition is not None and state != "True":
        state += f" ({condition.get('reason')})"
    return [name_of(obj), shown, state, age_of(obj, now)]


def binding_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a role binding."""
    ref = obj.get("roleRef", {})
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        by_kind.setdefault(subject.get("kind", ""), []).append(name)
    role = f"{ref.get('kind')}/{ref.get('name')}"
    subjects = [", ".join(by_kind[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [name_of(obj), role, age_of(obj, now), *subjects]


def named_cells(*paths: str) -> Cells:
    """Return the function that makes a row of the name, plain values and the age."""

    def cells(obj: JsonObject, now: datetime) -> list[Any]:
        row: list[Any] = [name_of(obj)]
        for path in paths:
            value: Any = obj
            for name in path.split("."):
                value = value.get(name) if isinstance(value, dict) else None
            row.append(len(value) if isinstance(value, dict | list) else ("" if value is None else value))
        return [*row, age_of(obj, now)]

    return cells


def data_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a ConfigMap or Secret."""
    size = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    if obj["kind"] == "Secret":
        return [name_of(obj), obj.get("type", ""), size, age_of(obj, now)]
    return [name_of(obj), size, age_of(obj, now)]


def endpoints_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of Endpoints."""
    listed = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets") or ()
        for address in subset.get("addresses") or ()
        for port in subset.get("ports") or ()
    ]
    shown = ",".join(listed[:3]) + (f" + {len(listed) - 3} more..." if len(listed) > 3 else "")
    return [name_of(obj), shown or UNSET, age_of(obj, now)]


def quota_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a ResourceQuota: requests and limits, used of hard."""
    hard, used = (obj.get("status", {}).get(name) or {} for name in ("hard", "used"))
    texts = {name: f"{name}: {used.get(name, '0')}/{amount}" for name, amount in sorted(hard.items())}
    limits = ", ".join(text for name, text in texts.items() if name.startswith("limits"))
    requests = ", ".join(text for name, text in texts.items() if not name.startswith("limits"))
    return [name_of(obj), requests, limits, age_of(obj, now)]


def revision_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a ControllerRevision."""
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next(
        (f"{ref['kind'].lower()}.apps/{ref['name']}" for ref in owners if ref.get("controller")), UNSET
    )
    return [name_of(obj), owner, obj.get("revision", 0), age_of(obj, now)]
