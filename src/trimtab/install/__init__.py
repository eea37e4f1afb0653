"""Generates the manifests and the Helm chart of an installation from one source.

Manifests are trees of plain data with placeholders for values. `template.resolve` fills the placeholders and returns
objects; `chart` writes the same placeholders as Helm expressions. So flat YAML and chart cannot differ.

Reading order: `values` (what users may set), `template` (placeholders), `names`, then the parts (`rbac_rules`, `rbac`,
`admission_policies`, `webhook_configurations`, `deployments`, `network`, `monitoring`, `kube_state_metrics`), then `manifests` and `chart`.

What belongs here: manifests. What does not: what the installed programs do.
"""

from trimtab.install.chart import chart_files
from trimtab.install.deployments import value_of_flag
from trimtab.install.manifests import manifests
from trimtab.install.values.assignments import ValueProblem, set_values
from trimtab.install.values.chart_value import ChartValue
from trimtab.install.values.table import default_values

__all__ = [
    "ChartValue",
    "ValueProblem",
    "chart_files",
    "default_values",
    "manifests",
    "set_values",
    "value_of_flag",
]
