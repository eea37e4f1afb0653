"""Monitors and alerts for the Prometheus operator, and a Grafana dashboard."""

import json
from typing import Any, Final

from trimtab.install import names
from trimtab.install.names import ENABLED, namespaced_object
from trimtab.install.template import If, Tree, Val

_HPA: Final = "horizontal_pod_autoscaler_controller"
_COREOS: Final = "monitoring.coreos.com/v1"

ALERTS: Final[tuple[tuple[str, str, str, str], ...]] = (
    (
        "TrimtabHorizontalAbsent",
        "10m",
        f"absent({_HPA}_num_horizontal_pod_autoscalers)",
        "No horizontal autoscaler is scraped: nothing scales. See kubectl -n NAMESPACE get pods.",
    ),
    (
        "TrimtabDecisionsFail",
        "15m",
        f'sum(rate({_HPA}_reconciliations_total{{error!="none"}}[5m])) / sum(rate({_HPA}_reconciliations_total[5m])) > 0.1',
        "More than 10 % of all decisions end in an error; `trimtab top` shows which HPAs.",
    ),
    (
        "TrimtabDefect",
        "0m",
        "increase(trimtab_failed_decisions_total[15m]) > 0",
        "A decision ended in an internal error of Trimtab; its log has the traceback.",
    ),
    (
        "TrimtabRoundsAreLate",
        "10m",
        "histogram_quantile(0.99, sum by (le) (rate(trimtab_cycle_duration_seconds_bucket[5m]))) > 15",
        "A sync of all HPAs takes longer than the default sync period of 15 s.",
    ),
    (
        "TrimtabAdmissionIsNotProved",
        "15m",
        "increase(vpa_updater_admission_controller_status_invalid_total[15m]) > 0",
        "The updater evicts nothing, because the admission probe came back unchanged.",
    ),
    (
        "TrimtabWebhookCertificateEnds",
        "1h",
        "trimtab_admission_certificate_expiry_seconds - time() < 3 * 86400",
        "The webhook's certificate ends within three days; rotation does not work.",
    ),
)
"""Name, duration, expression and message."""

PANELS: Final[tuple[tuple[str, str, str], ...]] = (
    ("Replicas wanted", f"{_HPA}_desired_replicas", "{{namespace}}/{{hpa_name}}"),
    ("Decisions per second", f"sum by (action) (rate({_HPA}_reconciliations_total[5m]))", "{{action}}"),
    (
        "Decisions with an error",
        f'sum by (error) (rate({_HPA}_reconciliations_total{{error!="none"}}[5m]))',
        "{{error}}",
    ),
    (
        "Round, 99th percentile",
        "histogram_quantile(0.99, sum by (le) (rate(trimtab_cycle_duration_seconds_bucket[5m])))",
        "seconds",
    ),
    ("HPAs", f"{_HPA}_num_horizontal_pod_autoscalers", "{{pod}}"),
    (
        "VPAs with a recommendation",
        "sum by (has_recommendation) (vpa_recommender_vpa_objects_count)",
        "{{has_recommendation}}",
    ),
    ("Evictions", "sum(rate(vpa_updater_evicted_pods_total[5m]))", "per second"),
    ("Resizes in place", "sum(rate(vpa_updater_in_place_updated_pods_total[5m]))", "per second"),
    (
        "Pods admitted",
        "sum by (applied) (rate(vpa_admission_controller_admission_pods_total[5m]))",
        "changed: {{applied}}",
    ),
)
"""Title, expression and legend of each panel."""


def monitors() -> list[Tree]:
    """Return the objects for the Prometheus operator and Grafana. All are off by default."""
    return [
        If(Val("serviceMonitor.enabled"), _service_monitor()),
        If(Val("prometheusRule.enabled"), _rules()),
        If(Val("grafanaDashboard.enabled"), _dashboard()),
    ]


def _service_monitor() -> Tree:
    scraped = [name for name in ENABLED if name != names.ADAPTER]
    choice = {"key": "app.kubernetes.io/component", "operator": "In", "values": scraped}
    secret = {"name": Val("tokenSecret"), "key": "token"}
    return namespaced_object(
        _COREOS,
        "ServiceMonitor",
        "trimtab",
        spec={
            "selector": {"matchLabels": {"app.kubernetes.io/name": "trimtab"}, "matchExpressions": [choice]},
            "endpoints": [
                {
                    "port": "metrics",
                    "interval": Val("serviceMonitor.interval"),
                    "authorization": If(Val("tokenSecret"), {"credentials": secret}),
                }
            ],
        },
    )


def _rules() -> Tree:
    rules = [
        {
            "alert": name,
            "expr": expression,
            "for": lasting,
            "labels": {"severity": "warning"},
            "annotations": {"summary": summary},
        }
        for name, lasting, expression, summary in ALERTS
    ]
    groups = [{"name": "trimtab", "rules": rules}]
    return namespaced_object(_COREOS, "PrometheusRule", "trimtab", spec={"groups": groups})


def _dashboard() -> Tree:
    made = namespaced_object(
        "v1",
        "ConfigMap",
        "trimtab-grafana-dashboard",
        data={"trimtab.json": json.dumps(grafana_dashboard(), indent=1)},
    )
    made["metadata"]["labels"]["grafana_dashboard"] = "1"
    return made


def grafana_dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana reads it: panels of half a screen, two in a row."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    panels = [
        {
            "id": number,
            "type": "timeseries",
            "title": title,
            "datasource": source,
            "gridPos": {"h": 8, "w": 12, "x": 12 * ((number - 1) % 2), "y": 8 * ((number - 1) // 2)},
            "targets": [{"refId": "A", "datasource": source, "expr": expression, "legendFormat": legend}],
        }
        for number, (title, expression, legend) in enumerate(PANELS, 1)
    ]
    variable = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "title": "Trimtab",
        "uid": "trimtab",
        "schemaVersion": 39,
        "tags": ["kubernetes", "autoscaling"],
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [variable]},
        "panels": panels,
    }
