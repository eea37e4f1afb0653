"""The values that every program has."""

from typing import Any, Final

from trimtab.install.values import types
from trimtab.install.values.chart_value import ChartValue
from trimtab.install.values.types import Schema, list_of

_SMALL: Final = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}


def values_of_program(path: str, program: str) -> tuple[ChartValue, ...]:
    """Return the values that every program has."""

    def value(name: str, default: Any, text: str, kind: Schema) -> ChartValue:
        return ChartValue(f"{path}.{name}", default, text, kind)

    instead = "Empty: that of all programs."
    return (
        value("resources", _SMALL, f"Resources of {program}.", types.RESOURCES),
        value(
            "extraArgs",
            [],
            f"Further arguments of {program}, as `[--flag=value]`; the last of a flag counts.",
            list_of(types.ARGUMENT),
        ),
        value(
            "extraEnv",
            [],
            f"Environment variables of {program}, as in a container's `env`.",
            types.ENVIRONMENT,
        ),
        value(
            "extraEgress",
            [],
            f"Further connections that {program} may open, as rules of a NetworkPolicy's `egress`.",
            types.EGRESS,
        ),
        value("serviceAccount.annotations", {}, f"Annotations of the account of {program}.", types.TEXTS),
        value("podLabels", {}, f"Labels of the pods of {program}, besides those of all pods.", types.LABELS),
        value(
            "podAnnotations",
            {},
            f"Annotations of the pods of {program}, besides those of all pods.",
            types.TEXTS,
        ),
        value(
            "podSecurityContext", {}, f"Security context of the pods of {program}. {instead}", types.ANY_MAP
        ),
        value(
            "securityContext", {}, f"Security context of the container of {program}. {instead}", types.ANY_MAP
        ),
        value("nodeSelector", {}, f"Labels of the nodes for {program}. {instead}", types.NODE_LABELS),
        value("tolerations", [], f"Taints that {program} tolerates. {instead}", types.TOLERATIONS),
        value("affinity", {}, f"Affinity of the pods of {program}. {instead}", types.AFFINITY),
        value(
            "topologySpreadConstraints",
            [],
            f"How the replicas of {program} are spread. {instead}",
            types.SPREAD,
        ),
    )
