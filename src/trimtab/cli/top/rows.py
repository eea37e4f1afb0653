"""The rows of `trimtab top`: HPAs of both kinds and VPAs.

The reason of an HPA is that of the operator's last decision, where the operator is asked. Otherwise it is derived from the
status and the spec.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.errors import NotFound
from trimtab.cluster.resource import Resource
from trimtab.decide.horizontal.from_status import (
    StatusReason,
    has_readable_target,
    is_decided,
    reason_from_status,
)
from trimtab.decide.horizontal.status.conditions import UNKNOWN_ANNOTATION
from trimtab.model.core.pod import MEMORY
from trimtab.model.groups import NATIVE_VPA_GROUP, OWN_GROUP
from trimtab.model.hpa.dry_run import DRY_RUN, MODE_ANNOTATION, mode_problem
from trimtab.model.hpa.metric_kinds import MOST_IN_A_COLUMN, metric_readings
from trimtab.model.hpa.selection_strategy import named_strategies, strategy_problem
from trimtab.model.hpa.types import ConditionType, HorizontalPodAutoscaler
from trimtab.model.quantity import Quantity
from trimtab.model.readable import quantity_of_bytes
from trimtab.model.vpa.types import VerticalPodAutoscaler, VerticalPodAutoscalerStatus, VPAConditionType
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.kinds import NATIVE, OWN

COLUMNS: Final = ("namespace", "name", "metrics", "replicas", "min-max", "mode", "reason")
WIDE: Final = (*COLUMNS, "target", "message")
NARROW: Final = ("namespace", "name", "metrics", "replicas")
"""The columns where the rest does not fit: it is on a second line."""
SHORTEST: Final = {"metrics": 20, "name": 16, "namespace": 8}
"""The fewest characters that a column is cut to, in the order in which columns are cut."""
NO_RECOMMENDATION: Final = "NoRecommendation"
_UNMET: Final = (
    VPAConditionType.CONFIG_UNSUPPORTED,
    VPAConditionType.NO_PODS_MATCHED,
    VPAConditionType.ESTIMATOR_FAILED,
    VPAConditionType.REPLACEMENT_REFUSED,
    VPAConditionType.NO_NODE_FITS,
    VPAConditionType.FETCHING_HISTORY,
    VPAConditionType.LOW_CONFIDENCE,
)
"""Conditions of VPAs that say what is missing, the most important first."""


@dataclass(frozen=True)
class AutoscalerKind:
    """A kind of autoscaler, and its name in `kubectl get -o name`."""

    resource: Resource[Any]
    plural_name: str


VPA_KINDS: Final = ("tvpa", "vpa")
KINDS: Final = {
    "thpa": AutoscalerKind(OWN_HPAS, f"horizontalpodautoscaler.{OWN_GROUP}"),
    "hpa": AutoscalerKind(NATIVE_HPAS, "horizontalpodautoscaler.autoscaling"),
    "tvpa": AutoscalerKind(OWN.vpas, f"verticalpodautoscaler.{OWN_GROUP}"),
    "vpa": AutoscalerKind(NATIVE.vpas, f"verticalpodautoscaler.{NATIVE_VPA_GROUP}"),
}
"""The name of each kind in kubectl. During a migration an own object and a native one may have the same name."""

Decided = Mapping[str, StatusReason]
"""The operator's last reason for each HPA, by its uid: the operator may be that of another cluster."""
NONE_DECIDED: Final[Decided] = {}


def decided_by(overview: Iterable[Mapping[str, Any]]) -> Decided:
    """Return the reasons of the rows of the operator's page `/autoscalers`.

    HPAs without a decision and those of other replicas are left out.
    """
    return {
        row["uid"]: StatusReason(row["reason"], row["summary"])
        for row in overview
        if "uid" in row and "reason" in row
    }


async def rows_of(
    client: Client,
    namespace: str,
    settings: Settings,
    *,
    selector: str = "",
    decided: Decided = NONE_DECIDED,
) -> list[dict[str, Any]]:
    """Return a row per autoscaler, as an operator with these settings treats it."""
    rows = []
    for kind, known in KINDS.items():
        try:
            listed = await client.list(
                known.resource, ListOptions(namespace=namespace or None, labels=selector)
            )
        except NotFound:
            continue  # its CRD is not installed
        rows += [
            vpa_row(found)
            if isinstance(found, VerticalPodAutoscaler)
            else hpa_row(kind, found, settings, decided.get(found.metadata.uid))
            for found in listed.items
        ]
    return sorted(rows, key=lambda row: (row["namespace"], row["name"]))


def hpa_row(
    kind: str, hpa: HorizontalPodAutoscaler, settings: Settings, decided: StatusReason | None = None
) -> dict[str, Any]:
    """Return the row of an HPA, with the reason that the operator `decided` by if it was asked."""
    status = hpa.status
    is_held = settings.dry_run and _is_acted_on(kind, hpa, settings)
    problem = _strategy_problem(hpa, settings)
    active = status.condition(ConditionType.SCALING_ACTIVE)
    reason = reason_of(hpa, problem, decided)
    is_known = has_readable_target(status)
    return {
        "namespace": hpa.metadata.namespace,
        "kind": kind,
        "name": hpa.metadata.name,
        "target": str(hpa.spec.scale_target_ref),
        "metrics": [
            {"name": reading.name, "current": reading.current, "target": reading.target}
            for reading in metric_readings(hpa)
        ],
        "min": hpa.spec.min_replicas if hpa.spec.min_replicas is not None else 1,
        "max": hpa.spec.max_replicas,
        "current": status.current_replicas if is_known else None,
        "desired": status.desired_replicas if is_known else None,
        "decided": is_decided(status),
        "active": active.status if active else "Unknown",
        "mode": mode_of(hpa, _strategies(hpa) if problem else None) or (DRY_RUN if is_held else ""),
        "reason": reason.word,
        "message": reason.message,
    }


def vpa_row(vpa: VerticalPodAutoscaler) -> dict[str, Any]:
    """Return the row of a VPA. Its recommendations are in the place of metrics."""
    policy, target = vpa.spec.update_policy, vpa.spec.target_ref
    recommendation = vpa.status.recommendation
    reason, message = _reason_of_vpa(vpa.status)
    return {
        "namespace": vpa.metadata.namespace,
        "kind": "vpa" if vpa.is_native else "tvpa",
        "name": vpa.metadata.name,
        "target": "" if target is None else str(target),
        "recommendation": {
            container.container_name: {name: str(amount) for name, amount in container.target.items()}
            for container in (recommendation.container_recommendations if recommendation else ())
        },
        # As it is written: a newer VPA may know more modes.
        "mode": (policy.update_mode if policy is not None else None) or vpa.update_mode.value,
        "reason": reason,
        "message": message,
    }


def _reason_of_vpa(status: VerticalPodAutoscalerStatus) -> tuple[str, str]:
    """Return the most important condition that says what is missing, or whether there is a recommendation."""
    for kind in _UNMET:
        condition = status.condition(kind)
        if condition is not None and condition.status == "True":
            return condition.type, condition.message
    provided = status.condition(VPAConditionType.RECOMMENDATION_PROVIDED)
    if provided is None:
        return NO_RECOMMENDATION, ""
    if provided.status != "True":
        return NO_RECOMMENDATION, provided.message
    return VPAConditionType.RECOMMENDATION_PROVIDED.value, ""


def cells_of(row: Mapping[str, Any], *, is_wide: bool = False, room: int = 0) -> dict[str, str]:
    """Return the cells of a row as text. With `room` the names of metrics are cut, and their values are not."""
    is_vpa = row["kind"] in VPA_KINDS
    bounds = "" if is_vpa else f"{row['min']}-{row['max']}"
    details = ", ".join(part for part in (f"{bounds} replicas" if bounds else "", row["mode"]) if part)
    message = " ".join(row["message"].split())
    return {
        "namespace": row["namespace"],
        "name": f"{row['kind']}/{row['name']}",
        "metrics": _metrics(row, is_wide=is_wide, room=room),
        "replicas": "" if is_vpa else _replicas(row),
        "min-max": bounds,
        "mode": row["mode"],
        "reason": row["reason"],
        "target": row["target"],
        "message": message,
        "why": f"{row['reason']} ({details}){f': {message}' if message else ''}",
    }


def _metrics(row: Mapping[str, Any], *, is_wide: bool, room: int) -> str:
    """Return the first metrics, or the first containers of a recommendation, and how many more there are."""
    if row["kind"] in VPA_KINDS:
        pairs = [
            (container, " ".join(f"{name}={_size(name, amount)}" for name, amount in sizes.items()))
            for container, sizes in row["recommendation"].items()
        ]
    else:
        pairs = [(metric["name"], f"{metric['current']}/{metric['target']}") for metric in row["metrics"]]
    if is_wide:
        return _listed(pairs, len(pairs))
    several = _listed(pairs, MOST_IN_A_COLUMN)
    if not room or len(several) <= room:
        return several
    (name, value), *others = pairs
    value += f" +{len(others)}" if others else ""
    left = max(room - len(value) - 1, 1)
    return f"{name if len(name) <= left else name[: left - 1] + '…'} {value}"


def _listed(pairs: Sequence[tuple[str, str]], most: int) -> str:
    text = ", ".join(f"{name} {value}" for name, value in pairs[:most])
    return f"{text} +{len(pairs) - most}" if len(pairs) > most else text


def _size(resource: str, amount: str) -> str:
    return quantity_of_bytes(Quantity.parse(amount)) if resource == MEMORY else amount


def _replicas(row: Mapping[str, Any]) -> str:
    """Return the current replicas, and the desired ones if a decision changes them. `-` stands for unknown ones."""
    current, desired = row["current"], row["desired"]
    if current is None:
        return "-"
    return f"{current} to {desired}" if row["decided"] and current != desired else str(current)


def _is_acted_on(kind: str, hpa: HorizontalPodAutoscaler, settings: Settings) -> bool:
    is_kind = settings.horizontal.native_hpas if kind == "hpa" else settings.horizontal.own_hpas
    watched = settings.watch_namespaces
    return is_kind and (not watched or hpa.metadata.namespace in watched)


def _strategy_problem(hpa: HorizontalPodAutoscaler, settings: Settings) -> str:
    """Return what is wrong with the selection strategy of an HPA, if the gate is on."""
    if not settings.gates.hpa_selection_strategy:
        return ""
    return strategy_problem(hpa.metadata.annotations, hpa.spec.selection_strategy)


def _strategies(hpa: HorizontalPodAutoscaler) -> str:
    return " or ".join(
        dict.fromkeys(named_strategies(hpa.metadata.annotations, hpa.spec.selection_strategy).values())
    )


def mode_of(hpa: HorizontalPodAutoscaler, misspelt_strategy: str | None = None) -> str:
    """Return `DryRun` if the HPA writes no replicas. A misspelt annotation is shown as it is."""
    text = hpa.metadata.annotations.get(MODE_ANNOTATION, "")
    misspelt = text if mode_problem(text) else misspelt_strategy
    return f"{DRY_RUN} ({misspelt}?)" if misspelt else text


def reason_of(
    hpa: HorizontalPodAutoscaler, problem: str = "", decided: StatusReason | None = None
) -> StatusReason:
    """Return why the replicas are what they are. A misspelt annotation comes first."""
    problem = mode_problem(hpa.metadata.annotations.get(MODE_ANNOTATION, "")) or problem
    return StatusReason(UNKNOWN_ANNOTATION, problem) if problem else decided or reason_from_status(hpa)
